"""The orders in which warps may come to the same memory, and how to get from one to the next (`--explore`).

A run is a list of events: accesses to memory through which warps learn of one another. Two runs are the same order if
they differ only in when events come that do not depend on each other (Mazurkiewicz's traces). Wherever two events of a
run depend on each other and nothing else orders them, a plan is made that reverses them: what came before the first,
what came between the two and does not follow from it, and then the second. If that is done in every run until nothing
is left, all orders have been seen (dynamic partial-order reduction: Flanagan and Godefroid, POPL 2005; Abdulla and
others, POPL 2014).
"""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Hashable, Iterable, Iterator, Mapping, Set
from functools import cached_property

from ptxtools.records import dataclass, field

#: Who comes to which line with which lanes: number of the warp in the grid, line of the program, mask.
Step = tuple[int, int, int]
#: A step, and what it finds.
Glance = tuple[Step, tuple[bytes, ...]]


@dataclass(slots=True, eq=False)
class Event:
    """words: what it accesses; content: theirs before it; sort: of integer atomics whose results nobody reads, else 0;
    time: of its warp, as others know it; known: times of other warps that barriers have told of; changed: words that
    have another content behind it."""

    step: Step
    words: tuple[Hashable, ...]
    content: tuple[bytes, ...]
    sort: int
    time: int
    known: Mapping[int, int]
    changed: frozenset[Hashable] = frozenset()

    @property
    def agent(self) -> int:
        return self.step[0]

    @property
    def glance(self) -> Glance:
        """The step, and what it finds."""
        return self.step, self.content

    def again(self, before: Event) -> bool:
        """Whether it only repeats what its warp did last, and finds the same: a loop that waits."""
        same = self.step == before.step and self.words == before.words and self.content == before.content
        return same and not before.changed

    def depends(self, other: Event, word: Hashable) -> bool:
        """Whether the order of two accesses to a word makes a difference. An atomic that changes nothing might do so
        where another one of its sort, which comes in any order with it, is not before it."""
        if self.sort and self.sort == other.sort:
            return False
        return word in self.changed or word in other.changed or bool(self.sort or other.sort)


