"""Accesses inside one window, half a warp at a time."""

from __future__ import annotations

from ptxtools.native.code.handler import Handler
from ptxtools.semantics.algebra import Value

from . import lanewise
from .parts import Access, Address, Window, half, in_units, join, load_values, word_gather

_SIDES = (0, 1)


class Ranged:
    """An access inside one window; `fail` is where to go when a lane's address is not in it."""

    def __init__(
        self, h: Handler, access: Access, stored: list[Value] | None, address: Address, window: Window, fail: str
    ) -> None:
        self.handler, self.code, self.access, self.stored = h, h.code, access, stored
        self.address, self.window, self.fail = address, window, fail
        self.shift = access.size.bit_length() - 1
        self.anywhere = h.code.label("any")

    def emit(self) -> str:
        """Emits all paths; returns the lanes with bad addresses, for the code at `fail`."""
        h = self.handler
        self.limit = self.code.value(f"lshr i64 {self.window.size}, {self.shift}")
        if self.access.gaps:
            h.code.jump(self.anywhere)
        elif self.address.ref is None:
            if self.stored is None:
                self._point()
            else:
                h.code.jump(self.anywhere)
        else:
            if h.often:  # a whole warp is a special case of some lanes
                whole, part = h.code.label("whole"), h.code.label("part")
                h.code.branch("%full", whole, part, likely=True)
                h.code.begin(whole)
                self._whole_warp()
                h.code.begin(part)
            self._part_of_warp()
        h.code.begin(self.anywhere)
        return self._general()

    # --- which shape --------------------------------------------------------------------------------------------------

    def _whole_warp(self) -> None:
        """All lanes run: the distance of the first two says which shape to look for."""
        h, e, element = self.handler, self.code, f"i{self.address.bits}"
        first, second, middle = (self.address.raw(lane) for lane in ("0", "1", "16"))
        row, other, point = h.code.label("row"), h.code.label("other"), h.code.label("point")
        distance = e.value(f"sub {element} {second}, {first}")
        h.code.branch(e.value(f"icmp eq {element} {distance}, {self.access.size}"), row, other, likely=True)
        h.code.begin(row)
        bases = [first, middle]
        found = h.code.label("found")
        h.code.branch(self._matches(bases, self.access.size), found, self.anywhere, likely=True)
        h.code.begin(found)
        self._rows(bases, full=True)
        h.code.begin(other)
        if self.stored is not None:
            h.code.jump(self.anywhere)
            return
        h.code.branch(e.value(f"icmp eq {element} {distance}, 0"), point, self.anywhere)
        h.code.begin(point)
        self._points(bases)

    def _part_of_warp(self) -> None:
        """Some lanes run: each half has a leader; a half without lanes borrows the other's."""
        h, e = self.handler, self.code
        low = h.leader()
        upper = e.value("and i32 %m, -65536")
        some = e.value(f"icmp ne i32 {upper}, 0")
        chosen = e.value(f"select i1 {some}, i32 {upper}, i32 %m")
        high = e.call("llvm.cttz.i32", "i32", [("i32", chosen), ("i1", "true")])
        leaders = [low, high]
        raw = [self.address.raw(lane) for lane in leaders]
        next_shape = h.code.label("next")
        if self.access.single:
            bases = [self._row_start(r, lane) for r, lane in zip(raw, leaders, strict=True)]
            found = h.code.label("found")
            h.code.branch(self._matches(bases, self.access.size), found, next_shape)
            h.code.begin(found)
            self._rows(bases, full=False)
        else:
            h.code.jump(next_shape)
        h.code.begin(next_shape)
        if self.stored is None:
            self._points(raw)
        else:
            h.code.jump(self.anywhere)

    def _row_start(self, raw: str, lane: str) -> str:
        """Address at the start of a half, if its lanes are consecutive."""
        e, element = self.code, f"i{self.address.bits}"
        column = e.value(f"and i32 {lane}, 15")
        if self.address.bits == 64:
            column = e.value(f"zext i32 {column} to i64")
        return e.value(f"sub {element} {raw}, {e.value(f'mul {element} {column}, {self.access.size}')}")

    def _matches(self, bases: list[str], stride: int) -> str:
        """i1: the lanes that run are `stride` apart within their half, which begins at its base."""
        e, element = self.code, f"i{self.address.bits}"
        half_vector, vector = f"<16 x {element}>", f"<32 x {element}>"
        sides = []
        for base in bases:
            all_ = e.spread(element, base, 16)
            if stride:
                steps = ", ".join(f"{element} {lane * stride}" for lane in range(16))
                all_ = e.value(f"add {half_vector} {all_}, <{steps}>")
            sides.append(all_)
        expected = e.concatenate(element, sides, 16)
        equal = e.value(f"icmp eq {vector} {self.address.register}, {expected}")
        bits = e.value(f"bitcast <32 x i1> {equal} to i32")
        rest = e.value("xor i32 %m, -1")
        return e.value(f"icmp eq i32 {e.value(f'or i32 {bits}, {rest}')}, -1")

    # --- lanes in a row -----------------------------------------------------------------------------------------------

    def _offset(self, raw: str) -> str:
        return self.code.value(f"sub i64 {self.address.effective(raw)}, {self.window.base}")

    def _inside(self, offset: str, limit: str) -> str:
        """i1: this offset is aligned, and below `limit` accesses."""
        rotated = offset
        if self.shift:
            rotated = in_units(self.handler, offset, self.shift, "i64")
        return self.code.value(f"icmp ult i64 {rotated}, {limit}")

    def _pointer(self, offset: str) -> str:
        return self.code.value(f"inttoptr i64 {self.code.value(f'add i64 {self.window.host}, {offset}')} to ptr")

    def _checked(self, bases: list[str], limit: str) -> list[str]:
        """Host addresses of both halves; leaves for the general case when one is not in the window."""
        offsets = [self._offset(base) for base in bases]
        good = self.code.value(f"and i1 {self._inside(offsets[0], limit)}, {self._inside(offsets[1], limit)}")
        go = self.handler.code.label("go")
        self.handler.code.branch(good, go, self.anywhere, likely=True)
        self.handler.code.begin(go)
        return [self._pointer(offset) for offset in offsets]

    def _rows(self, bases: list[str], *, full: bool) -> None:
        room = self.code.call("llvm.usub.sat.i64", "i64", [("i64", self.limit), ("i64", "15")])
        pointers = self._checked(bases, room)
        if self.stored is not None:
            for side in _SIDES:
                self._store_row(pointers[side], side, full=full)
            self.handler.go_on()
            return
        sides = [self._load_row(pointers[side], side, full=full) for side in _SIDES]
        pieces = [self._both(low, high) for low, high in zip(*sides, strict=True)]
        self.handler.results(load_values(self.handler, self.access, pieces), full=full)

    def _both(self, low: Value, high: Value) -> Value:
        return self.code.concatenate(f"i{self.access.bits}", (low, high), 16)

    def _load_row(self, pointer: str, side: int, *, full: bool) -> list[Value]:
        """The pieces of 16 lanes, which are consecutive."""
        e, bits, count = self.code, self.access.bits, len(self.access.parts)
        vector = f"<{16 * count} x i{bits}>"
        if not full:
            name = f"llvm.masked.load.v16i{bits}.p0"
            e.declare(name, f"declare {vector} @{name}(ptr, <16 x i1>, {vector})")
            lanes = half(self.handler, "%lanes", "i1", side)
            where = f"ptr align {bits // 8} {pointer}"
            return [e.value(f"call {vector} @{name}({where}, <16 x i1> {lanes}, {vector} zeroinitializer)")]
        data = e.value(f"load {vector}, ptr {pointer}, align {bits // 8}")
        if count == 1:
            return [data]
        return [e.shuffle(vector, range(part, 16 * count, count), data) for part in range(count)]

    def _store_row(self, pointer: str, side: int, *, full: bool) -> None:
        e, bits, count = self.code, self.access.bits, len(self.access.parts)
        assert self.stored is not None
        pieces = [half(self.handler, value, f"i{bits}", side) for value in self.stored]
        vector = f"<{16 * count} x i{bits}>"
        if full:
            e.line(f"store {vector} {join(self.handler, bits, pieces)}, ptr {pointer}, align {bits // 8}")
            return
        name = f"llvm.masked.store.v16i{bits}.p0"
        e.declare(name, f"declare void @{name}({vector}, ptr, <16 x i1>)")
        where, lanes = f"ptr align {bits // 8} {pointer}", half(self.handler, "%lanes", "i1", side)
        e.line(f"call void @{name}({vector} {pieces[0]}, {where}, <16 x i1> {lanes})")

    # --- lanes at one address -----------------------------------------------------------------------------------------

    def _points(self, bases: list[str]) -> None:
        found = self.handler.code.label("found")
        self.handler.code.branch(self._matches(bases, 0), found, self.anywhere)
        self.handler.code.begin(found)
        self._load_points(self._checked(bases, self.limit))

    def _point(self) -> None:
        """One address, held by the record itself."""
        offset = self.code.value(f"sub i64 {self.address.imm}, {self.window.base}")
        go = self.handler.code.label("go")
        self.handler.code.branch(self._inside(offset, self.limit), go, self.anywhere, likely=True)
        self.handler.code.begin(go)
        self._load_points([self._pointer(offset)])

    def _load_points(self, pointers: list[str]) -> None:
        pieces = []
        for part in self.access.parts:
            sides = []
            for pointer in pointers:
                p = self.code.value(f"getelementptr i8, ptr {pointer}, i64 {part.offset}")
                scalar = self.code.value(f"load i{part.bits}, ptr {p}, align {part.bits // 8}")
                sides.append(self.code.spread(f"i{part.bits}", scalar, 16))
            pieces.append(self._both(sides[0], sides[-1]))
        self.handler.results(load_values(self.handler, self.access, pieces))

    # --- lanes anywhere -----------------------------------------------------------------------------------------------

    def _general(self) -> str:
        h, e = self.handler, self.code
        offsets = h.algebra.sub("u64", self.address.vector(), h.code.spread("i64", self.window.base))
        rotated = in_units(h, offsets, self.shift) if self.shift else offsets
        outside = e.value(f"icmp uge <32 x i64> {rotated}, {h.code.spread('i64', self.limit)}")
        bad = e.value(f"and <32 x i1> {outside}, %lanes")
        bits = e.value(f"bitcast <32 x i1> {bad} to i32")
        go = h.code.label("scattered")
        h.code.branch(e.value(f"icmp eq i32 {bits}, 0"), go, self.fail, likely=True)
        h.code.begin(go)
        base = e.value(f"inttoptr i64 {self.window.host} to ptr")
        if self.stored is None:
            h.results(load_values(h, self.access, [self._gather(base, offsets, p.offset) for p in self.access.parts]))
        else:
            self._scatter(base, offsets)
        return bits

    def _gather(self, base: str, offsets: Value, at: int) -> Value:
        h, start = self.handler, self.code.value(f"getelementptr i8, ptr {base}, i64 {at}")
        sides = [
            word_gather(h, start, half(h, offsets, "i64", side), half(h, "%lanes", "i1", side), self.access.bits)
            for side in _SIDES
        ]
        return self._both(*sides)

    def _scatter(self, base: str, offsets: Value) -> None:
        assert self.stored is not None
        for part, value in zip(self.access.parts, self.stored, strict=True):
            start = self.code.value(f"getelementptr i8, ptr {base}, i64 {part.offset}")
            if part.bits >= 32 and "avx512f" in self.code.features:
                lanewise.scatter(self.handler, start, offsets, part.bits, value)
            else:
                lanewise.scatter_each(self.handler, start, offsets, part.bits, value)
        self.handler.go_on()
