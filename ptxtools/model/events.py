"""The events of a thread, and the values that they depend on."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ptxtools.records import dataclass, field, replace

from .programs import Instruction, Thread


@dataclass(frozen=True, slots=True)
class Value:
    """An integer that depends on reads. needs: the events of the path that it depends on, as a set; of: computes it."""

    needs: int
    of: Callable[[Sequence[int]], int]


def constant(number: int) -> Value:
    return Value(0, lambda _: number)


def equal(value: Value, number: int) -> Value:
    return Value(value.needs, lambda reads: int(value.of(reads) == number))


def truth(value: Value, wanted: bool) -> Value:
    """1 if the value, as a predicate, is as wanted."""
    return Value(value.needs, lambda reads: int(bool(value.of(reads)) == wanted))


@dataclass(frozen=True, slots=True)
class Stage:
    """A tcgen05 operation, as far as pipelines tell them apart (9.7.16.6.2). accumulator: what it writes, and its
    shape; None if they are not known."""

    kind: str
    group: str
    form: str
    accumulator: tuple[object, ...] | None = None


@dataclass(slots=True)
class Event:
    """An operation of a path. kind: "R" read, "W" write, "U" atomic, "F" fence, "P" proxy fence, "A" arrives at a
    barrier, "B" waits at it, "C" waits for asynchronous operations. step: events of one step are not ordered by program
    order. value: what is written; of an arrival at a barrier with a reduction, the thread's predicate. needs: the reads
    that its value, its address or its existence depend on; the wait at such a barrier is one of them. returns: whether
    an atomic operation is a read operation (8.4). mbarrier: whether it accesses an mbarrier object. limited: whether a
    fence orders no prior operations but initialisations of mbarriers. covers: the bytes, as location, start and end,
    that it is limited to. space: of a proxy fence.

    agent: the asynchronous operation that it is a part of, 0 for what the thread executes itself (8.9.1.1). Sets of
    events of the path: behind, those that precede an asynchronous event; completes, the asynchronous ones whose
    completion this event is; after, the completions that it follows. answer: what a wait at an mbarrier
    returns. Of tcgen05 (9.7.16.6): "T" is one of its fences, with order "before" or "after", launched the operations
    that a fence hands on; piped, those of the thread that execute before this event; stage: what it is a part of.
    """

    kind: str
    step: int
    instruction: Instruction
    order: str = ""
    scope: str = ""
    proxy: str = "generic"
    location: str = ""
    offset: int = 0
    size: int = 0
    value: Value | None = None
    needs: int = 0
    returns: bool = True
    barrier: tuple[object, ...] = ()
    count: int | None = None
    ordering: bool = True
    mbarrier: bool = False
    limited: bool = False
    space: str = ""
    covers: tuple[str, int, int] | None = None
    agent: int = 0
    behind: int = 0
    completes: int = 0
    after: int = 0
    launched: int = 0
    piped: int = 0
    stage: Stage | None = None
    answer: int | None = None


@dataclass(frozen=True, slots=True)
class Issued:
    """An asynchronous tcgen05 operation of a path: its events as a set; complete: it was waited for."""

    stage: Stage
    events: int
    complete: bool = False


@dataclass(frozen=True, slots=True)
class Pending:
    """Copies as sets of events: all of a kind, those in no group yet, and the groups in order."""

    every: int = 0
    free: int = 0
    groups: tuple[int, ...] = ()

    def with_copy(self, events: int) -> Pending:
        return replace(self, every=self.every | events, free=self.free | events)

    def committed(self) -> Pending:
        return replace(self, free=0, groups=(*self.groups, self.free))

    def waited_for(self, pending: int) -> int:
        """The events of all groups but the last `pending` ones."""
        found = 0
        for group in self.groups[: max(len(self.groups) - pending, 0)]:
            found |= group
        return found


@dataclass(frozen=True, slots=True)
class Copies:
    """The asynchronous operations of a path. agents: how many; small: the events of `cp.async`; bulk, reads: of bulk
    copies in groups, the implicit proxy fences behind them whole and behind their reads; products: those behind
    products of warpgroups; open: the reads of products that have not been waited for; issued: tcgen05 operations."""

    agents: int = 0
    small: Pending = Pending()
    bulk: Pending = Pending()
    reads: Pending = Pending()
    products: Pending = Pending()
    open: int = 0
    issued: tuple[Issued, ...] = ()


@dataclass(slots=True)
class Path:
    """conditions: values that must be true (not 0) or false for the thread to take this path; control: the reads that
    decided so far, at branches and guards, where the thread goes (8.10.4); unreached: the path ends at a barrier with a
    count, at which the thread is left over and waits for ever: that instruction and those behind. copies: the
    asynchronous operations so far, as far as groups and mbarriers track them."""

    thread: Thread
    events: list[Event] = field(default_factory=list)
    conditions: list[tuple[Value, bool]] = field(default_factory=list)
    control: int = 0
    registers: dict[str, Value] = field(default_factory=dict)
    at: int = 0
    steps: int = 0
    visits: dict[int, int] = field(default_factory=dict)
    unreached: Sequence[Instruction] | None = None
    copies: Copies = field(default_factory=lambda: Copies())

    def copy(self) -> Path:
        return replace(self, events=list(self.events), conditions=list(self.conditions),
                       registers=dict(self.registers), visits=dict(self.visits))  # fmt: skip
