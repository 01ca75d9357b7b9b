"""asynccheck's first look at a grid whose only asynchronous work is cp.async: nobody touches what is in flight.

Copies are complete at once, and the native engine marks the bytes that they write (`machine.filters.Bounds.marks`)
until the warp has waited for their group. As long as nobody touches a marked byte, nor writes anywhere near what copies
read, and all copies are waited for, there is nothing to report, in this order of completions or another one. Whatever
else happens raises `Doubt`: then the grid runs again from the beginning, and `AsyncCheck` judges.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any

import numpy as np

from ptxtools.machine.filters import EVERYWHERE, Bounds, stretches
from ptxtools.machine.observers import Doubt
from ptxtools.machine.residents import MARKED_GROUPS, MARKS_HEAD
from ptxtools.program.operations import EVENT, LATE_COPIES, OPERATIONS
from ptxtools.program.program import LANES

if TYPE_CHECKING:
    from collections.abc import Callable

    from ptxtools.machine.events import View
    from ptxtools.machine.launch import Launch
    from ptxtools.machine.observers import Access, Array
    from ptxtools.program.program import Op, Program
    from ptxtools.sim.device import Grid

    from .session import Session

_LAST = (1 << 64) - 1


def possible(program: Program) -> bool:
    """Whether it is worth while: there are copies of single threads, and no other asynchronous work."""
    kinds = {op.kind for op in program.operations()}
    return "async.copy" in kinds and not program.clustered and all(map(_plain, kinds))


def _plain(kind: str) -> bool:
    row = OPERATIONS[kind]
    served = row.runs == EVENT and not kind.startswith("observe.") and kind not in LATE_COPIES
    return not served and row.seen != "cluster" and "mbarrier" not in row.seen


class AsyncTrial:
    """Looks at a grid."""

    MARKS = True

    def __init__(self, session: Session, grid: Grid) -> None:
        self._marked: Array = np.zeros(1, np.uint64)  # bytes, of all copies
        self._cleared = 0  # of these
        self._flights: dict[tuple[int, int], deque[int]] = {}  # groups in flight, by CTA and warp, oldest first

    @staticmethod
    def concerned(program: Program, device: Any) -> Callable[[Op], bool]:
        """Which events of a program matter: all but those of local memory."""
        return lambda op: op.kind != "observe.access" or op.space != "local"

    def filter(self, launch: Launch) -> Bounds:
        """What is marked, and a gap in global memory, of no bytes as yet."""
        shared = stretches([(0, launch.program.static_shared + launch.dynamic_shared)])
        apart = np.array([(0, _LAST, 0), (0, _LAST, 0)], np.uint64)
        reads = {"global": EVERYWHERE, "shared": shared, "local": EVERYWHERE}
        return Bounds(reads, {**reads, "global": apart}, lambda _: False, marks=self._marked)

    def access(self, at: View, access: Access) -> None:
        """Something in flight may be touched."""
        if access.space != "local":
            raise Doubt

    def fetched(self, at: View, access: Access) -> None:
        """A copy from elsewhere than global memory."""
        raise Doubt

    def grouped(self, at: View, commit: bool, pending: int | None) -> None:
        """A warp's copies are a group, or some of its groups are complete."""
        x, y, z = at.launch.block
        if at.mask.bit_count() != min(LANES, x * y * z - LANES * at.warp):
            raise Doubt
        groups = self._flights.setdefault((at.cta.number, at.warp), deque())
        marks = at.cta.marks
        if commit:
            groups.append(int(marks[at.warp]))
            free = next((group for group in range(MARKED_GROUPS) if group not in groups), None)
            if free is None:
                if pending is None:
                    raise Doubt
                free = groups[0]  # which is waited for now
            marks[at.warp] = free
        for _ in range(0 if pending is None else len(groups) - max(0, pending)):
            self._clear(marks[MARKS_HEAD:], 1 + MARKED_GROUPS * at.warp + groups.popleft())

    def _clear(self, marks: Array, tag: int) -> None:
        found = np.flatnonzero(marks == tag)
        self._cleared += len(found)
        marks[found] = 0

    def grid_ended(self, launch: Launch) -> None:
        """Have all copies been waited for?"""
        if self._cleared != int(self._marked[0]):
            raise Doubt


__all__ = ["AsyncTrial", "possible"]
