"""Local memory: a word of all 32 lanes lies together, so that lanes at one local address make one vector access.

The byte at local address a of lane i is at (a // 4) * 128 + i * 4 + a % 4 of the warp's local memory. No lane sees
another's, so a masked store may write back what was there.
"""

from __future__ import annotations

from ptxtools.native.code.builder import Handler
from ptxtools.semantics.algebra import Value

from . import lanewise
from .parts import Access, Address, half, load_values, word_gather

_ROW = 128


def access(h: Handler, access: Access, stored: list[Value] | None, address: Address, window: str) -> None:
    """Load or store at addresses of the local window that begins at `window`. Ends the path."""
    e = h.e
    leader = h.leader()
    shift = access.size.bit_length() - 1
    limit = e.value(f"lshr i64 {h.field('ctx.local_bytes')}, {shift}")
    offset = e.value(f"sub i64 {address.lane(leader)}, {window}")
    test, row, scattered = h.label("test"), h.label("row"), h.label("scattered")
    h.branch(_same(h, address, leader), test, scattered, likely=True)
    h.place(test)
    rotated = e.call("llvm.fshr.i64", "i64", [("i64", offset)] * 2 + [("i64", str(shift))])
    h.branch(e.value(f"icmp ult i64 {rotated}, {limit}"), row, scattered, likely=True)
    h.place(row)
    base = h.field("warp.local")
    if stored is None:
        h.results(load_values(h, access, [_load_row(h, base, offset, p.offset, p.bits) for p in access.parts]))
    else:
        for part, value in zip(access.parts, stored, strict=True):
            _store_row(h, base, offset, part.offset, part.bits, value)
        h.go_on()
    h.place(scattered)
    _scattered(h, access, stored, address, window, limit, shift)


def _same(h: Handler, address: Address, leader: str) -> str:
    """i1: all lanes that run have one local address."""
    if address.ref is None:
        return "true"
    bits = address.bits
    equal = h.e.value(f"icmp eq <32 x i{bits}> {address.register}, {h.splat(bits, address.raw(leader))}")
    missing = h.e.value(f"or i32 {h.e.value(f'bitcast <32 x i1> {equal} to i32')}, {h.e.value('xor i32 %m, -1')}")
    return h.e.value(f"icmp eq i32 {missing}, -1")


def _row(h: Handler, base: str, offset: str, at: int) -> str:
    """Address of the words at one local address."""
    word = h.e.value(f"lshr i64 {h.e.value(f'add i64 {offset}, {at}')}, 2")
    return h.e.value(f"getelementptr i8, ptr {base}, i64 {h.e.value(f'mul i64 {word}, {_ROW}')}")


def _words(h: Handler, pointer: str) -> Value:
    return h.e.value(f"load <32 x i32>, ptr {pointer}, align 64")


def _bit(h: Handler, offset: str, at: int) -> Value:
    """Place of a narrow piece in its word, in bits, for every lane."""
    byte = h.e.value(f"and i64 {h.e.value(f'add i64 {offset}, {at}')}, 3")
    return h.splat(32, h.e.value(f"trunc i64 {h.e.value(f'shl i64 {byte}, 3')} to i32"))


def _load_row(h: Handler, base: str, offset: str, at: int, bits: int) -> Value:
    e = h.e
    low = _words(h, _row(h, base, offset, at))
    if bits == 64:
        high = _words(h, _row(h, base, offset, at + 4))
        return _together(h, low, high)
    if bits == 32:
        return low
    moved = e.value(f"lshr <32 x i32> {low}, {_bit(h, offset, at)}")
    return e.value(f"trunc <32 x i32> {moved} to <32 x i{bits}>")


def _together(h: Handler, low: Value, high: Value) -> Value:
    wide = [h.e.value(f"zext <32 x i32> {word} to <32 x i64>") for word in (low, high)]
    return h.e.value(f"or <32 x i64> {wide[0]}, {h.e.value(f'shl <32 x i64> {wide[1]}, splat (i64 32)')}")


def _apart(h: Handler, value: Value) -> list[Value]:
    low = h.e.value(f"trunc <32 x i64> {value} to <32 x i32>")
    moved = h.e.value(f"lshr <32 x i64> {value}, splat (i64 32)")
    return [low, h.e.value(f"trunc <32 x i64> {moved} to <32 x i32>")]


