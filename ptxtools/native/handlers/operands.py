"""Operands of matrix products as tables on the stack, from fragments in registers (9.7.14.5, 9.7.14.6.1).

Each register of 32 lanes is a tile of 8 rows, so operands are decoded a register at a time, B with its lanes turned
round, so that the elements of one k and eight columns lie side by side. Layouts that have no such tiles (m8n8k4 of
f16), and sparse matrices, are first copied into tables in plain order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ptxtools.native.code.algebra import LLVMAlgebra
from ptxtools.native.code.handler import Handler
from ptxtools.program.details import MatrixProduct
from ptxtools.program.program import LANES, Ref
from ptxtools.records import dataclass
from ptxtools.semantics import tensorcore
from ptxtools.semantics.accumulation import rule_of
from ptxtools.semantics.algebra import Value
from ptxtools.semantics.fragments import Fragment, Stored
from ptxtools.semantics.products import Product, product_of

#: Lanes in the order t * 8 + g: what was a column becomes a row.
_TURNED = [4 * (i % 8) + i // 8 for i in range(LANES)]
_ELEMENT = {"float": "i64", "double": "i64", "integer": "i32", "bits": "i32"}


@dataclass
class Table:
    """Decoded elements on the stack. `spot(row, column)`: index of an element whose row is a multiple of 8 (for B: the
    column); `stride`: indices from one row to the next. powers: a second table, of the elements' powers of two."""

    values: str
    powers: str
    spot: Callable[[int, int], int]
    stride: int


class Tile:
    """The handler under construction, with an algebra of eight lanes for the columns of a tile."""

    def __init__(self, h: Handler) -> None:
        assert h.op.opcode is not None
        self.handler, self.code = h, h.code
        self.product: Product = product_of(h.op.opcode.text)
        detail = h.op.of(MatrixProduct)
        self.selector, self.numerics = detail.selector, detail.numerics
        self.suspects: list[str] = []  # i1: some scale factor is a NaN
        self.element = _ELEMENT[self.product.kind]
        self.algebra = LLVMAlgebra(h.code, lanes=8)
        self.chip = self.product.kind == "float"
        self.rule = rule_of(self.product.sum, self.numerics) if self.chip else None
        self.powers_wanted = self.rule is not None and self.rule.fraction > 0 and self.rule.group == 1
        self.highest = h.algebra.const("u64", 0)
        #: The same in memory, of eight lanes, where operands are decoded in loops.
        self.most = ""
        self.sources = list(h.op.src)
        self.first_b = self.product.factor_registers[0]
        self.first_c = sum(self.product.factor_registers)
        self.first_extra = self.first_c + self.product.parts[0].c.registers  # metadata, scale factors

    def source(self, number: int) -> Value:
        """A whole register, as its slot holds it."""
        return self.handler.content(self.operand(number))

    def operand(self, number: int) -> Ref:
        """The slot of a source."""
        ref = self.sources[number]
        assert ref is not None
        return ref

    def room(self, element: str, count: int) -> str:
        """An array on the stack."""
        return self.code.value(f"alloca [{count} x {element}], align 64")

    def at(self, base: str, element: str, index: int | str) -> str:
        """Address of an element of an array."""
        kind = "i64" if isinstance(index, int) else "i32"
        return self.code.value(f"getelementptr {element}, ptr {base}, {kind} {index}")

    def loop(self, count: int) -> tuple[str, Callable[[], None]]:
        """Open a loop; its counter, and what closes it."""
        h, e = self.handler, self.code
        start, top, after = h.code.label("start"), h.code.label("row"), h.code.label("after")
        index, following = e.name("i"), e.name("i")
        h.code.jump(start)
        h.code.begin(start)
        h.code.jump(top)
        h.code.begin(top)
        place = len(e.lines)
        e.line("")

        def close() -> None:
            last = h.code.label("last")
            h.code.jump(last)
            h.code.begin(last)
            e.line(f"{following} = add i32 {index}, 1")
            e.lines[place] = f"  {index} = phi i32 [0, %{start}], [{following}, %{last}]"
            h.code.branch(e.value(f"icmp ult i32 {following}, {count}"), top, after)
            h.code.begin(after)

        return index, close


