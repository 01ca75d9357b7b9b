"""What asynchronous operations of all kinds have in common: the events that they are behind, and those that they change
an mbarrier object with (8.9.1.1, 9.7.13.15)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ptxtools.records import replace

from . import mbarriers
from .events import Event, Path, Value, constant

WORD_BYTES = 8
#: Counts are unsigned numbers of 32 bits.
COUNT = (1 << 32) - 1
_CHANGES: dict[str, Callable[[int, int], int]] = {
    "expect_tx": mbarriers.expecting, "complete_tx": mbarriers.completed, "pend": mbarriers.awaiting,
}  # fmt: skip


def own_events(path: Path) -> int:
    """What the thread itself has executed so far, as a set."""
    return sum(1 << at for at, event in enumerate(path.events) if not event.agent)


def mask(first: int, last: int) -> int:
    """The events from first up to, but without, last."""
    return (1 << last) - (1 << first)


def updated(event: Event, path: Path, kind: str, counts: Sequence[Value]) -> Event:
    """The atomic operation on an mbarrier object that becomes the next event of the path."""
    at = len(path.events)
    count, expected = (*counts, constant(0))[:2]
    needs = 1 << at | count.needs | expected.needs

    def new(reads: Sequence[int]) -> int:
        word, number, transactions = reads[at], count.of(reads) & COUNT, expected.of(reads) & COUNT
        if kind in ("arrive", "arrive_drop"):
            return mbarriers.arrived(word, number, transactions, drops=kind == "arrive_drop")
        return _CHANGES[kind](word, number)

    return replace(event, value=Value(needs, new), needs=event.needs | needs)
