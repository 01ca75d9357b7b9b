"""racecheck on the copies and fills that a grid queues (`MemcpyAsync`, `MemsetAsync`): they run beside the rest of it,
and beside its children in other streams, as a child grid would that the same thread launches."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import numpy as np

from ptxtools.machine.observers import Access
from ptxtools.records import dataclass
from ptxtools.sim.context import context_of

from .clocks import WEAK, Warp
from .race_accesses import Strength
from .race_grids import Parent, Sibling
from .race_shadow import Shadow

if TYPE_CHECKING:
    from ptxtools.machine.events import View
    from ptxtools.sim.children import Work

    from .clocks import Array
    from .session import Session

#: Bytes that are looked at together.
_PIECE = 1 << 20


@dataclass(frozen=True, slots=True)
class _Caller:
    """What reports need of the warp that has queued the work, which may have exited since: of a `View`."""

    launch: Any
    op: Any
    cta: Any
    leader: int
    coordinates: tuple[int, int, int]

    def thread(self, _: int) -> tuple[int, int, int]:
        return self.coordinates


class Copy(Sibling):
    """The accesses of a copy or a fill, for children that run later."""

    def _words(self, began: int | None) -> tuple[str, str, str]:
        missing = "for a copy or a fill, which no stream orders with this grid"
        return "the grid that has launched this one", missing, "use one stream for both"


def queued(session: Session, at: View, lane: int, work: Work, parent: Parent, warp: Warp) -> None:
    """A lane has queued work. parent: its grid, with what that lane knows. When the work is done, it is compared with
    all of that grid, and with its children that have ended."""
    parent.queues = True
    caller = _Caller(at.launch, at.op, at.cta, lane, at.thread(lane))
    context, nobody = context_of(at), Warp(0, 0, 0, {})

    def done() -> None:
        shadow, who = Shadow(), np.array([lane])
        for action, (start, size) in (("read", work.reads), ("write", work.writes)):
            for first in range(start, start + size, _PIECE):
                places, count = np.array([first], np.int64), min(_PIECE, start + size - first)
                access = Access("global", who, places.astype(np.uint64), count, action, "")
                for before in parent.before(work, waits=context.waits):
                    weak = Strength(WEAK, 0)
                    before.look(session, cast("View", caller), access, nobody, who, places, None, weak)
                _note(shadow, places, count, action, warp.agent, lane, caller.op.where)
        parent.done(caller.launch, shadow, work, Copy)

    work.then = done


def _note(shadow: Shadow, places: Array, size: int, action: str, agent: int, lane: int, where: int) -> None:
    """Note what work has accessed."""
    for _, page, inside, _ in shadow.pieces(places, size):
        if action == "write":
            page.writes["writer"][inside], page.writes["written"][inside] = agent, 1
            page.writes["lane"][inside], page.writes["where"][inside] = lane, where
        else:
            row = page.row(agent)
            page.reads["time"][row, inside], page.reads["where"][row, inside] = 1, where
            page.reads["lanes"][row, inside] = np.uint32(1 << lane)
