"""A pytest plugin that writes down which kinds of traps and of waits the tests of a run have met.

    pytest -p tests.machine.recorder --kinds-met FILE tests/...

Each line of the file is a kind (`kinds.py`), a tab, and the test that met it.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from ptxtools.diagnostics import Trap
from ptxtools.machine import deadlock
from ptxtools.native.loop import hangs
from ptxtools.reference import deadlocks

from . import kinds

_met: set[tuple[str, str]] = set()
_messages: set[tuple[str, str]] = set()


def _note(message: str) -> None:
    _messages.add((message, os.environ.get("PYTEST_CURRENT_TEST", "").rpartition(" ")[0]))


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--kinds-met", help="File for the kinds of traps and waits that were met.")


def pytest_configure(config: pytest.Config) -> None:
    made, told = Trap.__init__, deadlock.report

    def init(self: Trap, reason: str, **facts: Any) -> None:
        made(self, reason, **facts)
        _note(reason)

    def report(
        program: Any, grid: Any, summary: Iterable[deadlock.CtaLine], waiting: list[deadlock.Waiting], *rest: Any
    ) -> Trap:
        for one in waiting:
            _note(one.what)
        return told(program, grid, summary, waiting, *rest)

    Trap.__init__ = init  # type: ignore[method-assign]
    hangs.report = deadlocks.report = report


def pytest_unconfigure(config: pytest.Config) -> None:
    file = config.getoption("--kinds-met")
    if file is None:
        return
    for kind in kinds.traps() | kinds.waits():
        form = kinds.pattern(kind)
        _met.update((kind, test) for message, test in _messages if form.fullmatch(message))
    Path(file).write_text("".join(f"{kind}\t{test}\n" for kind, test in sorted(_met)))
