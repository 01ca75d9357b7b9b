"""The building blocks of functions on tiles: text of LLVM IR, and the accumulation of vectors of sums.

For each element the largest power of two among C and the products is found first. Each term is brought to its scale and
cut off there, and the terms are added exactly: f32 terms in 32-bit integers, f64 terms in f64.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from ptxtools.native.code.emitter import Emitter, splat
from ptxtools.semantics.tensorcore import NAN32

from .decode import EXPONENT, SIZE

#: Columns in one vector of the "rows" layout; B and D must have a multiple of it.
WIDTH = 16
#: Columns of A that are added in 32 bits: 8 terms below 2**27.
STEP = 8
#: Bits below the largest exponent for which that holds: the significand of a product is less than 4.
MOST_FRACTION = 25
ROWS = 4
PARAMETERS = (
    "ptr noalias readonly %a, ptr noalias readonly %ap, ptr noalias readonly %b, ptr noalias readonly %bp, ptr %c, "
    "ptr %out, i64 %rows, i64 %columns, i64 %k, i64 %stride.c, i64 %stride.out, i32 %fraction, i64 %mask, i64 %odd, "
    "i32 %least, i32 %keep"
)


_f64 = {2.0**-126: "0x3810000000000000", 2.0**149: "0x4940000000000000", 2.0**-149: "0x36A0000000000000"}


class VectorSums:
    """One element type (f32 or f64), one vector width; emits what all layouts share. exact: products are exact; rule:
    what the names of a rule's numbers (`interface.Rounding`) begin with."""

    def __init__(self, code: Emitter, width: int, wide: bool, exact: bool = False, rule: str = "%") -> None:
        self.rule = rule
        self.code, self.width, self.wide, self.exact = code, width, wide, exact or wide
        self.kind = "double" if wide else "float"
        self.vector = f"<{width} x {self.kind}>"
        self.doubles = f"<{width} x double>"
        self.words = f"<{width} x i32>"
        self.longs = f"<{width} x i64>"

    def spread(self, kind: str, scalar: str) -> str:
        """A run-time scalar in every element."""
        return self.code.spread(kind, scalar, self.width)

    def greater(self, x: str, y: str) -> str:
        more = self.code.value(f"fcmp ogt {self.vector} {x}, {y}")
        return self.code.value(f"select <{self.width} x i1> {more}, {self.vector} {x}, {self.vector} {y}")

    def multiply(self, x: str, y: str) -> str:
        return self.code.value(f"fmul {self.vector} {x}, {y}")

    def power_of(self, single: str) -> str:
        """2 to the exponent of the addend (f32), at least 2**-126; for results of f16 at least 2**-14."""
        b = self.code
        bits = b.value(f"bitcast <{self.width} x float> {single} to {self.words}")
        own = b.value(f"and {self.words} {bits}, {splat('i32', EXPONENT)}")
        size = b.value(f"and {self.words} {bits}, {splat('i32', SIZE)}")
        zero = b.value(f"icmp eq {self.words} {size}, zeroinitializer")
        low = b.value(f"icmp ult {self.words} {own}, %least.v")
        own = b.value(f"select <{self.width} x i1> {low}, {self.words} %least.v, {self.words} {own}")
        tiny = splat("i32", "8388608")
        own = b.value(f"select <{self.width} x i1> {zero}, {self.words} {tiny}, {self.words} {own}")
        power = b.value(f"bitcast {self.words} {own} to <{self.width} x float>")
        return b.value(f"fpext <{self.width} x float> {power} to {self.doubles}") if self.wide else power

    def unit_of(self, most: str) -> str:
        """2**fraction / most; only the exponent changes."""
        b, wide = self.code, self.wide
        kind, vector = ("i64", self.longs) if wide else ("i32", self.words)
        if not wide:  # far below any product: the addend alone decides (`finish`)
            most = self.greater(most, splat("float", "0x3A00000000000000"))
        bits = b.value(f"bitcast {self.vector} {most} to {vector}")
        found = b.value(f"sub {vector} %units.{kind}, {bits}")
        return b.value(f"bitcast {vector} {found} to {self.vector}")

    def finish(self, total: str, most: str, products: str, addend: str) -> str:
        """The sum (f64, in units), scaled back and cut off, as f32."""
        b = self.code
        if not self.wide:
            most = self.greater(most, splat("float", "0x3A00000000000000"))
            most = b.value(f"fpext {self.vector} {most} to {self.doubles}")
        down = b.value(f"fmul {self.doubles} {most}, %down.v")
        exact = b.value(f"fmul {self.doubles} {total}, {down}")
        exact = b.value(f"fadd {self.doubles} {exact}, zeroinitializer")
        return self.special(self.kept(self.cut(exact), products, addend), addend)

    def scaled_back(self, whole: str, unit: str) -> str:
        """A sum of whole units (i32), cut off to f32's significand. A unit is not so small that the result could be
        subnormal (`unit_of`)."""
        b = self.code
        bits = b.value(f"bitcast {self.vector} {unit} to {self.words}")
        down = b.value(f"sub {self.words} {splat('i32', 254 << 23)}, {bits}")  # 1 / unit
        down = b.value(f"bitcast {self.words} {down} to {self.vector}")
        return self.multiply(b.toward_zero(whole), down)

    def special(self, single: str, addend: str) -> str:
        """An infinite addend stays; a NaN gives the canonical NaN."""
        b, w = self.code, self.width
        bits = b.value(f"bitcast <{w} x float> {addend} to {self.words}")
        size = b.value(f"and {self.words} {bits}, {splat('i32', SIZE)}")
        finite = b.value(f"icmp ult {self.words} {size}, {splat('i32', EXPONENT)}")
        infinite = b.value(f"icmp eq {self.words} {size}, {splat('i32', EXPONENT)}")
        other = b.value(f"select <{w} x i1> {infinite}, {self.words} {bits}, {self.words} {splat('i32', SIZE)}")
        other = b.value(f"bitcast {self.words} {other} to <{w} x float>")
        return b.value(f"select <{w} x i1> {finite}, <{w} x float> {single}, <{w} x float> {other}")

    def kept(self, single: str, products: str, addend: str) -> str:
        """Without products the addend is cut off like a result, however small it is; f64 needs no care."""
        b, w = self.code, self.width
        if self.wide:
            return single
        only = b.value(f"fcmp oeq {self.vector} {products}, zeroinitializer")
        bits = b.value(f"and {self.words} {b.value(f'bitcast <{w} x float> {addend} to {self.words}')}, %cut.v")
        kept = b.value(f"bitcast {self.words} {bits} to <{w} x float>")
        kept = b.value(f"fadd <{w} x float> {kept}, zeroinitializer")
        return b.value(f"select <{w} x i1> {only}, <{w} x float> {kept}, <{w} x float> {single}")

    def masked(self, exact: str) -> str:
        b = self.code
        bits = b.value(f"bitcast {self.doubles} {exact} to {self.longs}")
        kept = b.value(f"and {self.longs} {bits}, %mask.v")
        lost = b.value(f"icmp ne {self.longs} {bits}, {kept}")
        odd = b.value(f"select <{self.width} x i1> {lost}, {self.longs} %odd.v, {self.longs} zeroinitializer")
        whole = b.value(f"or {self.longs} {kept}, {odd}")
        return b.value(f"bitcast {self.longs} {whole} to {self.doubles}")

    def fused(self, x: str, y: str, z: str) -> str:
        """x * y + z, rounded once; if products are exact, no fused operation is needed."""
        if self.exact:
            return self.code.value(
                f"fadd contract {self.vector} {z}, {self.code.value(f'fmul contract {self.vector} {x}, {y}')}"
            )
        return self.code.apply("fma", self.vector, x, y, z)

    def canonical(self, single: str) -> str:
        """f32 with every NaN replaced by the one that tensor cores give."""
        vector = f"<{self.width} x float>"
        nan = self.code.value(f"fcmp uno {vector} {single}, {single}")
        other = self.code.value(f"bitcast {self.words} {splat('i32', NAN32)} to {vector}")
        return self.code.value(f"select <{self.width} x i1> {nan}, {vector} {other}, {vector} {single}")

    def whole(self, number: str) -> str:
        """An f64 cut off to a whole number."""
        return self.code.apply("trunc", self.doubles, number)

    def cut(self, exact: str) -> str:
        b, w = self.code, self.width
        single = b.value(f"fptrunc {self.doubles} {self.masked(exact)} to <{w} x float>")
        if not self.wide:
            return single
        size = b.apply("fabs", self.doubles, exact)
        small = b.value(f"fcmp olt {self.doubles} {size}, {splat('double', _f64[2.0**-126])}")
        up = b.value(f"fmul {self.doubles} {exact}, {splat('double', _f64[2.0**149])}")
        whole = b.apply("trunc", self.doubles, up)
        back = b.value(f"fmul {self.doubles} {whole}, {splat('double', _f64[2.0**-149])}")
        least = b.value(f"fptrunc {self.doubles} {back} to <{w} x float>")
        return b.value(f"select <{w} x i1> {small}, <{w} x float> {least}, <{w} x float> {single}")

    def constants(self) -> None:
        """Vectors of the parameters, before all loops."""
        b = self.code
        if self.wide:  # 2**fraction / most: the sum of the biased exponents is that of 2**fraction and twice the bias
            up = b.value(f"zext i32 {self.rule}fraction to i64")
            field = b.value(f"add i64 {up}, 2046")
            self._alias("units.i64", self.spread("i64", b.value(f"shl i64 {field}, 52")), self.longs)
        else:
            field = b.value(f"add i32 {self.rule}fraction, 254")
            self._alias("units.i32", self.spread("i32", b.value(f"shl i32 {field}, 23")), self.words)
            cut = b.value(f"trunc i64 {b.value(f'lshr i64 {self.rule}mask, 29')} to i32")
            self._alias("cut.v", self.spread("i32", cut), self.words)
        wide = b.value(f"zext i32 {self.rule}fraction to i64")
        down = b.value(f"shl i64 {b.value(f'sub i64 1023, {wide}')}, 52")
        self._alias("down.v", self.spread("double", b.value(f"bitcast i64 {down} to double")), self.doubles)
        self._alias("mask.v", self.spread("i64", f"{self.rule}mask"), self.longs)
        self._alias("odd.v", self.spread("i64", f"{self.rule}odd"), self.longs)
        self._alias("least.v", self.spread("i32", f"{self.rule}least"), self.words)
        self._alias("keep.v", self.spread("i32", f"{self.rule}keep"), self.words)

    def _alias(self, name: str, value: str, kind: str) -> None:
        self.code.line(f"%{name} = freeze {kind} {value}")

    def addend(self, pointer: str) -> str:
        """C as f32; zero if it is not added."""
        b = self.code
        bits = b.value(f"load {self.words}, ptr {pointer}, align 4")
        bits = b.value(f"and {self.words} {bits}, %keep.v")
        return b.value(f"bitcast {self.words} {bits} to <{self.width} x float>")


