"""Tries candidates: whether they are valid, and whether the user's command still ends with 0; several at a time."""

from __future__ import annotations

import hashlib
import os
import shlex
import signal
import subprocess
import tempfile
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import TypeVar

from ptxtools.check.checker import errors_of
from ptxtools.ir import Module
from ptxtools.syntax import parse, print_module

_Key = TypeVar("_Key")


class Trial:
    """One search. command: for a shell, with `{}` for the file's name, or the name comes last. name: the file's name,
    without folder. jobs: how many commands run at a time; the result does not depend on it.

    tolerated: how many errors of each code candidates may have; kept: called with the text of each smaller module. To
    be used in a `with` statement, which ends the commands that still run.
    """

    def __init__(
        self, command: str, name: str, jobs: int, tolerated: Mapping[str, int], kept: Callable[[str], None]
    ) -> None:
        self.jobs, self._command, self._name, self._tolerated, self._kept = jobs, command, name, tolerated, kept
        self._tried: set[bytes] = set()
        self._running: deque[_Run] = deque()
        self._number = 0
        self.runs = 0

    def __enter__(self) -> Trial:
        self._folder = tempfile.TemporaryDirectory(prefix="ptx-reduce-", ignore_cleanup_errors=True)
        return self

    def __exit__(self, *_: object) -> None:
        self._stop()
        self._folder.cleanup()

    def holds(self, text: str) -> bool:
        """Whether the command ends with 0 for a text."""
        try:
            return self._start(text).succeeds()
        finally:
            self._stop()

    def first(self, candidates: Iterable[tuple[_Key, Module]]) -> tuple[_Key, Module] | None:
        """The first candidate that is valid, new, and for which the command ends with 0."""
        waiting: deque[tuple[_Key, Module, str, _Run]] = deque()
        stream = iter(candidates)
        try:
            while True:
                for key, module in stream:
                    text = self._text(module)
                    if text is not None:
                        waiting.append((key, module, text, self._start(text)))
                        if len(waiting) >= self.jobs:
                            break
                if not waiting:
                    return None
                key, module, text, run = waiting.popleft()
                self._running.remove(run)
                if run.succeeds() and self._reads(text):
                    self._kept(text)
                    return key, module
        finally:
            self._stop()

    def _text(self, module: Module) -> str | None:
        """A candidate's text; None if it is invalid, or was tried before."""
        text = print_module(module)
        digest = hashlib.blake2b(text.encode("utf-8", "surrogateescape"), digest_size=16).digest()
        if digest in self._tried:
            return None
        self._tried.add(digest)
        return text if self._valid(module) else None

    def _valid(self, module: Module) -> bool:
        found = Counter(error.code for error in errors_of(module))
        return all(count <= self._tolerated.get(code, 0) for code, count in found.items())

    def _reads(self, text: str) -> bool:
        """Whether the printed module is valid, too: the edited tree said so."""
        found = parse(text, self._name)
        return not found.diagnostics and self._valid(found.module)

    def _start(self, text: str) -> _Run:
        self._number += 1
        self.runs += 1
        folder = os.path.join(self._folder.name, str(self._number))
        os.mkdir(folder)
        path = os.path.join(folder, self._name)
        with open(path, "w", encoding="utf-8", errors="surrogateescape") as file:
            file.write(text)
        run = _Run(self._command, path)
        self._running.append(run)
        return run

    def _stop(self) -> None:
        """End the commands whose results no longer matter."""
        while self._running:
            self._running.pop().end()


class _Run:
    """A command that runs for one file."""

    def __init__(self, command: str, path: str) -> None:
        self._path = path
        quoted = shlex.quote(path)
        line = command.replace("{}", quoted) if "{}" in command else f"{command} {quoted}"
        nothing = subprocess.DEVNULL
        self._process = subprocess.Popen(
            line, shell=True, stdin=nothing, stdout=nothing, stderr=nothing, start_new_session=True
        )

    def succeeds(self) -> bool:
        """Wait; whether the status is 0."""
        try:
            return self._process.wait() == 0
        finally:
            self.end()

    def end(self) -> None:
        """End the command, with what it started, and remove its file."""
        if self._process.poll() is None:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
        with suppress(OSError):
            os.unlink(self._path)
