"""What the reference engine tells of a grid that is stopped in an event (`machine.launch.Inspector`)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from ptxtools.program.program import LANES, Op, Ref

from .deadlocks import gathered, line_of_block
from .events import ReferenceView
from .machine import GONE

if TYPE_CHECKING:
    from ptxtools.machine.deadlock import CtaLine, Waiting
    from ptxtools.machine.launch import Dim3

    from .machine import Machine


class Inspection:
    """The machine of a grid."""

    def __init__(self, machine: Machine) -> None:
        self._m = machine

    def state(self) -> tuple[list[CtaLine], list[Waiting]]:
        m = self._m
        kept = m.here, m.function
        found = gathered(m)
        m.here, m.function = kept
        return found

    def view(self, cta: Dim3, warp: int, lane: int) -> ElsewhereView | None:
        m = self._m
        for slot in range(m.slots):
            thread = slot * m.padded + LANES * warp + lane
            if warp < m.warps and m.pc[thread] != GONE and m.cta_coordinates(slot) == cta:
                return ElsewhereView(m, thread)
        return None


class ElsewhereView(ReferenceView):
    """A thread that does not run: its registers are those of its own frame."""

    def __init__(self, m: Machine, thread: int) -> None:
        self._block, self._frame = int(m.pc[thread]), int(m.frame[thread])
        where = line_of_block(m, self._block)
        waits = [wait for wait in m.schedule.waits() if wait.frame == thread - thread % LANES]
        where = next((wait.where for wait in waits if wait.lanes >> thread % LANES & 1), where)
        for barrier in m.barriers.values():
            where = next((a.op.where for a in barrier.arrivals if np.isin(thread, a.threads)), where)
        super().__init__(m, Op("observe.line", where=where), thread - thread % LANES, 0)
        self.mask = 1 << thread % LANES

    @property
    def below(self) -> int:
        return self._frame

    @contextmanager
    def _there(self) -> Iterator[None]:
        m = self.m
        kept = m.here, m.function
        m.enter(self._block, self._frame)
        try:
            yield
        finally:
            m.here, m.function = kept

    def values(self, ref: Ref) -> Any:
        with self._there():
            return super().values(ref)

    def set_values(self, ref: Ref, values: Any, mask: int | None = None) -> None:
        with self._there():
            super().set_values(ref, values, mask)

    def words(self, ref: Ref, lane: int) -> list[tuple[int, int]]:
        with self._there():
            return super().words(ref, lane)
