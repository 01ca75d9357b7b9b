"""What halves of the threads of a walk release by strong accesses and fences, and what the other half acquires."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ptxtools.records import NamedTuple

from ..facts import Line
from ..values import WARP
from .computing import Op
from .shadow import Meeting, Place

if TYPE_CHECKING:
    from .memory import Memory

#: What makes a load or store a strong one.
STRONG = ("volatile", "relaxed", "acquire", "release", "acq_rel", "mmio", "sc")
_HALVES = (0xFFFFFFFF, 0xFFFFFFFF << WARP)
#: Places at which a half of the threads has released something that are remembered.
_MOST = 8


class _At(NamedTuple):
    """Where a strong access is: space and terms of the address, None if unknown; numbers: of the threads that do it,
    in bytes behind that; size: in bytes."""

    space: str
    terms: object
    numbers: frozenset[int]
    size: int

    def may_be(self, other: _At) -> bool:
        """Whether both may be one place. Those with different terms may be: parameters may point to one buffer."""
        if self.terms is None or self.terms != other.terms or self.space != other.space:
            return True
        return any(a - other.size < b < a + self.size for a in self.numbers for b in other.numbers)


_ANYWHERE = _At("", None, frozenset(), 0)


def strong_read(line: Line) -> bool:
    """Whether an instruction may learn of what others have released."""
    op = line.plan.op
    return line.plan.family == "atom" or (
        line.plan.family == "ld" and op is not None and any(op.has(word) for word in STRONG)
    )


class Releases:
    """fenced: by when each half has come to its last fence."""

    def __init__(self, memory: Memory) -> None:
        self._memory, self._shadow = memory, memory.shadow
        self.fenced = [0, 0]
        self._made: tuple[dict[_At, int], dict[_At, int]] = ({}, {})
        self._read: tuple[list[_At], list[_At]] = ([], [])  # by strong accesses
        #: Which half may release later in the walk what has been read, and where.
        self._awaited: tuple[int, _At] | None = None
        self._deferred: list[tuple[int, _At, Meeting]] = []
        self._owed: tuple[list[list[int]], list[list[int]]] = ([], [])  # what relaxed waits have seen
        self._told = [False, False]  # of tensor memory, by tcgen05.fence::before_thread_sync
        self._heard = [False, False]  # whether tcgen05.commit may have arrived where halves have waited

    def access(self, op: Op, mask: int, place: Place | None, size: int) -> None:
        """What a strong access releases, or acquires."""
        opcode = op.line.plan.op
        if opcode is None:
            return
        at = _ANYWHERE
        if place is not None:
            own = [number for thread, number in enumerate(place.address.numbers) if mask >> thread & 1]
            at = _At(place.space, place.address.terms, frozenset(own), size)
        both = opcode.has("acq_rel") or opcode.has("sc")
        for half in (0, 1):
            if not mask & _HALVES[half]:
                continue
            if op.family != "ld":
                if both or opcode.has("release"):
                    self._release(half, at, self._shadow.tick())
                    self._shadow.part(mask)
                elif self.fenced[half]:
                    self._release(half, at, self.fenced[half])
            reads = op.family in ("ld", "atom")
            if reads:
                self._seen(half, at)
            if reads and (both or opcode.has("acquire") or (op.family == "atom" and self.fenced[half])):
                self._acquire(half, at)

    def _seen(self, half: int, at: _At) -> None:
        read = self._read[half]
        if at not in read:
            read.append(at if len(read) < _MOST else _ANYWHERE)

    def _release(self, half: int, at: _At, moment: int) -> None:
        made = self._made[half]
        if len(made) >= _MOST and at not in made:
            at = _ANYWHERE
        made[at] = max(moment, made.get(at, 0))

    def _released(self, half: int, at: _At) -> int:
        """By when a half has released something that an acquire at a place may learn of; 0: never. What is released
        elsewhere, others may have acquired, and released here."""
        if not self._made[half]:
            return 0
        read = [one for each in self._read for one in each]
        return max(
            (
                moment for one, moment in self._made[half].items()
                if one.may_be(at) or any(other != at and one.may_be(other) for other in read)
            ),
            default=0,
        )  # fmt: skip

    def _acquire(self, half: int, *read: _At) -> None:
        released = max(self._released(1 - half, at) for at in read)
        if not released:
            at = read[0] if len(read) == 1 else _ANYWHERE
            self._awaited = 1 - half, at  # it may release later in the walk what is read here
        shadow = self._shadow
        shadow.known[1 - half][half] = max(shadow.known[1 - half][half], released)
        shadow.lanes[half] = shadow.tick()

    def fence(self, mask: int) -> None:
        """A fence of some threads: what they read before is acquired, what they write afterwards released."""
        for half in (0, 1):
            if mask & _HALVES[half]:
                self.fenced[half] = self._shadow.tick()
                if self._read[half]:
                    self._acquire(half, *self._read[half])
                for moments in self._owed[half]:
                    self._shadow.learn(_HALVES[half] & mask, moments)
                self._owed[half].clear()

    def owe(self, mask: int, moments: list[int], commits: bool) -> None:
        """A relaxed wait for what halves have told by these moments: a fence behind it acquires that. commits: whether
        tcgen05.commit may have arrived there."""
        for half in (0, 1):
            if mask & _HALVES[half]:
                self._heard[half] |= commits
                self._owed[half].append(moments)
                del self._owed[half][:-_MOST]

    def tell(self, mask: int) -> None:
        """tcgen05.fence::before_thread_sync: relaxed arrivals and waits tell of tensor memory (9.7.16.6.3)."""
        for half in (0, 1):
            self._told[half] |= mask & _HALVES[half] != 0

    def defer(self, meeting: Meeting) -> bool:
        """Whether two accesses do not race, or it is not known yet as one of them is behind an acquire."""
        first, second = meeting.first // WARP, meeting.second // WARP
        told = self._told[first] or (meeting.before.flight and self._heard[second])  # tcgen05.commit has the fence
        if told and meeting.before.space == "tensor" and self._owed[second]:
            return True
        if self._awaited is not None and first != second:
            self._deferred.append((*self._awaited, meeting))
            return True
        return False

    def untold(self, meeting: Meeting) -> Meeting | None:
        """A product and an access of a half that waits only where no tcgen05.commit arrives, and which nothing has told
        of the product."""
        before, after, first = meeting.before, meeting.after, meeting.first // WARP
        late = after.mask & _HALVES[1 - first]
        if not (before.flight and before.space == "tensor" and late and self._owed[1 - first]):
            return None
        known = before.moment < self._shadow.known[first][1 - first]
        if known or self._heard[1 - first] or self._told[first] or self._awaited is not None:
            return None
        return meeting._replace(second=(late & -late).bit_length() - 1)

    def unmet(self) -> list[Meeting]:
        """At the end: the deferred races in which nothing has been released that could be acquired."""
        if self._deferred and any(self._made) and self._misses_reads():
            return []
        return [meeting for half, at, meeting in self._deferred if not self._released(half, at)]

    def _misses_reads(self) -> bool:
        """Whether the walk has not come to some strong read: by it others may learn, and tell."""
        program = self._memory.walker.program
        return any(
            not visited and strong_read(line) for visited, line in zip(program.visited, program.lines, strict=True)
        )
