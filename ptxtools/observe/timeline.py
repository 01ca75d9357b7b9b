"""The timeline of a run, as Chrome's trace events, which Perfetto and chrome://tracing show.

`Timeline` is an observer. A process is an SM; its threads are the warps of the CTAs that it holds, by their places, and
tracks of asynchronous work. Times are the simulator's virtual nanoseconds, in which the warps of a worker run one after
another: they show the order of events and who waits for whom, not how long a chip would take.

The native engine logs beginnings, ends and barriers of warps without leaving its loop (`machine.logs`); what else
happens is told by the services of the events. What was logged is looked at when a grid is over, or when something is
told of it in Python.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from ptxtools.machine.logs import Log
from ptxtools.program.details import Meeting

from .timeline_tracks import Grid, Tracks, Warp, grid_of, warp_of

if TYPE_CHECKING:
    from ptxtools.diagnostics import Trap
    from ptxtools.machine.claims import Claim
    from ptxtools.machine.events import View
    from ptxtools.machine.launch import Launch
    from ptxtools.machine.residents import Cta

Array: TypeAlias = npt.NDArray[Any]

#: Events of a grid, of warps and of asynchronous work, that a timeline has at most.
MOST = 1 << 13
#: Rows of the log that are kept of grids that have ended.
_KEPT = 1 << 20
_LOGGED = ("begin", "exit", "arrive", "leave")
_BEGIN, _EXIT, _ARRIVE = range(3)
#: Events that operations of the program announce.
_EVENTS = frozenset({"cta_begun", "cta_ended", "warp_begun", "warp_ended", "arrive", "leave"})


class Timeline:
    """The observer. write: gets the text, piece by piece; `close` writes the end; most: events of a grid, further ones
    are left out."""

    def __init__(self, write: Callable[[str], object], most: int = MOST) -> None:
        self.log = Log(frozenset(f"observe.{kind}" for kind in _LOGGED), _EVENTS, most, timed=True)
        self._tracks = Tracks(write, most)
        self._grid: Grid | None = None
        self._over: list[Grid] = []  # grids that have ended, whose rows have still to be looked at
        self._lanes: dict[tuple[int, int], int] = {}  # of logged warps, those that have not exited
        self._living: dict[int, int] = {}  # of logged CTAs, warps that have not ended
        self._begun = False  # something has been told of the present grid

    @property
    def left_out(self) -> dict[str, int]:
        """Events that are left out, by kernel; complete when it is closed."""
        return self._tracks.left_out

    def close(self) -> None:
        """Look at what has been logged, and write the end of the text."""
        self._catch_up()
        self._tracks.close()

    # --- grids --------------------------------------------------------------------------------------------------------

    def grid_begun(self, launch: Launch) -> None:
        self._grid = grid_of(launch)
        self._lanes, self._living = {}, {}
        if sum(len(rows) for grid in self._over for rows in grid.rows) > _KEPT:
            self._catch_up()

    def grid_ended(self, launch: Launch) -> None:
        grid = self._now()
        grid.lost, self.log.state.lost = self.log.lost, 0
        if self._begun:
            self._look(grid, {})
            self._tracks.end(grid.lost)
        else:
            self._over.append(grid)
        self._begun = False

    def trapped(self, trap: Trap) -> None:
        self._begin().trapped(trap.reason)

    def _now(self) -> Grid:
        assert self._grid is not None
        return self._grid

    def _catch_up(self) -> None:
        """Look at the rows of grids that have ended."""
        over, self._over = self._over, []
        for grid in over:
            self._lanes, self._living = {}, {}
            self._tracks.start(grid)
            self._look(grid, {})
            self._tracks.end(grid.lost)

    def _begin(self) -> Tracks:
        """Something is told of the present grid: what was logged before comes first."""
        if not self._begun:
            self._catch_up()
            self._begun = True
            self._lanes, self._living = {}, {}
            self._tracks.start(self._now())
        self._look(self._now(), {})
        return self._tracks

    # --- what the engine has logged -----------------------------------------------------------------------------------

    def logged(self, rows: Array, known: dict[tuple[int, int, int], Cta]) -> None:
        """Rows of the log. known: CTAs whose state is in Python, and is what it was then."""
        grid = self._now()
        if not grid.ops:
            grid.ops = [(_LOGGED.index(op.kind.partition(".")[2]), _what(op.detail)) for op in self.log.ops]
        if known:
            self._begin()
        grid.rows.append(rows.copy())
        if known:
            self._look(grid, known)

    def _look(self, grid: Grid, known: dict[tuple[int, int, int], Cta]) -> None:
        """Beginnings and ends of warps, and barriers, in order."""
        tracks, rows, grid.rows = self._tracks, grid.rows, []
        gx, gy, _ = grid.grid
        every = (row for some in rows for row in some.tolist())
        for op, warp, lanes, _, time, key, cta, x, y, z, sm, rank, external in every:
            place = x, y, z
            number = x + gx * (y + gy * z)
            at = Warp(number, place, cta // grid.cluster, rank, sm, warp, time, known.get(place))
            kind, what = grid.ops[op]
            if kind == _BEGIN:
                self._logged_begin(at, grid)
            elif kind == _EXIT:
                self._logged_exit(at, lanes, external)
            elif kind == _ARRIVE:
                tracks.arrives(at, what, lanes, tracks.barrier(at, what, key))
            else:
                tracks.leaves(at, what, lanes)

    def _logged_begin(self, at: Warp, grid: Grid) -> None:
        if at.cta not in self._living:
            self._living[at.cta] = grid.warps
            self._tracks.cta_begins(at.cta, at.sm)
        self._lanes[at.key] = (1 << min(32, grid.threads - 32 * at.warp)) - 1
        self._tracks.warp_begins(at)

    def _logged_exit(self, at: Warp, lanes: int, external: int) -> None:
        self._lanes[at.key] &= ~lanes
        if self._lanes[at.key]:
            return
        del self._lanes[at.key]
        self._tracks.warp_ends(at)
        self._living[at.cta] -= 1
        if not self._living[at.cta]:
            del self._living[at.cta]
            if not external:  # else Python is told when all is over
                self._tracks.cta_ends(at.cta, at.sm)

    # --- what is told one by one --------------------------------------------------------------------------------------

    def cta_begun(self, cta: Cta) -> None:
        self._begin().cta_begins(cta.number, cta.sm)

    def cta_ended(self, cta: Cta) -> None:
        self._begin().cta_ends(cta.number, cta.sm)

    def warp_begun(self, at: View) -> None:
        self._begin().warp_begins(warp_of(at))

    def warp_ended(self, at: View) -> None:
        self._begin().warp_ends(warp_of(at))

    def arrive(self, at: View, what: str, lanes: Array) -> None:
        tracks, one = self._begin(), warp_of(at)
        tracks.arrives(one, what, _mask(lanes), tracks.barrier(one, what, key_of(at, what)))

    def leave(self, at: View, what: str, lanes: Array) -> None:
        self._begin().leaves(warp_of(at), what, _mask(lanes))

    def transacted(self, at: View, cta: Cta, offset: int, size: int) -> None:
        self._begin().transacted(at, cta, offset, size)

    def signalled(self, at: View, cta: Cta, offset: int) -> None:
        self._begin().signalled(at, cta, offset)

    def issued(self, claim: Claim) -> None:
        self._begin().issued(claim)

    def completed(self, claim: Claim) -> None:
        self._begin().completed(claim)


def _what(detail: object) -> str:
    return detail.what if isinstance(detail, Meeting) else ""


def key_of(at: View, what: str) -> int:
    """Number or address of a barrier, of the first lane that comes; as the log has it."""
    if not (what in ("bar", "arrive") or what.startswith("mbarrier")):
        return 0
    lane = int(np.flatnonzero(at.mask >> np.arange(32) & 1)[0])
    return int(at.addresses()[lane] if what.startswith("mbarrier") else at.source(0)[lane])


def _mask(lanes: Array) -> int:
    return sum(1 << lane for lane in lanes.tolist())


__all__ = ["MOST", "Timeline"]
