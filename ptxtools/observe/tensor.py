"""initcheck on tensor memory: cells must be written, by tcgen05.st, cp or a product, before they are read. What
tcgen05.alloc gives is not written."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from ptxtools.machine.claims import Span
    from ptxtools.machine.events import View
    from ptxtools.machine.observers import Array
    from ptxtools.machine.residents import Cta

    from .session import Session

_NAME = "initcheck"
_KEY = "cells of tensor memory that are written"
_LANES, _COLUMNS = 128, 512


class TensorCells:
    """Which cells have been written hangs on the CTA."""

    def __init__(self, session: Session) -> None:
        self._session: Session = weakref.proxy(session)

    def touched(self, at: View, lane: int, spans: Sequence[Span]) -> None:
        """An instruction works on tensor memory: it reads before it writes."""
        for span in sorted(spans, key=lambda span: span.kind != "read"):
            assert span.owner is not None
            cells = _cells(span.owner)
            part = cells[:, span.start : span.end]
            rows = rows_of(span.lanes)
            if span.kind == "read" and not (part if len(rows) == _LANES else part[rows]).all():
                self._read(at, lane, span, part[rows], rows)
            if len(rows) == _LANES:
                part[:] = span.kind != "fresh"
            else:
                part[rows] = span.kind != "fresh"

    def _read(self, at: View, lane: int, span: Span, part: Array, rows: Array) -> None:
        bad = np.argwhere(~part)
        row, column = int(rows[bad[0][0]]), span.start + int(bad[0][1])
        message = f"tensor memory of {span.owner} is read: nobody wrote column {column} of lane {row}"
        details = (f"{len(bad):,} of the {part.size:,} cells that it reads",)
        self._session.report(
            at, lane, _NAME, message, (at.op.where, "tensor"), details, kind="tensor-memory", space="tensor",
            address=row << 16 | column,
        )  # fmt: skip


@cache
def rows_of(lanes: int) -> Array:
    """Numbers of the lanes of a mask, ascending."""
    return np.flatnonzero([lanes >> row & 1 for row in range(_LANES)])


def _cells(cta: Cta) -> Array:
    if _KEY not in cta.state:
        cta.state[_KEY] = np.zeros((_LANES, _COLUMNS), np.bool_)
    cells: Array = cta.state[_KEY]
    return cells
