"""racecheck's first look at a grid, without clocks: nobody else touches what a thread writes.

Of each piece of memory the native engine notes who has touched it (`machine.filters.Bounds.owners`): of shared memory
since all threads of the CTA last met at a barrier, of global memory ever. As long as every piece is one thread's own,
or is only read, no two accesses race, in this schedule or another one. Whatever else happens raises `Doubt`: then the
grid runs again from the beginning, and `RaceCheck` judges.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ptxtools.machine.filters import ALWAYS, COMES, EVERYWHERE, Bounds, stretches
from ptxtools.machine.observers import Doubt
from ptxtools.program.details import Action, Look, Meeting
from ptxtools.program.operations import EVENT, OPERATIONS, strength

from .race_shadow import WORD
from .racecheck import RaceCheck

if TYPE_CHECKING:
    from ptxtools.machine.events import View
    from ptxtools.machine.launch import Launch
    from ptxtools.machine.observers import Access, Array
    from ptxtools.program.program import Op, Program
    from ptxtools.sim.device import Grid

    from .session import Session


def possible(program: Program) -> bool:
    """Whether it is worth while: all accesses are weak, none is atomic, all barriers are for the whole CTA."""
    return not program.clustered and all(map(_plain, program.operations()))


def _plain(op: Op) -> bool:
    """Not what synchronises otherwise than by barriers of the CTA, what reaches memory without a look, or what leaves
    traces beside memory: so no operation that Python serves."""
    row = OPERATIONS[op.kind]
    served = row.runs == EVENT and not op.kind.startswith("observe.")
    if served or row.seen in ("cluster", "copy") or "mbarrier" in row.seen:
        return False
    if op.kind == "bar":
        return op.of(Action).name != "arrive" and op.src[1] is None
    return row.seen != "access" or (row.access != "atomic" and not strength(op.opcode))


class RaceTrial(RaceCheck):
    """owners: bytes of shared memory that are looked at as one, or 0."""

    def __init__(self, session: Session, grid: Grid) -> None:
        super().__init__(session, grid)
        looks = [(op.space, op.of(Look).size) for op in grid.program.operations() if op.kind == "observe.access"]
        self._global_piece = _piece(looks, "global")
        self.owners = _piece(looks, "shared")
        arena = session.device.arena
        self._memory = arena.base, arena.base + arena.used
        self._words: Array = np.zeros(arena.used // (self._global_piece or WORD) + 1, np.uint32)

    def filter(self, launch: Launch) -> Bounds:
        """Local memory is a thread's own."""
        shared = launch.program.static_shared + launch.dynamic_shared
        known = {
            "global": stretches([(*self._memory, self._words.__array_interface__["data"][0])]),
            "shared": stretches([(0, shared)]),
            "local": EVERYWHERE,
        }
        return Bounds(known, known, _odd, owners=(self._global_piece, self.owners))

    def passing(self, op: Op) -> int | None:
        """Of what orders threads only the barriers count."""
        return COMES if op.kind == "observe.arrive" and op.of(Meeting).what == "bar" else ALWAYS

    def access(self, at: View, access: Access) -> None:
        if access.space != "local":
            raise Doubt

    def arrive(self, at: View, what: str, lanes: Array) -> None:
        raise Doubt

    def leave(self, at: View, what: str, lanes: Array) -> None:
        """No order is taken from it."""

    def fence(self, at: View, lanes: Array) -> None:
        """Nor from this."""


def _odd(op: Op) -> bool:
    """Whether an access does not fall into whole pieces."""
    size = op.of(Look).size
    return bool(size & (size - 1))


def _piece(looks: list[tuple[str, int]], space: str) -> int:
    """Bytes of the pieces that all accesses to a space fall into; 0: there are none."""
    spaces: tuple[Any, ...] = ("shared", "cluster", "generic") if space == "shared" else ("global", "const", "generic")
    return min((min(size, WORD) for where, size in looks if where in spaces), default=0)