#: Loads A's vector for a row of the block: (kind "value" or "power", row, column of A) -> vector; `LoadShared`: B's,
#: the same for all rows.
Load: TypeAlias = Callable[[str, int, str], str]
LoadShared: TypeAlias = Callable[[str, str], str]


def elements(k: VectorSums, rows: int, addends: list[str], load_a: Load, load_b: LoadShared) -> list[str]:
    """Results for `rows` vectors that share B, as f32: two loops over K."""
    b = k.code
    zero = "zeroinitializer"
    largest = loop(
        b, rows, k.vector, zero,
        lambda at, now: _largest(k, rows, at, now, load_a, load_b), unrolled(b),
    )  # fmt: skip
    own = [k.power_of(c) for c in addends]
    most = [k.greater(p, q) for p, q in zip(largest, own, strict=True)]
    units = [k.unit_of(p) for p in most]
    starts = []
    for c, unit in zip(addends, units, strict=True):
        c = b.value(f"fpext <{k.width} x float> {c} to {k.doubles}") if k.wide else c
        scaled = k.multiply(c, unit)
        if k.wide:
            starts.append(k.whole(scaled))
        else:
            whole = b.value(f"fptosi {k.vector} {scaled} to {k.words}")
            starts.append(b.value(f"sitofp {k.words} {whole} to {k.doubles}"))
    totals = loop(
        b, rows, k.doubles, starts,
        lambda at, now: _sums(k, rows, at, now, load_a, load_b, units), unrolled(b),
    )  # fmt: skip
    return [k.finish(t, p, q, c) for t, p, q, c in zip(totals, most, largest, addends, strict=True)]


