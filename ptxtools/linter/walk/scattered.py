"""Accesses of a walk at indices that are data: which elements of a variable they reach is not known."""

from __future__ import annotations

from math import gcd
from typing import TYPE_CHECKING

from ..values import WARP, Value
from .computing import Op, most_of, of_data
from .shadow import Touch

if TYPE_CHECKING:
    from ptxtools.ir.symbols import RegisterKey

    from .memory import Memory
    from .walker import Group

#: Accesses that are remembered.
_MOST = 8
#: Instructions between a load and a store that are looked at; what counts or sums up.
_NEAR, _COUNTING = 16, ("add", "sub", "fma", "mad")
_HALVES = (0xFFFFFFFF, 0xFFFFFFFF << WARP)


class Scattered:
    """Accesses of shared variables at such indices. They may meet whatever the threads of other warps access at places
    of their own: a table that all fill, or counters that all clear, must be complete before. A touch is doubtful here
    if nothing bounds its index; else its size is that of all that it may reach."""

    def __init__(self, memory: Memory) -> None:
        self.memory = memory
        self._known: list[Touch] = []
        #: By the identity of such an access, of what its unknown distance is a multiple, and its bytes.
        self._strides: dict[int, tuple[int, int]] = {}
        self._loaded: dict[Value, tuple[Touch, Op]] = {}  # by the whole address

    def note(
        self, group: Group, op: Op, operand: int, address: Value, size: int, mask: int, kind: str, strong: bool
    ) -> None:
        """An access at an address that is not known."""
        shadow = self.memory.shadow
        base = tuple([term for term in address.terms if term[0][0] != "#"])
        most = most_of(address)
        fixed = len(base) == 1 and base[0][0][0] == "&" and (isinstance(address.each, int) or most is not None)
        if self.memory.blind or self.memory.threads.apart or not fixed or not of_data(address):
            return
        self._strides[id(op.line.item)] = gcd(*[count for name, count in address.terms if name[0] == "#"]), size
        if most is not None:
            size += most
        touch = Touch(op.line, operand, "shared", Value(base, address.each), size, mask, shadow.now, kind, strong, None,
                      most is None)  # fmt: skip
        for before in shadow.at("shared", base):
            if self._meet(before, touch, before, touch):
                break
        agreed = group.doubtful and self.memory.walker.program.agrees
        if isinstance(address.each, int) and not strong and op.guard is None and not agreed:
            self._count(op, address, touch)
        self._known = [*self._known[-_MOST:], touch]

    def _count(self, op: Op, address: Value, touch: Touch) -> None:
        """A load, and a store of what follows from it at the same index of every thread's own data: counters that
        atomics are for, since threads may have the same index."""
        if touch.kind == "reads":
            self._loaded[address] = touch, op
        elif touch.kind == "stores" and address in self._loaded:
            before, load = self._loaded.pop(address)
            whole = all(before.mask & touch.mask & half for half in _HALVES)
            if whole and op.family == "st" and load.into and self._follows(op, load.into):
                self.memory.tell_scattered(before, touch, 1)

    def _follows(self, store: Op, loaded: tuple[RegisterKey, ...]) -> bool:
        """Whether a store stores what an instruction between a load and itself has computed of what was loaded."""
        program = self.memory.walker.program
        at, wanted = program.number(store.line), set(store.reads) - {key for _, key, _ in store.addresses}
        for before in range(at - 1, max(at - _NEAR, -1), -1):
            op = program.at(before)
            if wanted.intersection(op.into):
                return op.guard is None and op.family in _COUNTING and not set(loaded).isdisjoint(op.reads)
        return False

    def look(self, touch: Touch) -> None:
        """An access at a place that is known, behind others at places that are not."""
        if self.memory.blind:
            return
        for before in self._known:
            if before.address.terms == touch.address.terms and self._meet(before, touch, touch, before):
                return

    def _meet(self, before: Touch, after: Touch, known: Touch, data: Touch) -> bool:
        """Whether two accesses of different warps race, as nothing has ordered them; data: the one whose place is not
        known. If nothing bounds it, the other has to begin where it does: shared memory may hold several arrays."""
        if before.kind == after.kind == "reads" or before.flight or after.flight or (before.strong and after.strong):
            return False
        if isinstance(known.address.each, int) or (data.doubtful and min(known.address.numbers) != data.address.each):
            return False
        order = self.memory.shadow.known
        for half in (0, 1):
            apart = after.mask & _HALVES[half] and before.mask & _HALVES[1 - half]
            if apart and before.moment >= order[1 - half][half]:
                other = half if known is before else 1 - half
                if self._aligned(known, 1 - other, data, other) and (
                    data.doubtful or _overlap(known, 1 - other, data, other)
                ):
                    self.memory.tell_scattered(before, after, half)
                    return True
        return False

    def _aligned(self, known: Touch, first: int, data: Touch, second: int) -> bool:
        """Whether halves of the threads may meet as far as the distances between elements tell: counters of a thread's
        own stand beside those of others."""
        stride, size = self._strides[id(data.line.item)]
        if stride <= size:
            return True
        mine, other = [
            {byte % stride for n in _numbers(touch, half) for byte in range(n, n + bytes_)}
            for touch, half, bytes_ in ((known, first, known.size), (data, second, size))
        ]
        return not mine.isdisjoint(other)


def _overlap(a: Touch, first: int, b: Touch, second: int) -> bool:
    """Whether what halves of the threads reach may overlap."""
    mine, other = [_reach(touch, half) for touch, half in ((a, first), (b, second))]
    return mine[0] < other[1] and other[0] < mine[1]


def _reach(touch: Touch, half: int) -> tuple[int, int]:
    numbers = _numbers(touch, half)
    return min(numbers), max(numbers) + touch.size


def _numbers(touch: Touch, half: int) -> list[int]:
    """Where threads of one half begin."""
    return [n for at, n in enumerate(touch.address.numbers) if touch.mask & _HALVES[half] & 1 << at]
