"""Local memory: a word of all 32 lanes lies together, so that lanes at one local address make one vector access.

The byte at local address a of lane i is at (a // 4) * 128 + i * 4 + a % 4 of the warp's local memory. No lane sees
another's, so a masked store may write back what was there.
"""

from __future__ import annotations

from ptxtools.native.code.handler import Handler
from ptxtools.semantics.algebra import Value

from . import lanewise
from .parts import Access, Address, half, in_units, load_values, word_gather

_ROW = 128


def access(h: Handler, access: Access, stored: list[Value] | None, address: Address, window: str) -> None:
    """Load or store at addresses of the local window that begins at `window`. Ends the path."""
    e = h.code
    shift = access.size.bit_length() - 1
    limit = e.value(f"lshr i64 {h.code.field('ctx.local_bytes')}, {shift}")
    leader = h.leader()
    offset = e.value(f"sub i64 {address.lane(leader)}, {window}")
    test, row, scattered = h.code.label("test"), h.code.label("row"), h.code.label("scattered")
    h.code.branch(_same(h, address, leader), test, scattered, likely=True)
    h.code.begin(test)
    rotated = in_units(h, offset, shift, "i64")
    h.code.branch(e.value(f"icmp ult i64 {rotated}, {limit}"), row, scattered, likely=True)
    h.code.begin(row)
    base = h.code.field("warp.local")
    if stored is None:
        h.results(load_values(h, access, [_load_row(h, base, offset, p.offset, p.bits) for p in access.parts]))
    else:
        for part, value in zip(access.parts, stored, strict=True):
            _store_row(h, base, offset, part.offset, part.bits, value)
        h.go_on()
    h.code.begin(scattered)
    _scattered(h, access, stored, address, window, limit, shift)


def _same(h: Handler, address: Address, leader: str) -> str:
    """i1: all lanes that run have one local address."""
    if address.ref is None:
        return "true"
    bits = address.bits
    everywhere = h.code.spread(f"i{bits}", address.raw(leader))
    equal = h.code.value(f"icmp eq <32 x i{bits}> {address.register}, {everywhere}")
    bits_equal = h.code.value(f"bitcast <32 x i1> {equal} to i32")
    missing = h.code.value(f"or i32 {bits_equal}, {h.code.value('xor i32 %m, -1')}")
    return h.code.value(f"icmp eq i32 {missing}, -1")


def _row(h: Handler, base: str, offset: str, at: int) -> str:
    """Address of the words at one local address."""
    word = h.code.value(f"lshr i64 {h.code.value(f'add i64 {offset}, {at}')}, 2")
    return h.code.value(f"getelementptr i8, ptr {base}, i64 {h.code.value(f'mul i64 {word}, {_ROW}')}")


def _words(h: Handler, pointer: str) -> Value:
    return h.code.value(f"load <32 x i32>, ptr {pointer}, align 64")


def _bit(h: Handler, offset: str, at: int) -> Value:
    """Place of a narrow piece in its word, in bits, for every lane."""
    byte = h.code.value(f"and i64 {h.code.value(f'add i64 {offset}, {at}')}, 3")
    return h.code.spread("i32", h.code.value(f"trunc i64 {h.code.value(f'shl i64 {byte}, 3')} to i32"))


def _load_row(h: Handler, base: str, offset: str, at: int, bits: int) -> Value:
    e = h.code
    low = _words(h, _row(h, base, offset, at))
    if bits == 64:
        high = _words(h, _row(h, base, offset, at + 4))
        return _together(h, low, high)
    if bits == 32:
        return low
    moved = e.value(f"lshr <32 x i32> {low}, {_bit(h, offset, at)}")
    return e.value(f"trunc <32 x i32> {moved} to <32 x i{bits}>")


def _together(h: Handler, low: Value, high: Value) -> Value:
    wide = [h.code.value(f"zext <32 x i32> {word} to <32 x i64>") for word in (low, high)]
    return h.code.value(f"or <32 x i64> {wide[0]}, {h.code.value(f'shl <32 x i64> {wide[1]}, splat (i64 32)')}")


def _apart(h: Handler, value: Value) -> list[Value]:
    low = h.code.value(f"trunc <32 x i64> {value} to <32 x i32>")
    moved = h.code.value(f"lshr <32 x i64> {value}, splat (i64 32)")
    return [low, h.code.value(f"trunc <32 x i64> {moved} to <32 x i32>")]