def chain_elements(k: VectorSums, rows: int, addends: list[str], load_a: Load, load_b: LoadShared) -> list[str]:
    """A chain of multiply-adds in the order of K, as f32 in the end, with one kind of NaN."""
    b = k.code
    narrow = f"<{k.width} x float>"

    def step(at: str, now: list[str]) -> list[str]:
        for i in range(unrolled(b)):
            place = b.value(f"add i64 {at}, {i}")
            right = load_b("value", place)
            for row in range(rows):
                now[row] = k.fused(load_a("value", row, place), right, now[row])
        return now

    starts = [b.value(f"fpext {narrow} {c} to {k.doubles}") for c in addends] if k.wide else addends
    sums = loop(b, rows, k.vector, starts, step, unrolled(b))
    singles = [b.value(f"fptrunc {k.doubles} {s} to {narrow}") for s in sums] if k.wide else sums
    return [k.canonical(single) for single in singles]


def unrolled(b: Emitter) -> int:
    """Columns of A that a round of a loop does."""
    return 2 if b.brief else STEP


def loop(
    b: Emitter, rows: int, kind: str, starts: str | list[str], step: Callable[[str, list[str]], list[str]],
    each: int = STEP,
) -> list[str]:  # fmt: skip
    """for (at = 0; at < %k; at += each) with one vector carried for each row."""
    before, body = b.label(), b.label()
    b.jump(before)
    b.begin(before)
    b.jump(body)
    b.begin(body)
    at, following = b.name(), b.name()
    now, after = [b.name() for _ in range(rows)], [b.name() for _ in range(rows)]
    b.line(f"{at} = phi i64 [0, %{before}], [{following}, %{body}]")
    for row in range(rows):
        start = starts if isinstance(starts, str) else starts[row]
        b.line(f"{now[row]} = phi {kind} [{start}, %{before}], [{after[row]}, %{body}]")
    for name, found in zip(after, step(at, list(now)), strict=True):
        b.line(f"{name} = freeze {kind} {found}")
    b.line(f"{following} = add i64 {at}, {each}")
    more = b.value(f"icmp ult i64 {following}, %k")
    end = b.label()
    b.branch(more, body, end)
    b.begin(end)
    return after


