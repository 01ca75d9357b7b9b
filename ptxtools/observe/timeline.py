"""The timeline of a run, as Chrome's trace events, which Perfetto and chrome://tracing show.

`Timeline` is an observer. A process is an SM; its threads are the warps of the CTAs that it holds, by their places, and
tracks of asynchronous work. Times are the simulator's virtual nanoseconds, in which the warps of a worker run one after
another: they show the order of events and who waits for whom, not how long a chip would take.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from ptxtools.diagnostics import shown
from ptxtools.machine.events import View
from ptxtools.machine.residents import Cta
from ptxtools.program.program import OFFSET_MASK
from ptxtools.sim.tensor.memory import allocated_columns

if TYPE_CHECKING:
    from ptxtools.diagnostics import Trap
    from ptxtools.machine.claims import Claim
    from ptxtools.machine.launch import Launch

Array: TypeAlias = npt.NDArray[Any]

#: Of a CTA at most.
_WARPS = 32
#: Thread numbers of tracks: warps have those below, asynchronous work those from here on.
_WORK = 1 << 20
#: From the track of a warp to that of lanes that wait while others of it do, and to that of yet others.
_SIDE = 1 << 14
#: Operations of barriers at which lanes do not wait.
_SHORT = ("arrive", "cluster arrive")


@dataclass(slots=True)
class _Wait:
    """Lanes of a warp that came to a barrier and have not gone on."""

    begun: int
    what: str
    barrier: object
    lanes: int
    tid: int


@dataclass(slots=True)
class _Sm:
    """What an SM holds. places: of CTAs, by their numbers, the first thread number of their warps; busy: whether a
    track of asynchronous work has something; shared: bytes in use; columns: of tensor memory, by CTA; named: tracks."""

    places: dict[int, int] = field(default_factory=dict)
    busy: list[bool] = field(default_factory=list)
    shared: int = 0
    columns: dict[int, int] = field(default_factory=dict)
    named: set[int] = field(default_factory=set)


class Timeline:
    """The observer. write: gets the text, piece by piece; `close` writes the end."""

    def __init__(self, write: Callable[[str], object]) -> None:
        self._write = write
        self._count = 0
        self._time = 0
        self._zero = 0  # virtual time at which the grid began here
        self._arrows = 0
        self._launch: Launch | None = None
        self._sms: dict[int, _Sm] = {}
        self._waits: dict[tuple[int, int], list[_Wait]] = {}  # by CTA and warp
        self._last: dict[object, tuple[int, int, int, str]] = {}  # of each barrier: who came last
        self._work: dict[int, tuple[int, int, int]] = {}  # by claim: when it was issued, SM, track
        self._running: dict[tuple[int, int], int] = {}  # when warps began
        self._places: dict[tuple[int, int], tuple[int, int]] = {}  # processes and threads of these

    # --- grids, CTAs, warps -------------------------------------------------------------------------------------------

    def grid_begun(self, launch: Launch) -> None:
        self._launch, self._zero = launch, self._time
        self._waits, self._last, self._work, self._running = {}, {}, {}, {}
        for sm in self._sms.values():
            sm.places.clear()
            sm.busy.clear()

    def grid_ended(self, launch: Launch) -> None:
        """What has not ended ends here, as after a trap."""
        for (number, warp), begun in list(self._running.items()):
            self._warp_ends(number, warp, begun)
        for _, pid, track in self._work.values():
            self._sms[pid].busy[track] = False
        for number, sm in self._sms.items():
            if sm.shared or any(sm.columns.values()):
                sm.shared, sm.columns = 0, dict.fromkeys(sm.columns, 0)
                self._counters(number, sm)

    def trapped(self, trap: Trap) -> None:
        self._event(ph="i", s="g", name=f"trap: {trap.reason}", pid=0, tid=0, ts=self._now(None))

    def cta_begun(self, cta: Cta) -> None:
        assert self._launch is not None
        x, y, z = self._launch.block
        warps = -(-x * y * z // 32)
        sm = self._sm(cta.sm)
        taken = set(sm.places.values())
        first = next(at for at in range(1, _WORK, _WARPS) if at not in taken)
        sm.places[cta.number] = first
        for warp in range(warps):
            if first + warp not in sm.named:
                sm.named.add(first + warp)
                self._named("thread", cta.sm, first + warp, f"CTA slot {first // _WARPS}, warp {warp}")
        sm.shared += self._launch.program.declared_shared + self._launch.dynamic_shared
        self._counters(cta.sm, sm)

    def cta_ended(self, cta: Cta) -> None:
        assert self._launch is not None
        sm = self._sm(cta.sm)
        if sm.places.pop(cta.number, None) is not None:
            sm.shared -= self._launch.program.declared_shared + self._launch.dynamic_shared
            sm.columns = {number: used for number, used in sm.columns.items() if used or number != cta.number}
            self._counters(cta.sm, sm)

    def warp_begun(self, at: View) -> None:
        self._running[at.cta.number, at.warp] = self._now(at)
        self._places[at.cta.number, at.warp] = self._place(at)

    def warp_ended(self, at: View) -> None:
        begun = self._running.get((at.cta.number, at.warp))
        if begun is not None:
            self._now(at)
            self._warp_ends(at.cta.number, at.warp, begun)

    def _warp_ends(self, number: int, warp: int, begun: int) -> None:
        assert self._launch is not None
        self._running.pop((number, warp), None)
        pid, tid = self._places.pop((number, warp))
        for wait in self._waits.pop((number, warp), []):
            self._slice(
                pid,
                wait.tid,
                wait.begun,
                self._time,
                f"wait: {wait.what}",
                lanes=_lanes(wait.lanes),
                end="never opened",
            )
        gx, gy, _ = self._launch.grid
        place = f"{number % gx},{number // gx % gy},{number // (gx * gy)}"
        name = shown(self._launch.program.kernel)
        self._slice(pid, tid, begun, self._time, name, cta=place, warp=warp)

    # --- barriers -----------------------------------------------------------------------------------------------------

    def arrive(self, at: View, what: str, lanes: Array) -> None:
        now, (pid, tid), barrier = self._now(at), self._place(at), _barrier(at, what)
        name = _name(at, what)
        waits = not (what in _SHORT or (what.startswith("mbarrier") and "wait" not in what))
        if not (what.startswith("mbarrier") and waits):
            self._last[barrier] = now, pid, tid, f"{at.cta} warp {at.warp}"
        if waits:
            open_ = self._waits.setdefault((at.cta.number, at.warp), [])
            known = next((wait for wait in open_ if wait.barrier == barrier and wait.what == name), None)
            if known is None:
                open_.append(_Wait(now, name, barrier, _mask(lanes), self._free_track(pid, tid, open_)))
            else:
                known.lanes |= _mask(lanes)
        else:
            self._slice(pid, tid, now, now + 1, name, lanes=_lanes(_mask(lanes)))
            self._time = now + 1
        self._tensor_memory(at.cta)

    def leave(self, at: View, what: str, lanes: Array) -> None:
        now, (pid, tid), name = self._now(at), self._place(at), _name(at, what)
        open_ = self._waits.get((at.cta.number, at.warp), [])
        wait = next((wait for wait in reversed(open_) if wait.what == name), None)
        if wait is None:
            return
        gone = _mask(lanes) & wait.lanes
        wait.lanes &= ~gone
        if not wait.lanes:
            open_.remove(wait)
        opener = self._last.get(wait.barrier)
        facts: dict[str, Any] = {"lanes": _lanes(gone)}
        if opener is not None and opener[0] >= wait.begun and opener[1:3] != (pid, tid):
            facts["opened by"] = opener[3]
            self._arrow("opens", opener[0], opener[1:3], now, (pid, wait.tid))
        self._slice(pid, wait.tid, wait.begun, now, f"wait: {name}", **facts)
        self._tensor_memory(at.cta)

    def _free_track(self, pid: int, tid: int, waits: list[_Wait]) -> int:
        """The warp's own, or one beside it: slices of a track must not cross."""
        taken = {wait.tid for wait in waits}
        track = next(number for number in range(tid, _WORK, _SIDE) if number not in taken)
        sm = self._sm(pid)
        if track not in sm.named:
            sm.named.add(track)
            self._named("thread", pid, track, f"track {tid}, other lanes")
        return track

    def transacted(self, at: View, cta: Cta, offset: int, size: int) -> None:
        """A copy brings an mbarrier its bytes."""
        pid, tid = self._place(at)
        self._last["mbarrier", cta.number, offset] = self._time, pid, tid, f"a copy of {at.cta} warp {at.warp}"

    # --- asynchronous work --------------------------------------------------------------------------------------------

    def issued(self, claim: Claim) -> None:
        now, (pid, tid) = self._now(claim.view), self._place(claim.view)
        sm = self._sm(pid)
        track = next((n for n, busy in enumerate(sm.busy) if not busy), len(sm.busy))
        if track == len(sm.busy):
            sm.busy.append(False)
        if _WORK + track not in sm.named:
            sm.named.add(_WORK + track)
            self._named("thread", pid, _WORK + track, f"asynchronous work {track}")
        sm.busy[track] = True
        self._work[id(claim)] = now, pid, track
        self._slice(pid, tid, now, now + 1, claim.text, lane=claim.lane)
        self._time = now + 1
        self._tensor_memory(claim.view.cta)

    def completed(self, claim: Claim) -> None:
        begun, pid, track = self._work.pop(id(claim), (-1, 0, 0))
        if begun < 0:
            return
        now = max(self._now(claim.view), begun + 2)
        self._time = now
        self._sm(pid).busy[track] = False
        sizes = [span.end - span.start for span in claim.spans if span.rows is None]
        issuer = self._place(claim.view)
        self._arrow("completes", begun, issuer, now, (pid, _WORK + track))
        self._slice(pid, _WORK + track, begun, now, claim.text, bytes=max(sizes, default=0), warp=claim.view.warp)

    # --- what it writes -----------------------------------------------------------------------------------------------

    def close(self) -> None:
        """The end of the text."""
        self._write("\n]}\n" if self._count else '{"traceEvents":[]}\n')

    def _now(self, at: View | None) -> int:
        """A moment behind the last one."""
        time = self._time + 1
        if at is not None:
            time = max(time, self._zero + at.time)
        self._time = time
        return time

    def _place(self, at: View) -> tuple[int, int]:
        """Process and thread of a warp."""
        cta = at.cta
        sm = self._sm(cta.sm)
        return cta.sm, sm.places.get(cta.number, 1) + at.warp

    def _sm(self, number: int) -> _Sm:
        known = self._sms.get(number)
        if known is None:
            known = self._sms[number] = _Sm()
            self._named("process", number, 0, f"SM {number}")
        return known

    def _named(self, kind: str, pid: int, tid: int, name: str) -> None:
        self._event(ph="M", name=f"{kind}_name", pid=pid, tid=tid, args={"name": name})

    def _counters(self, number: int, sm: _Sm) -> None:
        self._event(ph="C", name="shared memory in use", pid=number, ts=self._time, args={"bytes": sm.shared})
        if sm.columns:
            used = sum(sm.columns.values())
            self._event(ph="C", name="tensor memory in use", pid=number, ts=self._time, args={"columns": used})

    def _tensor_memory(self, cta: Cta) -> None:
        """Note a change of the columns that a CTA has."""
        used, sm = allocated_columns(cta), self._sm(cta.sm)
        if used != sm.columns.get(cta.number, 0):
            sm.columns[cta.number] = used
            self._counters(cta.sm, sm)

    def _slice(self, pid: int, tid: int, begun: int, ended: int, name: str, **facts: object) -> None:
        self._event(ph="X", name=name, pid=pid, tid=tid, ts=begun, dur=ended - begun, args=facts)

    def _arrow(self, name: str, begun: int, start: tuple[int, int], ended: int, end: tuple[int, int]) -> None:
        self._arrows += 1
        both = {"name": name, "cat": name, "id": self._arrows}
        self._event(ph="s", pid=start[0], tid=start[1], ts=begun, **both)
        self._event(ph="f", bp="e", pid=end[0], tid=end[1], ts=ended - 1, **both)  # in the slice that ends there

    def _event(self, **what: object) -> None:
        """Times are in microseconds there."""
        for name in ("ts", "dur"):
            if name in what:
                what[name] = round(what[name] / 1000, 3)  # type: ignore[operator]
        self._write(",\n" if self._count else '{"displayTimeUnit":"ns","traceEvents":[\n')
        self._write(json.dumps(what, separators=(",", ":")))
        self._count += 1


def _mask(lanes: Array) -> int:
    return sum(1 << lane for lane in lanes.tolist())


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


def _barrier(at: View, what: str) -> object:
    """What barrier lanes came to."""
    if what in ("bar", "arrive"):
        lanes = np.flatnonzero(at.mask >> np.arange(32) & 1)
        return "bar", at.cta.number, int(at.source(0)[lanes[0]])
    if what.startswith("cluster"):
        return "cluster", at.cta.cluster.number
    if what.startswith("mbarrier"):
        lanes = np.flatnonzero(at.mask >> np.arange(32) & 1)
        address = int(at.addresses()[lanes[0]])
        return "mbarrier", at.shared_owner(address, lane=int(lanes[0])).number, address & OFFSET_MASK
    return what, at.cta.number, at.warp


def _name(at: View, what: str) -> str:
    return {"bar": "bar.sync", "arrive": "bar.arrive", "warp": "bar.warp.sync"}.get(what, what)


__all__ = ["Timeline"]
