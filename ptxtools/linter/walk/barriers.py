"""What is wrong with the way in which threads of a walk come to a barrier."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..values import THREADS, WARP, Value
from .computing import Op

if TYPE_CHECKING:
    from .walker import Group, Walker

#: Barriers of a CTA (9.7.14.1).
_BARRIERS = 16
_HALVES = (0xFFFFFFFF, 0xFFFFFFFF << WARP)


def first_of(mask: int) -> int:
    return (mask & -mask).bit_length() - 1


class Arrivals:
    """Arrivals that do not wait: of each half of the threads those behind which it has learnt nothing of others."""

    def __init__(self, walker: Walker) -> None:
        self._walker = walker
        self._open: tuple[dict[object, tuple[Op, int]], ...] = ({}, {})

    def hear(self, mask: int) -> None:
        """Some threads may have learnt what others have done."""
        for half in (0, 1):
            if mask & _HALVES[half]:
                self._open[half].clear()

    def come(self, op: Op, number: object, mask: int) -> None:
        """Threads come to a barrier: whether they have arrived there already, and cannot know that this is over."""
        walker = self._walker
        for half in (0, 1):
            before, who = self._open[half].get(number, (op, 0))
            again = who & mask
            doubts = walker.assumed or walker.memory.blind or walker.threads.apart or not walker.threads.declared
            if again and not doubts:
                message = (
                    f"{walker.threads.name(first_of(again))} has arrived at this barrier in line {{line}}, and cannot "
                    "know whether that round of it is over: it may count twice"
                )
                walker.report("barrier count", op.line, None, message, before.line)
            if mask & _HALVES[half]:
                self._open[half][number] = op, who | mask & _HALVES[half]


def look_at_number(walker: Walker, op: Op, which: Value, mask: int) -> None:
    """Whether a barrier is named that no CTA has."""
    if which.terms or walker.assumed or (isinstance(which.each, int) and which.each < _BARRIERS):
        return
    for thread in range(THREADS):
        if mask >> thread & 1 and not 0 <= which.numbers[thread] < _BARRIERS:
            message = f"{walker.threads.name(thread)} names barrier {which.numbers[thread]}, and a CTA has 0 to 15"
            walker.report("barrier number", op.line, None, message)
            return


def waits_for_its_warp(walker: Walker, group: Group) -> bool:
    """At an aligned barrier: whether others of the warp wait at an mbarrier, and will come with it."""
    for other in walker.running:
        waits = other.waits is not None and other.waits[0] == "mbarrier"
        if waits and any(other.mask & half and group.mask & half for half in _HALVES):
            group.waits = ("warp", 0)
            group.pc -= 1
            return True
    return False


def look_at_divergence(walker: Walker, op: Op, mask: int) -> None:
    """Whether lanes of a warp miss an aligned barrier, as they have ended."""
    alone = [name[0] == "=" for name in walker.assumed] == [True]  # one condition, of all threads: it may well hold
    if walker.assumed and not walker.numbers and not alone:
        return
    for half in _HALVES:
        missing = walker.threads.mask & half & ~mask
        if alone and not walker.numbers:
            missing &= walker.alive
        if mask & half and missing:
            thread = walker.threads.name(first_of(missing))
            how = "goes another way" if missing & walker.alive else "has ended"
            message = f"{thread} {how} before this '{op.opcode}', and others of its warp come to it"
            walker.report("divergent barrier", op.line, None, message)
            return


def look_at_end(walker: Walker, groups: list[Group], arrived: int) -> None:
    """Whether a barrier waits for more threads than there are left: all that have not ended are at it."""
    if walker.assumed or walker.memory.blind or not (walker.threads.whole and walker.threads.declared):
        return
    mask = 0
    for group in groups:
        mask |= group.mask
    come, op = mask.bit_count() + WARP * arrived, walker.program.at(groups[0].pc - 1)
    count = groups[0].waits[2] if groups[0].waits is not None and len(groups[0].waits) > 2 else None
    if isinstance(count, int) and come < count and mask == walker.alive:
        message = f"{walker.threads.name(first_of(mask))} waits here for ever: {come} of {count} threads come"
        walker.report("barrier without end", op.line, None, message)


def look_at_company(walker: Walker, groups: list[Group]) -> None:
    """Whether a reduction meets others at its barrier: all of these groups are at it, and nobody else comes before."""
    if walker.assumed or walker.memory.blind:
        return
    first, *others = [walker.program.at(pc - 1) for pc in sorted(group.pc for group in groups)]
    sort = _reduction(first)
    other = next((op for op in others if _reduction(op) != sort), None)
    if other is not None:
        message = f"'{first.opcode}' and '{other.opcode}' meet at one barrier, where a reduction needs all threads"
        walker.report("barrier count", other.line, None, message, first.line)


def _reduction(op: Op) -> str:
    """What a barrier operation reduces by; empty if it does not."""
    return next((word for word in ("popc", "and", "or") if word in op.opcode.split(".")), "")