# --- decoding ---------------------------------------------------------------------------------------------------------


def decode(t: Tile, type_name: str, fragment: Fragment, first: int, *, turned: bool) -> Table:
    """Every register of an operand in turn: place (register, element of the register, lane) in the table."""
    per = 1 if t.product.kind == "bits" else fragment.packed
    count = fragment.registers * per * LANES
    values = t.room(t.element, count)
    powers = t.room("i64", count) if t.powers_wanted else ""
    if t.code.brief and t.product.kind in ("float", "integer"):
        _decoded_by_eights(t, type_name, fragment, first, values, powers, turned=turned)
        return _table_of(fragment, values, powers, per, turned=turned)
    for register in range(fragment.registers):
        word = t.source(first + register)
        if turned:
            word = _turn(t, word, "i64" if fragment.width == 64 else "i32")
        for part in range(per):
            value = _value(t, type_name, word, fragment, part)
            where = (register * per + part) * LANES
            t.code.line(f"store <32 x {t.element}> {value}, ptr {t.at(values, t.element, where)}, align 64")
            if t.chip:
                _note_power(t, type_name, value, powers, where)
    return _table_of(fragment, values, powers, per, turned=turned)


def _decoded_by_eights(
    t: Tile, type_name: str, fragment: Fragment, first: int, values: str, powers: str, *, turned: bool
) -> None:
    """The same in a loop over eight lanes of an element of a register."""
    e, A, per = t.code, t.algebra, fragment.packed  # noqa: N806
    words = t.room("i32", fragment.registers * LANES)
    for register in range(fragment.registers):
        word = t.source(first + register)
        word = _turn(t, word, "i32") if turned else word
        e.line(f"store <32 x i32> {word}, ptr {t.at(words, 'i32', register * LANES)}, align 64")
    if t.chip and not t.most:
        t.most = t.room("i64", 8)
        e.line(f"store <8 x i64> zeroinitializer, ptr {t.most}, align 64")
    index, close = t.loop(fragment.registers * per * LANES // 8)
    number = e.value(f"lshr i32 {index}, 2")  # of the element among all registers'
    whole, part = e.value(f"udiv i32 {number}, {per}"), e.value(f"urem i32 {number}, {per}")
    lane = e.value(f"shl i32 {e.value(f'and i32 {index}, 3')}, 3")
    place = e.value(f"add i32 {e.value(f'mul i32 {whole}, {LANES}')}, {lane}")
    word = e.value(f"load <8 x i32>, ptr {t.at(words, 'i32', place)}, align 32")
    shift = A.broadcast("i32", e.value(f"mul i32 {part}, {fragment.bits}"))
    word = A.shr("u32", word, shift)
    if t.product.kind == "integer":
        value = tensorcore.decode_whole(A, type_name, word)
    else:
        value = tensorcore.decode(A, type_name, word)
    where = e.value(f"shl i32 {index}, 3")
    e.line(f"store <8 x {t.element}> {value}, ptr {t.at(values, t.element, where)}, align 32")
    if t.chip:
        own = tensorcore.power(A, value, tensorcore.LEAST[type_name])
        known = e.value(f"load <8 x i64>, ptr {t.most}, align 64")
        e.line(f"store <8 x i64> {tensorcore.greater(A, known, own)}, ptr {t.most}, align 64")
        if powers:
            e.line(f"store <8 x i64> {own}, ptr {t.at(powers, 'i64', where)}, align 64")
    close()


def _turn(t: Tile, word: Value, element: str) -> Value:
    return t.code.shuffle(f"<32 x {element}>", _TURNED, word)


def _value(t: Tile, type_name: str, word: Value, fragment: Fragment, part: int) -> Value:
    A = t.handler.algebra  # noqa: N806
    if t.product.kind in ("double", "bits"):
        return word
    bits = fragment.bits
    if t.product.kind == "integer":
        return tensorcore.decode_whole(A, type_name, word, bits * part)
    return tensorcore.decode(A, type_name, A.shr_by("u32", word, bits * part))


def _note_power(t: Tile, type_name: str, value: Value, powers: str, where: int) -> None:
    """Keep the power of two, and the highest of all: it is infinite if some element is not finite."""
    A = t.handler.algebra  # noqa: N806
    own = tensorcore.power(A, value, tensorcore.LEAST[type_name])
    t.highest = tensorcore.greater(A, t.highest, own)
    if powers:
        t.code.line(f"store <32 x i64> {own}, ptr {t.at(powers, 'i64', where)}, align 64")


def _table_of(fragment: Fragment, values: str, powers: str, per: int, *, turned: bool) -> Table:
    unit = fragment.width // per

    def spot(row: int, column: int) -> int:
        lane, register, bit = fragment.place(row, column * (fragment.packed // per) if not turned else column)
        if turned:
            lane = 8 * (lane % 4) + lane // 4
        return (register * per + bit // unit) * LANES + lane

    return Table(values, powers, spot, 4)


# --- tables in plain order --------------------------------------------------------------------------------------------


def copied(t: Tile, table: Table, spots: Sequence[Sequence[int]], name: str) -> Table:
    """The elements at these indices, row by row."""
    order = [spot for row in spots for spot in row]
    width = len(spots[0])
    indices = t.code.constant_table(f"order.{name}", "i32", order)
    values = t.room(t.element, len(order))
    powers = t.room("i64", len(order)) if table.powers else ""
    index, close = t.loop(len(order))
    source = t.code.value(f"load i32, ptr {t.at(indices, 'i32', index)}")
    _copy_element(t, table, Table(values, powers, table.spot, width), source, index)
    close()
    return Table(values, powers, lambda row, column: row * width + column, width)


def _copy_element(t: Tile, table: Table, target: Table, source: str, index: str) -> None:
    for old, new, element in ((table.values, target.values, t.element), (table.powers, target.powers, "i64")):
        if old:
            one = t.code.value(f"load {element}, ptr {t.at(old, element, source)}")
            t.code.line(f"store {element} {one}, ptr {t.at(new, element, index)}")


def expanded(t: Tile, table: Table, stored: Sequence[Stored]) -> Table:
    """A sparse A in full: each stored element goes to the column that its metadata names (9.7.14.6.1)."""
    e, product = t.code, t.product
    count = product.m * product.k
    rows = []
    for s in stored:
        place = table.spot(s.row // 8 * 8, s.column) + s.row % 8 * table.stride
        rows += [place, s.lane, s.bit + s.half, product.k * s.row + s.base]
    name = f"sparse.{product.m}.{product.k}.{product.a_bits}.{t.selector}"
    entries = e.constant_table(name, "i32", rows)
    values = t.room(t.element, count)
    powers = t.room("i64", count) if table.powers else ""
    for room, element in ((values, t.element), (powers, "i64")):
        if room:
            e.declare("llvm.memset.p0.i64", "declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)")
            size = count * (8 if element == "i64" else 4)
            e.line(f"call void @llvm.memset.p0.i64(ptr align 64 {room}, i8 0, i64 {size}, i1 false)")
    metadata = t.room("i32", LANES)
    e.line(f"store <32 x i32> {t.source(t.first_extra)}, ptr {metadata}, align 64")
    index, close = t.loop(len(stored))
    at = e.value(f"shl i32 {index}, 2")
    source, lane, bit, base = (
        e.value(f"load i32, ptr {t.at(entries, 'i32', e.value(f'add i32 {at}, {i}'))}") for i in range(4)
    )
    word = e.value(f"load i32, ptr {t.at(metadata, 'i32', lane)}")
    field = e.value(f"and i32 {e.value(f'lshr i32 {word}, {bit}')}, {1 if stored[0].half else 3}")
    target = e.value(f"add i32 {base}, {e.value(f'mul i32 {field}, {stored[0].step}')}")
    full = Table(values, powers, lambda row, column: row * product.k + column, product.k)
    _copy_element(t, table, full, source, target)
    close()
    return full


def plain_b(t: Tile, table: Table, fragment: Fragment, name: str) -> Table:
    return copied(t, table, [[table.spot(k, n) for n in range(8)] for k in range(fragment.rows)], name)