def _largest(k: VectorSums, rows: int, at: str, now: list[str], load_a: Load, load_b: LoadShared) -> list[str]:
    for i in range(unrolled(k.code)):
        place = k.code.value(f"add i64 {at}, {i}")
        right = load_b("power", place)
        for row in range(rows):
            now[row] = k.greater(k.multiply(load_a("power", row, place), right), now[row])
    return now


def _sums(
    k: VectorSums, rows: int, at: str, now: list[str], load_a: Load, load_b: LoadShared, units: list[str]
) -> list[str]:
    b = k.code
    narrow: list[str | None] = [None] * rows
    for i in range(unrolled(b)):
        place = b.value(f"add i64 {at}, {i}")
        right = load_b("value", place)
        for row in range(rows):
            term = k.multiply(load_a("value", row, place), k.multiply(right, units[row]))
            if k.wide:
                whole = k.whole(term)
                now[row] = b.value(f"fadd {k.vector} {now[row]}, {whole}")
                continue
            whole = b.value(f"fptosi {k.vector} {term} to {k.words}")
            known = narrow[row]
            narrow[row] = whole if known is None else b.value(f"add {k.words} {known}, {whole}")
    if not k.wide:
        for row in range(rows):
            part = b.value(f"sitofp {k.words} {narrow[row]} to {k.doubles}")
            now[row] = b.value(f"fadd {k.doubles} {now[row]}, {part}")
    return now
