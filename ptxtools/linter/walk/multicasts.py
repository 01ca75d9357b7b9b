"""Copies to both CTAs of a cluster in a walk, into memory that the other CTA reads: whether that tells when it has."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ptxtools.records import NamedTuple

from ..values import THREADS, WARP, Terms, Value
from .computing import Op
from .releases import strong_read
from .shadow import OWNER, Touch

if TYPE_CHECKING:
    from .memory import Memory
    from .walker import Group

_HALVES = (0xFFFFFFFF, 0xFFFFFFFF << WARP)
_OFFSET = (1 << OWNER) - 1

#: What is in shared memory, in each CTA: terms and offset of the address.
_Place = tuple[Terms, int]


class _Again(NamedTuple):
    """CTA `half` copies to a place a second time, which the other one has read in between. waits: the mbarriers that it
    has waited for since the first time."""

    op: Op
    half: int
    read: Touch
    waits: tuple[_Place, ...]


class Multicasts:
    """Nothing is said if it is not known where something of another CTA arrives."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self._sent: dict[tuple[int, _Place], int] = {}
        self._waits: list[list[_Place]] = [[], []]
        self._told: tuple[set[_Place], set[_Place]] = (set(), set())  # mbarriers at which the other CTA arrives
        self._again: list[_Again] = []
        self._unknown = False

    def copies(self, group: Group, op: Op, mask: int, address: Value | None, bar: Value | None, size: int) -> None:
        """A copy with .multicast::cluster."""
        if self._memory.threads.kind != "cluster":
            return
        named = next((at for at, spec in enumerate(op.line.plan.specs) if spec.name == "ctaMask"), None)
        ctas = self._memory.size_at(group, op, named) if named is not None else 0
        for half in (0, 1):
            here = mask & _HALVES[half]
            if not here or not ctas >> (1 - half) & 1:
                continue
            place, done = _place(address, here), _place(bar, here)
            if place is None or done is None or not size:
                self._unknown = True
                continue
            self._told[1 - half].add(done)
            before = self._sent.get((half, place))
            read = self._read(half, place, size, before) if before is not None else None
            if read is not None:
                self._again.append(_Again(op, half, read, tuple(self._waits[half])))
            self._sent[half, place] = self._memory.shadow.tick()
            self._waits[half].clear()

    def _read(self, half: int, place: _Place, size: int, since: int) -> Touch | None:
        """What the other CTA has read of its own copy since a moment."""
        terms, offset = place
        for touch in self._memory.shadow.at("shared", terms):
            if touch.kind != "reads" or touch.flight or touch.moment < since:
                continue
            for thread in range(THREADS):
                number = touch.address.numbers[thread]
                there = touch.mask >> thread & 1 and thread // WARP != half and number >> OWNER == 2 - half
                if there and offset - touch.size < number & _OFFSET < offset + size:
                    return touch
        return None

    def waits(self, bar: Value, mask: int) -> None:
        """Threads have waited for a phase of an mbarrier of their CTA."""
        for half in (0, 1):
            place = _place(bar, mask & _HALVES[half]) if mask & _HALVES[half] else None
            if place is not None:
                self._waits[half].append(place)
            elif mask & _HALVES[half]:
                self._unknown = True

    def met(self) -> None:
        """A barrier of the cluster is over: all has been told."""
        self._sent.clear()

    def arrives(self, op: Op, bar: Value, mask: int) -> None:
        """Something arrives at an mbarrier, or completes bytes of one, that may be of another CTA."""
        for half in (0, 1):
            place = _place(bar, mask & _HALVES[half]) if mask & _HALVES[half] else None
            if place is None:
                self._unknown |= bool(mask & _HALVES[half])
            else:
                owners = {number >> OWNER for number in bar.numbers}
                for each in self._told if 0 in owners else [self._told[owner - 1] for owner in owners if owner < 3]:
                    each.add(place)

    def end(self) -> None:
        """All threads have ended."""
        if not self._again or self._unknown or not self._memory.clusters.is_pair:
            return
        if any(strong_read(line) for line in self._memory.walker.program.lines):
            return  # it may be told by a flag
        for op, half, read, waits in self._again:
            if self._told[half].isdisjoint(waits):
                message = (
                    f"CTA {half} copies again to what CTA {1 - half} of the cluster reads in line {{line}}, and has "
                    "waited for nothing that it tells"
                )
                self._memory.walker.report("race in the cluster", op.line, 0, message, read.line)


def _place(address: Value | None, mask: int) -> _Place | None:
    """The place of an address in the memory of a CTA, if it is known and the same in the threads of a mask."""
    if address is None or not address.variable:
        return None
    offsets = {number & _OFFSET for thread, number in enumerate(address.numbers) if mask >> thread & 1}
    return (address.terms, offsets.pop()) if len(offsets) == 1 else None
