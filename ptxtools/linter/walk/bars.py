"""The mbarriers of a walk: arrivals, phases, and what completes them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..values import Value
    from .computing import Op


class Bar:
    """An mbarrier. count: arrivals that complete a phase, None if unknown; arrivals: those of this phase; phase: how
    many are over; copies: what completes this phase, done: what completed those before; vague: whether others arrive,
    so that nothing follows from arrivals; expected, brought: bytes of this phase, None if unknown; expects: what says
    how many are expected; who: the threads that expect and copy; released: by when each half of the threads has arrived
    in this phase, past: in those before; tensors: copies of this phase of which a tensor map says how
    large they are, and where they go; copied: how many copies it has; telling, told: by when each half has done what it
    tells of in this phase, and in those before: a relaxed arrival tells of what came before a fence only;
    commits: whether tcgen05.commit arrives; everybody: the arrivals of the whole CTA, by instruction, since threads
    have last learnt of each other, at a moment that `since` says."""

    __slots__ = (
        "arrivals", "brought", "commits", "copied", "copies", "count", "done", "everybody", "expected", "expects",
        "past", "phase", "product", "released", "since", "telling", "tensors", "told", "vague", "who",
    )  # fmt: skip

    def __init__(self, count: int | None) -> None:
        self.count, self.arrivals, self.phase = count, 0, 0
        self.released, self.past = [0, 0], [0, 0]
        self.telling, self.told = [0, 0], [0, 0]
        self.copies: set[int] = set()
        self.done: set[int] = set()
        self.product: Op | None = None
        self.vague = count is None
        self.expects: Op | None = None
        self.expected: int | None = 0
        self.brought: int | None = 0
        self.who: set[int] = set()
        self.tensors: list[tuple[Op, Value]] = []
        self.copied = 0
        self.commits = False
        self.everybody: dict[int, int] = {}
        self.since: tuple[int, ...] = ()

    def expect(self, op: Op, size: int | None, mask: int) -> None:
        """Bytes that threads expect, each of them so many."""
        self.expects = op
        self.who.add(mask)
        known = self.expected is not None and size is not None
        self.expected = self.expected + size * mask.bit_count() if known else None  # type: ignore[operator]

    def bring(self, size: int | None, mask: int) -> None:
        """Bytes that a copy of each of these threads brings."""
        self.who.add(mask)
        known = self.brought is not None and size is not None
        self.brought = self.brought + size * mask.bit_count() if known else None  # type: ignore[operator]

    def arrive(self, number: int, halves: list[int], moment: int, told: list[int] | None = None) -> None:
        """So many threads, of these halves, arrive at a moment. told: by when they did what they tell, if earlier."""
        if self.count is not None and self.arrivals >= self.count:
            self.complete()
        self.arrivals += number
        for half in halves:
            self.released[half] = moment
            self.telling[half] = moment if told is None else max(told[half], self.telling[half])
        self.vague |= self.count is not None and self.arrivals > self.count

    def complete(self) -> None:
        """A phase is over."""
        self.phase += 1
        self.arrivals = 0
        self.past = [max(pair) for pair in zip(self.past, self.released, strict=True)]
        self.told = [max(pair) for pair in zip(self.told, self.telling, strict=True)]
        self.done |= self.copies
        self.copies = set()
        self.expected = self.brought = 0
        self.who, self.tensors, self.copied = set(), [], 0

    def complete_with_others(self, moment: int) -> None:
        """A phase is over since others have arrived, too: of halves that have not, all may be known."""
        come = [self.released[half] > self.past[half] for half in (0, 1)]
        self.complete()
        self.past = [past if came else moment for past, came in zip(self.past, come, strict=True)]
        self.told = [told if came else moment for told, came in zip(self.told, come, strict=True)]

    def is_over(self, parity: int) -> bool:
        """Whether a wait for the phase of a parity goes on."""
        return self.phase & 1 != parity or (self.count is not None and self.arrivals >= self.count)
