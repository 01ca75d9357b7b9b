"""What the functions on tiles are made of: text of LLVM IR, and the accumulation of vectors of sums.

For every element the largest power of two among C and the products is found first; each term is brought to its scale
and cut off there, and the cut-off terms are added exactly: as f32 in 32-bit whole numbers, as f64 in f64.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from ptxtools.semantics.tensorcore import NAN32

#: Columns that one vector of the "rows" layout has; B and D must have a multiple of it.
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


class Body:
    """Lines of one function, with fresh names; `entry`: those that stand before all others."""

    def __init__(self) -> None:
        self.entry: list[str] = []
        self.lines: list[str] = []
        self.count = 0

    def name(self) -> str:
        self.count += 1
        return f"%v{self.count}"

    def value(self, text: str) -> str:
        name = self.name()
        self.lines.append(f"  {name} = {text}")
        return name

    def line(self, text: str) -> None:
        self.lines.append(text if text.endswith(":") else "  " + text)

    def room(self, kind: str) -> str:
        """Memory on the stack for one value."""
        name = self.name()
        self.entry.append(f"  {name} = alloca {kind}, align 64")
        return name

    def function(self, name: str, parameters: str = PARAMETERS, answer: str = "") -> str:
        """The whole function; answer: an i32 that it returns, if any."""
        result, end = ("i32", f"ret i32 {answer}") if answer else ("void", "ret void")
        lines = "\n".join([*self.entry, *self.lines, f"  {end}"])
        return f"define {result} @{name}({parameters}) #0 {{\n{lines}\n}}\n"


def splat(number: str, kind: str, width: int) -> str:
    return "<" + ", ".join([f"{kind} {number}"] * width) + ">"


_f64 = {2.0**-126: "0x3810000000000000", 2.0**149: "0x4940000000000000", 2.0**-149: "0x36A0000000000000"}


class VectorSums:
    """One element type (f32 or f64), one vector width; emits what all layouts share. exact: products are exact."""

    def __init__(self, body: Body, width: int, wide: bool, exact: bool = False) -> None:
        self.b, self.width, self.wide, self.exact = body, width, wide, exact or wide
        self.kind = "double" if wide else "float"
        self.v = f"<{width} x {self.kind}>"
        self.d = f"<{width} x double>"
        self.i = f"<{width} x i32>"
        self.l = f"<{width} x i64>"

    def spread(self, kind: str, scalar: str) -> str:
        one = self.b.value(f"insertelement <{self.width} x {kind}> poison, {kind} {scalar}, i64 0")
        vector = f"<{self.width} x {kind}>"
        return self.b.value(f"shufflevector {vector} {one}, {vector} poison, <{self.width} x i32> zeroinitializer")

    def greater(self, x: str, y: str) -> str:
        more = self.b.value(f"fcmp ogt {self.v} {x}, {y}")
        return self.b.value(f"select <{self.width} x i1> {more}, {self.v} {x}, {self.v} {y}")

    def multiply(self, x: str, y: str) -> str:
        return self.b.value(f"fmul {self.v} {x}, {y}")

    def power_of(self, single: str) -> str:
        """2 to the exponent of the addend (f32), at least 2**-126; of what shall become f16 at least 2**-14."""
        b = self.b
        bits = b.value(f"bitcast <{self.width} x float> {single} to {self.i}")
        own = b.value(f"and {self.i} {bits}, {splat('2139095040', 'i32', self.width)}")
        size = b.value(f"and {self.i} {bits}, {splat('2147483647', 'i32', self.width)}")
        zero = b.value(f"icmp eq {self.i} {size}, zeroinitializer")
        low = b.value(f"icmp ult {self.i} {own}, %least.v")
        own = b.value(f"select <{self.width} x i1> {low}, {self.i} %least.v, {self.i} {own}")
        tiny = splat("8388608", "i32", self.width)
        own = b.value(f"select <{self.width} x i1> {zero}, {self.i} {tiny}, {self.i} {own}")
        power = b.value(f"bitcast {self.i} {own} to <{self.width} x float>")
        return b.value(f"fpext <{self.width} x float> {power} to {self.d}") if self.wide else power

    def unit_of(self, most: str) -> str:
        """2**fraction / most; the exponent alone is changed."""
        b, wide = self.b, self.wide
        kind, vector = ("i64", self.l) if wide else ("i32", self.i)
        if not wide:  # far below any product, so that the addend alone decides, which `finish` sees to
            most = self.greater(most, splat("0x3A00000000000000", "float", self.width))
        bits = b.value(f"bitcast {self.v} {most} to {vector}")
        found = b.value(f"sub {vector} %units.{kind}, {bits}")
        return b.value(f"bitcast {vector} {found} to {self.v}")

    def finish(self, total: str, most: str, products: str, addend: str) -> str:
        """The sum in units (f64), back at its size and cut off, as f32."""
        b, w = self.b, self.width
        if not self.wide:
            most = self.greater(most, splat("0x3A00000000000000", "float", w))
            most = b.value(f"fpext {self.v} {most} to {self.d}")
        down = b.value(f"fmul {self.d} {most}, %down.v")
        exact = b.value(f"fmul {self.d} {total}, {down}")
        exact = b.value(f"fadd {self.d} {exact}, zeroinitializer")
        return self.special(self.kept(self.cut(exact), products, addend), addend)

    def special(self, single: str, addend: str) -> str:
        """An infinite addend stays; one that is NaN makes the canonical NaN."""
        b, w = self.b, self.width
        bits = b.value(f"bitcast <{w} x float> {addend} to {self.i}")
        size = b.value(f"and {self.i} {bits}, {splat('2147483647', 'i32', w)}")
        finite = b.value(f"icmp ult {self.i} {size}, {splat('2139095040', 'i32', w)}")
        infinite = b.value(f"icmp eq {self.i} {size}, {splat('2139095040', 'i32', w)}")
        other = b.value(f"select <{w} x i1> {infinite}, {self.i} {bits}, {self.i} {splat('2147483647', 'i32', w)}")
        other = b.value(f"bitcast {self.i} {other} to <{w} x float>")
        return b.value(f"select <{w} x i1> {finite}, <{w} x float> {single}, <{w} x float> {other}")

    def kept(self, single: str, products: str, addend: str) -> str:
        """Without products the addend is cut off like a result, however small it is; f64 needs no care."""
        b, w = self.b, self.width
        if self.wide:
            return single
        only = b.value(f"fcmp oeq {self.v} {products}, zeroinitializer")
        bits = b.value(f"and {self.i} {b.value(f'bitcast <{w} x float> {addend} to {self.i}')}, %cut.v")
        kept = b.value(f"bitcast {self.i} {bits} to <{w} x float>")
        kept = b.value(f"fadd <{w} x float> {kept}, zeroinitializer")
        return b.value(f"select <{w} x i1> {only}, <{w} x float> {kept}, <{w} x float> {single}")

    def masked(self, exact: str) -> str:
        b = self.b
        bits = b.value(f"bitcast {self.d} {exact} to {self.l}")
        kept = b.value(f"and {self.l} {bits}, %mask.v")
        lost = b.value(f"icmp ne {self.l} {bits}, {kept}")
        odd = b.value(f"select <{self.width} x i1> {lost}, {self.l} %odd.v, {self.l} zeroinitializer")
        whole = b.value(f"or {self.l} {kept}, {odd}")
        return b.value(f"bitcast {self.l} {whole} to {self.d}")

    def fused(self, x: str, y: str, z: str) -> str:
        """x * y + z, rounded once: where products are exact, no fused operation is needed."""
        if self.exact:
            return self.b.value(f"fadd contract {self.v} {z}, {self.b.value(f'fmul contract {self.v} {x}, {y}')}")
        return self.b.value(f"call {self.v} @llvm.fma.v{self.width}f32({self.v} {x}, {self.v} {y}, {self.v} {z})")

    def canonical(self, single: str) -> str:
        """f32 with the one NaN that tensor cores make."""
        vector = f"<{self.width} x float>"
        nan = self.b.value(f"fcmp uno {vector} {single}, {single}")
        other = self.b.value(f"bitcast {self.i} {splat(str(NAN32), 'i32', self.width)} to {vector}")
        return self.b.value(f"select <{self.width} x i1> {nan}, {vector} {other}, {vector} {single}")

    def whole(self, number: str) -> str:
        """An f64 cut off to a whole number."""
        return self.b.value(f"call {self.d} @llvm.trunc.v{self.width}f64({self.d} {number})")

    def cut(self, exact: str) -> str:
        b, w = self.b, self.width
        single = b.value(f"fptrunc {self.d} {self.masked(exact)} to <{w} x float>")
        if not self.wide:
            return single
        size = b.value(f"call {self.d} @llvm.fabs.v{w}f64({self.d} {exact})")
        small = b.value(f"fcmp olt {self.d} {size}, {splat(_f64[2.0**-126], 'double', w)}")
        up = b.value(f"fmul {self.d} {exact}, {splat(_f64[2.0**149], 'double', w)}")
        whole = b.value(f"call {self.d} @llvm.trunc.v{w}f64({self.d} {up})")
        back = b.value(f"fmul {self.d} {whole}, {splat(_f64[2.0**-149], 'double', w)}")
        least = b.value(f"fptrunc {self.d} {back} to <{w} x float>")
        return b.value(f"select <{w} x i1> {small}, <{w} x float> {least}, <{w} x float> {single}")

    def constants(self) -> None:
        """Vectors of the parameters, before all loops."""
        b = self.b
        if self.wide:  # 2**fraction / most: the sum of the biased exponents is that of 2**fraction and twice the bias
            up = b.value("zext i32 %fraction to i64")
            field = b.value(f"add i64 {up}, 2046")
            self._alias("units.i64", self.spread("i64", b.value(f"shl i64 {field}, 52")), self.l)
        else:
            field = b.value("add i32 %fraction, 254")
            self._alias("units.i32", self.spread("i32", b.value(f"shl i32 {field}, 23")), self.i)
            cut = b.value(f"trunc i64 {b.value('lshr i64 %mask, 29')} to i32")
            self._alias("cut.v", self.spread("i32", cut), self.i)
        wide = b.value("zext i32 %fraction to i64")
        down = b.value(f"shl i64 {b.value(f'sub i64 1023, {wide}')}, 52")
        self._alias("down.v", self.spread("double", b.value(f"bitcast i64 {down} to double")), self.d)
        self._alias("mask.v", self.spread("i64", "%mask"), self.l)
        self._alias("odd.v", self.spread("i64", "%odd"), self.l)
        self._alias("least.v", self.spread("i32", "%least"), self.i)
        self._alias("keep.v", self.spread("i32", "%keep"), self.i)

    def _alias(self, name: str, value: str, kind: str) -> None:
        self.b.line(f"%{name} = freeze {kind} {value}")

    def addend(self, pointer: str) -> str:
        """C as f32; zero where it does not count."""
        b = self.b
        bits = b.value(f"load {self.i}, ptr {pointer}, align 4")
        bits = b.value(f"and {self.i} {bits}, %keep.v")
        return b.value(f"bitcast {self.i} {bits} to <{self.width} x float>")


#: Loads A's vector for a row of the block: (kind "value" or "power", row, column of A) -> vector; `LoadShared`: B's,
#: the same for all rows.
Load: TypeAlias = Callable[[str, int, str], str]
LoadShared: TypeAlias = Callable[[str, str], str]


def elements(k: VectorSums, rows: int, addends: list[str], load_a: Load, load_b: LoadShared) -> list[str]:
    """Results for `rows` vectors that share B, as f32: two loops over K."""
    b = k.b
    zero = "zeroinitializer"
    largest = loop(
        b, rows, k.v, zero,
        lambda at, now: _largest(k, rows, at, now, load_a, load_b),
    )  # fmt: skip
    own = [k.power_of(c) for c in addends]
    most = [k.greater(p, q) for p, q in zip(largest, own, strict=True)]
    units = [k.unit_of(p) for p in most]
    starts = []
    for c, unit in zip(addends, units, strict=True):
        c = b.value(f"fpext <{k.width} x float> {c} to {k.d}") if k.wide else c
        scaled = k.multiply(c, unit)
        if k.wide:
            starts.append(b.value(f"call {k.v} @llvm.trunc.v{k.width}f64({k.v} {scaled})"))
        else:
            whole = b.value(f"fptosi {k.v} {scaled} to {k.i}")
            starts.append(b.value(f"sitofp {k.i} {whole} to {k.d}"))
    totals = loop(
        b, rows, k.d, starts,
        lambda at, now: _sums(k, rows, at, now, load_a, load_b, units),
    )  # fmt: skip
    return [k.finish(t, p, q, c) for t, p, q, c in zip(totals, most, largest, addends, strict=True)]


def chain_elements(k: VectorSums, rows: int, addends: list[str], load_a: Load, load_b: LoadShared) -> list[str]:
    """A chain of multiply-adds in the order of K, as f32 in the end, with one kind of NaN."""
    b = k.b
    narrow = f"<{k.width} x float>"

    def step(at: str, now: list[str]) -> list[str]:
        for i in range(STEP):
            place = b.value(f"add i64 {at}, {i}")
            right = load_b("value", place)
            for row in range(rows):
                now[row] = k.fused(load_a("value", row, place), right, now[row])
        return now

    starts = [b.value(f"fpext {narrow} {c} to {k.d}") for c in addends] if k.wide else addends
    sums = loop(b, rows, k.v, starts, step)
    singles = [b.value(f"fptrunc {k.d} {s} to {narrow}") for s in sums] if k.wide else sums
    return [k.canonical(single) for single in singles]


def loop(
    b: Body, rows: int, kind: str, starts: str | list[str], step: Callable[[str, list[str]], list[str]]
) -> list[str]:
    """for (at = 0; at < %k; at += 8) with one vector carried for each row."""
    before, body = b.name()[1:], b.name()[1:]
    b.line(f"br label %{before}")
    b.line(f"{before}:")
    b.line(f"br label %{body}")
    b.line(f"{body}:")
    at, following = b.name(), b.name()
    now, after = [b.name() for _ in range(rows)], [b.name() for _ in range(rows)]
    b.line(f"{at} = phi i64 [0, %{before}], [{following}, %{body}]")
    for row in range(rows):
        start = starts if isinstance(starts, str) else starts[row]
        b.line(f"{now[row]} = phi {kind} [{start}, %{before}], [{after[row]}, %{body}]")
    for name, found in zip(after, step(at, list(now)), strict=True):
        b.line(f"{name} = freeze {kind} {found}")
    b.line(f"{following} = add i64 {at}, {STEP}")
    more = b.value(f"icmp ult i64 {following}, %k")
    end = b.name()[1:]
    b.line(f"br i1 {more}, label %{body}, label %{end}")
    b.line(f"{end}:")
    return after


def _largest(k: VectorSums, rows: int, at: str, now: list[str], load_a: Load, load_b: LoadShared) -> list[str]:
    for i in range(STEP):
        place = k.b.value(f"add i64 {at}, {i}")
        right = load_b("power", place)
        for row in range(rows):
            now[row] = k.greater(k.multiply(load_a("power", row, place), right), now[row])
    return now


def _sums(
    k: VectorSums, rows: int, at: str, now: list[str], load_a: Load, load_b: LoadShared, units: list[str]
) -> list[str]:
    b = k.b
    narrow: list[str | None] = [None] * rows
    for i in range(STEP):
        place = b.value(f"add i64 {at}, {i}")
        right = load_b("value", place)
        for row in range(rows):
            term = k.multiply(load_a("value", row, place), k.multiply(right, units[row]))
            if k.wide:
                whole = b.value(f"call {k.v} @llvm.trunc.v{k.width}f64({k.v} {term})")
                now[row] = b.value(f"fadd {k.v} {now[row]}, {whole}")
                continue
            whole = b.value(f"fptosi {k.v} {term} to {k.i}")
            known = narrow[row]
            narrow[row] = whole if known is None else b.value(f"add {k.i} {known}, {whole}")
    if not k.wide:
        for row in range(rows):
            part = b.value(f"sitofp {k.i} {narrow[row]} to {k.d}")
            now[row] = b.value(f"fadd {k.d} {now[row]}, {part}")
    return now


def repeat(b: Body, limit: str, step: int, inner: Callable[[str], None]) -> None:
    """for (i = 0; i < limit; i += step)"""
    head, body, done = (b.name()[1:] for _ in range(3))
    counter = b.room("i64")
    b.line(f"store i64 0, ptr {counter}")
    b.line(f"br label %{head}")
    b.line(f"{head}:")
    now = b.value(f"load i64, ptr {counter}")
    more = b.value(f"icmp ult i64 {now}, {limit}")
    b.line(f"br i1 {more}, label %{body}, label %{done}")
    b.line(f"{body}:")
    inner(now)
    b.line(f"store i64 {b.value(f'add i64 {now}, {step}')}, ptr {counter}")
    b.line(f"br label %{head}")
    b.line(f"{done}:")


def element_of(b: Body, kind: str, base: str, *parts: str) -> str:
    """Address of the element at the sum of some indices."""
    index = parts[0]
    for part in parts[1:]:
        index = b.value(f"add i64 {index}, {part}")
    return b.value(f"getelementptr {kind}, ptr {base}, i64 {index}")
