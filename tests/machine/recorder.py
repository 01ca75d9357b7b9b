"""Which messages of traps and of waits a test meets. Tests in `kinds.tsv` are held against it where they run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from ptxtools.diagnostics import Trap
from ptxtools.machine import deadlock

from . import kinds

TABLE = Path(__file__).with_name("kinds.tsv")


@cache
def table() -> dict[str, str]:
    """The test of each kind (`kinds.py`), with its parameters."""
    return dict(line.split("\t") for line in TABLE.read_text().splitlines())


@cache
def kinds_of() -> dict[str, list[str]]:
    """The kinds that each test in the table meets."""
    found: dict[str, list[str]] = {}
    for kind, test in table().items():
        found.setdefault(test, []).append(kind)
    return found


@contextmanager
def messages(patch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Messages of all traps that are made meanwhile, and what deadlock reports say of each warp."""
    made, told, met = Trap.__init__, deadlock.report, []

    def init(self: Trap, reason: str, **facts: Any) -> None:
        made(self, reason, **facts)
        met.append(reason)

    def report(
        program: Any, grid: Any, summary: Iterable[deadlock.CtaLine], waiting: list[deadlock.Waiting], *rest: Any
    ) -> Trap:
        met.extend(one.what for one in waiting)
        return told(program, grid, summary, waiting, *rest)

    with patch.context() as here:
        here.setattr(Trap, "__init__", init)
        here.setattr(deadlock, "report", report)
        yield met


def missed(wanted: Iterable[str], met: list[str]) -> list[str]:
    """The kinds that no message is of."""
    forms = {kind: kinds.pattern(kind) for kind in wanted}
    return [kind for kind, form in forms.items() if not any(map(form.fullmatch, met))]