def _store_row(h: Handler, base: str, offset: str, at: int, bits: int, value: Value) -> None:
    e = h.code
    for step, word in enumerate(_apart(h, value) if bits == 64 else [value]):
        pointer = _row(h, base, offset, at + 4 * step)
        old = _words(h, pointer)
        new = word if bits >= 32 else _insert(h, old, word, bits, _bit(h, offset, at))
        mixed = e.value(f"select <32 x i1> %lanes, <32 x i32> {new}, <32 x i32> {old}")
        e.line(f"store <32 x i32> {mixed}, ptr {pointer}, align 64")


def _insert(h: Handler, old: Value, value: Value, bits: int, place: Value) -> Value:
    """The words with a narrow piece replaced."""
    e = h.code
    wide = e.value(f"zext <32 x i{bits}> {value} to <32 x i32>")
    moved = e.value(f"shl <32 x i32> {wide}, {place}")
    hole = e.value(f"shl <32 x i32> splat (i32 {(1 << bits) - 1}), {place}")
    kept = e.value(f"and <32 x i32> {old}, {e.value(f'xor <32 x i32> {hole}, splat (i32 -1)')}")
    return e.value(f"or <32 x i32> {kept}, {moved}")


def _scattered(h: Handler, access: Access, stored: list[Value] | None, address: Address, window: str, limit: str,
               shift: int) -> None:  # fmt: skip
    """Lanes at different local addresses."""
    e = h.code
    offsets = h.algebra.sub("u64", address.vector(), h.code.spread("i64", window))
    kind = "<32 x i64>"
    rotated = in_units(h, offsets, shift)
    outside = e.value(f"icmp uge {kind} {rotated}, {h.code.spread('i64', limit)}")
    bad = e.value(f"and <32 x i1> {outside}, %lanes")
    bits = e.value(f"bitcast <32 x i1> {bad} to i32")
    go, stop = h.code.label("go"), h.code.label("stop")
    h.code.branch(e.value(f"icmp eq i32 {bits}, 0"), go, stop, likely=True)
    h.code.begin(stop)
    lanewise.trap(h, access, address, bits)
    h.code.begin(go)
    base = h.code.field("warp.local")
    numbers = h.algebra.resize("u32", "u64", e.value("load <32 x i32>, ptr @lane_numbers"))
    column = h.algebra.shl_by("u64", numbers, 2)
    if stored is None:
        loaded = [_load_each(h, base, offsets, column, p.offset, p.bits) for p in access.parts]
        h.results(load_values(h, access, loaded))
        return
    for part, value in zip(access.parts, stored, strict=True):
        _store_each(h, base, offsets, column, part.offset, part.bits, value)
    h.go_on()


def _places(h: Handler, offsets: Value, column: Value, at: int) -> Value:
    """Byte offsets, in the warp's local memory, of each lane's piece."""
    moved = h.algebra.add("u64", offsets, h.algebra.const("u64", at))
    rows = h.algebra.shl_by("u64", h.algebra.shr_by("u64", moved, 2), 7)
    return h.algebra.add("u64", h.algebra.add("u64", rows, column), h.algebra.and_with("u64", moved, 3))


def _gather(h: Handler, base: str, places: Value, bits: int) -> Value:
    halves = [word_gather(h, base, half(h, places, "i64", s), half(h, "%lanes", "i1", s), bits) for s in (0, 1)]
    return h.code.concatenate(f"i{bits}", halves, 16)


def _load_each(h: Handler, base: str, offsets: Value, column: Value, at: int, bits: int) -> Value:
    words = [
        _gather(h, base, _places(h, offsets, column, at + 4 * i), min(bits, 32)) for i in range(max(1, bits // 32))
    ]
    return _together(h, *words) if bits == 64 else words[0]


def _store_each(h: Handler, base: str, offsets: Value, column: Value, at: int, bits: int, value: Value) -> None:
    for step, word in enumerate(_apart(h, value) if bits == 64 else [value]):
        places = _places(h, offsets, column, at + 4 * step)
        if bits >= 32 and "avx512f" in h.code.features:
            lanewise.scatter(h, base, places, 32, word)
        else:
            lanewise.scatter_each(h, base, places, min(bits, 32), word)
