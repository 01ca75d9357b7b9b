"""The kinds of run-time failures. Code tests these; the texts of traps are for people."""

from __future__ import annotations

from enum import Enum, StrEnum


class TrapKind(StrEnum):
    """What ended a run or found the failure. The value of a kind is the word that users see and compare with."""

    TRAP = "trap"
    MEMCHECK = "memcheck"
    INITCHECK = "initcheck"
    SYNCCHECK = "synccheck"
    RACECHECK = "racecheck"
    LEAKCHECK = "leakcheck"
    ASYNCCHECK = "asynccheck"
    DEADLOCK = "deadlock"
    TIMEOUT = "timeout"
    INTERRUPTED = "interrupted"  # by the user: reported, but not a failure of the kernel

    @property
    def is_checker(self) -> bool:
        """Whether this is a run-time checker."""
        return self in CHECKERS

    @property
    def is_limit(self) -> bool:
        """Whether the run might have gone on."""
        return self in (TrapKind.TIMEOUT, TrapKind.INTERRUPTED)

    def meets(self, expected: str) -> bool:
        """Whether a failure of this kind satisfies `expect_failure`: a deadlock also counts as a time-out, and a bad
        address reported by memcheck as a trap."""
        return expected in (self, _COUNTS_AS.get(self))


#: The run-time checkers, in the order in which messages list them.
CHECKERS = (
    TrapKind.MEMCHECK, TrapKind.INITCHECK, TrapKind.SYNCCHECK, TrapKind.RACECHECK, TrapKind.LEAKCHECK,
    TrapKind.ASYNCCHECK,
)  # fmt: skip
_COUNTS_AS = {TrapKind.DEADLOCK: TrapKind.TIMEOUT, TrapKind.MEMCHECK: TrapKind.TRAP}


class Cause(Enum):
    """What a thread did wrong, where code depends on it."""

    OUT_OF_BOUNDS = "an access to memory that does not exist"
    MISALIGNED = "an access at an address that is not a multiple of its size"
    HEAP = "misuse of the heap of malloc"
    OVERWRITTEN = "memory outside of allocations was written"
    COLLECTIVE = "threads that are to do something together do not do the same"
    TENSOR_MEMORY = "tensor memory that is not allocated, or freed twice"
    DESCRIPTOR = "a descriptor or a tensor map that is none"
    MBARRIER = "an operation that is undefined for the mbarrier's state"
    OTHER = "anything else"

    @property
    def checker(self) -> TrapKind | None:
        """The checker that detects this cause; if enabled, the trap is its finding."""
        return _CHECKERS.get(self)


_CHECKERS = {
    Cause.OUT_OF_BOUNDS: TrapKind.MEMCHECK,
    Cause.MISALIGNED: TrapKind.MEMCHECK,
    Cause.HEAP: TrapKind.MEMCHECK,
    Cause.OVERWRITTEN: TrapKind.MEMCHECK,
    Cause.TENSOR_MEMORY: TrapKind.MEMCHECK,
    Cause.DESCRIPTOR: TrapKind.MEMCHECK,
    Cause.COLLECTIVE: TrapKind.SYNCCHECK,
    Cause.MBARRIER: TrapKind.SYNCCHECK,
}
