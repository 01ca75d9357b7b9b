"""Columns of tensor memory in a walk: which are allocated, written, read and freed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..values import THREADS, WARP, Terms, Value, plus
from .barriers import first_of
from .computing import Op, differs
from .scales import Scales
from .shadow import Place
from .tensor_lanes import TensorLanes

if TYPE_CHECKING:
    from .memory import Memory
    from .walker import Group

#: Bit of an address of tensor memory from which on it says the quarter of the lanes.
_QUARTER = 21
#: Columns of tensor memory that an SM has (9.7.16.1.1).
_ALL = 512
_HALVES = (0xFFFFFFFF, 0xFFFFFFFF << WARP)


def columns_of(op: Op) -> int:
    """Columns that a load or store of tensor memory reaches at least: in one shape, one for each register."""
    count = next((word[1:] for word in op.opcode.split(".") if word[0] == "x" and word[1:].isdigit()), "1")
    return int(count) if ".32x32b" in op.opcode else 1


class Columns:
    """The columns of each allocation, and those that each half of the threads has written. unseen: whether others may
    have been."""

    def __init__(self, memory: Memory) -> None:
        self._memory, self._walker = memory, memory.walker
        self._shadow, self._threads = memory.shadow, memory.threads
        self._allocated: dict[Terms, tuple[int, list[set[int]]]] = {}
        self._made: dict[Terms, Op] = {}  # what has not been freed
        self._held: list[tuple[Terms, int, int, Op]] = []  # of it: what each half of the threads has, and how much
        self._pairs: list[tuple[Op, int]] = []  # allocations for pairs of CTAs, and the threads that come to them
        self.unseen = False
        self.lanes = TensorLanes(self._walker)
        self.scales = Scales(self, self._walker)

    def allocate(self, terms: Terms, count: int, op: Op, mask: int) -> None:
        """tcgen05.alloc: each warp gets so many columns."""
        self._allocated[terms], self._made[terms] = (count, [set(), set()]), op
        for half in (0, 1):
            if mask & _HALVES[half]:
                self._held.append((terms, half, count, op))
                self._look_at_all([held for held in self._held if held[1] == half], "")

    def allocated(self, terms: Terms) -> int | None:
        """The columns of an allocation; None for any other address."""
        found = self._allocated.get(terms)
        return found[0] if found is not None else None

    def comes(self, op: Op, mask: int) -> None:
        """Threads come to a tcgen05.alloc, of whatever size."""
        if ".cta_group::2" in op.opcode:
            self._pairs.append((op, mask))

    def meet(self, mask: int) -> None:
        """A barrier of the CTA: what its threads have got by then, they have all got, and nobody has freed it."""
        if all(mask & half for half in _HALVES):
            self._look_at_all(self._held, ", as warps wait for each other before they free any")

    def _look_at_all(self, held: list[tuple[Terms, int, int, Op]], behind: str) -> None:
        """Whether there are as many columns as are allocated at one time."""
        total = sum(count for _, _, count, _ in held)
        if total > _ALL and not (self._walker.assumed or self._threads.apart or self._memory.blind):
            message = f"{total} columns of tensor memory are allocated of {_ALL}: this waits for ever{behind}"
            self._walker.report("columns wanted", held[-1][3].line, None, message)
            held.clear()

    def _place(self, group: Group, op: Op, flight: bool) -> tuple[int, Value] | None:
        """Which operand is an address of tensor memory, and the address."""
        for operand, base, offset in op.addresses:
            if operand == 0 or not flight:
                value = plus(self._walker.value(group, base), Value((), offset))
                known = bool(value.terms) and not differs(value) and not self._threads.apart
                return (operand, value) if known else None
        return None

    def touch(self, group: Group, op: Op, mask: int, size: int, flight: bool, token: int = 0) -> None:
        """Lanes and columns of tensor memory: warps reach a quarter of the lanes each, a product writes all of them."""
        found = self._place(group, op, flight)
        if found is None:
            return
        operand, value = found
        self._look_at(group, op, operand, value, mask, size, flight)
        kind = "stores" if flight or op.opcode.startswith("tcgen05.st") else "reads"
        if not flight:  # one lane stands for its warp
            mask = sum(part & -part for part in (mask & 0xFFFFFFFF, mask & 0xFFFFFFFF << WARP))
        data = Value((), range(THREADS)) if kind == "stores" and not flight else None
        for quarter in range(4) if flight else (0,):
            where = Place("tensor", plus(value, Value((), quarter << _QUARTER)))
            self._memory.touch(group, op, operand, where, size, mask, kind, False, data, flight, token)

    def look_at_lanes(self, group: Group, op: Op, mask: int) -> None:
        """Whether several lanes each issue a product into the same columns."""
        found = self._place(group, op, True)
        if (
            found is None
            or not self._threads.declared
            or self._walker.assumed
            or group.doubtful
            or not isinstance(found[1].each, int)
        ):
            return
        lanes = max((mask >> half * WARP & 0xFFFFFFFF).bit_count() for half in (0, 1))
        if lanes > 1:
            name = self._threads.name(first_of(mask))
            message = (
                f"{name} and {lanes - 1} other lane{'s' * (lanes > 2)} each issue this product into the same columns: "
                "nothing orders them"
            )
            self._walker.report("race", op.line, found[0], message)

    def free(self, group: Group, op: Op, mask: int) -> None:
        """tcgen05.dealloc: no product may still write what it frees. A warp executes it together."""
        now = self._shadow.tick()
        for half in (0, 1):
            if mask >> half * WARP & 0xFFFFFFFF:
                self._shadow.lanes[half] = now
        address = self._walker.value(group, op.sources[0]) if op.sources else None
        if address is None or address.terms not in self._allocated:
            self._made.clear()  # any of them
            self._held.clear()
        elif address.terms in self._made:
            del self._made[address.terms]
            self._held = [held for held in self._held if held[0] != address.terms]
            made, freed = self._allocated[address.terms][0], self._memory.size_at(group, op, 1)
            if freed and freed != made:
                message = f"{freed} columns are freed here, and {made} were allocated"
                self._walker.report("columns freed", op.line, None, message)
        if address is not None and address.terms and not differs(address) and not self._threads.apart:
            where = Place("tensor", address)
            self._memory.touch(group, op, 0, where, 1, mask & -mask, "frees", False)

    def end(self) -> None:
        """All threads have ended."""
        self.scales.end()
        for op in self._made.values():
            message = "on some way to the end of the kernel, nothing frees what this allocates"
            self._walker.report("never freed", op.line, None, message)

    def look_at_pairs(self) -> None:
        """All threads of two CTAs have ended: whether both of a pair have allocated (9.7.16.7.1)."""
        threads, come = self._threads, [any(mask & half for _, mask in self._pairs) for half in _HALVES]
        known = threads.kind == "cluster" and threads.whole and not self._memory.clusters.unseen
        if any(come) and not all(come) and known and not self._walker.assumed:
            op, _ = self._pairs[0]
            message = "a warp of each CTA of a pair has to execute this, and in one none does: the other waits"
            self._walker.report("columns wanted", op.line, None, message)

    def _look_at(self, group: Group, op: Op, operand: int, value: Value, mask: int, size: int, flight: bool) -> None:
        """Whether columns are allocated, and have been written."""
        columns = self._allocated.get(value.terms)
        if columns is None or self._walker.assumed:
            return
        count, written = columns
        if not flight:
            self.lanes.look_at_lanes(op, operand, value, mask)
        first = {number & 0xFFFF for thread, number in enumerate(value.numbers) if mask >> thread & 1}
        for column in sorted(first):
            if column + size > count:
                message = f"column {column + size - 1} of tensor memory is accessed here, and {count} are allocated"
                self._walker.report("tensor columns", op.line, operand, message)
                return
        for half in (0, 1):
            here = mask >> half * WARP & 0xFFFFFFFF
            if not here:
                continue
            for column in sorted(first):
                adds = flight and self._adds(group, op)
                if op.opcode.startswith("tcgen05.ld") or adds:
                    missing = (
                        set(range(column, column + size)) - written[0] - written[1]
                    )  # four warps on have its lanes
                    if missing and not self.unseen:
                        message = f"column {min(missing)} of tensor memory is read, and nothing has written it"
                        self._walker.report("unwritten column", op.line, operand, message)
                        self.unseen = True
                elif not flight:
                    written[half] |= set(range(column, column + size))
            if flight:
                for each in written:
                    each |= set(range(min(first), count))

    def _adds(self, group: Group, op: Op) -> bool:
        """Whether a product certainly adds to what is there."""
        names = [spec.name for spec in op.line.plan.specs]
        place = next((place for place, name in enumerate(names) if "enable" in name), None)
        operand = op.line.item.operands[place] if place is not None and place < len(op.line.item.operands) else None
        key = next((key for key in op.reads if key[1] == getattr(operand, "name", None)), None)
        return key is not None and self._walker.value(group, key).constant == 1
