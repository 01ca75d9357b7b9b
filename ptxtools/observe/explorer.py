"""Runs a grid in a given order of its accesses, and writes down in which it ran (`orders`).

The accesses are those through which warps learn of one another: atomics, strong accesses, and those at lines that race.
While there is a plan, a warp that comes to one stays there until it is its turn. A warp that looks again and again at
what has not changed waits until something has, so that a deadlock is found as one.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, Any

import numpy as np

from ptxtools.machine.exploring import RACING
from ptxtools.machine.looks import accesses
from ptxtools.machine.residents import Wait
from ptxtools.program.details import Look
from ptxtools.program.operations import strength
from ptxtools.program.program import OFFSET_MASK, RANK_SHIFT

from .clocks import Clocks
from .orders import Event, Glance, Orders, Plan
from .race_accesses import sort_of, warps_of, words_of
from .race_barriers import Barriers
from .race_phases import Mbarriers
from .race_shadow import WORD
from .sharing import useful_atomics

if TYPE_CHECKING:
    from ptxtools.machine.events import View
    from ptxtools.machine.launch import Launch
    from ptxtools.machine.observers import Access
    from ptxtools.program.program import Op, Program

    from .clocks import Array, Warp

#: Virtual nanoseconds after which nobody is expected to come, and for which a warp looks at nothing anew.
_PATIENCE, _PAUSE = 20_000_000, 20_000
#: Events that are written down.
_MOST = 4000
_KEY = "its turn"


class Explorer:
    """An observer of one run. plan: the order in which to begin; events: what came; followed: as it was planned; whole:
    all events were written down; vain: looks at what has not changed, after which warps wait."""

    def __init__(self, plan: Plan) -> None:
        self._plan, self._place = plan.steps, 0
        self.events: list[Event] = []
        self.vain: set[Glance] = set()
        self.followed = self.whole = True
        self._last: dict[int, Event] = {}  # of each warp
        self._open: tuple[Event, View] | None = None  # the last one: what it changes is not known yet
        self._waiting: dict[Any, None] = {}  # schedule and key of those that wait

    @staticmethod
    def concerned(program: Program, device: Any) -> Callable[[Op], bool]:
        """All synchronisation, and of accesses those that tell warps of one another."""
        racing = device.runtime.state.get(RACING, frozenset())
        return lambda op: op.kind != "observe.access" or _tells(program, op, racing)

    def grid_begun(self, launch: Launch) -> None:
        per_cta = warps_of(launch)
        cx, cy, cz = launch.cluster
        self._clocks = Clocks(per_cta, per_cta * cx * cy * cz)
        self._barriers, self._mbarriers = Barriers(self), Mbarriers(self.decide)
        self._useful = useful_atomics(launch.program)
        self._racing = launch.device.runtime.state.get(RACING, frozenset())

    def grid_ended(self, launch: Launch) -> None:
        self._settle()
        self._last.clear()
        self._waiting.clear()

    def decide(self, where: int, what: str) -> None:
        """What barriers decide is no concern here: racecheck says so."""

    def _warp(self, at: View) -> Warp:
        return self._clocks.warp(at.cluster.number, at.cta.rank * self._clocks.per_cta + at.warp)

    # --- synchronisation by the program, which comes out alike in every order -----------------------------------------

    def arrive(self, at: View, what: str, lanes: Array) -> None:
        warp = self._warp(at)
        if what.startswith("mbarrier"):
            if "_wait" not in what:
                self._mbarriers.arrive(at, what, lanes, warp, warp.known)
                warp.tick()
            return
        for key in self._barriers.keys(at, what, lanes, arriving=True):
            if what != "cluster wait":
                self._clocks.give(warp, key)
                self._clocks.forget((*key[:-1], key[-1] - 2))

    def leave(self, at: View, what: str, lanes: Array) -> None:
        warp = self._warp(at)
        if what.startswith("mbarrier"):
            if "_wait" in what:
                self._mbarriers.wait(at, what, lanes, warp)
        elif what not in ("arrive", "cluster arrive", "warp"):
            for key in self._barriers.keys(at, what, lanes, arriving=False):
                self._clocks.take(warp, key, lanes)

    # --- accesses -----------------------------------------------------------------------------------------------------

    def access(self, at: View, access: Access) -> None:
        """Behind `delays`, which knows all of it."""

    def delays(self, at: View) -> bool:
        """Whether lanes have to stay before an access, because it is not their turn or nothing has changed."""
        if not _tells(at.launch.program, at.op, self._racing):
            return False
        parts = [part for part in accesses(at) if part.space in ("global", "shared")]
        if not parts:
            return False
        self._settle()
        event = self._event(at, parts)
        late, before = bool(at.slept & at.mask), self._last.get(event.agent)
        planned = self._place < len(self._plan)
        again = before is not None and event.again(before)
        turn = planned and event.step == self._plan[self._place]
        if turn:
            self._place += 1
            self._wake()
        if again:
            self.vain.add(event.glance)
            if not late:
                self._hold(at, "memory to change", _PAUSE)
            return not late
        if turn:
            pass
        elif planned and not late:
            self._hold(at, "its turn in the schedule", _PATIENCE)
            return True
        elif planned:  # nobody else comes: the plan cannot be
            self.followed, self._plan = False, ()
            self._wake()
        if len(self.events) < _MOST:
            self.events.append(event)
        else:
            self.whole = False
        self._last[event.agent], self._open = event, (event, at)
        self._warp(at).tick()
        return False

    def _hold(self, at: View, text: str, limit: int) -> None:
        at.hold(Wait(at.cta, at.warp, at.mask, _KEY, text, at.now + limit, None, at.op.where))
        self._waiting[at.schedule, (at.cluster, _KEY)] = None

    def _wake(self) -> None:
        for schedule, key in list(self._waiting):
            schedule.wake(key)
        self._waiting.clear()

    def _settle(self) -> None:
        """The last access has been made: see what it has changed."""
        if self._open is None:
            return
        event, at = self._open
        self._open = None
        now = [_content(at, word) for word in event.words]
        event.changed = frozenset(
            word for word, old, new in zip(event.words, event.content, now, strict=True) if old != new
        )
        if event.changed:
            self._wake()

    def _event(self, at: View, parts: list[Access]) -> Event:
        words: dict[Hashable, None] = {}
        for part in parts:
            words |= dict.fromkeys(_words(at, part))
        warp = self._warp(at)
        per_cluster = self._clocks.per_cluster
        known = {
            cluster * per_cluster + int(number): int(row[number])
            for cluster, row in warp.known.items()
            for number in np.flatnonzero(row)
        }
        lanes = sum(1 << int(lane) for part in parts for lane in part.lanes)
        sort = 0 if at.op.where in self._useful else max(0, sort_of(at, parts[0]))
        content = tuple(_content(at, word) for word in words)
        return Event((warp.agent, at.op.where, lanes), tuple(words), content, sort, warp.time, known)


def _tells(program: Program, op: Op, racing: frozenset[Any]) -> bool:
    """Whether warps may learn of one another by an access."""
    if op.space == "local":
        return False
    return op.of(Look).action == "atomic" or bool(strength(op.opcode)) or program.lines[op.where] in racing


def _words(at: View, access: Access) -> list[Hashable]:
    """The words of an access: of global memory (-1, 0, word), of shared memory (cluster, rank, word)."""
    if access.space == "global":
        return [(-1, 0, word) for word in words_of(access.addresses.astype(np.int64), access.size)]
    addresses = access.addresses.astype(np.int64)
    ranks = addresses >> RANK_SHIFT
    if not at.launch.program.clustered:
        ranks = np.where(ranks == 0, at.cta.rank, ranks)
    found: list[Hashable] = []
    for rank in np.unique(ranks).tolist():
        places = addresses[ranks == rank] & OFFSET_MASK
        found += [(at.cluster.number, rank, word) for word in words_of(places, access.size)]
    return found


def _content(at: View, word: Any) -> bytes:
    """What a word holds; nothing where there is no memory."""
    cluster, rank, number = word
    if cluster < 0:
        found = at.launch.memory.bytes(WORD * number, WORD, False)
        return b"" if found is None else bytes(found)
    ctas = at.cluster.ctas
    return bytes(ctas[rank].shared[WORD * number : WORD * number + WORD]) if rank < len(ctas) else b""


class Schedules:
    """The schedules of a launch (`machine.exploring.Frontier`)."""

    def __init__(self) -> None:
        self._orders = Orders()
        self.whole = True

    @property
    def count(self) -> int:
        return self._orders.count

    def next(self) -> Explorer | None:
        plan = self._orders.next()
        return None if plan is None else Explorer(plan)

    def learn(self, observer: object) -> None:
        assert isinstance(observer, Explorer)
        self.whole = self.whole and observer.whole
        self._orders.learn(observer.events, observer.vain)
