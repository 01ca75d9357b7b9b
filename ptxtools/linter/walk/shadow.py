"""Accesses of a walk that nothing has ordered yet, and which of two threads knows of the other's."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache, reduce
from math import gcd
from operator import or_
from typing import TypeAlias

from ptxtools.records import NamedTuple

from ..facts import Line
from ..values import THREADS, WARP, Value, plus, shortest

#: Accesses that are remembered.
_MOST = 24
#: Bytes of two accesses of which it is remembered who meets whom.
_SMALL = 64
#: Groups of lanes that have told others what they did that are told apart.
_SPEAKERS = 16
#: Bits of a shared address above which its CTA stands.
OWNER = 40

#: A number for all threads, or one for each.
Each: TypeAlias = int | range | tuple[int, ...]

#: The moment of asynchronous work that nobody has waited for.
FLIGHT = 1 << 60

#: Copies that the thread which began them knows to be done behind its own wait, as of its own stores.
_OWN = ("cp.async.ca", "cp.async.cg")
_HALVES = (0xFFFFFFFF, 0xFFFFFFFF << WARP)
_ALL = (1 << THREADS) - 1


class Place(NamedTuple):
    """Where an access goes."""

    space: str
    address: Value


class Touch(NamedTuple):
    """An access. space: "shared" or "global"; mask: the threads that do it; moment: when, FLIGHT for asynchronous work
    that nobody has waited for; kind: "reads", "stores", "updates" (atomically); strong: whether it may meet others;
    data: the value stored, if one is known; doubtful: whether data decided that these threads do it; flight: whether
    it is asynchronous, so that the thread that began it has to wait for it, too; token: of asynchronous work; span: the
    least number of the address, and the end of the bytes behind the greatest."""

    line: Line
    operand: int
    space: str
    address: Value
    size: int
    mask: int
    moment: int
    kind: str
    strong: bool
    data: Value | None
    doubtful: bool
    flight: bool = False
    token: int = 0
    span: tuple[int, int] = (0, 0)


class Meeting(NamedTuple):
    """Two accesses of which thread `first` does the earlier one, `second` the later one."""

    before: Touch
    after: Touch
    first: int
    second: int


class Shadow:
    """What has been accessed, and by when each half of the threads knows of it.

    known[g][h]: accesses of half g before this moment happen before what half h does now; lanes[h]: those of lanes of h
    before this moment happen before what other lanes of h do now.
    """

    def __init__(self, apart: bool) -> None:
        self.apart = apart
        self.now = 0
        self.known = [[0, 0], [0, 0]]
        self.lanes = [0, 0]
        self.born: dict[int, int] = {}  # when an asynchronous store began, by its token
        self._spoken: dict[int, int] = {}  # lanes that have told others what they did, and when they last did
        self.parts: list[tuple[int, int]] = []  # lanes of one warp, and before which moment they know of each other
        self.unsure: set[int] = set()  # asynchronous work of which it is not known what completes it
        self._touches: dict[tuple[str, object], tuple[list[Touch], list[Touch]]] = {}  # reads, and writes

    def tick(self) -> int:
        self.now += 1
        return self.now

    def order(self, mask: int) -> None:
        """A barrier of the threads of a mask."""
        now = self.tick()
        here = [bool(mask & half) for half in _HALVES]
        for half in (0, 1):
            if here[half]:
                self.lanes[half] = now
        if all(here) and not self.apart:
            self.known[0][1] = self.known[1][0] = now

    def order_lanes(self, half: int, lanes: int) -> None:
        """Lanes of a half of the threads wait for each other; without others, unless those have a part in another such
        group: what it knows is told on."""
        now = self.tick()
        self._forget_parts()
        overlaps = any(each & lanes and each != lanes for each, _ in self.parts)
        if overlaps or lanes == _HALVES[half]:
            self.lanes[half] = now
        else:
            self._note_part(lanes, now)

    def _note_part(self, lanes: int, now: int) -> None:
        self.parts = [(each, moment) for each, moment in self.parts if each != lanes]
        self.parts.append((lanes, now))

    def _forget_parts(self) -> None:
        """Drop what all lanes of the warp know of by now."""
        self.parts = [(each, moment) for each, moment in self.parts if moment > self.lanes[int(each >= 1 << WARP)]]

    def known_to(self, thread: int, moment: int) -> int:
        """The lanes beside a thread, of parts of its warp, of whose accesses at a moment it knows."""
        found = 0
        for lanes, told in self.parts:
            if lanes >> thread & 1 and moment < told:
                found |= lanes
        return found

    def knows(self, thread: int, other: int, moment: int) -> bool:
        """Whether a thread knows of what another one did at a moment."""
        mine, half = thread // WARP, other // WARP
        if mine != half:
            return moment < self.known[half][mine]
        return thread == other or moment < self.lanes[half] or self.known_to(thread, moment) >> other & 1 == 1

    def order_all(self) -> None:
        """Something that may order everything."""
        now = self.tick()
        self.lanes = [now, now]
        self.known = [[now, now], [now, now]]

    def order_halves(self, first: int, second: int) -> None:
        """What half 0 did before `first`, and half 1 before `second`, is known to the other one; lanes of each, too."""
        self.known[0][1], self.known[1][0] = first, second
        self.lanes = [first, second]

    def settle(
        self, tokens: set[int], mask: int, moment: int | None = None, read: bool = False, stores: bool = False
    ) -> None:
        """Asynchronous work of some threads is done. moment: as what they did by then, if that is known; read: only
        what it reads; stores: only what it stores."""
        now = self.tick() if moment is None else moment
        for touches in self._lists():
            for place, touch in enumerate(touches):
                if touch.moment == FLIGHT and touch.mask & mask and touch.token in tokens:
                    if (read and touch.kind != "reads") or (stores and touch.kind == "reads"):
                        continue
                    own = touch.line.item.opcode.startswith(_OWN)
                    touches[place] = touch._replace(moment=now, flight=touch.flight and not own)

    def flying(self, tokens: set[int]) -> Touch | None:
        """Asynchronous work among some that is under way, and stores in shared memory."""
        for touches in self._lists() if tokens else ():
            for touch in touches:
                if (
                    touch.moment == FLIGHT
                    and touch.token in tokens
                    and (touch.space, touch.kind) == ("shared", "stores")
                ):
                    return touch
        return None

    def _lists(self) -> Iterator[list[Touch]]:
        for known in self._touches.values():
            yield from known

    def at(self, space: str, terms: object) -> list[Touch]:
        """What is remembered of one place."""
        reads, writes = self._touches.get((space, terms), ((), ()))
        return [*writes, *reads]

    def fly(self, token: int) -> None:
        """The last access of an instruction is under way: no barrier orders it before somebody has waited for it."""
        for touches in self._lists():
            if touches and touches[-1].token == token:
                touches[-1] = touches[-1]._replace(moment=FLIGHT, flight=True)

    def acquire(self, mask: int, lanes: bool = True) -> None:
        """Some threads know of all that was done before now. lanes: by other lanes of their warps, too."""
        now = self.tick()
        for half in (0, 1):
            if mask & _HALVES[half]:
                self.known[1 - half][half] = now
                if lanes:
                    self.lanes[half] = now
                else:
                    self._note_part(mask & _HALVES[half], now)

    def learn(self, mask: int, moments: list[int]) -> None:
        """Some threads know of what each half has done by a moment."""
        now = self.tick()
        for half in (0, 1):
            if mask & _HALVES[half]:
                self.known[1 - half][half] = max(self.known[1 - half][half], moments[1 - half])
                self.lanes[half] = now

    def part(self, mask: int) -> None:
        """Some lanes have just told others what they did: what other lanes of their warps wrote is not among it, from
        where lanes were ordered last, nor that their bulk copies are done. What those read is in registers by then, as
        warps run."""
        halves = [half for half in (0, 1) if mask & _HALVES[half]]
        for touches in self._lists():
            for place, touch in enumerate(touches):
                waited = touch.flight and touch.moment != FLIGHT and ".bulk_group" in touch.line.item.opcode
                for half in halves if waited or (touch.kind != "reads" and not touch.flight) else ():
                    late = touch.mask & _HALVES[half] & ~mask
                    for lanes, told in self.parts:
                        late &= ~lanes if lanes & mask and touch.moment < told else -1
                    for lanes, told in self._spoken.items() if late else ():
                        late &= ~lanes if touch.moment < told else -1
                    if late and self.lanes[half] <= touch.moment < self.now:
                        touches[place] = touch._replace(mask=late, moment=self.now)
                        if touch.mask & ~late:
                            touches.append(touch._replace(mask=touch.mask & ~late))
                        break
        if len(self._spoken) == _SPEAKERS:
            self._spoken = {reduce(or_, self._spoken): self.now}
        self._spoken[mask] = self.now

    def touch(self, touch: Touch) -> Meeting | None:
        """Remember an access; the one that it races with, if any."""
        place = (touch.space, touch.address.terms)
        least, most = ends(touch.address.each)
        touch = touch._replace(span=(least, most + touch.size))
        known = self._touches.get(place)
        if known is None:
            known = self._touches[place] = ([], [])
        reads, writes = known
        found = None
        if touch.kind == "reads":
            if writes:
                found = self._first(writes, touch)
            reads.append(touch)
            return found
        if not (touch.strong or touch.flight or touch.doubtful):
            found = self._meeting(touch, touch)
        elif touch.flight and self._of_both(touch, touch):
            found = halves_meet(touch)
        found = found or self._first(writes, touch) or self._first(reads, touch)
        writes.append(touch)
        return found

    def _first(self, earlier: list[Touch], touch: Touch) -> Meeting | None:
        """The first of some accesses that one races with; what everybody knows of is forgotten."""
        oldest = self._oldest()
        first, last = touch.span
        if earlier and (earlier[0].moment < oldest or len(earlier) > _MOST):
            earlier[:] = [before for before in earlier if before.moment >= oldest][-_MOST:]
        for before in earlier:
            begin, end = before.span
            if end <= first or last <= begin:
                continue
            doubts = before.doubtful + touch.doubtful
            flying = before.flight and touch.flight and not self._reads_in_flight(before, touch)
            flying &= not self._of_both(before, touch)
            if (before.strong and touch.strong and _whole(before, touch)) or flying or doubts > self.apart:
                continue
            found = self._meeting(before, touch)
            if found is not None:
                return found
        return None

    def _of_both(self, before: Touch, touch: Touch) -> bool:
        """Whether two CTAs store asynchronously, and neither has learnt anything of the other since the earlier one."""
        stores = [one.line.item.opcode.startswith("st.async") and one.moment == FLIGHT for one in (before, touch)]
        return self.apart and all(stores) and self.born.get(before.token, 0) >= max(self.known[0][1], self.known[1][0])

    def _reads_in_flight(self, before: Touch, touch: Touch) -> bool:
        """Whether asynchronous work reads shared memory that other such work writes, and nobody has waited for the
        earlier one."""
        alike = before.kind == touch.kind or before.space != "shared"
        return before.moment == FLIGHT and not alike and before.token not in self.unsure

    def _oldest(self) -> int:
        """The moment before which everything is ordered."""
        return min(self.known[0][1], self.known[1][0], *self.lanes)

    def _meeting(self, before: Touch, after: Touch) -> Meeting | None:
        unordered = self._unordered(before, after.mask)
        if ".volatile" in before.line.item.opcode and ".volatile" in after.line.item.opcode:
            unordered = [found & ~half for found, half in zip(unordered, _HALVES, strict=True)]  # lanes in step
        if not any(unordered):
            return None
        if self.parts:
            self._forget_parts()
        mine, other = before.address.each, after.address.each
        size = before.size
        if isinstance(mine, range) and isinstance(other, range) and mine.step == other.step:
            # Each thread has bytes of its own.
            shift, rest = divmod(other.start - mine.start, mine.step)
            if not rest and max(size, after.size) <= abs(mine.step) and not self.parts:
                return self._shifted(before, after, shift, unordered)
        if not (isinstance(mine, tuple) or isinstance(other, tuple)):  # only the distance matters
            start = mine if isinstance(mine, int) else mine.start
            mine, other = _moved(mine, -start), _moved(other, -start)
        unit = _unit((size, after.size), mine, other)
        # The later one of two of a thread's copies may be the one that counts.
        own = before.line.item.opcode.startswith(_OWN) and after.line.item.opcode.startswith(_OWN)
        if mine == other and size == after.size == unit and (own or not before.flight) and _distinct(mine):
            return None  # each thread has bytes of its own
        if _apart(mine, before.mask, size, other, after.mask, after.size, unit):
            return None
        places = (mine, before.mask, size), (other, after.mask, after.size)
        meetings = _meetings if size + after.size <= _SMALL else _meetings.__wrapped__
        for meets, thread in meetings(*places, unit, *unordered, own or not before.flight):
            if self.parts:
                meets &= ~self.known_to(thread, before.moment)
            if meets and not _same(before, after, meets, thread):
                return Meeting(before, after, (meets & -meets).bit_length() - 1, thread)
        return None

    def _shifted(self, before: Touch, after: Touch, shift: int, unordered: list[int]) -> Meeting | None:
        """Each thread meets the one that is `shift` further, and no other."""
        own = before.line.item.opcode.startswith(_OWN) and after.line.item.opcode.startswith(_OWN)
        if not shift and (own or not before.flight):
            return None
        for half in (0, 1):
            meets = unordered[half] >> shift if shift >= 0 else unordered[half] << -shift
            meets &= after.mask & _HALVES[half]
            if meets:
                thread = (meets & -meets).bit_length() - 1
                if not _same(before, after, 1 << thread + shift, thread):
                    return Meeting(before, after, thread + shift, thread)
        return None

    def _unordered(self, before: Touch, mask: int) -> list[int]:
        """For each half of the threads of a mask, those whose earlier access it does not know of."""
        found = [0, 0]
        for half in (0, 1):
            if mask & _HALVES[half]:
                if before.moment >= self.known[1 - half][half]:
                    found[half] |= _HALVES[1 - half] & before.mask
                if before.moment >= self.lanes[half]:
                    found[half] |= _HALVES[half] & before.mask
        return found


def halves_meet(touch: Touch) -> Meeting | None:
    """An access at which threads of both halves begin at one place."""
    first = {number: at for at, number in enumerate(touch.address.numbers[:WARP]) if touch.mask >> at & 1}
    for at, number in enumerate(touch.address.numbers[WARP:], WARP):
        if touch.mask >> at & 1 and number in first:
            return Meeting(touch, touch, first[number], at)
    return None


def guesses(meeting: Meeting) -> bool:
    """Whether one of two accesses reads what the other one, at the same address, compares and swaps: a guess that need
    not be right, as racecheck takes it."""
    before, after, *_ = meeting
    swaps, reads = (after, before) if before.kind == "reads" else (before, after)
    same = (swaps.address, swaps.size) == (reads.address, reads.size)
    return same and reads.kind == "reads" and ".cas" in swaps.line.item.opcode


def _whole(a: Touch, b: Touch) -> bool:
    """Whether two strong accesses that meet overlap completely (8.7.1): atomic operations on words of other sizes do
    not."""
    if not a.kind == b.kind == "updates" or a.size == b.size:
        return True
    sizes = [_words.search(touch.line.item.opcode) for touch in (a, b)]
    return None in sizes or len({size[1] for size in sizes if size is not None}) == 1


#: The type of an atomic operation on single words.
_words = re.compile(r"^(?!.*\.v[248]\.).*\.[usbf](16|32|64|128)$")


def _moved(each: int | range, by: int) -> int | range:
    """Numbers, all greater by as much."""
    return each + by if isinstance(each, int) else range(each.start + by, each.stop + by, each.step)


@lru_cache(1 << 12)
def _distinct(each: Each) -> bool:
    """Whether all threads have different numbers."""
    return not isinstance(each, int) and len(set(each)) == THREADS


@lru_cache(1 << 12)
def _unit(sizes: tuple[int, int], *each: Each) -> int:
    """The largest number of bytes of which accesses of these sizes, at these addresses, consist as a whole."""
    unit, first = gcd(*sizes), None
    for one in each:
        start = one if isinstance(one, int) else one[0]
        first = start if first is None else first
        unit = gcd(unit, start - first)
        if isinstance(one, range):
            unit = gcd(unit, one.step)
        elif isinstance(one, tuple) and unit > 1:
            unit = gcd(unit, *[number - start for number in one])
    return unit


@lru_cache(1 << 12)
def _meetings(
    mine: tuple[Each, int, int], other: tuple[Each, int, int], unit: int, first: int, second: int, own: bool
) -> list[tuple[int, int]]:
    """The threads that each thread of the later one of two accesses meets, as bits, and that thread. Each access is an
    address, the threads, and bytes; first, second: what the two halves may meet; own: no thread meets itself."""
    (each, mask, size), (later, others, bytes_) = mine, other
    a, b = Value((), each).numbers, Value((), later).numbers
    where: dict[int, int] = {}
    for thread in range(THREADS):
        if mask >> thread & 1:
            for part in range(a[thread], a[thread] + size, unit):
                where[part] = where.get(part, 0) | 1 << thread
    found = []
    for thread in range(THREADS):
        if others >> thread & 1:
            may = second if thread >= WARP else first
            if own:
                may &= ~(1 << thread)
            for part in range(b[thread], b[thread] + bytes_, unit) if may else ():
                meets = where.get(part, 0) & may
                if meets:
                    found.append((meets, thread))
    return found


@lru_cache(1 << 12)
def _apart(mine: Each, mask: int, size: int, other: Each, others: int, bytes_: int, unit: int) -> bool:
    """Whether accesses of `size` bytes by the threads of a mask reach none of those of others."""
    a, b = Value((), mine).numbers, Value((), other).numbers
    return _parts(a, mask, size, unit).isdisjoint(_parts(b, others, bytes_, unit))


def _parts(numbers: Sequence[int], mask: int, size: int, unit: int) -> set[int]:
    """Where the parts begin that some threads access."""
    firsts = set(numbers) if mask == _ALL else {number for at, number in enumerate(numbers) if mask >> at & 1}
    return firsts if size == unit else {part for first in firsts for part in range(first, first + size, unit)}


def ends(each: Each) -> tuple[int, int]:
    """The least and the greatest number that threads have."""
    if isinstance(each, int):
        return each, each
    if isinstance(each, range):
        return min(each[0], each[-1]), max(each[0], each[-1])
    return min(each), max(each)


def _same(before: Touch, after: Touch, threads: int, thread: int) -> bool:
    """Whether both may store the same, so that it does not matter which one is later."""
    data = before.data
    if before.kind == "stores" and after.kind == "reads" and before.mask >> thread & 1 and data is not None:
        # The thread has stored there itself what all of them store.
        alike = isinstance(data.each, int) and not any(name[0] == "#" for name, _ in data.terms)
        return alike and isinstance(before.address.each, int)
    if before.kind != "stores" or after.kind != "stores" or before.flight or after.flight:
        return False
    if "tensormap" in (before.line.plan.family, after.line.plan.family):
        return False  # a field of a map, and what the map was
    if before.data is None or after.data is None or before.data.terms != after.data.terms:
        return True
    if any(name[0] == "#" for name, _ in before.data.terms):
        return True
    first = (threads & -threads).bit_length() - 1
    low = (1 << 8 * min(before.size, after.size)) - 1
    return not (before.data.numbers[first] ^ after.data.numbers[thread]) & low


def far(address: Value, owner: Value) -> Value:
    """A shared address in the window of a CTA of the cluster."""
    return plus(address, owner, 1 << OWNER)


def within(address: Value, owner: int) -> Value:
    """A shared address of the cluster's window in the memory of another CTA, at the same place."""
    return Value(address.terms, shortest(iter([owner + 1 << OWNER | n & (1 << OWNER) - 1 for n in address.numbers])))
