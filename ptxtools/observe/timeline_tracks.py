"""The tracks of a timeline: what warps, barriers and asynchronous work look like there.

A process is an SM; its threads are the warps of the CTAs that it holds, by their places, and tracks of asynchronous
work.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from ptxtools.diagnostics import shown
from ptxtools.program.program import OFFSET_MASK, RANK_SHIFT
from ptxtools.records import dataclass, field
from ptxtools.sim.tensor.memory import allocated_columns

from .timeline_events import TraceEvents

if TYPE_CHECKING:
    import numpy.typing as npt

    from ptxtools.machine.claims import Claim
    from ptxtools.machine.events import View
    from ptxtools.machine.launch import Launch
    from ptxtools.machine.residents import Cta

#: Of a CTA at most.
_WARPS = 32
#: Thread numbers of tracks: warps have those below, asynchronous work those from here on.
_WORK = 1 << 20
#: From the track of a warp to that of lanes that wait while others of it do, and to that of yet others.
_SIDE = 1 << 14
#: Operations of barriers at which lanes do not wait.
_SHORT = ("arrive", "cluster arrive")
#: Names of operations of barriers in the text.
_NAMES = {"bar": "bar.sync", "arrive": "bar.arrive", "warp": "bar.warp.sync"}


@dataclass(slots=True)
class Warp:
    """A warp at an event. cta: number of its CTA, in the grid; place: the same as coordinates; cluster: its number;
    rank: in it; resident: the CTA, if Python knows it; time: virtual nanoseconds since the grid began."""

    cta: int
    place: tuple[int, int, int]
    cluster: int
    rank: int
    sm: int
    warp: int
    time: int
    resident: Cta | None

    @property
    def key(self) -> tuple[int, int]:
        return self.cta, self.warp


def warp_of(at: View) -> Warp:
    cta = at.cta
    return Warp(cta.number, cta.place, cta.cluster.number, cta.rank, cta.sm, at.warp, at.time, cta)


@dataclass(slots=True)
class _Wait:
    """Lanes of a warp that came to a barrier and have not gone on."""

    begun: int
    what: str
    barrier: object
    lanes: int
    tid: int


@dataclass(slots=True)
class Grid:
    """What is known of a grid. kernel: its name; cluster: CTAs of one; warps, shared: of a CTA, and its bytes; ops: of
    the log, as kinds and what they say; rows: of the log that nobody has looked at yet; lost: events that are not in
    it."""

    kernel: str
    grid: tuple[int, int, int]
    threads: int
    cluster: int
    warps: int
    shared: int
    clustered: bool
    ops: list[tuple[int, str]] = field(default_factory=list)
    rows: list[npt.NDArray[Any]] = field(default_factory=list)
    lost: int = 0


def grid_of(launch: Launch) -> Grid:
    x, y, z = launch.block
    a, b, c = launch.cluster
    program = launch.program
    return Grid(
        shown(program.kernel), launch.grid, x * y * z, a * b * c, -(-x * y * z // 32),
        program.declared_shared + launch.dynamic_shared, program.clustered,
    )  # fmt: skip


@dataclass(slots=True)
class _Sm:
    """What an SM holds. places: of CTAs, by their numbers, the first thread number of their warps; busy: whether a
    track of asynchronous work has something; shared: bytes in use; columns: of tensor memory, by CTA; named: tracks."""

    places: dict[int, int] = field(default_factory=dict)
    busy: list[bool] = field(default_factory=list)
    shared: int = 0
    columns: dict[int, int] = field(default_factory=dict)
    named: set[int] = field(default_factory=set)


class Tracks:
    """Those of all grids. write: gets the text, piece by piece; most: events of a grid. left_out: how many have not
    found room, by kernel."""

    def __init__(self, write: Callable[[str], object], most: int) -> None:
        self.left_out: dict[str, int] = {}
        self._events = TraceEvents(write)
        self._most = self._room = most
        self._time = 0
        self._zero = 0  # virtual time at which the grid began here
        self._grid = Grid("", (1, 1, 1), 0, 1, 0, 0, False)
        self._sms: dict[int, _Sm] = {}
        self._waits: dict[tuple[int, int], list[_Wait]] = {}  # by CTA and warp
        self._last: dict[object, tuple[int, int, int, str]] = {}  # of each barrier: who came last
        self._work: dict[int, tuple[int, int, int]] = {}  # by claim: when it was issued, SM, track
        self._running: dict[tuple[int, int], int] = {}  # when warps began
        self._places: dict[tuple[int, int], tuple[int, int]] = {}  # processes and threads of these

    def close(self) -> None:
        """The end of the text."""
        self._events.close()

    # --- grids, CTAs, warps -------------------------------------------------------------------------------------------

    def start(self, grid: Grid) -> None:
        """A grid begins."""
        self._grid, self._room = grid, self._most
        self._zero = self._time
        self._waits, self._last, self._work, self._running = {}, {}, {}, {}
        for sm in self._sms.values():
            sm.places.clear()
            sm.busy.clear()

    def end(self, lost: int) -> None:
        """The grid ends, and what has not ended, as after a trap. lost: events that nobody has told of."""
        grid = self._grid
        lost -= min(0, self._room)
        if lost:
            self.left_out[grid.kernel] = self.left_out.get(grid.kernel, 0) + lost
            self._events.instant(f"{lost} further events of {grid.kernel} are left out", self._now(0))
        end = "left out" if lost else "never opened"
        for (number, warp), begun in list(self._running.items()):
            self._warp_ends(number, warp, begun, end)
        for _, pid, track in self._work.values():
            self._sms[pid].busy[track] = False
        for number, sm in self._sms.items():
            if sm.shared or any(sm.columns.values()):
                sm.shared, sm.columns = 0, dict.fromkeys(sm.columns, 0)
                self._counters(number, sm)

    def trapped(self, reason: str) -> None:
        self._events.instant(f"trap: {reason}", self._now(0))

    def cta_begins(self, number: int, on: int) -> None:
        if self._room <= 0:
            return
        sm = self._sm(on)
        taken = set(sm.places.values())
        first = next(at for at in range(1, _WORK, _WARPS) if at not in taken)
        sm.places[number] = first
        for warp in range(self._grid.warps):
            if first + warp not in sm.named:
                sm.named.add(first + warp)
                self._events.named("thread", on, first + warp, f"CTA slot {first // _WARPS}, warp {warp}")
        sm.shared += self._grid.shared
        self._counters(on, sm)

    def cta_ends(self, number: int, on: int) -> None:
        sm = self._sms.get(on)
        if sm is not None and sm.places.pop(number, None) is not None:
            sm.shared -= self._grid.shared
            if number in sm.columns:
                sm.columns = {one: used for one, used in sm.columns.items() if used or one != number}
            self._counters(on, sm)

    def warp_begins(self, at: Warp) -> None:
        if self._full():
            return
        self._running[at.key] = self._now(at.time)
        self._places[at.key] = self._place(at)

    def warp_ends(self, at: Warp) -> None:
        begun = self._running.get(at.key)
        if begun is not None and not self._full():
            self._now(at.time)
            self._warp_ends(at.cta, at.warp, begun)

    def _warp_ends(self, number: int, warp: int, begun: int, end: str = "never opened") -> None:
        key = number, warp
        self._running.pop(key, None)
        pid, tid = self._places.pop(key)
        for wait in self._waits.pop(key, []):
            lost = f'{{"lanes":"{_lanes(wait.lanes)}","end":"{end}"}}'
            self._events.slice(pid, wait.tid, wait.begun, self._time, f"wait: {wait.what}", lost)
        gx, gy, _ = self._grid.grid
        facts = f'{{"cta":"{number % gx},{number // gx % gy},{number // (gx * gy)}","warp":{warp}}}'
        self._events.slice(pid, tid, begun, self._time, self._grid.kernel, facts)

    # --- barriers -----------------------------------------------------------------------------------------------------

    def arrives(self, at: Warp, what: str, lanes: int, barrier: object) -> None:
        if self._full():
            return
        now, (pid, tid) = self._now(at.time), self._place(at)
        name = _NAMES.get(what, what)
        waits = not (what in _SHORT or (what.startswith("mbarrier") and "wait" not in what))
        if not (what.startswith("mbarrier") and waits):
            self._last[barrier] = now, pid, tid, _who(at)
        if waits:
            open_ = self._waits.setdefault(at.key, [])
            known = next((wait for wait in open_ if wait.barrier == barrier and wait.what == name), None)
            if known is None:
                open_.append(_Wait(now, name, barrier, lanes, self._free_track(pid, tid, open_)))
            else:
                known.lanes |= lanes
        else:
            self._events.slice(pid, tid, now, now + 1, name, f'{{"lanes":"{_lanes(lanes)}"}}')
            self._time = now + 1
        self._tensor_memory(at)

    def leaves(self, at: Warp, what: str, lanes: int) -> None:
        if self._full():
            return
        now, (pid, tid), name = self._now(at.time), self._place(at), _NAMES.get(what, what)
        open_ = self._waits.get(at.key, [])
        wait = next((wait for wait in reversed(open_) if wait.what == name), None)
        if wait is None:
            return
        gone = lanes & wait.lanes
        wait.lanes &= ~gone
        if not wait.lanes:
            open_.remove(wait)
        opener = self._last.get(wait.barrier)
        facts = f'{{"lanes":"{_lanes(gone)}"'
        if opener is not None and opener[0] >= wait.begun and opener[1:3] != (pid, tid):
            facts += f',"opened by":"{opener[3]}"'
            self._events.arrow("opens", opener[0], opener[1:3], now, (pid, wait.tid))
        self._events.slice(pid, wait.tid, wait.begun, now, f"wait: {name}", facts + "}")
        self._tensor_memory(at)

    def barrier(self, at: Warp, what: str, key: int) -> object:
        """What barrier lanes came to. key: its number, or its address in shared memory."""
        if what in ("bar", "arrive"):
            return "bar", at.cta, key
        if what.startswith("cluster"):
            return "cluster", at.cluster
        if what.startswith("mbarrier"):
            rank = (key & 0xFFFF_FFFF) >> RANK_SHIFT if self._grid.clustered else at.rank
            return "mbarrier", at.cluster, rank, key & OFFSET_MASK
        return what, at.cta, at.warp

    def _free_track(self, pid: int, tid: int, waits: list[_Wait]) -> int:
        """The warp's own, or one beside it: slices of a track must not cross."""
        taken = {wait.tid for wait in waits}
        track = next(number for number in range(tid, _WORK, _SIDE) if number not in taken)
        sm = self._sm(pid)
        if track not in sm.named:
            sm.named.add(track)
            self._events.named("thread", pid, track, f"track {tid}, other lanes")
        return track

    def transacted(self, at: View, cta: Cta, offset: int, size: int) -> None:
        """A copy brings an mbarrier its bytes."""
        self._brings(at, cta, offset, "a copy")

    def signalled(self, at: View, cta: Cta, offset: int) -> None:
        """A tcgen05.commit arrives at an mbarrier."""
        self._brings(at, cta, offset, "a commit")

    def _brings(self, at: View, cta: Cta, offset: int, what: str) -> None:
        one = warp_of(at)
        pid, tid = self._place(one)
        barrier = "mbarrier", cta.cluster.number, cta.rank, offset
        self._last[barrier] = self._time, pid, tid, f"{what} of {_who(one)}"

    # --- asynchronous work --------------------------------------------------------------------------------------------

    def issued(self, claim: Claim) -> None:
        if self._full():
            return
        at = warp_of(claim.view)
        now, (pid, tid) = self._now(at.time), self._place(at)
        sm = self._sm(pid)
        track = next((n for n, busy in enumerate(sm.busy) if not busy), len(sm.busy))
        if track == len(sm.busy):
            sm.busy.append(False)
        if _WORK + track not in sm.named:
            sm.named.add(_WORK + track)
            self._events.named("thread", pid, _WORK + track, f"asynchronous work {track}")
        sm.busy[track] = True
        self._work[id(claim)] = now, pid, track
        self._events.slice(pid, tid, now, now + 1, claim.text, f'{{"lane":{claim.lane}}}')
        self._time = now + 1
        self._tensor_memory(at)

    def completed(self, claim: Claim) -> None:
        begun, pid, track = self._work.pop(id(claim), (-1, 0, 0))
        if begun < 0:
            return
        at = warp_of(claim.view)
        now = max(self._now(at.time), begun + 2)
        self._time = now
        self._sm(pid).busy[track] = False
        sizes = [span.end - span.start for span in claim.spans if span.rows is None]
        self._events.arrow("completes", begun, self._place(at), now, (pid, _WORK + track))
        facts = f'{{"bytes":{max(sizes, default=0)},"warp":{at.warp}}}'
        self._events.slice(pid, _WORK + track, begun, now, claim.text, facts)

    # --- what it keeps ------------------------------------------------------------------------------------------------

    def _full(self) -> bool:
        """Count an event; whether there is no room for it."""
        self._room -= 1
        return self._room < 0

    def _now(self, time: int) -> int:
        """A moment behind the last one."""
        self._time = max(self._time + 1, self._zero + time)
        return self._time

    def _place(self, at: Warp) -> tuple[int, int]:
        """Process and thread of a warp."""
        return at.sm, self._sm(at.sm).places.get(at.cta, 1) + at.warp

    def _sm(self, number: int) -> _Sm:
        known = self._sms.get(number)
        if known is None:
            known = self._sms[number] = _Sm()
            self._events.named("process", number, 0, f"SM {number}")
        return known

    def _counters(self, number: int, sm: _Sm) -> None:
        self._events.counter("shared memory in use", number, self._time, "bytes", sm.shared)
        if sm.columns:
            self._events.counter("tensor memory in use", number, self._time, "columns", sum(sm.columns.values()))

    def _tensor_memory(self, at: Warp) -> None:
        """Note a change of the columns that a CTA has."""
        if at.resident is None:
            return
        used, sm = allocated_columns(at.resident), self._sm(at.sm)
        if used != sm.columns.get(at.cta, 0):
            sm.columns[at.cta] = used
            self._counters(at.sm, sm)


def _who(at: Warp) -> str:
    return "CTA ({},{},{}) warp {}".format(*at.place, at.warp)


@lru_cache(1024)
def _lanes(mask: int) -> str:
    """Such as "0-31" or "0-7,9"."""
    found, lane = [], 0
    while mask >> lane:
        if not mask >> lane & 1:
            lane += 1
            continue
        first = lane
        while mask >> lane & 1:
            lane += 1
        found.append(str(first) if lane == first + 1 else f"{first}-{lane - 1}")
    return ",".join(found)


__all__ = ["Grid", "Tracks", "Warp", "grid_of", "warp_of"]
