"""asynccheck's first look at a grid: nobody touches what is in flight.

Asynchronous work is complete at once, and the native engine marks what a late end could make wrong
(`machine.filters.Bounds.marks`, `proxies`). Bytes that cp.async writes are marked until the warp has waited for their
group; chunks that wgmma reads have the product's number, and may be written when the warps have waited for it; of bytes
that threads have stored it is known when, so that products can tell a missing fence.proxy.async. Registers of wgmma are
looked at in the program (`async_registers`). As long as nobody touches what is marked, nor writes anywhere near what
copies read, and all copies are waited for, there is nothing to report, in this order of completions or another one.
Whatever else happens raises `Doubt`: then the grid runs again from the beginning, and `AsyncCheck` judges.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ptxtools.machine.filters import ALWAYS, COMES, EPOCHS, EVERYWHERE, FENCES, MATRICES, Bounds, stretches
from ptxtools.machine.observers import Doubt
from ptxtools.program.details import Look, Meeting
from ptxtools.program.operations import EVENT, LATE_COPIES, OPERATIONS, WARPGROUPS, fenced
from ptxtools.program.program import LANES
from ptxtools.sim.tensor.wgmma_reads import WarpgroupReads

from .async_planes import Planes
from .async_registers import settled

if TYPE_CHECKING:
    from collections.abc import Callable

    from ptxtools.machine.events import View
    from ptxtools.machine.launch import Launch
    from ptxtools.machine.observers import Access, Array
    from ptxtools.program.program import Op, Program
    from ptxtools.sim.device import Grid

    from .session import Session

_LAST = (1 << 64) - 1
#: The largest access to shared memory that lies in one chunk.
_CHUNK = 16


def possible(program: Program) -> bool:
    """Whether it is worth while: copies of single threads and products of warpgroups are the only asynchronous work,
    and the registers of these are not touched in flight."""
    kinds = {op.kind for op in program.operations()}
    if program.clustered or not all(map(_plain, kinds)):
        return False
    return "wgmma.mma_async" not in kinds or settled(program)


def _plain(kind: str) -> bool:
    row = OPERATIONS[kind]
    known = LATE_COPIES | WARPGROUPS
    served = row.runs == EVENT and not kind.startswith("observe.") and kind not in known
    return not served and row.seen != "cluster" and "mbarrier" not in row.seen


class AsyncTrial:
    """Looks at a grid. proxies: some of the work goes through the asynchronous proxy; owners: for the epochs."""

    MARKS = True

    def __init__(self, session: Session, grid: Grid) -> None:
        kinds = {op.kind for op in grid.program.operations()}
        self.proxies = any(OPERATIONS[kind].asynchronous for kind in kinds)
        self.owners = EPOCHS if self.proxies else 0
        self._reads = WarpgroupReads(grid.program)
        self._marked: Array = np.zeros(1, np.uint64)  # bytes that are marked now

    @staticmethod
    def concerned(program: Program, device: Any) -> Callable[[Op], bool]:
        """Which events of a program matter: all but those of local memory, and of warps at other work. Epochs and
        fences matter to the asynchronous proxy alone."""
        proxies = any(OPERATIONS[op.kind].asynchronous for op in program.operations())

        def matters(op: Op) -> bool:
            if op.kind == "observe.access":
                return op.space != "local"
            if isinstance(op.detail, Meeting):
                return proxies and _rule(op) != ALWAYS
            return op.kind != "observe.together" or _multiplies(op)

        return matters

    def filter(self, launch: Launch) -> Bounds:
        """What is marked, and a gap in global memory, of no bytes as yet."""
        shared = stretches([(0, launch.program.static_shared + launch.dynamic_shared)])
        apart = np.array([(0, _LAST, 0), (0, _LAST, 0)], np.uint64)
        reads = {"global": EVERYWHERE, "shared": shared, "local": EVERYWHERE}
        asks = _wide if self.proxies else lambda _: False
        return Bounds(reads, {**reads, "global": apart}, asks, marks=self._marked, proxies=self.proxies)

    def passing(self, op: Op) -> int | None:
        """Barriers and fences are counted; products are looked at."""
        return _rule(op)

    def access(self, at: View, access: Access) -> None:
        """Something in flight may be touched."""
        if access.space != "local":
            raise Doubt

    def fetched(self, at: View, access: Access) -> None:
        """A copy from elsewhere than global memory."""
        raise Doubt

    def grouped(self, at: View, commit: bool, pending: int | None) -> None:
        """A part of a warp, or too many groups."""
        raise Doubt

    def arrive(self, at: View, what: str, lanes: Array) -> None:
        """More epochs than can be told apart."""
        raise Doubt

    def fence(self, at: View, lanes: Array) -> None:
        """Likewise."""
        raise Doubt

    def together(self, at: View, lanes: Array) -> None:
        """A warp is about to multiply what the engine does not know yet."""
        if len(lanes) != LANES:
            raise Doubt
        planes = Planes(at.cta)
        for span in self._reads.spans(at):
            if span.owner is not at.cta or span.rows is None:
                raise Doubt
            planes.multiplies(at, span.rows)
        self._reads.teach(at)

    def grid_ended(self, launch: Launch) -> None:
        """Have all copies been waited for?"""
        if int(self._marked[0]):
            raise Doubt


def _rule(op: Op) -> int:
    """When an event needs nobody."""
    if op.kind == "observe.together":
        return MATRICES
    if op.kind == "observe.fence":
        return FENCES if "shared" in fenced(op.opcode) else ALWAYS
    meets = op.kind == "observe.arrive" and op.of(Meeting).what == "bar" and op.src[1] is None
    return COMES if meets else ALWAYS


def _multiplies(op: Op) -> bool:
    return op.opcode is not None and op.opcode.name.startswith("wgmma.mma_async")


def _wide(op: Op) -> bool:
    """Whether an access to shared memory may lie in several chunks, or is told of in parts."""
    look = op.of(Look)
    odd = look.size > _CHUNK or bool(look.size & (look.size - 1))
    return odd and op.space != "global"


__all__ = ["AsyncTrial", "possible"]
