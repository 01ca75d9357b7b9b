"""What threads know of memory, for `--memory weak`: writes, the views of threads, and the messages that carry them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

from ptxtools.records import dataclass, field

from .pending import Pending
from .registry import Array

#: Whether the location is in shared memory, its offset and its size in bytes.
Location: TypeAlias = tuple[bool, int, int]
#: Scopes and locations by which a thread is known to have acquired something; beyond that it may have by all.
_MOST_ACQUIRINGS = 64


@dataclass(slots=True, eq=False)
class View:
    """What a thread must not look behind: of each location the last writes, and all writes up to a number. reads: those
    undecided that precede it in causality order."""

    writes: dict[Location, frozenset[Write]]
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
    """scope: "" for a weak one; number: how many were executed before; behind: the write that an atomic operation read;
    later: for one that is forgotten, the next, which stands for it; earlier: the writes of its history that it follows
    in coherence order (8.9.6); after: undecided reads that precede it in causality order; pending: the read of an
    atomic operation; taken: somebody has read it, or it stands for another one, so that it stays where it is; instead:
    of one that was taken out, those that it has followed.

    What reads rest on that looked behind a write which their thread knows, but which races with this one: never: those
    writes, which this one must not come to precede; passed: thread and scope of strong reads, with the last such write
    (`precedes`)."""

    value: Array
    agent: Agent | None = None
    scope: str = ""
    number: int = 0
    messages: tuple[Message, ...] = ()
    behind: Write | None = None
    later: Write | None = None
    earlier: set[Write] = field(default_factory=set)
    after: frozenset[Pending] = frozenset()
    pending: Pending | None = None
    never: set[Write] = field(default_factory=set)
    passed: list[tuple[Agent, str, Write]] = field(default_factory=list)
    taken: bool = False
    instead: frozenset[Write] | None = None


def known(write: Write) -> set[Write]:
    """What who knows this write must not look behind: it, or what stands for it."""
    while write.later is not None:
        write = write.later
    return {write} if write.instead is None else set().union(*map(known, write.instead))


def chained(write: Write) -> tuple[Message, ...]:
    """The messages that an atomic operation passes on (8.9.2)."""
    behind = write.behind
    return behind.messages if behind is not None and strong(write, behind) else ()


def settle(write: Write, agent: Agent, *, observed: bool) -> None:
    """A thread has read this write: its value stays (8.10.4). If it observes it, what it does now is behind the reads
    of that atomic operation and of those that it observes, too (8.9.5)."""
    chain: Write | None = write
    while chain is not None:
        chain.taken = True
        read = chain.pending
        if read is not None and read.update is not None:
            read.done = read.done or read.update.depends or (observed and read.agent is not agent)
        behind = chain.behind
        chain = behind if observed and behind is not None and strong(chain, behind) else None


@dataclass(slots=True, eq=False)
class Phase:
    """One use of a cluster's barrier. arrivals: what the threads published that have arrived, by thread; whole: all of
    it as one, once somebody has waited for all."""

    arrivals: dict[int, list[View]] = field(default_factory=dict)
    whole: View | None = None


@dataclass(frozen=True)
class Habits:
    """What a thread tends to do, as probabilities: to read the last write, and the first one that it may; to write
    behind all others; to leave a read undecided, and to decide it otherwise in the end."""

    last: float = 0.45
    first: float = 0.15
    behind: float = 0.5
    late: float = 0.9
    otherwise: float = 0.75


@dataclass(slots=True, eq=False)
class Agent:
    """A thread. floor: it must not look behind writes of lower numbers; all: the floor is to be raised before its next
    access; fences: views at its release fences, by scope; released: views at its release operations, by location and
    scope; read: messages that an acquire operation of this location, or a fence, acquires; acquired: how often it has
    acquired something; acquirings: when for the last time, by scope and location (None: any); phase: of the cluster's
    barrier, the one in which it arrived last; awaited: the one that it has waited for, and still has to join; pending:
    its undecided reads; reads: these and those of others that precede what it does next; joined: views that it has
    joined lately."""

    cta: int
    cluster: int
    habits: Habits = field(default_factory=Habits)
    view: dict[Location, frozenset[Write]] = field(default_factory=dict)
    floor: int = -1
    all: bool = False
    fences: dict[str, View] = field(default_factory=dict)
    released: dict[Location, dict[str, View]] = field(default_factory=dict)
    read: dict[int, tuple[Location, Message]] = field(default_factory=dict)
    acquired: int = 0
    acquirings: dict[tuple[str, Location | None], int] = field(default_factory=dict)
    phase: Phase | None = None
    awaited: Phase | None = None
    pending: list[Pending] = field(default_factory=list)
    reads: set[Pending] = field(default_factory=set)
    joined: set[View] = field(default_factory=set)

    def seen(self) -> View:
        """The view as it is now, for those who synchronise with it."""
        return View(dict(self.view), self.floor, self.undecided())

    def undecided(self) -> frozenset[Pending]:
        self.reads = {read for read in self.reads if not read.done}
        return frozenset(self.reads)

    def acquires(self, scope: str, location: Location | None) -> None:
        """It acquires, by an operation on this location or a fence."""
        self.acquired += 1
        if len(self.acquirings) > _MOST_ACQUIRINGS:
            self.acquirings = {("sys", None): self.acquired}
        self.acquirings[scope, location] = self.acquired

    def synchronises(self, since: int, location: Location, messages: Iterable[Message]) -> bool:
        """Whether it has acquired one of these messages since then, if they were found at this location."""
        return any(
            at > since and where in (None, location) and mutual(self, scope, message.agent, message.scope)
            for message in messages
            for (scope, where), at in self.acquirings.items()
        )

    def includes(self, scope: str, other: Agent) -> bool:
        """Whether a scope of this thread includes another one (8.5); all threads of a launch are on one device."""
        if self is other or scope in ("gpu", "sys"):
            return True
        return self.cta == other.cta or (scope == "cluster" and self.cluster == other.cluster)

    def learns(self, location: Location, writes: Iterable[Write]) -> None:
        """From now on it knows these writes, and what they follow."""
        mine = self.view.get(location, frozenset())
        both = mine.union(writes)
        if len(both) > len(mine):
            hidden = hidden_by(both)
            self.view[location] = frozenset(write for write in both if write not in hidden)


def mutual(a: Agent, scope: str, b: Agent | None, other: str) -> bool:
    """Whether operations of two threads are morally strong (8.7), if their locations are the same."""
    return b is not None and (a is b or (scope != "" and other != "" and a.includes(scope, b) and b.includes(other, a)))


def strong(a: Write, b: Write) -> bool:
    """Whether two writes of a location are morally strong."""
    return a.agent is not None and mutual(a.agent, a.scope, b.agent, b.scope)


def hidden_by(writes: Iterable[Write]) -> set[Write]:
    """What they follow in coherence order."""
    found: set[Write] = set()
    for write in writes:
        found |= write.earlier
    return found


def merged(views: list[View]) -> View:
    """All of them as one."""
    writes: dict[Location, frozenset[Write]] = {}
    for view in views:
        for location, found in view.writes.items():
            writes[location] = writes.get(location, frozenset()) | found
    return View(writes, max((view.floor for view in views), default=-1), frozenset().union(*(v.reads for v in views)))
