"""The critical path of warps in the model of time: when each of their instructions could be issued at best.

An instruction waits for the results that it reads and for its pipe, of which the warp has its part to itself. Between
branches and barriers the order of the text does not count, since ptxas arranges instructions so that waits overlap; a
branch or a barrier comes when all before it have been issued. At a barrier a warp waits for the last that comes.
Asynchronous work is over when its latency has passed; who waits for it at an mbarrier or for a group goes on then.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ptxtools.records import dataclass, field

if TYPE_CHECKING:
    from .estimate_costs import Cost

#: Parts of an SM: a warp has the pipes of one.
_PARTS = 4


@dataclass(slots=True)
class _Warp:
    """issued: instructions; time: when it can issue next; last: when the last one since a branch has what it reads,
    why: what that waits for; end: when all that it has begun is over; ready: when registers have their values, gives:
    what that takes; pipes: when they are free; groups: when committed groups of asynchronous work are over, open_group:
    what is in none yet."""

    issued: int = 0
    time: float = 0
    last: float = 0
    end: float = 0
    ready: dict[tuple[int, int], float] = field(default_factory=dict)
    gives: dict[tuple[int, int], str] = field(default_factory=dict)
    why: str = ""
    pipes: dict[str, float] = field(default_factory=dict)
    groups: list[float] = field(default_factory=list)
    open_group: float = 0
    waited: dict[str, float] = field(default_factory=dict)


@dataclass(slots=True)
class _Barrier:
    """Who came last to it, of those that wait, and of those that have been let go."""

    coming: float = 0
    waiting: set[tuple[int, int]] = field(default_factory=set)
    opened: float = 0
    leaving: set[tuple[int, int]] = field(default_factory=set)


class Paths:
    """Those of the warps of some CTAs, as their events come. costs: by index of the instruction; wake: cycles until a
    warp goes on behind a barrier."""

    def __init__(self, costs: dict[int, Cost], wake: float) -> None:
        self._costs, self._wake = costs, wake
        self._warps: dict[tuple[int, int], _Warp] = {}
        self._barriers: dict[object, _Barrier] = {}
        self._mbarriers: dict[object, float] = {}

    def line(self, cta: int, warp: int, where: int) -> None:
        """A warp comes to an instruction."""
        one = self._of(cta, warp)
        cost = self._costs.get(where)
        one.issued += 1
        if cost is None:
            return
        latest = max(cost.sources, key=lambda source: one.ready.get(source, 0.0), default=None)
        data, why = (0.0, "") if latest is None else (one.ready.get(latest, 0.0), one.gives.get(latest, ""))
        if not cost.count and not cost.fixed:
            for result in cost.results:
                one.ready[result], one.gives[result] = data, why
            return
        if cost.fixed:
            self._stop(one)
        if cost.waits >= 0:
            done = max(one.groups[: max(0, len(one.groups) - cost.waits)], default=0.0)
            self._wait(one, "asynchronous work", done if cost.waits else max(done, one.open_group))
        if cost.fixed:
            self._wait(one, why, data)
        free = one.pipes.get(cost.pipe, 0.0)
        start = max(one.time, data, free)
        if cost.pipe:
            parts = _PARTS if cost.pipe != "shared" else 1
            one.pipes[cost.pipe] = max(one.pipes.get(cost.pipe, 0.0), one.time) + cost.cycles * parts
        one.time += cost.count
        if start > one.last:
            one.last, one.why = start, why if data >= free else f"pipe: {cost.pipe}"
        over = start + cost.latency
        for result in cost.results:
            one.ready[result], one.gives[result] = over, cost.gives
        if cost.commits:
            one.groups.append(one.open_group)
            one.open_group = 0
        elif cost.starts:
            one.open_group = max(one.open_group, over)
        one.end = max(one.end, start + cost.count, over if cost.results or cost.starts else 0)

    def _stop(self, one: _Warp) -> None:
        """All that stands before is issued before what follows."""
        self._wait(one, one.why, one.last)

    def arrive(self, cta: int, warp: int, barrier: object, what: str) -> None:
        """A warp comes to a barrier or arrives at an mbarrier."""
        one = self._of(cta, warp)
        self._stop(one)
        if what.startswith("mbarrier"):
            if "wait" not in what:
                self._mbarriers[barrier] = max(self._mbarriers.get(barrier, 0.0), one.time)
            return
        meeting = self._barriers.setdefault(barrier, _Barrier())
        meeting.coming = max(meeting.coming, one.time)
        meeting.waiting.add((cta, warp))

    def leave(self, cta: int, warp: int, barrier: object, what: str) -> None:
        """A warp goes on behind it."""
        one, me = self._of(cta, warp), (cta, warp)
        if what.startswith("mbarrier"):
            opened = self._mbarriers.get(barrier, 0.0)
        else:
            meeting = self._barriers.setdefault(barrier, _Barrier())
            if me not in meeting.leaving and me in meeting.waiting:
                meeting.opened, meeting.leaving = meeting.coming, meeting.waiting
                meeting.coming, meeting.waiting = 0.0, set()
            meeting.leaving.discard(me)
            opened = meeting.opened
        self._wait(one, "mbarriers" if what.startswith("mbarrier") else "barriers", opened)
        one.time += 0 if what.startswith("mbarrier") else self._wake
        one.end = max(one.end, one.time)

    def copied(self, cta: int, warp: int, barrier: object, latency: float) -> None:
        """A copy that a warp has issued brings an mbarrier its bytes."""
        one = self._of(cta, warp)
        done = max(one.time, one.last) + latency
        self._mbarriers[barrier] = max(self._mbarriers.get(barrier, 0.0), done)

    def _of(self, cta: int, warp: int) -> _Warp:
        return self._warps.setdefault((cta, warp), _Warp())

    @staticmethod
    def _wait(one: _Warp, reason: str, until: float) -> None:
        """The warp issues nothing before that moment."""
        if until > one.time:
            one.waited[reason] = one.waited.get(reason, 0.0) + until - one.time
            one.time = until

    # --- what comes out -----------------------------------------------------------------------------------------------

    @property
    def issued(self) -> int:
        """Instructions in all paths."""
        return sum(one.issued for one in self._warps.values())

    def ends(self) -> list[float]:
        """When each CTA is over, in cycles from its beginning."""
        found: dict[int, float] = {}
        for (cta, _), one in self._warps.items():
            found[cta] = max(found.get(cta, 0.0), one.end)
        return list(found.values())

    def waited(self) -> dict[str, float]:
        """Cycles that warps wait, by reason, the mean of a warp."""
        found: dict[str, float] = {}
        for one in self._warps.values():
            for reason, cycles in one.waited.items():
                found[reason] = found.get(reason, 0.0) + cycles / len(self._warps)
        return dict(sorted(found.items(), key=lambda row: -row[1]))


__all__ = ["Paths"]
