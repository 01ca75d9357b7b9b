"""Pages whose commands are run: `console` blocks have commands behind "$ " and what they print.

Usage: python tools/console_pages.py [--write] PAGE ...

--write: put what the commands print into the pages, where it is not what stands there; else exit with 1 if anything is
not. A line "…" stands for any lines; what stands behind "(ptx) " is typed. The commands of a page run one after another
in a copy of the folder that its first comment names (`<!-- in: examples/tutorial -->`). Blocks in other languages are
not run: `not_run`.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import runpy
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_FOLDER = re.compile(r"<!-- in: (\S+) -->")
_PLAIN = ("-p", "no:cacheprovider", "-p", "ptxtools.plugin")
_PROMPT = "(ptx) "
_COMMANDS = {"ptx-lint": "lint", "ptx-as": "assemble", "ptx-run": "run"}
ANY = "…"


def blocks(page: str) -> Iterator[tuple[str, str]]:
    """Language and text of each fenced block."""
    for found in _BLOCK.finditer(page):
        yield found[1], found[2]


def not_run(page: str) -> list[str]:
    """The lines of shell blocks, which need what a machine may not have."""
    return [line for language, text in blocks(page) if language == "sh" for line in text.splitlines()]


def steps(block: str) -> Iterator[tuple[str, list[str]]]:
    """Each command of a console block, its continued lines included, with the lines that it prints."""
    lines = block.splitlines()
    while lines:
        command = [lines.pop(0)]
        while command[-1].endswith("\\"):
            command.append(lines.pop(0))
        printed: list[str] = []
        while lines and not lines[0].startswith("$ "):
            printed.append(lines.pop(0))
        yield "\n".join(command), printed


def alike(expected: list[str], printed: list[str]) -> bool:
    """Whether lines are as expected."""
    parts = [".*" if line.strip() == ANY else re.escape(line) + "\n" for line in expected]
    return re.fullmatch("".join(parts), "".join(line + "\n" for line in printed), re.DOTALL) is not None


class Shell:
    """Runs commands in this process, in the current folder."""

    def __init__(self) -> None:
        self.status = 0

    def run(self, command: str, typed: list[str]) -> list[str]:
        """What a command prints, its errors behind the rest. typed: the lines for its standard input."""
        name, *words = shlex.split(command.removeprefix("$ ").replace("\\\n", " "), comments=True)
        if name == "echo" and words == ["$?"]:
            return [str(self.status)]
        if typed:  # a debugger, which copies its process
            ours = [sys.executable, "-m", "ptxtools", name.removeprefix("ptx-")]
            return self._other([*ours, *words], "".join(f"{line}\n" for line in typed))
        if name in _COMMANDS:
            return self._ours(name, words)
        if name == "python":
            return self._script(words)
        return self._other([name, *words])

    def _ours(self, name: str, words: list[str]) -> list[str]:
        from importlib import import_module

        from ptxtools.cli.common import exit_status

        command = import_module(f"ptxtools.cli.{_COMMANDS[name]}").command
        with _captured() as (out, err):
            self.status = exit_status(command, name, words)
        return (out.read() + err.read()).splitlines()

    def _script(self, words: list[str]) -> list[str]:
        old, sys.argv = sys.argv, words
        try:
            with _captured() as (out, err):
                runpy.run_path(words[0], run_name="__main__")
        finally:
            sys.argv = old
        self.status = 0
        return (out.read() + err.read()).splitlines()

    def _other(self, words: list[str], typed: str | None = None) -> list[str]:
        if words[0] == "pytest":
            words[:1] = [sys.executable, "-m", "pytest", *_PLAIN]
        into = Path(words.pop()) if words[-2:-1] == [">"] else None
        words = [word for word in words if word != ">"]
        where = {**os.environ, "PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
        done = subprocess.run(words, input=typed, capture_output=True, text=True, env=where)
        self.status = done.returncode
        if into is not None:
            into.write_text(done.stdout)
            return done.stderr.splitlines()
        return (done.stdout + done.stderr).splitlines()


@contextlib.contextmanager
def _captured() -> Iterator[tuple[io.TextIOWrapper, io.TextIOWrapper]]:
    out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True) for _ in range(2))
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        yield out, err
    for stream in (out, err):
        stream.flush()
        stream.seek(0)


def renewed(page: str) -> tuple[str, list[str]]:
    """A page with what its commands print now, and what was not as it stood there: the commands."""
    wrong: list[str] = []
    shell = Shell()

    def run(found: re.Match[str]) -> str:
        if found[1] != "console":
            return found[0]
        lines: list[str] = []
        for command, expected in steps(found[2]):
            typed = [line.removeprefix(_PROMPT) for line in expected if line.startswith(_PROMPT)]
            printed = [line.rstrip() for line in shell.run(command, typed)]
            if not alike(expected, printed):
                wrong.append(command)
            lines += [command, *(expected if alike(expected, printed) else printed)]
        return "\n".join(["```console", *lines, "```"])

    folder = _FOLDER.search(page)
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as room:
        place = Path(room) / (folder[1] if folder is not None else "work")
        (Path(room) / "testdata").symlink_to(ROOT / "testdata")
        shutil.copytree(ROOT / folder[1], place) if folder is not None else place.mkdir()
        os.chdir(place)
        try:
            return _BLOCK.sub(run, page), wrong
        finally:
            os.chdir(before)


def main() -> int:
    write = "--write" in sys.argv
    bad = False
    for name in [name for name in sys.argv[1:] if name != "--write"]:
        path = ROOT / name
        text, wrong = renewed(path.read_text("utf-8"))
        for command in wrong:
            print(f"{name}: {command}")
        if write:
            path.write_text(text, "utf-8")
        bad = bad or bool(wrong)
    return int(bad and not write)


if __name__ == "__main__":
    sys.path[:0] = [str(ROOT)]
    sys.exit(main())
