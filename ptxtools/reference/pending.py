"""Reads that are not decided yet, for `--memory weak`.

A read takes effect at the latest where its register is used. Until then it may still return another write: one that has
been executed since, although later operations of its own thread, fences and barriers among them, have taken effect.
Chapter 8 leaves that open as long as the read does not precede the write in causality order (8.10.6), and what has
happened since agrees with what its thread would have learnt by it (`hindsight.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from ptxtools.program.program import Op, Ref, Terminator
from ptxtools.records import dataclass, field

from .registry import Array

if TYPE_CHECKING:
    from .views import Agent, Location, Message, Write

#: Undecided reads of one thread; the oldest is decided when there are more.
MOST_PENDING = 8
#: Ends of blocks behind which registers keep their slots.
_STAYING = ("jump", "branch", "barrier", "event", "warpsync", "switch")


@dataclass(slots=True, eq=False)
class Update:
    """What an atomic operation makes of what it reads. new: the value that it writes; expected: of a cas; exchanges:
    whether it writes the same whatever it reads; observes: whether it is a read operation (8.4), which red is not;
    releases: whether it is a release operation; own: its write, none if a cas fails; messages, after: what that write
    carries by itself."""

    new: Callable[[Array], Array]
    expected: Array | None
    exchanges: bool
    observes: bool
    releases: bool
    own: Write | None = None
    messages: tuple[Message, ...] = ()
    after: frozenset[Pending] = frozenset()

    def value(self, read: Array) -> Array | None:
        """What it writes if it reads this; None for a cas that fails."""
        if self.expected is not None and read[0] != self.expected[0]:
            return None
        return self.new(read)

    @property
    def depends(self) -> bool:
        """Whether what it writes depends on what it reads, once it writes."""
        return self.expected is None and not self.exchanges


@dataclass(slots=True, eq=False)
class Pending:
    """A read of a thread. ref, type_name, frame: where its result is; history, seen: the writes of its location, and
    those that precede the read; generic: whether it goes through the generic proxy (8.6); time: of its step;
    update: of an atomic operation; followed: accesses of its thread at its location behind it; known: whether it
    precedes what another thread does; touched: whether it precedes an access of its location by another thread, or of a
    part of it; done: it is decided; observed: the write that who it precedes learns of then (8.9.2, 8.9.5)."""

    agent: Agent
    thread: int
    ref: Ref | None
    type_name: str
    frame: int
    location: Location
    history: list[Write]
    seen: frozenset[Write]
    returned: Write
    scope: str
    generic: bool
    time: int
    update: Update | None = None
    followed: list[Write | Pending] = field(default_factory=list)
    known: bool = False
    touched: bool = False
    done: bool = False
    observed: Write | None = None

    @property
    def own(self) -> Write | None:
        """The write of the atomic operation that it belongs to."""
        return None if self.update is None else self.update.own

    @property
    def slot(self) -> tuple[int, str] | None:
        """The register of its result, as `slots_of` has it."""
        return None if self.ref is None else (self.frame + self.ref.slot, self.ref.type)

    def overlaps(self, location: Location) -> bool:
        """Whether another location shares bytes with that of the read (8.2.1), so that program order counts."""
        shared, offset, size = self.location
        return (
            self.generic
            and shared == location[0]
            and offset < location[1] + location[2]
            and location[1] < offset + size
        )


def slots_of(op: Op | Terminator, frame: int) -> set[tuple[int, str]] | None:
    """The registers that an operation or the end of a block reads or writes; None: perhaps all."""
    if isinstance(op, Op):
        refs: tuple[Ref | None, ...] = (*op.src, *op.dst, op.guard)
    elif op.kind not in _STAYING:
        return None
    else:
        refs = (op.guard, op.index)
        if op.op is not None:
            refs += (*op.op.src, *op.op.dst, op.op.guard)
    return {(frame + ref.slot, ref.type) for ref in refs if ref is not None}
