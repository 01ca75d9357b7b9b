"""Native code for products of whole tiles, as tensor cores add them (docs/numerics.md).

Each function computes D = A * B + C over vectors of columns. For every element: the largest power of two among C and
the products decides how far down terms count; each term is brought to that scale and cut off, the cut-off terms are
added exactly, and the sum is cut off to the result's precision. Numbers are f32 and exact as long as their powers lie
between 2**-30 and 2**30 (`NARROW`); otherwise f64.

Layouts: "rows" has D and C in rows, A as rows x K, and B as K x columns. "warp" has them as the registers of a warp's
16 rows of wgmma: one register of 32 lanes is 8 rows (lane // 4) of 4 columns (lane % 4).
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Array: TypeAlias = npt.NDArray[Any]

#: Powers between these, both included, are fit for f32.
NARROW = (2.0**-30, 2.0**30)
#: Columns that one vector of the "rows" layout has; B and D must have a multiple of it.
WIDTH = 16
#: Columns of A that are added in 32 bits: 8 terms below 2**27.
_STEP = 8
_ROWS = 4


@dataclass(frozen=True)
class Rounding:
    """How sums are cut off: `fraction` bits below the largest exponent, 0 for plain f32 arithmetic; then bits of an
    f64 that stay (`mask`), and the bit that is set where something was lost (`odd`, for a second rounding to f16)."""

    fraction: int
    mask: int
    odd: int = 0


#: By the result of `semantics.tensorcore.Rule`.
MASKS = {
    "f32": ((1 << 64) - (1 << 29), 0),
    "e8m13": ((1 << 64) - (1 << 39), 0),
    "f16": ((1 << 64) - (1 << 29), 1 << 29),
}


class _Body:
    """Lines of one function, with fresh names."""

    def __init__(self) -> None:
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


def _splat(number: str, kind: str, width: int) -> str:
    return "<" + ", ".join([f"{kind} {number}"] * width) + ">"


_f64 = {2.0**-126: "0x3810000000000000", 2.0**149: "0x4940000000000000", 2.0**-149: "0x36A0000000000000"}


class _Kernel:
    """One element type (f32 or f64), one vector width; emits what all layouts share."""

    def __init__(self, body: _Body, width: int, wide: bool) -> None:
        self.b, self.width, self.wide = body, width, wide
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
        own = b.value(f"and {self.i} {bits}, {_splat('2139095040', 'i32', self.width)}")
        size = b.value(f"and {self.i} {bits}, {_splat('2147483647', 'i32', self.width)}")
        zero = b.value(f"icmp eq {self.i} {size}, zeroinitializer")
        low = b.value(f"icmp ult {self.i} {own}, %least.v")
        own = b.value(f"select <{self.width} x i1> {low}, {self.i} %least.v, {self.i} {own}")
        tiny = _splat("8388608", "i32", self.width)
        own = b.value(f"select <{self.width} x i1> {zero}, {self.i} {tiny}, {self.i} {own}")
        power = b.value(f"bitcast {self.i} {own} to <{self.width} x float>")
        return b.value(f"fpext <{self.width} x float> {power} to {self.d}") if self.wide else power

    def unit_of(self, most: str) -> str:
        """2**fraction / most; the exponent alone is changed."""
        b, wide = self.b, self.wide
        kind, vector = ("i64", self.l) if wide else ("i32", self.i)
        if not wide:  # far below any product, so that the addend alone decides, which `finish` sees to
            most = self.greater(most, _splat("0x3A00000000000000", "float", self.width))
        bits = b.value(f"bitcast {self.v} {most} to {vector}")
        found = b.value(f"sub {vector} %units.{kind}, {bits}")
        return b.value(f"bitcast {vector} {found} to {self.v}")

    def finish(self, total: str, most: str, products: str, addend: str) -> str:
        """The sum in units (f64), back at its size and cut off, as f32."""
        b, w = self.b, self.width
        if not self.wide:
            most = self.greater(most, _splat("0x3A00000000000000", "float", w))
            most = b.value(f"fpext {self.v} {most} to {self.d}")
        down = b.value(f"fmul {self.d} {most}, %down.v")
        exact = b.value(f"fmul {self.d} {total}, {down}")
        exact = b.value(f"fadd {self.d} {exact}, zeroinitializer")
        return self.special(self.kept(self.cut(exact), products, addend), addend)

    def special(self, single: str, addend: str) -> str:
        """An infinite addend stays; one that is NaN makes the canonical NaN."""
        b, w = self.b, self.width
        bits = b.value(f"bitcast <{w} x float> {addend} to {self.i}")
        size = b.value(f"and {self.i} {bits}, {_splat('2147483647', 'i32', w)}")
        finite = b.value(f"icmp ult {self.i} {size}, {_splat('2139095040', 'i32', w)}")
        infinite = b.value(f"icmp eq {self.i} {size}, {_splat('2139095040', 'i32', w)}")
        other = b.value(f"select <{w} x i1> {infinite}, {self.i} {bits}, {self.i} {_splat('2147483647', 'i32', w)}")
        other = b.value(f"bitcast {self.i} {other} to <{w} x float>")
        return b.value(f"select <{w} x i1> {finite}, <{w} x float> {single}, <{w} x float> {other}")

    def kept(self, single: str, products: str, addend: str) -> str:
        """Without products the addend stays as it is, however small; f64 needs no care."""
        b, w = self.b, self.width
        if self.wide:
            return single
        only = b.value(f"fcmp oeq {self.v} {products}, zeroinitializer")
        wide = b.value(f"fpext <{w} x float> {addend} to {self.d}")
        wide = b.value(f"fadd {self.d} {wide}, zeroinitializer")
        kept = self.masked(wide)
        kept = b.value(f"fptrunc {self.d} {kept} to <{w} x float>")
        return b.value(f"select <{w} x i1> {only}, <{w} x float> {kept}, <{w} x float> {single}")

    def masked(self, exact: str) -> str:
        b = self.b
        bits = b.value(f"bitcast {self.d} {exact} to {self.l}")
        kept = b.value(f"and {self.l} {bits}, %mask.v")
        lost = b.value(f"icmp ne {self.l} {bits}, {kept}")
        odd = b.value(f"select <{self.width} x i1> {lost}, {self.l} %odd.v, {self.l} zeroinitializer")
        whole = b.value(f"or {self.l} {kept}, {odd}")
        return b.value(f"bitcast {self.l} {whole} to {self.d}")

    def cut(self, exact: str) -> str:
        b, w = self.b, self.width
        single = b.value(f"fptrunc {self.d} {self.masked(exact)} to <{w} x float>")
        if not self.wide:
            return single
        size = b.value(f"call {self.d} @llvm.fabs.v{w}f64({self.d} {exact})")
        small = b.value(f"fcmp olt {self.d} {size}, {_splat(_f64[2.0**-126], 'double', w)}")
        up = b.value(f"fmul {self.d} {exact}, {_splat(_f64[2.0**149], 'double', w)}")
        whole = b.value(f"call {self.d} @llvm.trunc.v{w}f64({self.d} {up})")
        back = b.value(f"fmul {self.d} {whole}, {_splat(_f64[2.0**-149], 'double', w)}")
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


#: Loads A's vector for a row of the block, or B's: (kernel, kind "value" or "power", row, column of A) -> vector.
_Load = Callable[[str, int, str], str]


def _elements(k: _Kernel, rows: int, addends: list[str], load_a: _Load, load_b: Callable[[str, str], str]) -> list[str]:
    """Results for `rows` vectors that share B, as f32: two loops over K."""
    b = k.b
    zero = "zeroinitializer"
    largest = _loop(
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
    totals = _loop(
        b, rows, k.d, starts,
        lambda at, now: _sums(k, rows, at, now, load_a, load_b, units),
    )  # fmt: skip
    return [k.finish(t, p, q, c) for t, p, q, c in zip(totals, most, largest, addends, strict=True)]


def _plain(k: _Kernel, rows: int, addends: list[str], load_a: _Load, load_b: Callable[[str, str], str]) -> list[str]:
    """f32 products and sums in the order of K."""

    def step(at: str, now: list[str]) -> list[str]:
        for i in range(_STEP):
            place = k.b.value(f"add i64 {at}, {i}")
            right = load_b("value", place)
            for row in range(rows):
                term = k.b.value(f"fmul contract {k.v} {load_a('value', row, place)}, {right}")
                now[row] = k.b.value(f"fadd contract {k.v} {now[row]}, {term}")
        return now

    return _loop(k.b, rows, k.v, addends, step)


def _loop(
    b: _Body, rows: int, kind: str, starts: str | list[str], step: Callable[[str, list[str]], list[str]]
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
    b.line(f"{following} = add i64 {at}, {_STEP}")
    more = b.value(f"icmp ult i64 {following}, %k")
    end = b.name()[1:]
    b.line(f"br i1 {more}, label %{body}, label %{end}")
    b.line(f"{end}:")
    return after


def _largest(
    k: _Kernel, rows: int, at: str, now: list[str], load_a: _Load, load_b: Callable[[str, str], str]
) -> list[str]:
    for i in range(_STEP):
        place = k.b.value(f"add i64 {at}, {i}")
        right = load_b("power", place)
        for row in range(rows):
            now[row] = k.greater(k.multiply(load_a("power", row, place), right), now[row])
    return now


def _sums(
    k: _Kernel, rows: int, at: str, now: list[str], load_a: _Load, load_b: Callable[[str, str], str], units: list[str]
) -> list[str]:
    b = k.b
    narrow: list[str | None] = [None] * rows
    for i in range(_STEP):
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


_PARAMETERS = (
    "ptr noalias readonly %a, ptr noalias readonly %ap, ptr noalias readonly %b, ptr noalias readonly %bp, ptr %c, "
    "ptr %out, i64 %rows, i64 %columns, i64 %k, i64 %stride.c, i64 %stride.out, i32 %fraction, i64 %mask, i64 %odd, "
    "i32 %least, i32 %keep"
)


def _count(b: _Body, limit: str, step: int, inner: Callable[[str], None]) -> None:
    """for (i = 0; i < limit; i += step)"""
    head, body, done = (b.name()[1:] for _ in range(3))
    counter = b.value("alloca i64")
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


def _rows_function(name: str, wide: bool, plain: bool) -> str:
    """D in rows. Four rows are computed together."""
    b = _Body()
    k = _Kernel(b, WIDTH, wide)
    k.constants()
    step = _plain if plain else _elements

    def block(row: str, column: str) -> None:
        places = [b.value(f"add i64 {row}, {i}") for i in range(_ROWS)]
        lines = [b.value(f"mul i64 {place}, %k") for place in places]

        def load_a(kind: str, number: int, at: str) -> str:
            index = b.value(f"add i64 {lines[number]}, {at}")
            place = b.value(f"getelementptr {k.kind}, ptr {'%a' if kind == 'value' else '%ap'}, i64 {index}")
            return k.spread(k.kind, b.value(f"load {k.kind}, ptr {place}"))

        def load_b(kind: str, at: str) -> str:
            index = b.value(f"add i64 {b.value(f'mul i64 {at}, %columns')}, {column}")
            place = b.value(f"getelementptr {k.kind}, ptr {'%b' if kind == 'value' else '%bp'}, i64 {index}")
            return b.value(f"load {k.v}, ptr {place}, align 4")

        def place_of(base: str, stride: str, number: int) -> str:
            index = b.value(f"add i64 {b.value(f'mul i64 {places[number]}, {stride}')}, {column}")
            return b.value(f"getelementptr float, ptr {base}, i64 {index}")

        addends = [k.addend(place_of("%c", "%stride.c", i)) for i in range(_ROWS)]
        for i, result in enumerate(step(k, _ROWS, addends, load_a, load_b)):
            target = place_of("%out", "%stride.out", i)
            b.line(f"store <{WIDTH} x float> {result}, ptr {target}, align 4")

    _count(b, "%columns", WIDTH, lambda column: _count(b, "%rows", _ROWS, lambda row: block(row, column)))
    b.line("ret void")
    return f"define void @{name}({_PARAMETERS}) #0 {{\n" + "\n".join(b.lines) + "\n}\n"


def _warp_function(name: str, wide: bool, plain: bool) -> str:
    """D as a warp has it: %c holds offsets of the registers from %out, the frame; a register is 32 elements.

    A is [row // 8][k][lane]; B is [column // 8][column % 2][k][column % 8 // 2]: four numbers for each register.
    """
    b = _Body()
    k = _Kernel(b, 32, wide)
    k.constants()
    step = _plain if plain else _elements
    quad = f"<4 x {k.kind}>"
    order = ", ".join(f"i32 {lane % 4}" for lane in range(32))

    def block(pair: str) -> None:  # two registers: element `pair % 2` of the rows' upper and lower half
        def load_a(kind: str, number: int, at: str) -> str:
            line = b.value(f"add i64 {at}, %k") if number else at
            index = b.value(f"mul i64 {line}, 32")
            place = b.value(f"getelementptr {k.kind}, ptr {'%a' if kind == 'value' else '%ap'}, i64 {index}")
            return b.value(f"load {k.v}, ptr {place}, align 4")

        def load_b(kind: str, at: str) -> str:
            line = b.value(f"add i64 {b.value(f'mul i64 {pair}, %k')}, {at}")
            index = b.value(f"mul i64 {line}, 4")
            place = b.value(f"getelementptr {k.kind}, ptr {'%b' if kind == 'value' else '%bp'}, i64 {index}")
            four = b.value(f"load {quad}, ptr {place}, align 4")
            return b.value(f"shufflevector {quad} {four}, {quad} poison, <32 x i32> <{order}>")

        tile = b.value(f"lshr i64 {pair}, 1")
        odd = b.value(f"and i64 {pair}, 1")
        first = b.value(f"add i64 {b.value(f'shl i64 {tile}, 2')}, {odd}")
        places = []
        for half in range(2):
            index = b.value(f"add i64 {first}, {2 * half}")
            offset = b.value(f"load i64, ptr {b.value(f'getelementptr i64, ptr %c, i64 {index}')}")
            places.append(b.value(f"getelementptr i8, ptr %out, i64 {offset}"))
        addends = [k.addend(place) for place in places]
        for place, result in zip(places, step(k, 2, addends, load_a, load_b), strict=True):
            b.line(f"store <32 x float> {result}, ptr {place}, align 4")

    _count(b, "%columns", 1, block)
    b.line("ret void")
    return f"define void @{name}({_PARAMETERS}) #0 {{\n" + "\n".join(b.lines) + "\n}\n"


def _declarations() -> str:
    lines = []
    for width in (WIDTH, 32):
        kind = f"<{width} x double>"
        lines += [f"declare {kind} @llvm.{f}.v{width}f64({kind})" for f in ("fabs", "trunc")]
    return "\n".join(lines) + "\n"


_FORMS = {"narrow": (False, False), "wide": (True, False), "plain": (False, True)}
NAMES = tuple(f"tile_{layout}_{form}" for layout in ("rows", "warp") for form in _FORMS)


def module(attributes: str) -> str:
    """All functions as LLVM IR."""
    functions = []
    for form, (wide, plain) in _FORMS.items():
        functions.append(_rows_function(f"tile_rows_{form}", wide, plain))
        functions.append(_warp_function(f"tile_warp_{form}", wide, plain))
    return _declarations() + "\n".join(functions) + f"\nattributes #0 = {{ {attributes} }}\n"


@cache
def functions() -> dict[str, Any] | None:
    """The compiled functions by name, from the disk cache where possible; None without llvmlite."""
    try:
        from . import jit, library
    except ImportError:
        return None
    disk = library.store()
    pieces = disk.pack(NAMES)
    if pieces is None:
        pieces = [(list(NAMES), jit.compile_object(module(jit.attributes(widest=True))))]
        disk.save_pack(NAMES, pieces)
    pointer, long, word = ctypes.c_void_p, ctypes.c_int64, ctypes.c_int32
    kind = ctypes.CFUNCTYPE(
        None, *[pointer] * 6, *[long] * 5, word, ctypes.c_uint64, ctypes.c_uint64, word, ctypes.c_uint32
    )
    return {name: kind(at) for name, at in jit.link_object(pieces[0][1], NAMES).items()}


def _at(array: Array) -> int:
    """Host address of an array's first element; `ctypes.data` would take three times as long."""
    return array.__array_interface__["data"][0]  # type: ignore[no-any-return]


def _form(t: Any, rounding: Rounding) -> str:
    return "plain" if not rounding.fraction else "wide" if t == np.float64 else "narrow"


def rows(a: tuple[Array, Array], b: tuple[Array, Array], c: Array | None, rounding: Rounding, out: Array) -> bool:
    """D = A * B + C into `out` (M x N, f32, rows may lie apart); false if there is no native code for it.

    a: values and powers, M x K; b: K x N; all f32, or all f64; N a multiple of 16, M of 4, K of 8. c: like out.
    """
    known = functions()
    if known is None:
        return False
    values, powers = a
    right, right_powers = b
    m, k = values.shape
    source = out if c is None else c
    known["tile_rows_" + _form(values.dtype, rounding)](
        _at(values), _at(powers), _at(right), _at(right_powers), _at(source),
        _at(out), m, right.shape[1], k, source.strides[0] // 4, out.strides[0] // 4, rounding.fraction,
        rounding.mask, rounding.odd, (127 - 14) << 23 if rounding.odd else 1 << 23, 0 if c is None else 0xFFFF_FFFF,
    )  # fmt: skip
    return True


def warp(
    a: tuple[Array, Array], b: tuple[Array, Array], frame: int, offsets: Array, rounding: Rounding, *, add: bool
) -> bool:
    """D = A * B, + D where `add`, in place in the registers of a warp; false if there is no native code for it.

    a: values and powers, 2 x K x 32 (upper and lower 8 rows; lane); b: N/8 x 2 x K x 4 (even and odd columns); all f32,
    or all f64. frame: address that `offsets` (i64, one for each of N/2 registers) count from.
    """
    known = functions()
    if known is None:
        return False
    values, powers = a
    right, right_powers = b
    known["tile_warp_" + _form(values.dtype, rounding)](
        _at(values), _at(powers), _at(right), _at(right_powers), _at(offsets),
        frame, 16, 2 * len(right), values.shape[1], 0, 0, rounding.fraction, rounding.mask, rounding.odd, 1 << 23,
        0xFFFF_FFFF if add else 0,
    )  # fmt: skip
    return True
