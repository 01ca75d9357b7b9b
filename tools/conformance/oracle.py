"""Asking ptxas about many probes at once."""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from ptxtools.isa.targets import Target

from .setting import LINE, LINES, MODULE, NEWEST, header, module_of, where

#: Seconds after which ptxas is given up: it takes a tenth for a full batch, and for a few probes it never ends.
_LIMIT = 10
_NEEDS_ABI = b"'Compile only(-c)' requires ABI"
_UNLINKED = re.compile(rb"Unresolved extern (variable|function)")
_ERROR = re.compile(r"ptxas (?!<).*?, line (\d+); (error|fatal)\s*: (.*)")
_VERSION = re.compile(r"requires PTX ISA \.version (\d+\.\d+)")
_TARGET = re.compile(r"requires \.target (sm_\w+)")


class Verdict(NamedTuple):
    """accepted: by ptxas. requires: what it named, such as "7.0 sm_80", or ""; messages: all that it said."""

    accepted: bool
    requires: str = ""
    messages: tuple[str, ...] = ()

    @property
    def crashed(self) -> bool:
        """ptxas ended without a word about the line, or not at all: no verdict."""
        return self.messages == ("crash",)


def release_of(setting: str) -> str:
    """The release of ptxas that is asked about a setting: that of its PTX version, "13.0" for all up to 9.0."""
    return f"13.{max(where(setting)[0], NEWEST)[1]}"


def releases(commands: Iterable[str]) -> dict[str, Oracle]:
    """The ptxas of each release, by what they say of themselves; nothing for a command that does not exist."""
    found = {}
    for command in commands:
        if shutil.which(command):
            said = subprocess.run([command, "--version"], capture_output=True, text=True, check=False).stdout
            if release := re.search(r"release (\d+\.\d+)", said):
                found[release[1]] = Oracle(command)
    return found


