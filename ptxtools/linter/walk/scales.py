"""What products of a walk read of tensor memory besides their sums: scales, factors and metadata, and who writes it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..values import Terms, Value, plus
from .computing import Op, differs

if TYPE_CHECKING:
    from .columns import Columns
    from .walker import Group, Walker

#: What writes tensor memory.
_WRITES = ("tcgen05.mma", "tcgen05.cp", "tcgen05.st")
#: Columns that a copy writes, by its shape (9.7.16.9.2): 32 bits of each lane are one.
_SHAPES = {"128x256b": 8, "4x256b": 8, "128x128b": 4, "64x128b": 4, "32x128b": 4}


class Scales:
    """Columns that copies, stores and products write, and those that products read, both of known allocations. A walk
    that does not come to all that may write says nothing."""

    def __init__(self, columns: Columns, walker: Walker) -> None:
        self._columns, self._walker = columns, walker
        self._written: dict[Terms, set[int]] = {}
        self._come: set[int] = set()  # to which instructions that write
        self._lost = False
        self._read: list[tuple[Op, int, Terms, int]] = []

    def note(self, group: Group, op: Op) -> None:
        """Threads come to a product, copy or store."""
        for operand, base, offset in op.addresses:
            value = plus(self._walker.value(group, base), Value((), offset))
            count = self._columns.allocated(value.terms)
            columns = {number & 0xFFFF for number in value.numbers}
            if count is None or differs(value) or len(columns) != 1:
                self._lost = True
                return
            first = columns.pop()
            if operand == 0:
                self._come.add(id(op.line.item))
                size = self._size(group, op) or count
                self._written.setdefault(value.terms, set()).update(range(first, min(first + size, count)))
            elif op.opcode.startswith("tcgen05.mma"):
                self._read.append((op, operand, value.terms, first))

    def _size(self, group: Group, op: Op) -> int | None:
        """Columns that are written at most; None if that is not known."""
        if op.opcode.startswith("tcgen05.mma"):
            described = self._walker.memory.flights.factors.operand(group, op, "idesc")
            value = described.constant if described is not None else None
            return (value >> 17 & 63) << 3 if value is not None else None
        words = op.opcode.split(".")
        return next((_SHAPES[word] for word in words if word in _SHAPES), None) if "cp" in words else None

    def end(self) -> None:
        """All threads have ended: whether something is read that nothing has written."""
        walker = self._walker
        if not self._read or self._lost or walker.assumed or walker.memory.blind or walker.threads.apart:
            return
        lines = [line for line in walker.program.lines if line.item.opcode.startswith(_WRITES)]
        if not all(id(line.item) in self._come for line in lines):
            return
        for op, operand, terms, column in self._read:
            if column not in self._written.get(terms, ()):
                message = f"column {column} of tensor memory is read, and nothing writes it"
                walker.report("unwritten column", op.line, operand, message)
                return
