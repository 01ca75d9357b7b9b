"""ldmatrix, stmatrix and movmatrix: rows of 16 bytes in shared memory, spread over the warp (9.7.14.5.15 to 17)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ptxtools.native.code.handler import Handler
from ptxtools.program.program import LANES, SHARED_WINDOW
from ptxtools.semantics import fragments
from ptxtools.semantics.algebra import Value

from . import lanewise
from .parts import Access, Address, Part, in_units

#: Bytes of one row, which is also its alignment.
ROW = 16
_ACCESS = Access((Part(0, 64), Part(8, 64)), ROW)


class _Rows:
    """Host addresses of the rows that the lanes name, checked. `count` rows are used: those of the first lanes."""

    def __init__(self, h: Handler, count: int) -> None:
        self.handler = h
        e = h.code
        address = Address(h)
        base = "0"
        if h.op.space != "shared":  # the CTA may be one of a cluster
            base = h.code.field("cta.window", h.code.field("warp.cta"))
            if h.op.space == "generic":
                base = e.value(f"or i64 {base}, {SHARED_WINDOW}")
        offsets = h.algebra.sub("u64", address.vector(), h.code.spread("i64", base))
        kind = "<32 x i64>"
        rotated = in_units(h, offsets, 4)
        size = e.value(f"zext i32 {h.code.field('ctx.shared_bytes')} to i64")
        limit = h.code.spread("i64", e.value(f"lshr i64 {size}, 4"))
        outside = e.value(f"icmp uge {kind} {rotated}, {limit}")
        bits = e.value(f"bitcast <32 x i1> {outside} to i32")
        used = e.value(f"and i32 {bits}, {(1 << count) - 1 if count < LANES else -1}")
        bad = e.value(f"and i32 {used}, %m")
        stop, go = h.code.label("stop"), h.code.label("go")
        h.code.branch(e.value(f"icmp eq i32 {bad}, 0"), go, stop, likely=True)
        h.code.begin(stop)
        lanewise.trap(h, _ACCESS, address, bad)
        h.code.begin(go)
        # A lane that does not run has no address: its row is the CTA's first bytes, whatever they are.
        offsets = h.algebra.select("u64", "%lanes", offsets, h.algebra.const("u64", 0))
        room = lanewise.array(h, 64)
        e.line(f"store {kind} {offsets}, ptr {room}, align 64")
        self.room = room
        self.shared = h.code.field("cta.shared", h.code.field("warp.cta"))

    def pointer(self, number: int) -> str:
        e = self.handler.code
        offset = e.value(f"load i64, ptr {lanewise.element(self.handler, self.room, 64, str(number))}")
        return e.value(f"getelementptr i8, ptr {self.shared}, i64 {offset}")

    def load(self, number: int) -> Value:
        return self.handler.code.value(f"load <16 x i8>, ptr {self.pointer(number)}, align 1")

    def store(self, number: int, row: Value) -> None:
        self.handler.code.line(f"store <16 x i8> {row}, ptr {self.pointer(number)}, align 1")


def _join(h: Handler, rows: Sequence[Value]) -> Value:
    """Rows concatenated: a power of two of them."""
    return h.code.concatenate("i8", rows, ROW)


def _pick(h: Handler, whole: Value, count: int, unit: int, order: Sequence[int]) -> Value:
    """A vector of `count` bytes, its elements of `unit` bits rearranged: element i of the result is order[i]."""
    e = h.code
    elements = 8 * count // unit
    source = whole
    if unit != 8:
        source = e.value(f"bitcast <{count} x i8> {whole} to <{elements} x i{unit}>")
    return e.shuffle(f"<{elements} x i{unit}>", order, source)


def _word(h: Handler, value: Value, unit: int) -> Value:
    """32 words out of a vector of 128 bytes."""
    return h.code.value(f"bitcast <{1024 // unit} x i{unit}> {value} to <32 x i32>")


def _halves(transposed: bool) -> list[int]:
    """For the two halves of each lane, the index of the element among the 64 of an m8n8 matrix, row by row."""
    spots = (fragments.matrix_row(lane, half, transposed=transposed) for lane in range(LANES) for half in (0, 1))
    return [8 * row + column for row, column in spots]


def _bytes(place: Callable[[int, int], tuple[int, int]]) -> list[int]:
    spots = (place(lane, byte) for lane in range(LANES) for byte in range(4))
    return [ROW * row + column for row, column in spots]


def _tall(register: int) -> list[int]:
    return _bytes(lambda lane, byte: fragments.byte_load_16x16(lane, register, byte))


def load(h: Handler) -> None:
    """ldmatrix: one to four matrices."""
    assert h.op.opcode is not None
    mods = h.op.opcode.mods
    count = int(mods["num"][1:])
    height = 16 if mods["shape"] == "m16n16" else 8
    for ref in (*h.op.dst, *h.op.src):
        if ref is not None:
            h.pointer(ref)
    rows = _Rows(h, height * count)
    words: list[Value] = []
    for matrix in range(count):
        loaded = [_expanded(h, mods.get("src_fmt", ""), rows.load(height * matrix + i)) for i in range(height)]
        whole = _join(h, loaded)
        if mods["shape"] == "m8n8":
            words.append(_word(h, _pick(h, whole, 128, 16, _halves("trans" in mods)), 16))
        elif height == 8:
            words.append(_word(h, _pick(h, whole, 128, 8, _bytes(fragments.byte_load_8x16)), 8))
        else:
            for register in (0, 1):
                order = _tall(register)
                words.append(_word(h, _pick(h, whole, 256, 8, order), 8))
    h.results(words)


def _expanded(h: Handler, form: str, row: Value) -> Value:
    """A row of packed 4- or 6-bit elements, expanded to a byte each, in the low bits."""
    if not form:
        return row
    e = h.code
    bits = 4 if form.startswith("b4") else 6
    number = e.value(f"bitcast <16 x i8> {row} to i128")
    everywhere = e.spread("i128", number, 16)
    amounts = ", ".join(f"i128 {bits * i}" for i in range(16))
    moved = e.value(f"lshr <16 x i128> {everywhere}, <{amounts}>")
    narrow = e.value(f"trunc <16 x i128> {moved} to <16 x i8>")
    return e.value(f"and <16 x i8> {narrow}, splat (i8 {(1 << bits) - 1})")


def store(h: Handler) -> None:
    """stmatrix: one to four matrices."""
    assert h.op.opcode is not None
    mods = h.op.opcode.mods
    count = int(mods["num"][1:])
    values = [h.source(1 + matrix) for matrix in range(count)]
    rows = _Rows(h, 8 * count)
    if mods["shape"] == "m8n8":
        unit, order = 16, _inverse(_halves("trans" in mods))
    else:
        unit, order = 8, _inverse(_bytes(fragments.byte_store_16x8))
    for matrix, value in enumerate(values):
        flat = h.code.value(f"bitcast <32 x i32> {value} to <128 x i8>")
        whole = _pick(h, flat, 128, unit, order)
        if unit != 8:
            whole = h.code.value(f"bitcast <64 x i16> {whole} to <128 x i8>")
        for row in range(8):
            _store_row(h, rows, 8 * matrix + row, _pick(h, whole, 128, 8, range(ROW * row, ROW * (row + 1))))
    h.go_on()


def _store_row(h: Handler, rows: _Rows, number: int, row: Value) -> None:
    """A row whose lane does not run is not stored."""
    write, on = h.code.label("write"), h.code.label("on")
    bit = h.code.value(f"and i32 %m, {1 << number if number < 31 else -(1 << 31)}")
    h.code.branch(h.code.value(f"icmp ne i32 {bit}, 0"), write, on, likely=True)
    h.code.begin(write)
    rows.store(number, row)
    h.code.jump(on)
    h.code.begin(on)


def _inverse(order: Sequence[int]) -> list[int]:
    result = [0] * len(order)
    for place, element in enumerate(order):
        result[element] = place
    return result


def transpose(h: Handler) -> None:
    """movmatrix.trans of an 8 x 8 matrix of 16-bit elements."""
    flat = h.code.value(f"bitcast <32 x i32> {h.source(0)} to <128 x i8>")
    h.results([_word(h, _pick(h, flat, 128, 16, _halves(transposed=True)), 16)])
