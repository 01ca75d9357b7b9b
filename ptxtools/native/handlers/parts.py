"""How the elements of an access lie in memory, and how they become values of PTX types."""

from __future__ import annotations

from collections.abc import Sequence

from ptxtools.native.code.emitter import splat
from ptxtools.native.code.handler import Handler
from ptxtools.program.program import LANES, Ref
from ptxtools.records import dataclass
from ptxtools.semantics.algebra import Value
from ptxtools.semantics.types import bits_of, word_bits

from . import transposed


@dataclass(frozen=True, slots=True)
class Part:
    """A piece of at most 64 bits: its offset from the address in bytes, and its width in bits."""

    offset: int
    bits: int


@dataclass(frozen=True, slots=True)
class Access:
    """The pieces of one access, all of one width; `size` bytes in all, which is also its alignment (6.4.1). gaps:
    some of those bytes belong to no piece."""

    parts: tuple[Part, ...]
    size: int
    gaps: bool = False

    @classmethod
    def of(cls, types: Sequence[str], values: Sequence[Ref | None] = ()) -> Access:
        """values: of a store, to leave out the elements that have none (`_`)."""
        parts: list[Part] = []
        at = 0
        for number, t in enumerate(types):
            bits = max(8, bits_of(t))
            for _ in range(max(1, bits // 64)):
                if not values or values[number] is not None:
                    parts.append(Part(at, min(bits, 64)))
                at += min(bits, 64) // 8
        return cls(tuple(parts), at, None in values)

    @property
    def bits(self) -> int:
        return self.parts[0].bits

    @property
    def single(self) -> bool:
        return len(self.parts) == 1


@dataclass(slots=True)
class Window:
    """A stretch of the address space that is one stretch of host memory. All are names of i64 values."""

    host: str
    base: str
    size: str


def window(h: Handler, space: str, cta: str = "") -> Window:
    """The stretch of memory that a state space is; anything without one of its own is global memory. cta: its address,
    if that is at hand."""
    if space in ("shared", "cluster"):
        cta = cta or h.code.field("warp.cta")
        host = h.code.value(f"ptrtoint ptr {h.code.field('cta.shared', cta)} to i64")
        base = h.code.field("cta.window", cta) if space == "cluster" else "0"
        return Window(host, base, h.code.value(f"zext i32 {h.code.field('ctx.shared_bytes')} to i64"))
    if space == "param":
        host = h.code.value(f"ptrtoint ptr {h.code.field('ctx.params')} to i64")
        return Window(host, "0", h.code.value(f"zext i32 {h.code.field('ctx.param_bytes')} to i64"))
    base = h.code.field("ctx.base")
    return Window(h.code.value(f"add i64 {h.code.field('ctx.arena')}, {base}"), base, h.code.field("ctx.size"))


class Address:
    """The address operand: one register of all lanes plus a constant of the record, or only that constant."""

    def __init__(self, h: Handler) -> None:
        self.handler = h
        self.ref: Ref | None = h.op.src[0]
        self.bits = 32 if self.ref is not None and self.ref.type == "b32" else 64
        self.register: Value = h.content(self.ref) if self.ref is not None else None
        self.imm = h.code.field("rec.imm")

    def vector(self) -> Value:
        """Effective addresses as 64-bit values."""
        offset = self.handler.code.spread("i64", self.imm)
        if self.register is None:
            return offset
        if self.bits == 32:
            return self.handler.algebra.resize("u32", "u64", self.narrow())
        return self.handler.algebra.add("u64", self.register, offset)

    def narrow(self) -> Value:
        """The same of 32-bit addresses, which wrap at 32 bits, as 32-bit values."""
        offset = self.handler.code.spread("i32", self.handler.code.value(f"trunc i64 {self.imm} to i32"))
        return self.handler.algebra.add("u32", self.register, offset)

    def lane(self, index: str) -> str:
        """Effective address of one lane, as i64."""
        if self.ref is None:
            return self.imm
        return self.effective(self.raw(index))

    def raw(self, lane: str) -> str:
        """One lane's register, without the constant."""
        assert self.ref is not None
        return self.handler.lane(self.ref, lane)

    def effective(self, raw: str) -> str:
        """The address that a register's content means, as i64."""
        if self.bits == 32:
            low = self.handler.code.value(f"trunc i64 {self.imm} to i32")
            return self.handler.code.value(f"zext i32 {self.handler.code.value(f'add i32 {raw}, {low}')} to i64")
        return self.handler.code.value(f"add i64 {raw}, {self.imm}")


def in_units(h: Handler, offset: Value, shift: int, kind: str = "<32 x i64>") -> Value:
    """Offsets in units of 2**shift bytes, by a rotation: one that is not aligned is beyond any limit."""
    amount = str(shift) if kind == "i64" else f"splat ({kind.rstrip('>').split()[-1]} {shift})"
    return h.code.apply("fshr", kind, offset, offset, amount)


def load_values(h: Handler, access: Access, loaded: Sequence[Value]) -> list[Value]:
    """Pieces (vectors of iN, N the piece's width) as values of the destination types."""
    values: list[Value] = []
    pieces = iter(loaded)
    for t in h.op.dst_types:
        piece = next(pieces)
        if bits_of(t) == 128:
            values.append((piece, next(pieces)))
        elif access.bits == 8:
            values.append(h.code.value(f"zext {h.algebra.vector('i8')} {piece} to {h.algebra.vector('i16')}"))
        else:
            values.append(piece)
    return values


def store_parts(h: Handler, access: Access, types: Sequence[str], values: Sequence[Value]) -> list[Value]:
    """The inverse: values of the source types as pieces."""
    pieces: list[Value] = []
    for t, value in zip(types, values, strict=True):
        if word_bits(t) == 128:
            pieces.extend(value)
        elif access.bits == 8:
            pieces.append(h.code.value(f"trunc {h.algebra.vector('i16')} {value} to {h.algebra.vector('i8')}"))
        else:
            pieces.append(value)
    return pieces


def half(h: Handler, value: Value, element: str, side: int) -> Value:
    """Lanes 0 to 15, or 16 to 31."""
    return h.code.part(element, LANES, value, 16 * side, 16)


def join(h: Handler, bits: int, pieces: Sequence[Value]) -> Value:
    """Vectors of 16 lanes (a power of two of them), interleaved: lane 0 of each, then lane 1 of each."""
    count = len(pieces)
    if count == 1:
        return pieces[0]
    if bits == 32 and transposed.suits(h.code, count):
        return transposed.join(h.code, 16, pieces)
    middle = count // 2
    first, second = join(h, bits, pieces[:middle]), join(h, bits, pieces[middle:])
    vector, order = f"<{16 * middle} x i{bits}>", list[int]()
    for lane in range(16):
        order += [middle * lane + i for i in range(middle)]
        order += [16 * middle + middle * lane + i for i in range(middle)]
    return h.code.shuffle(vector, order, first, second)


def word_gather(h: Handler, start: str, offsets: Value, lanes: Value, bits: int) -> Value:
    """16 lanes from any addresses; narrow elements come out of the aligned words that hold them."""
    e = h.code
    wide = max(bits, 32)
    where = offsets
    if bits < 32:
        where = e.value(f"and <16 x i64> {offsets}, splat (i64 -4)")
    pointers = e.value(f"getelementptr i8, ptr {start}, <16 x i64> {where}")
    vector, name = f"<16 x i{wide}>", f"llvm.masked.gather.v16i{wide}.v16p0"
    e.declare(name, f"declare {vector} @{name}(<16 x ptr>, <16 x i1>, {vector})")
    operands = f"<16 x ptr> align {wide // 8} {pointers}, <16 x i1> {lanes}, {vector} zeroinitializer"
    words = e.value(f"call {vector} @{name}({operands})")
    if bits >= 32:
        return words
    place = e.value(f"and <16 x i64> {offsets}, splat (i64 3)")
    shift = e.value(f"shl <16 x i32> {e.value(f'trunc <16 x i64> {place} to <16 x i32>')}, splat (i32 3)")
    moved = e.value(f"lshr <16 x i32> {words}, {shift}")
    return e.value(f"trunc <16 x i32> {moved} to <16 x i{bits}>")


def scatter(h: Handler, words: Value, where: Value, lanes: Value) -> None:
    """Store a word of each of 16 lanes (i32) at its address, lane 0 first. Without an instruction for it, LLVM would
    branch for each lane: those that are not in `lanes` store where nobody looks."""
    e, name = h.code, "llvm.masked.scatter.v16i32.v16p0"
    e.declare(name, f"declare void @{name}(<16 x i32>, <16 x ptr>, <16 x i1>)")
    if e.unmasked:
        nowhere = e.spread("ptr", h.room("i32"), 16)
        where = e.value(f"select <16 x i1> {lanes}, <16 x ptr> {where}, <16 x ptr> {nowhere}")
        lanes = splat("i1", "true")
    e.line(f"call void @{name}(<16 x i32> {words}, <16 x ptr> align 4 {where}, <16 x i1> {lanes})")
