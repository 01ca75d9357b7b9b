"""synccheck on tcgen05.fence (9.7.16.6.3): when warps take turns at cells of tensor memory, the one before executes
tcgen05.fence::before_thread_sync behind its loads and stores, and the next one tcgen05.fence::after_thread_sync before
its own. What tcgen05.commit announces needs only the second.

Some compilers leave these fences out everywhere and rely on what the chips do. So a kernel without any is not judged.
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from ptxtools.program.operations import OPERATIONS
from ptxtools.records import dataclass, field

from .tensor import rows_of

if TYPE_CHECKING:
    from ptxtools.machine.claims import Span
    from ptxtools.machine.events import View
    from ptxtools.machine.observers import Array
    from ptxtools.machine.residents import Cta
    from ptxtools.program.program import Program
    from ptxtools.sim.device import Grid

    from .session import Session

_NAME = "synccheck"
_KEY = "turns at tensor memory"
_SHAPE = (128, 512)
#: Modifiers of the two fences.
FENCES = BEFORE, AFTER = "fence::before_thread_sync", "fence::after_thread_sync"


@dataclass(slots=True)
class _Cells:
    """Of each cell: number of the use that touched it last, and whether that wrote it."""

    last: Array = field(default_factory=lambda: np.zeros(_SHAPE, np.int32))
    wrote: Array = field(default_factory=lambda: np.zeros(_SHAPE, np.bool_))


@dataclass(slots=True)
class _Use:
    """An instruction on tensor memory: whose (CTA, warp), when, where, and by threads or not."""

    who: tuple[Cta, int]
    time: int
    where: int
    by_threads: bool


def _has_fences(program: Program) -> bool:
    if "fences of tcgen05" not in program.cache:
        program.cache["fences of tcgen05"] = any("tcgen05.fence" in text for *_, text in program.lines)
    return bool(program.cache["fences of tcgen05"])


class ThreadSync:
    """Of one grid. wanted: whether it is judged. before, after: when warps last executed the two fences."""

    def __init__(self, session: Session, grid: Grid) -> None:
        self._session: Session = weakref.proxy(session)
        self.wanted = _has_fences(grid.program)
        self._uses: list[_Use | None] = [None]
        self._before: dict[tuple[Cta, int], int] = {}
        self._after: dict[tuple[Cta, int], int] = {}
        self._now = 0

    def fence(self, at: View) -> None:
        """A fence of any sort."""
        opcode = at.op.opcode
        if opcode is None or not self.wanted:
            return
        self._now += 1
        for fence, fences in ((BEFORE, self._before), (AFTER, self._after)):
            if opcode.has(fence):
                fences[at.cta, at.warp] = self._now

    def used(self, at: View, lane: int, spans: Sequence[Span]) -> None:
        """An instruction works on tensor memory."""
        if not self.wanted:
            return
        self._now += 1
        me = at.cta, at.warp
        by_threads = OPERATIONS[at.op.kind].warp  # loads and stores; others end with a tcgen05.commit
        self._uses.append(_Use(me, self._now, at.op.where, by_threads))
        for span in sorted(spans, key=lambda span: span.kind != "read"):
            assert span.owner is not None
            cells: _Cells = span.owner.state.setdefault(_KEY, _Cells())
            rows = rows_of(span.lanes)
            place = np.ix_(rows, np.arange(span.start, span.end))
            writes = span.kind != "read"
            if span.kind == "fresh":
                cells.last[place] = 0
                continue
            for number in np.unique(cells.last[place][cells.wrote[place] | writes]).tolist():
                use = self._uses[number]
                if use is not None and (use.who != me or (by_threads and not use.by_threads)):
                    self._judge(at, lane, use)
            cells.last[place], cells.wrote[place] = len(self._uses) - 1, writes

    def _judge(self, at: View, lane: int, use: _Use) -> None:
        missing = []
        if use.by_threads and self._before.get(use.who, 0) < use.time:
            missing.append("tcgen05.fence::before_thread_sync behind the first")
        if self._after.get((at.cta, at.warp), 0) < use.time:
            missing.append("tcgen05.fence::after_thread_sync before the second")
        if missing:
            program = at.launch.program
            self._session.report(
                at, lane, _NAME, f"tensor memory passes from one thread to another without a {missing[0]}",
                (at.op.where, use.where, "thread sync"), kind="no-thread-sync-fence", space="tensor",
                others=(self._session.site(program, use.where, use.who[0].place),), help=" and ".join(missing),
            )  # fmt: skip
