"""Two operations in one: trees of bitwise logic become `lop3`, also if the result is only compared with zero, and a
product plus a sum becomes `mad`.

An operation is merged into its reader if it has no other reader, both are in one block, it has no guard, and its
sources have not changed in between. Results are the same bit for bit; nothing here can trap.
"""

from __future__ import annotations

from functools import cache
from itertools import combinations

from ptxtools.isa import resolve
from ptxtools.program.details import Constant
from ptxtools.program.effects import reads, terminator_reads, writes
from ptxtools.program.program import Block, Op, Ref
from ptxtools.records import dataclass

from .colouring import ValueTable
from .simplify import drop_dead

#: Truth tables of a, b and c in lop3's order of bits (9.7.8.6).
_COLUMNS = (0xF0, 0xCC, 0xAA)
#: A product that several sums read is computed again in each of them, up to this number.
_MOST_SUMS = 3


def fuse(blocks: list[Block], values: ValueTable) -> None:
    """Improve in place. Block numbers stay."""
    counts: dict[int, int] = {}
    for block in blocks:
        for op in block.ops:
            for value in reads(op):
                counts[value] = counts.get(value, 0) + 1
        for value in terminator_reads(block.terminator):
            counts[value] = counts.get(value, 0) + 1
    changed = False
    for block in blocks:
        changed |= _Fuser(values, counts).run(block.ops)
    if changed:
        drop_dead(blocks, values)


@dataclass(slots=True)
class Logic:
    """A bitwise function of up to three values."""

    leaves: tuple[Ref, ...]
    table: int


class _Fuser:
    """One block. `made`: position and operation that made a value; `written`: position of its last write so far."""

    def __init__(self, values: ValueTable, counts: dict[int, int]) -> None:
        self.values, self.counts = values, counts
        self.made: dict[int, tuple[int, Op]] = {}
        self.logic: dict[int, Logic] = {}
        self.written: dict[int, int] = {}

    def run(self, ops: list[Op]) -> bool:
        changed = False
        for at, op in enumerate(ops):
            opcode = op.opcode
            if op.kind == "alu" and opcode is not None and len(op.dst) == 1 and op.dst[0] is not None:
                family, target = opcode.family, op.dst[0].slot
                if family in _LOGIC:
                    changed |= self._logic(op)
                elif family == "add":
                    changed |= self._sum(op)
                elif family == "setp":
                    changed |= self._test(op)
                if op.guard is None and family in _TAKEN:
                    self.made[target] = (at, op)
                if family not in _LOGIC:
                    self.logic.pop(target, None)
            for value in writes(op):
                self.written[value] = at
        return changed

    def _maker(self, ref: Ref | None, uses: int) -> Op | None:
        """The operation that made a value, if it can be merged into a reader at this position."""
        if ref is None or self.counts.get(ref.slot, 0) > uses:
            return None
        place, op = self.made.get(ref.slot, (0, None))
        if (
            op is None
            or self.written[ref.slot] != place
            or any(self.written.get(value, -1) >= place for value in reads(op))
        ):
            return None
        return op

    # --- logic --------------------------------------------------------------------------------------------------------

    def _logic(self, op: Op) -> bool:
        own = _logic_of(op)
        target = op.dst[0]
        if own is None or target is None:
            return False
        merged = self._merged(own)
        if merged is None:
            self.logic[target.slot] = own
            return False
        leaves = merged.leaves + (merged.leaves[0],) * (3 - len(merged.leaves))
        op.opcode = resolve("lop3.b32")
        op.src = (*leaves, self.values.constant(merged.table, "b32"))
        op.src_types = ("b32", "b32", "b32", "u32")
        op.detail = Constant(3, merged.table)
        self.logic[target.slot] = merged
        return True

    def _merged(self, own: Logic) -> Logic | None:
        """The function with as many as possible of the operations that made its leaves merged in, or None."""
        inner = {
            ref.slot: self.logic[ref.slot]
            for ref in own.leaves
            if ref.slot in self.logic and self._maker(ref, 1) is not None
        }
        for size in range(len(inner), 0, -1):
            for chosen in combinations(inner, size):
                merged = _substitute(own, {number: inner[number] for number in chosen})
                if merged is not None:
                    return merged
        return None

    def _test(self, op: Op) -> bool:
        """setp of a logical value against zero, or of one bit: `lop3.or _|p` yields p = (result != 0) or false."""
        opcode, value = op.opcode, op.src[0]
        if opcode is None or value is None or len(op.src) != 2 or opcode.type not in _WORDS:
            return False
        logic = self.logic.get(value.slot) if self._maker(value, 1) is not None else None
        wanted = self.values.constants.get(op.src[1].slot) if op.src[1] is not None else None
        if logic is None or wanted is None or not (opcode.has("eq") or opcode.has("ne")):
            return False
        tested = self._nonzero(logic, wanted, equal=opcode.has("eq"))
        if tested is None:
            return False
        leaves = logic.leaves + (logic.leaves[0],) * (3 - len(logic.leaves))
        op.opcode = resolve("lop3.or.b32")
        op.src = (*leaves, self.values.constant(tested, "b32"), self.values.constant(0, "pred"))
        op.src_types = ("b32", "b32", "b32", "u32", "pred")
        op.dst, op.dst_types, op.detail = (None, op.dst[0]), ("b32", "pred"), Constant(3, tested)
        return True

    def _nonzero(self, logic: Logic, wanted: int, *, equal: bool) -> int | None:
        """Table of a function of the same leaves that is nonzero exactly when the comparison holds."""
        if wanted == 0 and not equal:
            return logic.table
        masks = [self.values.constants.get(leaf.slot, 0) for leaf in logic.leaves]
        if len(masks) != 2 or logic.table != _COLUMNS[0] & _COLUMNS[1]:
            return None
        for place, mask in enumerate(masks):
            if mask.bit_count() == 1 and wanted in (0, mask):
                bit, other = _COLUMNS[place], _COLUMNS[1 - place]
                return bit & (other if (wanted == mask) == equal else ~other) & 0xFF
        return None

    # --- sums ---------------------------------------------------------------------------------------------------------

    def _sum(self, op: Op) -> bool:
        opcode = op.opcode
        if opcode is None or opcode.carry_out or opcode.has("sat") or opcode.type not in _SUMS:
            return False
        for place in (0, 1):
            product, other = op.src[place], op.src[1 - place]
            maker = self._maker(product, _MOST_SUMS)
            if maker is None or maker.opcode is None or other is None or product is None:
                continue
            if maker.opcode.family != "mul" and self.counts[product.slot] > 1:
                continue
            found = self._product(maker, op.dst_types[0])
            if found is not None:
                text, factors, types = found
                self.counts[product.slot] -= 1
                op.opcode = resolve(text)
                op.src = (*factors, other)
                op.src_types = (*types, op.dst_types[0])
                return True
        return False

    def _product(self, maker: Op, total: str) -> tuple[str, tuple[Ref | None, ...], tuple[str, ...]] | None:
        """mad's opcode, the factors and their types, for a sum of type `total`."""
        opcode = maker.opcode
        if opcode is None or opcode.type is None or maker.dst_types[0][1:] != total[1:]:
            return None
        if opcode.family == "mul":
            if opcode.has("wide"):
                return f"mad.wide.{opcode.type}", maker.src, maker.src_types
            # A 64-bit product that others read too is too much work to repeat.
            if opcode.has("lo") and self.counts[maker.dst[0].slot if maker.dst[0] else -1] == 1:
                return f"mad.lo.{opcode.type}", maker.src, maker.src_types
            return None
        if opcode.type != "b32" or opcode.family != "shl":
            return None
        distance = self.values.constants.get(maker.src[1].slot) if maker.src[1] is not None else None
        if distance is None or distance > 31:
            return None
        return "mad.lo.u32", (maker.src[0], self.values.constant(1 << distance, "b32")), ("u32", "u32")


