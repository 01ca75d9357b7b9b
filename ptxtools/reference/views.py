"""What threads know of memory, for `--memory weak`: writes, the views of threads, and the messages that carry them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

from .pending import Pending
from .registry import Array

#: Whether the location is in shared memory, its offset and its size in bytes.
Location: TypeAlias = tuple[bool, int, int]


@dataclass(slots=True, eq=False)
class View:
    """What a thread must not look behind: of each location a write, and all writes up to a number. reads: those
    undecided that precede it in causality order."""

    writes: dict[Location, Write]
    floor: int = -1
    reads: frozenset[Pending] = frozenset()


@dataclass(slots=True, eq=False)
class Message:
    """What a release pattern publishes. agent, scope: of its first operation."""

    agent: Agent
    scope: str
    view: View


@dataclass(slots=True, eq=False)
class Write:
    """scope: "" for a weak one; number: how many were executed before; behind: the write that an atomic operation read,
    and directly follows if the two are morally strong; later: for one that is forgotten, the next, which stands for it;
    followed: whether another write follows it in coherence order (8.9.6); earlier: at least those that it follows;
    after: undecided reads that precede it in causality order; pending: the read of an atomic operation, if it is
    undecided."""

    value: Array
    agent: Agent | None = None
    scope: str = ""
    number: int = 0
    messages: tuple[Message, ...] = ()
    behind: Write | None = None
    later: Write | None = None
    followed: bool = False
    earlier: set[Write] = field(default_factory=set)
    after: frozenset[Pending] = frozenset()
    pending: Pending | None = None


def known(write: Write | None) -> Write | None:
    while write is not None and write.later is not None:
        write = write.later
    return write


def settle(write: Write, *, observed: bool) -> None:
    """A thread has read this write: its value stays (8.10.4). If it observes it, what it does now is behind the read of
    that atomic operation, too (8.9.5)."""
    if write.pending is not None and (observed or write.pending.renewed is not None):
        write.pending.done = True


@dataclass(slots=True, eq=False)
class Phase:
    """One use of a cluster's barrier. arrivals: what the threads published that have arrived, by thread."""

    arrivals: dict[int, list[View]] = field(default_factory=dict)


@dataclass(slots=True, eq=False)
class Agent:
    """A thread. floor: it must not look behind writes of lower numbers; all: the floor is to be raised before its next
    access; fences: views at its release fences, by scope; released: views at its release operations, by location and
    scope; read: messages that an acquire operation of this location, or a fence, acquires; phase: of the cluster's
    barrier, the one in which it arrived last; awaited: the one that it has waited for, and still has to join; pending:
    its undecided reads; reads: these and those of others that precede what it does next."""

    cta: int
    cluster: int
    view: dict[Location, Write] = field(default_factory=dict)
    floor: int = -1
    all: bool = False
    fences: dict[str, View] = field(default_factory=dict)
    released: dict[Location, dict[str, View]] = field(default_factory=dict)
    read: dict[int, tuple[Location, Message]] = field(default_factory=dict)
    phase: Phase | None = None
    awaited: Phase | None = None
    pending: list[Pending] = field(default_factory=list)
    reads: set[Pending] = field(default_factory=set)

    def seen(self) -> View:
        """The view as it is now, for those who synchronise with it."""
        return View(dict(self.view), self.floor, self.undecided())

    def undecided(self) -> frozenset[Pending]:
        self.reads = {read for read in self.reads if not read.done}
        return frozenset(self.reads)

    def includes(self, scope: str, other: Agent) -> bool:
        """Whether a scope of this thread includes another one (8.5); all threads of a launch are on one device."""
        if self is other or scope in ("gpu", "sys"):
            return True
        return self.cta == other.cta or (scope == "cluster" and self.cluster == other.cluster)


def mutual(a: Agent, scope: str, b: Agent | None, other: str) -> bool:
    """Whether operations of two threads are morally strong (8.7), if their locations are the same."""
    return b is not None and (a is b or (scope != "" and other != "" and a.includes(scope, b) and b.includes(other, a)))


def stale(history: list[Write], low: int) -> list[Write]:
    """The writes in front of a place that may still be read there: they race with all that stands in between, so that
    coherence order relates them to nothing that is known there."""
    found, known_there = [], set(history[low].earlier)
    for write in reversed(history[:low]):
        if write not in known_there:
            found.append(write)
        known_there |= write.earlier
    return found


def order_among(write: Write, history: list[Write], at: int, low: int, mutually: list[bool]) -> None:
    """Note how a write that is put at a place is ordered with the others: what its thread may know of, up to `low`, and
    what is morally strong with it (mutually, by place) precedes or follows it."""
    for place, other in enumerate(history[:at]):
        if place <= low or mutually[place]:
            other.followed = True
            write.earlier |= {other, *other.earlier}
    later = [other for place, other in enumerate(history) if place >= at and mutually[place]]
    write.followed = bool(later)
    for other in history[at:]:
        if other in later or not other.earlier.isdisjoint(later):
            other.earlier |= {write, *write.earlier}


def closed(agent: Agent, scope: str, history: list[Write]) -> set[int]:
    """Where no write of a thread may be put: between the read and the write of an atomic operation that is morally
    strong with it (8.10.3)."""
    places = {id(write): at for at, write in enumerate(history)}
    found: set[int] = set()
    for at, write in enumerate(history):
        if write.behind is not None and mutual(agent, scope, write.agent, write.scope):
            found.update(range(places.get(id(write.behind), -1) + 1, at + 1))
    return found


def beside(agent: Agent, scope: str, history: list[Write], low: int, read: Write) -> list[int]:
    """Where the write of an atomic operation may be put that is not morally strong with the write it has read: nothing
    that is, and follows that write, may stand in between (8.10.3)."""
    taken, start = closed(agent, scope, history), history.index(read)
    found = []
    for at in range(low + 1, len(history) + 1):
        between = history[start + 1 : at]
        if at not in taken and not any(
            read in other.earlier and mutual(agent, scope, other.agent, other.scope) for other in between
        ):
            found.append(at)
    return found
