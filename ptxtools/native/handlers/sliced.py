"""Loads and stores slice by slice: quickly compiled, for kernels that begin (`code.slices`).

A first loop checks all lanes and keeps their offsets in the window, a second one moves the data: words in a row, else
by gather and scatter, or lane by lane. What is outside the window that the handler serves goes lane by lane.
"""

from __future__ import annotations

from collections.abc import Sequence

from ptxtools.native.code.algebra import LLVMAlgebra
from ptxtools.native.code.emitter import splat, vector
from ptxtools.native.code.handler import ELEMENT
from ptxtools.native.code.slices import Slices
from ptxtools.program.program import LANES, LOCAL_WINDOW, SHARED_WINDOW, Ref
from ptxtools.semantics.algebra import Value
from ptxtools.semantics.types import word_bits

from . import lanewise
from .parts import Access, Part, Window, load_values, store_parts, window

#: Lanes whose addresses are one register of 512 bits.
_WIDTH = 8
#: Bytes between the words of a lane in local memory.
_ROW = 128


class SlicedAccess:
    """One load or store under construction."""

    def __init__(self, h: Slices, access: Access, *, store: bool) -> None:
        self.handler, self.code, self.access, self.store = h, h.code, access, store
        self.shift = access.size.bit_length() - 1
        self.local = h.op.space == "local"
        ref = h.op.src[0]
        self.ref, self.narrow = ref, ref is not None and ref.type == "b32"
        self.imm = h.code.field("rec.imm")
        self.offsets, self.bad = h.room("<32 x i64>"), h.room("i32")
        #: Whether lanes outside of the window may be elsewhere.
        self.elsewhere = h.op.space in ("generic", "cluster") or lanewise.opens_host(h)
        self.pointers = h.room("<32 x ptr>") if self.elsewhere else ""

    def emit(self) -> None:
        """All paths, to the next record."""
        h, e = self.handler, self.code
        self.window = self._window()
        self.limit = e.value(f"lshr i64 {self.window.size}, {self.shift}")
        base = e.value(f"inttoptr i64 {self.window.host} to ptr")
        if self._in_rows:
            self._row(base)
        bad = self._check()
        move, slow = e.label("move"), e.label("slow")
        e.branch(e.value(f"icmp eq i32 {bad}, 0"), move, slow, likely=True)
        e.begin(slow)
        if self.elsewhere:
            self._each(generic=h.op.space in ("generic", "cluster"))
        else:
            lane = e.call("llvm.cttz.i32", "i32", [("i32", bad), ("i1", "true")])
            lanewise.refuse(h, lane, self._one(lane), self.access.size)
        e.begin(move)
        if self._in_vectors:
            self._anywhere(base)
        else:
            self._lanes(base)

    @property
    def _in_vectors(self) -> bool:
        """Whether the machine gathers and scatters such pieces."""
        return "avx512f" in self.code.features and self.access.bits >= 32

    @property
    def _in_rows(self) -> bool:
        """Whether pieces of neighbouring lanes can lie together, as one vector."""
        single = self.access.single and not self.access.gaps
        return self._in_vectors and single and not self.local and self.ref is not None

    # --- addresses ----------------------------------------------------------------------------------------------------

    def _window(self) -> Window:
        h, e = self.handler, self.code
        if self.local:
            host = e.value(f"ptrtoint ptr {e.field('warp.local')} to i64")
            return Window(host, "0", e.field("ctx.local_bytes"))
        if h.op.space != "generic":
            return window(h, h.op.space)
        # that of the first lane to run: global memory, or the CTA's shared memory
        shared, other = window(h, "cluster"), window(h, "global")
        high = e.value(f"lshr i64 {self._one(h.leader())}, 56")
        inside = e.value(f"icmp eq i64 {high}, {SHARED_WINDOW >> 56}")
        base = e.value(f"or i64 {shared.base}, {SHARED_WINDOW}")
        pairs = ((shared.host, other.host), (base, other.base), (shared.size, other.size))
        return Window(*(e.value(f"select i1 {inside}, i64 {first}, i64 {second}") for first, second in pairs))

    def _effective(self, raw: str) -> str:
        """The address that one lane's register means, as i64."""
        e = self.code
        if not self.narrow:
            return e.value(f"add i64 {raw}, {self.imm}")
        low = e.value(f"trunc i64 {self.imm} to i32")  # a 32-bit address wraps at 32 bits
        return e.value(f"zext i32 {e.value(f'add i32 {raw}, {low}')} to i64")

    def _one(self, lane: str) -> str:
        return self.imm if self.ref is None else self._effective(self.handler.lane(self.ref, lane))

    def _slice(self) -> Value:
        """Addresses of a slice."""
        h, e = self.handler, self.code
        if self.ref is None:
            return e.spread("i64", self.imm, _WIDTH)
        raw = h.content(self.ref)
        if not self.narrow:
            return e.value(f"add <8 x i64> {raw}, {e.spread('i64', self.imm, _WIDTH)}")
        low = e.spread("i32", e.value(f"trunc i64 {self.imm} to i32"), _WIDTH)
        return e.value(f"zext <8 x i32> {e.value(f'add <8 x i32> {raw}, {low}')} to <8 x i64>")

    def _check(self) -> str:
        """Lanes outside of the window; keeps all offsets."""
        h, e = self.handler, self.code
        e.line(f"store i32 0, ptr {self.bad}")
        h.begin(_WIDTH)
        base = e.spread("i64", self.window.base, _WIDTH)
        offsets = e.value(f"sub <8 x i64> {self._slice()}, {base}")
        e.line(f"store <8 x i64> {offsets}, ptr {h.at(self.offsets, 'i64')}, align 64")
        units = offsets
        if self.shift:
            units = e.apply("fshr", "<8 x i64>", offsets, offsets, splat("i64", self.shift))
        outside = e.value(f"icmp uge <8 x i64> {units}, {e.spread('i64', self.limit, _WIDTH)}")
        moved = e.value(f"shl i32 {h.bits(outside)}, {h.shift()}")
        e.line(f"store i32 {e.value(f'or i32 {moved}, ' + e.value(f'load i32, ptr {self.bad}'))}, ptr {self.bad}")
        done = e.label("checked")
        h.again(done)
        e.begin(done)
        return e.value(f"and i32 {e.value(f'load i32, ptr {self.bad}')}, %m")

    # --- slices -------------------------------------------------------------------------------------------------------

    def _values(self) -> list[Value]:
        """The pieces of a slice to be stored."""
        h = self.handler
        written = [number for number in range(1, len(h.op.src)) if h.op.src[number] is not None]
        return store_parts(h, self.access, [h.op.src_types[n] for n in written], [h.source(n) for n in written])

    def _row(self, base: str) -> None:
        """Single pieces of at least 32 bits, if they are in a row inside the window; else it goes on."""
        h, e, size = self.handler, self.code, self.access.size
        assert self.ref is not None
        element = "i32" if self.narrow else "i64"
        kind = vector(element)
        first = h.lane(self.ref, "0")
        steps = ", ".join(f"{element} {lane * size}" for lane in range(LANES))
        expected = e.value(f"add {kind} {e.spread(element, first)}, <{steps}>")
        found = e.value(f"load {kind}, ptr {h.pointer(self.ref)}, align 64")
        equal = e.value(f"bitcast <32 x i1> {e.value(f'icmp eq {kind} {found}, {expected}')} to i32")
        missing = e.value(f"or i32 {equal}, {e.value('xor i32 %m, -1')}")
        start = e.value(f"sub i64 {self._effective(first)}, {self.window.base}")
        units = e.apply("fshr", "i64", start, start, str(self.shift))
        room = e.apply("usub.sat", "i64", self.limit, str(LANES - 1))
        inside, near = e.value(f"icmp ult i64 {units}, {room}"), e.value(f"icmp eq i32 {missing}, -1")
        row, other = e.label("row"), e.label("other")
        e.branch(e.value(f"and i1 {inside}, {near}"), row, other, likely=True)
        e.begin(row)
        start = e.value(f"getelementptr i8, ptr {base}, i64 {start}")
        self._move_row(start)
        e.begin(other)

    def _move_row(self, start: str) -> None:
        """Slice by slice, from this address on."""
        h, e, bits = self.handler, self.code, self.access.bits
        h.begin(512 // bits)
        kind, flags = vector(f"i{bits}", h.width), vector("i1", h.width)
        where, lanes = h.at(start, f"i{bits}"), h.flags(h.rest)
        if self.store:
            e.store_masked(kind, self._values()[0], where, bits // 8, lanes)
            h.go_on()
            return
        name = f"llvm.masked.load.v{h.width}i{bits}.p0"
        e.declare(name, f"declare {kind} @{name}(ptr, {flags}, {kind})")
        found = e.value(f"call {kind} @{name}(ptr align {bits // 8} {where}, {flags} {lanes}, {kind} zeroinitializer)")
        h.results(load_values(h, self.access, [found]))

    def _anywhere(self, base: str) -> None:
        """By gather and scatter."""
        h = self.handler
        h.begin(_WIDTH)
        offsets, lanes = h.load(self.offsets, "i64"), h.flags(h.rest)
        if self.store:
            for part, value in zip(self.access.parts, self._values(), strict=True):
                for at, piece in self._words(part, value):
                    self._scatter(self._places(base, offsets, at), piece, lanes)
            h.go_on()
            return
        pieces = []
        for part in self.access.parts:
            words = [self._gather(self._places(base, offsets, at), bits, lanes) for at, bits in self._word_places(part)]
            pieces.append(words[0] if len(words) == 1 else self._joined(*words))
        h.results(load_values(h, self.access, pieces))

    def _word_places(self, part: Part) -> list[tuple[int, int]]:
        """Where the words of a piece are that lie together, and their bits."""
        if self.local and part.bits == 64:
            return [(part.offset, 32), (part.offset + 4, 32)]
        return [(part.offset, part.bits)]

    def _words(self, part: Part, value: Value) -> list[tuple[int, Value]]:
        places, e = [at for at, _ in self._word_places(part)], self.code
        if len(places) == 1:
            return [(places[0], value)]
        high = e.value(f"lshr <8 x i64> {value}, {splat('i64', 32)}")
        halves = [e.value(f"trunc <8 x i64> {half} to <8 x i32>") for half in (value, high)]
        return list(zip(places, halves, strict=True))

    def _joined(self, low: Value, high: Value) -> Value:
        e = self.code
        wide = [e.value(f"zext <8 x i32> {word} to <8 x i64>") for word in (low, high)]
        return e.value(f"or <8 x i64> {wide[0]}, {e.value(f'shl <8 x i64> {wide[1]}, ' + splat('i64', 32))}")

    def _places(self, base: str, offsets: Value, at: int) -> Value:
        """Host addresses of the slice's words at this offset."""
        e = self.code
        if self.local:  # words: all pieces here have at least 32 bits
            moved = e.value(f"add <8 x i64> {offsets}, {splat('i64', at)}") if at else offsets
            rows = e.value(f"shl <8 x i64> {moved}, {splat('i64', 5)}")
            base = e.value(f"getelementptr i32, ptr {base}, i64 {self.handler.first}")
            columns = ", ".join(f"i64 {4 * lane}" for lane in range(_WIDTH))
            offsets = e.value(f"or <8 x i64> {rows}, <{columns}>")
        elif at:
            base = e.value(f"getelementptr i8, ptr {base}, i64 {at}")
        return e.value(f"getelementptr i8, ptr {base}, <8 x i64> {offsets}")

    def _gather(self, places: Value, bits: int, lanes: Value) -> Value:
        kind, name = f"<8 x i{bits}>", f"llvm.masked.gather.v8i{bits}.v8p0"
        self.code.declare(name, f"declare {kind} @{name}(<8 x ptr>, <8 x i1>, {kind})")
        where = f"<8 x ptr> align {bits // 8} {places}"
        return self.code.value(f"call {kind} @{name}({where}, <8 x i1> {lanes}, {kind} zeroinitializer)")

    def _scatter(self, places: Value, value: Value, lanes: Value) -> None:
        bits = 32 if self.local else self.access.bits
        kind, name = f"<8 x i{bits}>", f"llvm.masked.scatter.v8i{bits}.v8p0"
        self.code.declare(name, f"declare void @{name}({kind}, <8 x ptr>, <8 x i1>)")
        where = f"<8 x ptr> align {bits // 8} {places}"
        self.code.line(f"call void @{name}({kind} {value}, {where}, <8 x i1> {lanes})")

    # --- lane by lane -------------------------------------------------------------------------------------------------

    def _lanes(self, base: str) -> None:
        """Inside the window, one lane after the other."""
        h, e = self.handler, self.code
        lanes = lanewise.Lanes(h)
        offset = e.value(f"load i64, ptr {lanewise.element(h, self.offsets, 64, lanes.lane)}")
        stride = "4"
        if self.local:
            column = e.value(f"getelementptr i32, ptr {base}, i32 {lanes.lane}")
            row = e.value(f"shl i64 {e.value(f'lshr i64 {offset}, 2')}, {_ROW.bit_length() - 1}")
            place = e.value(f"add i64 {row}, {e.value(f'and i64 {offset}, 3')}")
            pointer, stride = e.value(f"getelementptr i8, ptr {column}, i64 {place}"), str(_ROW)
        else:
            pointer = e.value(f"getelementptr i8, ptr {base}, i64 {offset}")
        self._move(pointer, stride, lanes.lane)
        lanes.again()
        h.go_on()

    def _each(self, *, generic: bool) -> None:
        """Each lane's address by itself: any window, host memory. All are looked at before any data move, since an
        access that stops is repeated, and a result may take the place of the addresses."""
        h, e, size = self.handler, self.code, self.access.size
        h.begin(_WIDTH)
        e.line(f"store <8 x i64> {self._slice()}, ptr {h.at(self.offsets, 'i64')}, align 64")
        go, bad, done = e.label("go"), e.label("bad"), e.label("done")
        h.again(done)
        e.begin(done)
        lanes = lanewise.Lanes(h)
        one = e.value(f"load i64, ptr {lanewise.element(h, self.offsets, 64, lanes.lane)}")
        where = lanewise.in_window(h, one, SHARED_WINDOW) if h.op.space == "cluster" else one
        pointer = lanewise.translate(h, lanes.lane, where, size, generic=generic)
        e.line(f"store ptr {pointer}, ptr {self._kept(lanes.lane)}")
        e.branch(e.value(f"icmp ne ptr {pointer}, null"), go, bad, likely=True)
        e.begin(bad)
        lanewise.refuse(h, lanes.lane, one, size, write=self.store)
        e.begin(go)
        lanes.again()
        lanes = lanewise.Lanes(h)
        stride = "4"
        if generic:
            one = e.value(f"load i64, ptr {lanewise.element(h, self.offsets, 64, lanes.lane)}")
            inside = e.value(f"icmp eq i64 {e.value(f'lshr i64 {one}, 56')}, {LOCAL_WINDOW >> 56}")
            stride = e.value(f"select i1 {inside}, i64 {_ROW}, i64 4")
        self._move(e.value(f"load ptr, ptr {self._kept(lanes.lane)}"), stride, lanes.lane)
        lanes.again()
        h.go_on()

    def _kept(self, lane: str) -> str:
        return self.code.value(f"getelementptr ptr, ptr {self.pointers}, i32 {lane}")

    def _move(self, pointer: str, stride: str, lane: str) -> None:
        """One lane's pieces, word by word, `stride` bytes apart."""
        op = self.handler.op
        scalar = LLVMAlgebra(self.code, 0)
        parts = iter(self.access.parts)
        refs, types = (op.src[1:], op.src_types[1:]) if self.store else (op.dst, op.dst_types)
        for ref, t in zip(refs, types, strict=True):
            if ref is None and self.store:
                continue
            own = [next(parts) for _ in range(2 if word_bits(t) == 128 else 1)]
            if self.store:
                assert ref is not None
                value = scalar.adapt(self._read(ref, lane), ref.type, t)
                for part, piece in zip(own, value if len(own) == 2 else [value], strict=True):
                    self._put(pointer, stride, part, piece)
            elif ref is not None:
                found = [self._get(pointer, stride, part) for part in own]
                self._write(ref, lane, scalar.widen(tuple(found) if len(own) == 2 else found[0], t, ref.type))

    def _slots(self, ref: Ref, lane: str) -> list[str]:
        """Addresses of a lane's place in a slot, of both halves of a long one."""
        pointer = self.handler.pointer(ref)
        halves = (pointer, self.handler.upper(pointer)) if ref.type == "b128" else (pointer,)
        element = ELEMENT.get(ref.type, "i64")
        return [self.code.value(f"getelementptr {element}, ptr {half}, i32 {lane}") for half in halves]

    def _read(self, ref: Ref, lane: str) -> Value:
        kind = ELEMENT.get(ref.type, "i64")
        found = [self.code.value(f"load {kind}, ptr {slot}") for slot in self._slots(ref, lane)]
        return tuple(found) if len(found) == 2 else found[0]

    def _write(self, ref: Ref, lane: str, value: Value) -> None:
        pieces: Sequence[Value] = value if ref.type == "b128" else [value]
        for slot, piece in zip(self._slots(ref, lane), pieces, strict=True):
            self.code.line(f"store {ELEMENT.get(ref.type, 'i64')} {piece}, ptr {slot}")

    def _word(self, pointer: str, stride: str, at: int) -> str:
        index, byte = divmod(at, 4)
        distance = str(at)
        if stride != "4" and at:
            distance = self.code.value(f"add i64 {self.code.value(f'mul i64 {stride}, {index}')}, {byte}")
        return self.code.value(f"getelementptr i8, ptr {pointer}, i64 {distance}")

    def _get(self, pointer: str, stride: str, part: Part) -> Value:
        e, bits = self.code, part.bits
        if bits == 64 and stride != "4":
            low, high = (e.value(f"load i32, ptr {self._word(pointer, stride, part.offset + at)}") for at in (0, 4))
            moved = e.value(f"shl i64 {e.value(f'zext i32 {high} to i64')}, 32")
            return e.value(f"or i64 {moved}, {e.value(f'zext i32 {low} to i64')}")
        found = e.value(f"load i{bits}, ptr {self._word(pointer, stride, part.offset)}")
        return e.value(f"zext i8 {found} to i16") if bits == 8 else found

    def _put(self, pointer: str, stride: str, part: Part, piece: Value) -> None:
        e, bits = self.code, part.bits
        if bits == 64 and stride != "4":
            high = e.value(f"lshr i64 {piece}, 32")
            for at, half in ((0, piece), (4, high)):
                word = e.value(f"trunc i64 {half} to i32")
                e.line(f"store i32 {word}, ptr {self._word(pointer, stride, part.offset + at)}")
            return
        value = e.value(f"trunc i16 {piece} to i8") if bits == 8 else piece
        e.line(f"store i{bits} {value}, ptr {self._word(pointer, stride, part.offset)}")
