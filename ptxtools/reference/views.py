"""What threads know of memory, for `--memory weak`: writes, the views of threads, and the messages that carry them."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import TypeAlias

from ptxtools.records import dataclass, field

from .pending import Pending
from .registry import Array

#: Whether the location is in shared memory, its offset and its size in bytes.
Location: TypeAlias = tuple[bool, int, int]
#: Steps of a thread that are remembered.
MOST_STEPS = 64


@dataclass(slots=True, eq=False)
class View:
    """What a thread must not look behind: of each location the last writes, and all writes up to a number. reads: those
    undecided that precede it in causality order; time: when it was made, or of the newest of what it has in hindsight;
    joined: threads, and when they joined it; part_of: those that it has gone into."""

    writes: dict[Location, frozenset[Write]]
    floor: int = -1
    reads: frozenset[Pending] = frozenset()
    time: int = -1
    joined: list[tuple[Agent, int]] = field(default_factory=list)
    part_of: list[View] = field(default_factory=list)


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
    of one that was taken out, those that it has followed; glances: threads that have read it without observing it, and
    when for the first time; takers: undecided reads that return it for the time being.

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
    glances: dict[Agent, int] = field(default_factory=dict)
    takers: set[Pending] = field(default_factory=set)


def known(write: Write) -> set[Write]:
    """What who knows this write must not look behind: it, or what stands for it."""
    while write.later is not None:
        write = write.later
    return {write} if write.instead is None else set().union(*map(known, write.instead))


def chained(write: Write) -> tuple[Message, ...]:
    """The messages that an atomic operation passes on (8.9.2)."""
    behind = write.behind
    return behind.messages if behind is not None and strong(write, behind) else ()


def settle(write: Write, agent: Agent, time: int | None, *, observed: bool) -> None:
    """A thread has read this write, which stays. If it observes it, what it does now is behind the reads of that atomic
    operation and of those that it observes, too (8.9.5). time: of the read, if anything orders it."""
    chain: Write | None = write
    if not observed and time is not None:
        write.glances[agent] = min(time, write.glances.get(agent, time))
    while chain is not None:
        chain.taken = True
        read = chain.pending
        if read is not None and read.update is not None:
            read.done = read.done or (observed and read.agent is not agent)
        behind = chain.behind
        chain = behind if observed and behind is not None and strong(chain, behind) else None


def use(write: Write) -> None:
    """The value of a write has been used: it stays, and so does what the atomic operation has read that it comes from
    (8.10.4)."""
    read = write.pending
    while read is not None and read.update is not None and read.update.depends and not read.done:
        read.done = True
        read = read.returned.pending


@dataclass(slots=True, eq=False)
class Phase:
    """One use of a cluster's barrier. arrivals: what the threads published that have arrived, by thread; whole: all of
    it as one, once somebody has waited for all."""

    arrivals: dict[int, list[View]] = field(default_factory=dict)
    whole: View | None = None


@dataclass(slots=True, eq=False)
class Step:
    """What a thread has done. what: a read, a write, a view that it has published, or None where it acquires;
    location: of a write, or what is acquired (None: all); scope: of what acquires; order: "sc" of such a fence,
    "update" where an atomic operation writes."""

    time: int
    what: Pending | Write | View | None
    location: Location | None = None
    history: list[Write] | None = None
    scope: str = ""
    order: str = ""


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
    scope; read: messages that an acquire operation of this location, or a fence, acquires; steps: its last ones;
    phase: of the cluster's barrier, the one in which it arrived last; awaited: the one that it has waited for, and
    still has to join; pending: its undecided reads; reads: these and those of others that precede what it does next;
    joined: views that it has joined lately."""

    cta: int
    cluster: int
    habits: Habits = field(default_factory=Habits)
    view: dict[Location, frozenset[Write]] = field(default_factory=dict)
    floor: int = -1
    all: bool = False
    fences: dict[str, View] = field(default_factory=dict)
    released: dict[Location, dict[str, View]] = field(default_factory=dict)
    read: dict[int, tuple[Location, Message]] = field(default_factory=dict)
    steps: deque[Step] = field(default_factory=lambda: deque(maxlen=MOST_STEPS))
    phase: Phase | None = None
    awaited: Phase | None = None
    pending: list[Pending] = field(default_factory=list)
    reads: set[Pending] = field(default_factory=set)
    joined: set[View] = field(default_factory=set)

    def seen(self, time: int) -> View:
        """The view as it is now, for those who synchronise with it."""
        view = View(dict(self.view), self.floor, self.undecided(), time)
        self.steps.append(Step(time, view))
        return view

    def undecided(self) -> frozenset[Pending]:
        self.reads = {read for read in self.reads if not read.done}
        return frozenset(self.reads)

    def remembers(self, time: int) -> bool:
        """Whether all its steps since then are known."""
        return len(self.steps) < MOST_STEPS or self.steps[0].time <= time

    def acquiring(self, time: int, location: Location, message: Message) -> int | None:
        """When it has first acquired a message, if it found that at this location at a time."""
        return next((
            step.time for step in self.steps
            if step.time > time and step.what is None and step.location in (None, location)
            and mutual(self, step.scope, message.agent, message.scope)
        ), None)  # fmt: skip

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
    floor = max((view.floor for view in views), default=-1)
    time = max((view.time for view in views), default=-1)
    whole = View(writes, floor, frozenset().union(*(view.reads for view in views)), time)
    for view in views:
        view.part_of.append(whole)
    return whole