def _store_row(h: Handler, base: str, offset: str, at: int, bits: int, value: Value) -> None:
    e = h.e
    for step, word in enumerate(_apart(h, value) if bits == 64 else [value]):
        pointer = _row(h, base, offset, at + 4 * step)
        old = _words(h, pointer)
        new = word if bits >= 32 else _insert(h, old, word, bits, _bit(h, offset, at))
        mixed = e.value(f"select <32 x i1> %lanes, <32 x i32> {new}, <32 x i32> {old}")
        e.line(f"store <32 x i32> {mixed}, ptr {pointer}, align 64")


def _insert(h: Handler, old: Value, value: Value, bits: int, place: Value) -> Value:
    """The words with a narrow piece replaced."""
    e = h.e
    wide = e.value(f"zext <32 x i{bits}> {value} to <32 x i32>")
    moved = e.value(f"shl <32 x i32> {wide}, {place}")
    hole = e.value(f"shl <32 x i32> splat (i32 {(1 << bits) - 1}), {place}")
    kept = e.value(f"and <32 x i32> {old}, {e.value(f'xor <32 x i32> {hole}, splat (i32 -1)')}")
    return e.value(f"or <32 x i32> {kept}, {moved}")


def _scattered(h: Handler, access: Access, stored: list[Value] | None, address: Address, window: str, limit: str,
               shift: int) -> None:  # fmt: skip
    """Lanes at different local addresses."""
    e = h.e
    offsets = h.A.sub("u64", address.vector(), h.splat(64, window))
    kind = "<32 x i64>"
    rotated = e.call("llvm.fshr.v32i64", kind, [(kind, offsets)] * 2 + [(kind, h.A.const("u64", shift))])
    outside = e.value(f"icmp uge {kind} {rotated}, {h.splat(64, limit)}")
    bad = e.value(f"and <32 x i1> {outside}, %lanes")
    bits = e.value(f"bitcast <32 x i1> {bad} to i32")
    go, stop = h.label("go"), h.label("stop")
    h.branch(e.value(f"icmp eq i32 {bits}, 0"), go, stop, likely=True)
    h.place(stop)
    lanewise.trap(h, access, address, bits)
    h.place(go)
    base = h.field("warp.local")
    numbers = h.A.resize("u32", "u64", e.value("load <32 x i32>, ptr @lane_numbers"))
    column = h.A.shl_by("u64", numbers, 2)
    if stored is None:
        loaded = [_load_each(h, base, offsets, column, p.offset, p.bits) for p in access.parts]
        h.results(load_values(h, access, loaded))
        return
    for part, value in zip(access.parts, stored, strict=True):
        _store_each(h, base, offsets, column, part.offset, part.bits, value)
    h.go_on()


def _places(h: Handler, offsets: Value, column: Value, at: int) -> Value:
    """Byte offsets, in the warp's local memory, of each lane's piece."""
    moved = h.A.add("u64", offsets, h.A.const("u64", at))
    rows = h.A.shl_by("u64", h.A.shr_by("u64", moved, 2), 7)
    return h.A.add("u64", h.A.add("u64", rows, column), h.A.and_with("u64", moved, 3))


def _gather(h: Handler, base: str, places: Value, bits: int) -> Value:
    halves = [word_gather(h, base, half(h, places, "i64", s), half(h, "%lanes", "i1", s), bits) for s in (0, 1)]
    vector, order = f"<16 x i{bits}>", ", ".join(f"i32 {i}" for i in range(32))
    return h.e.value(f"shufflevector {vector} {halves[0]}, {vector} {halves[1]}, <32 x i32> <{order}>")


def _load_each(h: Handler, base: str, offsets: Value, column: Value, at: int, bits: int) -> Value:
    words = [
        _gather(h, base, _places(h, offsets, column, at + 4 * i), min(bits, 32)) for i in range(max(1, bits // 32))
    ]
    return _together(h, *words) if bits == 64 else words[0]


def _store_each(h: Handler, base: str, offsets: Value, column: Value, at: int, bits: int, value: Value) -> None:
    for step, word in enumerate(_apart(h, value) if bits == 64 else [value]):
        places = _places(h, offsets, column, at + 4 * step)
        if bits >= 32 and "avx512f" in h.e.features:
            lanewise.scatter(h, base, places, 32, word)
        else:
            lanewise.scatter_each(h, base, places, min(bits, 32), word)