@dataclass(eq=False)
class Order:
    """A run, and what comes behind what in it. clocks: for each event how many events of each warp it follows from, its
    own included; races: pairs of events that nothing orders but that one of them came first; names: of events, alike in
    all runs of one order."""

    events: list[Event]
    clocks: list[dict[int, int]] = field(default_factory=list)
    places: list[int] = field(default_factory=list)  # of an event among those of its warp, from 0
    races: list[tuple[int, int]] = field(default_factory=list)
    names: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        mine: dict[int, list[int]] = {}
        times: dict[int, list[int]] = {}
        touched: dict[Hashable, dict[int, list[int]]] = {}
        for number, event in enumerate(self.events):
            own = mine.setdefault(event.agent, [])
            clock = dict(self.clocks[own[-1]]) if own else {}
            for agent, time in event.known.items():
                count = bisect_right(times.get(agent, ()), time)
                if agent != event.agent and count:
                    self._join(clock, self.clocks[mine[agent][count - 1]])
            before = sorted(self._dependent(event, touched), reverse=True)
            for earlier in before:
                if not self._follows(clock, earlier):
                    self.races.append((earlier, number))
                    self._join(clock, self.clocks[earlier])
            self.places.append(len(own))
            own.append(number)
            clock[event.agent] = len(own)
            self.clocks.append(clock)
            last = self.names[own[-2]] if len(own) > 1 else 0
            self.names.append(hash((event.step, last, *sorted(self.names[one] for one in before))))
            times.setdefault(event.agent, []).append(event.time)
            for word in event.words:
                touched.setdefault(word, {}).setdefault(event.agent, []).append(number)

    def _dependent(self, event: Event, touched: Mapping[Hashable, Mapping[int, list[int]]]) -> set[int]:
        """The last event of each other warp that an event depends on, for each of its words."""
        found = set()
        for word in event.words:
            for agent, numbers in touched.get(word, {}).items():
                if agent != event.agent:
                    last = (one for one in reversed(numbers) if event.depends(self.events[one], word))
                    found |= {one for one in [next(last, -1)] if one >= 0}
        return found

    @staticmethod
    def _join(clock: dict[int, int], more: Mapping[int, int]) -> None:
        for agent, count in more.items():
            clock[agent] = max(clock.get(agent, 0), count)

    def _follows(self, clock: Mapping[int, int], earlier: int) -> bool:
        return clock.get(self.events[earlier].agent, 0) > self.places[earlier]

    @cached_property
    def key(self) -> frozenset[int]:
        """The same for all runs of one order."""
        return frozenset(self.names)

    def plans(self) -> Iterator[Plan]:
        """One for each race: the steps up to where it is reversed."""
        for first, second in self.races:
            between = [n for n in range(first + 1, second) if not self._follows(self.clocks[n], first)]
            kept = [*range(first), *between]
            if not self._waits(kept, second):
                steps = tuple(self.events[number].step for number in [*kept, second])
                yield Plan(steps, frozenset(self.names[number] for number in kept))

    def glimpses(self, vain: Set[Glance]) -> Iterator[Plan]:
        """Plans in which a warp that waits looks again where something had changed, and has changed back or further
        before its next look. vain: looks after which warps have waited."""
        for number, event in enumerate(self.events):
            if event.glance not in vain:
                continue
            later = range(number + 1, len(self.events))
            after = next((one for one in later if self.events[one].agent == event.agent), None)
            if after is not None and self.events[after].step != event.step:
                continue
            end = len(self.events) if after is None else after
            changes = [n for n in range(number + 1, end) if not self.events[n].changed.isdisjoint(event.words)]
            for change in changes if after is None else changes[:-1]:
                if self._content(event.words, change) != event.content:
                    steps = *(one.step for one in self.events[: change + 1]), event.step
                    yield Plan(steps, frozenset(self.names[: change + 1]))

    def _content(self, words: tuple[Hashable, ...], place: int) -> tuple[bytes, ...]:
        """What words hold behind an event, as far as a later one tells."""
        found = []
        for word in words:
            later = (one for one in self.events[place + 1 :] if word in one.words)
            one = next(later, None)
            found.append(b"" if one is None else one.content[one.words.index(word)])
        return tuple(found)

    def _waits(self, kept: list[int], second: int) -> bool:
        """Whether an event behind others would only repeat what its warp did last."""
        event = self.events[second]
        changed: set[Hashable] = set()
        for number in reversed(kept):
            before = self.events[number]
            if before.agent == event.agent:
                same = before.step == event.step and before.words == event.words
                return same and not before.changed and changed.isdisjoint(event.words)
            changed |= before.changed
        return False

    def has(self, plan: Plan) -> bool:
        """Whether the order begins as a plan does."""
        if not plan.before <= self.key:
            return False
        rest = [number for number, name in enumerate(self.names) if name not in plan.before]
        mine = next((number for number in rest if self.events[number].agent == plan.steps[-1][0]), None)
        if mine is None or self.events[mine].step != plan.steps[-1]:
            return False
        return not any(number < mine and self._follows(self.clocks[mine], number) for number in rest)


@dataclass(frozen=True, slots=True)
class Plan:
    """steps: who is to go, one after the other; before: names of all events but the last."""

    steps: tuple[Step, ...] = ()
    before: frozenset[int] = frozenset()


class Orders:
    """seen: the orders that have been seen, by their keys; and the plans that are left."""

    def __init__(self) -> None:
        self._plans = deque([Plan()])
        self._planned: set[tuple[Step, ...]] = {()}
        self.seen: dict[frozenset[int], Order] = {}
        self._vain: set[Glance] = set()

    @property
    def count(self) -> int:
        """How many have been seen."""
        return len(self.seen)

    def next(self) -> Plan | None:
        """What to try now; None: there are no other orders."""
        while self._plans:
            plan = self._plans.popleft()
            if not plan.steps or not any(order.has(plan) for order in self.seen.values()):
                return plan
        return None

    def learn(self, events: list[Event], vain: Set[Glance] = frozenset()) -> None:
        """A run has come to these events. vain: looks after which a warp has waited, as nothing had changed."""
        order, new = Order(events), set(vain) - self._vain
        self._vain |= new
        if order.key not in self.seen:
            self.seen[order.key] = order
            self._add([*order.plans(), *order.glimpses(self._vain)])
        if new:  # others may have had such looks, too
            for other in self.seen.values():
                self._add(other.glimpses(new))

    def _add(self, plans: Iterable[Plan]) -> None:
        for plan in plans:
            if plan.steps not in self._planned:
                self._planned.add(plan.steps)
                self._plans.append(plan)