def given(description: str | None) -> dict[str, Oracle]:
    """The ptxas of each release that a command line has as --ptxas PATH; without it, the one that is installed."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ptxas", action="append", help="a ptxas; one for each release that is to be asked")
    return releases(parser.parse_args().ptxas or ["ptxas"])


class Oracle:
    """One ptxas."""

    def __init__(self, command: str = "ptxas") -> None:
        self.command = command
        self.calls = 0

    def ask(self, setting: str, place: str, probes: Sequence[str]) -> list[Verdict]:
        """The verdict on each probe. Lines found wrong are taken out until the rest passes as a whole, since an
        early error hides later ones; a module that makes ptxas crash is halved."""
        said: dict[int, list[str]] = {}
        if place == LINES:
            return [self._whole(setting, probe) for probe in probes]
        if place == MODULE:
            for at, probe in enumerate(probes):
                status, messages, _ = self._run(setting, place, [probe])
                if status:
                    said[at] = [text for texts in messages.values() for text in texts]
                    said[at] = said[at] or ["crash" if status < 0 else "refused as a whole"]
        else:
            self._ask(setting, place, probes, list(range(len(probes))), said)
        return [_verdict(said.get(at)) for at in range(len(probes))]

    def accepts(self, setting: str, lines: Sequence[str]) -> bool:
        """Whether this whole module passes."""
        return self._call(setting, lines).returncode == 0

    def help(self) -> str:
        """What it says of its options, the targets among them."""
        return subprocess.run([self.command, "--help"], capture_output=True, text=True, check=False).stdout

    def _whole(self, setting: str, probe: str) -> Verdict:
        """The verdict on a module, with the line of its first error as "@3", counted in the probe."""
        lines, _ = module_of(setting, LINES, [probe])
        done = self._call(setting, lines)
        if not done.returncode:
            return Verdict(True)
        found = _ERROR.findall((done.stderr + done.stdout).decode(errors="replace"))
        if not found:
            # The linker's word on what another module defines says nothing about this one.
            silent = done.returncode < 0 or _UNLINKED.search(done.stderr) is not None
            return Verdict(False, "", ("crash" if silent else "refused as a whole",))
        before = 0 if probe.startswith(".version") else len(header(setting))
        first = min(int(number) for number, _, _ in found) - before
        return Verdict(False, f"@{first}" if first > 0 else "", tuple(text for _, _, text in found))

    def _ask(
        self, setting: str, place: str, probes: Sequence[str], live: list[int], said: dict[int, list[str]]
    ) -> None:
        live = self._first_pass(setting, place, probes, live, said)
        while live:
            status, messages, _ = self._run(setting, place, [probes[at] for at in live])
            if not status:
                return
            for index, texts in messages.items():
                said.setdefault(live[index], []).extend(texts)
            if messages:
                live = [at for at in live if at not in said]
            elif len(live) == 1:
                said[live[0]] = ["crash"]
                return
            else:
                middle = len(live) // 2
                self._ask(setting, place, probes, live[:middle], said)
                self._ask(setting, place, probes, live[middle:], said)
                return

    def _first_pass(
        self, setting: str, place: str, probes: Sequence[str], live: list[int], said: dict[int, list[str]]
    ) -> list[int]:
        """A syntax error ends ptxas: go on behind it."""
        start = 0
        while start < len(live):
            part = live[start:]
            _, messages, fatal = self._run(setting, place, [probes[at] for at in part])
            for index, texts in messages.items():
                if fatal is None or index <= fatal:
                    said.setdefault(part[index], []).extend(texts)
            if fatal is None:
                break
            start += fatal + 1
        return [at for at in live if at not in said]

    def _run(self, setting: str, place: str, probes: list[str]) -> tuple[int, dict[int, list[str]], int | None]:
        """Exit status, messages by probe, and the probe with a syntax error."""
        lines, first = module_of(setting, place, probes)
        done = self._call(setting, lines)
        messages: dict[int, list[str]] = {}
        fatal = None
        for found in _ERROR.finditer((done.stderr + done.stdout).decode(errors="replace")):
            at = 0 if place == MODULE else int(found[1]) - first - 1
            if at < 0:
                raise RuntimeError(f"{setting}: ptxas refuses what stands before the probes: {found[0]}")
            if at >= len(probes):
                continue
            messages.setdefault(at, []).append(found[3])
            if found[2] == "fatal" and "Parsing" in found[3]:
                fatal = at
        return done.returncode, messages, fatal

    def _call(self, setting: str, lines: Sequence[str]) -> subprocess.CompletedProcess[bytes]:
        self.calls += 1
        target = where(setting)[1]
        number = Target(target).number
        arch = "sm_110" + target[6:] if number == 101 else target if number >= 75 else "sm_75"
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "probe.ptx")
            path.write_text("\n".join(lines))
            command = [self.command, f"-arch={arch}", "-O0", "-o", str(Path(folder, "out")), str(path)]
            # Without linking, which some pragmas do not allow.
            if _version(lines) >= (3, 1) and not any("enable_smem_spilling" in line for line in lines):
                command.append("-c")
            try:
                done = subprocess.run(command, capture_output=True, check=False, timeout=_LIMIT)
                if _NEEDS_ABI in done.stderr:  # several results switch it off
                    command.remove("-c")
                    done = subprocess.run(command, capture_output=True, check=False, timeout=_LIMIT)
                return done
            except subprocess.TimeoutExpired:  # as good as a crash
                return subprocess.CompletedProcess(command, -1, b"", b"")


def _version(lines: Sequence[str]) -> tuple[int, ...]:
    """What the module declares; nonsense counts as new."""
    found = re.search(r"^\.version (\d+)\.(\d+)$", "\n".join(lines), re.MULTILINE)
    return (int(found[1]), int(found[2])) if found else (9, 9)


def _verdict(messages: list[str] | None) -> Verdict:
    if messages is None:
        return Verdict(True)
    text = "\n".join(messages)
    if "Internal compiler error" in text:
        return Verdict(False, "", ("crash",))
    versions = [tuple(map(int, v.split("."))) for v in _VERSION.findall(text)]
    named = [".".join(map(str, max(versions)))] if versions else []
    named += sorted(set(_TARGET.findall(text)))
    return Verdict(False, " ".join(named), tuple(dict.fromkeys(messages)))


__all__ = ["LINE", "Oracle", "Verdict", "release_of", "releases"]