_LOGIC = frozenset({"and", "or", "xor", "not", "lop3"})
_TAKEN = _LOGIC | {"mul", "shl"}
_WORDS = frozenset({"b32", "u32", "s32"})
_SUMS = frozenset({"u32", "s32", "u64", "s64"})


def _logic_of(op: Op) -> Logic | None:
    """The function that an operation computes of its distinct sources."""
    opcode = op.opcode
    if opcode is None or opcode.type != "b32":
        return None
    sources = [ref for ref in op.src[: 1 if opcode.family == "not" else 2] if ref is not None]
    if opcode.family == "lop3":
        if not isinstance(op.detail, Constant) or len(op.dst) != 1:
            return None
        sources = [ref for ref in op.src[:3] if ref is not None]
        return _normalised(Logic(tuple(sources), op.detail.value))
    if any(ref.type != "b32" for ref in (*sources, *op.dst) if ref is not None):
        return None
    a, b, _ = _COLUMNS
    table = {"and": a & b, "or": a | b, "xor": a ^ b, "not": ~a & 0xFF}[opcode.family]
    return _normalised(Logic(tuple(sources), table))


def _normalised(logic: Logic) -> Logic:
    """The leaves without repetitions."""
    leaves: list[Ref] = []
    columns: list[int] = []
    for ref in logic.leaves:
        if not any(ref.slot == known.slot for known in leaves):
            leaves.append(ref)
        columns.append(next(i for i, known in enumerate(leaves) if known.slot == ref.slot))
    if len(leaves) == len(columns):
        return logic
    return Logic(tuple(leaves), _apply(logic.table, _padded([_COLUMNS[c] for c in columns])))


def _substitute(outer: Logic, inner: dict[int, Logic]) -> Logic | None:
    """`outer` with some leaves replaced by functions, by value; None if that takes more than three leaves."""
    leaves: dict[int, Ref] = {}
    for ref in outer.leaves:
        for leaf in inner[ref.slot].leaves if ref.slot in inner else (ref,):
            leaves.setdefault(leaf.slot, leaf)
    if len(leaves) > 3:
        return None
    column = dict(zip(leaves, _COLUMNS, strict=False))

    def result_of(ref: Ref) -> int:
        function = inner.get(ref.slot)
        if function is None:
            return column[ref.slot]
        return _apply(function.table, _padded([column[leaf.slot] for leaf in function.leaves]))

    table = _apply(outer.table, _padded([result_of(ref) for ref in outer.leaves]))
    return Logic(tuple(leaves.values()), table)


def _padded(columns: list[int]) -> tuple[int, ...]:
    """Three columns; missing ones do not count."""
    return (*columns, 0, 0)[:3]


@cache
def _apply(table: int, patterns: tuple[int, ...]) -> int:
    """The truth table of `table` applied to three columns."""
    result = 0
    for row in range(8):
        a, b, c = (pattern >> row & 1 for pattern in patterns)
        result |= (table >> (4 * a + 2 * b + c) & 1) << row
    return result
