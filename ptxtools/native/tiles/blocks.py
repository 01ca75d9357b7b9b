"""LLVM IR of products of factors that `tilefactors` has arranged: D = A * B + C as tensor cores add (docs/numerics.md).

A block is 64 elements of D, four vectors. The largest exponent of each element comes from sums of 16-bit exponents.
Products are exact in f32; each is brought to the scale of its element and cut off to a whole number, and these are
added in 32 bits. That needs exponents in a certain range, and sums below 2**31: a block in which they are not is
computed in f64 instead, which is exact for all finite factors.

Layouts of D: "warp", the registers of a warp's 16 rows of wgmma (9.7.15.5.1.1), where a block is two registers, 16 rows
of four columns two apart; and "rows", where it is 64 columns of a row, or what is left of them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from .factors import NO_EXPONENT
from .sums import STEP, Body, VectorSums, chain_elements, element_of, elements, loop, repeat, splat

#: Elements of D in a block; vectors of 16 that it has.
BLOCK, VECTORS = 64, 4
#: Greatest exponent of factors whose products are far from overflow in f32; lowest exponent of an element for which
#: the scales of its terms and of its sum are normal numbers of f32.
HIGHEST, LOWEST = 62, -100
#: Exponents below this are those of no product, and of no addend.
_NOTHING = -600
#: The greatest sum that is certain to stay below 2**31 when it is rounded to f32.
_LARGEST_SUM = 0x7FFF_FF7F

_COMMON = "i32 %fraction, i64 %mask, i64 %odd, i32 %least, i32 %keep, i1 %force"
_FACTORS = (
    "ptr noalias readonly %a, ptr noalias readonly %ap, ptr noalias readonly %b, ptr noalias readonly %bp, ptr %c, "
)
PARAMETERS = {
    "warp": _FACTORS + "ptr %out, i64 %columns, i64 %k, " + _COMMON,
    "rows": _FACTORS + "ptr %out, i64 %rows, i64 %columns, i64 %k, i64 %stride.c, i64 %stride.out, " + _COMMON,
}
_WORD, _SINGLE = "<16 x i32>", "<16 x float>"


def name_of(layout: str, *, plain: bool) -> str:
    """Symbol of the function for a layout; plain: f32 multiply-adds in the order of K."""
    return f"tile_block_{layout}{'_plain' if plain else ''}"


EXPAND = "tile_expand"
NAMES = (EXPAND, *(name_of(layout, plain=plain) for layout in PARAMETERS for plain in (False, True)))


def functions() -> list[str]:
    """IR of all of them.

    warp (a [k][64], their exponents, b, its exponents, i64 offsets of registers, frame, N, K, …): A's 16 rows stand
    four times each. rows (a, its exponents, b, its exponents, c, out, M, N, K, words between rows of c and of out, …).
    force: compute all blocks in f64. expand (values, exponents, K, sign bit to be turned, values and exponents for
    "warp"): a group of 16 rows with each four times.
    """
    return [_expand()] + [
        make(name_of(layout, plain=plain), plain)
        for layout, make in (("warp", _warp), ("rows", _rows))
        for plain in (False, True)
    ]


@dataclass(frozen=True)
class _BlockOperands:
    """A block's operands: `own` factors, a vector of f32 for each vector of D at a column of A, and `common` ones, the
    same for all; their exponents (i16) for the whole block. Addresses of D and C: one for each vector."""

    own: Callable[[int, str], str]
    common: Callable[[str], str]
    own_exponents: Callable[[str], str]
    common_exponents: Callable[[str], str]
    d: list[str]
    c: list[str]


def _warp(name: str, plain: bool) -> str:
    """%c: offsets of the registers."""
    b = Body()
    k = _sums_of_64(b)

    def block(pair: str) -> None:  # columns of B stand in fours: even ones of eight, odd ones of eight
        group, quad = b.value(f"lshr i64 {pair}, 2"), b.value(f"and i64 {pair}, 3")
        quad = b.value(f"shl i64 {quad}, 2")
        four = b.value(f"lshr i64 {pair}, 4")
        within = b.value(f"and i64 {pair}, 15")
        within = b.value(f"shl i64 {within}, 2")

        def value_b(at: str) -> str:
            line = b.value(f"add i64 {b.value(f'mul i64 {group}, %k')}, {at}")
            place = element_of(b, "float", "%b", b.value(f"shl i64 {line}, 4"), quad)
            return _four_times(b, "float", b.value(f"load <4 x float>, ptr {place}, align 16"), 16)

        def exponents_b(at: str) -> str:
            line = b.value(f"add i64 {b.value(f'mul i64 {four}, %k')}, {at}")
            place = element_of(b, "i16", "%bp", b.value(f"shl i64 {line}, 6"), within)
            return _four_times(b, "i16", b.value(f"load <4 x i16>, ptr {place}, align 8"), BLOCK)

        def value_a(vector: int, at: str) -> str:
            line = b.value(f"shl i64 {at}, 6")
            return b.value(f"load {_SINGLE}, ptr {element_of(b, 'float', '%a', line, str(16 * vector))}, align 64")

        def exponents_a(at: str) -> str:
            return b.value(f"load <64 x i16>, ptr {element_of(b, '<64 x i16>', '%ap', at)}, align 64")

        tile = b.value(f"shl i64 {b.value(f'lshr i64 {pair}, 1')}, 2")
        first = b.value(f"add i64 {tile}, {b.value(f'and i64 {pair}, 1')}")
        places = []
        for half in range(2):
            offset = b.value(f"load i64, ptr {element_of(b, 'i64', '%c', first, str(2 * half))}")
            register = b.value(f"getelementptr i8, ptr %out, i64 {offset}")
            places += [register, b.value(f"getelementptr i8, ptr {register}, i64 64")]
        _block(k, _BlockOperands(value_a, value_b, exponents_a, exponents_b, places, places), plain, VECTORS)

    pairs = b.value("lshr i64 %columns, 2")
    repeat(b, pairs, 1, block)
    return b.function(name, PARAMETERS["warp"])


def _expand() -> str:
    b = Body()

    def column(at: str) -> None:
        line = b.value(f"shl i64 {at}, 6")
        for quad in range(4):
            place = element_of(b, "i32", "%a", b.value(f"shl i64 {at}, 4"), str(4 * quad))
            turned = b.value("insertelement <4 x i32> poison, i32 %sign, i64 0")
            turned = b.value(f"shufflevector <4 x i32> {turned}, <4 x i32> poison, <4 x i32> zeroinitializer")
            four = b.value(f"xor <4 x i32> {b.value(f'load <4 x i32>, ptr {place}, align 16')}, {turned}")
            place = element_of(b, "i32", "%out", line, str(16 * quad))
            b.line(f"store {_WORD} {_each_four_times(b, 'i32', four)}, ptr {place}, align 64")
            place = element_of(b, "i16", "%ap", line, str(4 * quad))
            four = b.value(f"load <4 x i16>, ptr {place}, align 8")
            place = element_of(b, "i16", "%outp", line, str(16 * quad))
            b.line(f"store <16 x i16> {_each_four_times(b, 'i16', four)}, ptr {place}, align 32")

    repeat(b, "%k", 1, column)
    return b.function(EXPAND, "ptr %a, ptr %ap, i64 %k, i32 %sign, ptr %out, ptr %outp")


def _each_four_times(b: Body, kind: str, four: str) -> str:
    order = ", ".join(f"i32 {i // 4}" for i in range(16))
    return b.value(f"shufflevector <4 x {kind}> {four}, <4 x {kind}> poison, <16 x i32> <{order}>")


def _rows(name: str, plain: bool) -> str:
    """Columns are a multiple of 16."""
    b = Body()
    k = _sums_of_64(b)

    def block(row: str, column: str, vectors: int) -> None:
        group_a, place_a = b.value(f"lshr i64 {row}, 4"), b.value(f"and i64 {row}, 15")
        four_a, within_a = b.value(f"lshr i64 {row}, 6"), b.value(f"and i64 {row}, 63")
        group_b = b.value(f"lshr i64 {column}, 4")
        four_b, within_b = b.value(f"lshr i64 {column}, 6"), b.value(f"and i64 {column}, 63")
        lines = [b.value(f"mul i64 {b.value(f'add i64 {group_b}, {i}')}, %k") for i in range(vectors)]

        def line_of(group: str, at: str, shift: int) -> str:
            line = b.value(f"mul i64 {group}, %k")
            return b.value(f"shl i64 {b.value(f'add i64 {line}, {at}')}, {shift}")

        def value_a(at: str) -> str:
            place = element_of(b, "float", "%a", line_of(group_a, at, 4), place_a)
            return k.spread("float", b.value(f"load float, ptr {place}"))

        def exponents_a(at: str) -> str:
            place = element_of(b, "i16", "%ap", line_of(four_a, at, 6), within_a)
            one, kind = b.value(f"load i16, ptr {place}"), f"<{16 * vectors} x i16>"
            first = b.value(f"insertelement {kind} poison, i16 {one}, i64 0")
            return b.value(f"shufflevector {kind} {first}, {kind} poison, <{16 * vectors} x i32> zeroinitializer")

        def value_b(vector: int, at: str) -> str:
            line = b.value(f"add i64 {lines[vector]}, {at}")
            return b.value(f"load {_SINGLE}, ptr {element_of(b, _SINGLE, '%b', line)}, align 64")

        def exponents_b(at: str) -> str:
            place = element_of(b, "i16", "%bp", line_of(four_b, at, 6), within_b)
            return b.value(f"load <{16 * vectors} x i16>, ptr {place}, align 32")

        def places(base: str, stride: str) -> list[str]:
            line = b.value(f"add i64 {b.value(f'mul i64 {row}, {stride}')}, {column}")
            return [element_of(b, "float", base, line, str(16 * i)) for i in range(vectors)]

        d, c = places("%out", "%stride.out"), places("%c", "%stride.c")
        _block(k, _BlockOperands(value_b, value_a, exponents_b, exponents_a, d, c), plain, vectors)

    whole = b.value("and i64 %columns, -64")
    rest = b.value(f"sub i64 %columns, {whole}")
    repeat(b, whole, BLOCK, lambda column: repeat(b, "%rows", 1, lambda row: block(row, column, VECTORS)))
    repeat(
        b, rest, 16,
        lambda more: repeat(b, "%rows", 1, lambda row: block(row, b.value(f"add i64 {whole}, {more}"), 1)),
    )  # fmt: skip
    return b.function(name, PARAMETERS["rows"])


def _sums_of_64(b: Body) -> VectorSums:
    k = VectorSums(b, 16, wide=True)
    k.constants()
    b.line("%bias = add i32 %fraction, 127")
    b.line(f"%cut = trunc i64 {b.value('lshr i64 %mask, 29')} to i32")
    b.line(f"%inexact = trunc i64 {b.value('lshr i64 %odd, 29')} to i32")
    b.line(f"%least.exponent = sub i32 {b.value('lshr i32 %least, 23')}, 127")
    return k


def _four_times(b: Body, kind: str, four: str, width: int) -> str:
    """Four elements again and again."""
    order = ", ".join(f"i32 {i % 4}" for i in range(width))
    return b.value(f"shufflevector <4 x {kind}> {four}, <4 x {kind}> poison, <{width} x i32> <{order}>")


# --- one block --------------------------------------------------------------------------------------------------------


def _block(k: VectorSums, at: _BlockOperands, plain: bool, vectors: int) -> None:
    addends = [k.addend(c) for c in at.c]
    if plain:
        narrow = VectorSums(k.b, 16, wide=False)
        results = chain_elements(
            narrow, vectors, addends, lambda _, i, where: at.own(i, where), lambda _, where: at.common(where)
        )
        _store(k.b, results, at.d)
    else:
        _Sums(k, at, vectors, addends).emit()


def _store(b: Body, results: list[str], places: list[str]) -> None:
    for result, place in zip(results, places, strict=True):
        b.line(f"store {_SINGLE} {result}, ptr {place}, align 4")


class _Sums:
    """The fast way, and the way in f64 for what it cannot do."""

    def __init__(self, k: VectorSums, at: _BlockOperands, vectors: int, addends: list[str]) -> None:
        self.k, self.b, self.at, self.vectors, self.addends = k, k.b, at, vectors, addends
        self.short = f"<{16 * vectors} x i16>"

    def emit(self) -> None:
        b = self.b
        fast, slow, done, sums = (b.name()[1:] for _ in range(4))
        exponents, bad = self._exponents()
        b.line(f"br i1 {b.value(f'or i1 %force, {bad}')}, label %{slow}, label %{fast}")
        b.line(f"{fast}:")
        totals, over = self._totals(exponents)
        b.line(f"br i1 {over}, label %{slow}, label %{sums}")
        b.line(f"{sums}:")
        results = [self._result(i, totals[i], exponents[i]) for i in range(self.vectors)]
        _store(b, results, self.at.d)
        b.line(f"br label %{done}")
        b.line(f"{slow}:")
        _store(b, elements(self.k, self.vectors, self.addends, self._wide_own, self._wide_common), self.at.d)
        b.line(f"br label %{done}")
        b.line(f"{done}:")

    def _exponents(self) -> tuple[list[str], str]:
        """The largest exponent of each element, as i32, and whether there is one that is too low."""
        b, kind = self.b, self.short

        def step(at: str, now: list[str]) -> list[str]:
            found = now[0]
            for i in range(STEP):
                place = b.value(f"add i64 {at}, {i}")
                total = b.value(f"add {kind} {self.at.own_exponents(place)}, {self.at.common_exponents(place)}")
                found = _call(b, "smax", kind, total, found)
            return [found]

        (largest,) = loop(b, 1, kind, splat(str(2 * NO_EXPONENT), "i16", 16 * self.vectors), step)
        exponents, low = [], []
        for i, addend in enumerate(self.addends):
            order = ", ".join(f"i32 {16 * i + lane}" for lane in range(16))
            part = b.value(f"shufflevector {kind} {largest}, {kind} poison, <16 x i32> <{order}>")
            found = _call(b, "smax", _WORD, b.value(f"sext <16 x i16> {part} to {_WORD}"), self._own(addend))
            raised = _call(b, "smax", _WORD, found, _all(LOWEST))
            some = b.value(f"icmp sgt {_WORD} {found}, {_all(_NOTHING)}")
            below = b.value(f"icmp slt {_WORD} {found}, {_all(LOWEST)}")
            low.append(b.value(f"and <16 x i1> {some}, {below}"))
            exponents.append(raised)
        return exponents, _any(b, low)

    def _own(self, addend: str) -> str:
        """Exponents of the addend; of zero that of nothing."""
        b = self.b
        bits = b.value(f"bitcast {_SINGLE} {addend} to {_WORD}")
        size = b.value(f"and {_WORD} {bits}, {_all(0x7FFF_FFFF)}")
        own = b.value(f"sub {_WORD} {b.value(f'lshr {_WORD} {size}, {_all(23)}')}, {_all(127)}")
        own = _call(b, "smax", _WORD, own, self.k.spread("i32", "%least.exponent"))
        zero = b.value(f"icmp eq {_WORD} {size}, zeroinitializer")
        return b.value(f"select <16 x i1> {zero}, {_WORD} {_all(NO_EXPONENT)}, {_WORD} {own}")

    def _totals(self, exponents: list[str]) -> tuple[list[str], str]:
        """Sums of the terms in units of 2**-fraction of the largest exponent, and whether one is too large."""
        b = self.b
        bias = self.k.spread("i32", "%bias")
        units = [self._scale(b.value(f"sub {_WORD} {bias}, {exponent}")) for exponent in exponents]
        starts = []
        for addend, unit in zip(self.addends, units, strict=True):
            size = _call(b, "fabs", _SINGLE, addend)
            finite = b.value(f"fcmp olt {_SINGLE} {size}, {splat('0x7FF0000000000000', 'float', 16)}")
            safe = b.value(f"select <16 x i1> {finite}, {_SINGLE} {addend}, {_SINGLE} zeroinitializer")
            starts.append(b.value(f"fptosi {_SINGLE} {b.value(f'fmul {_SINGLE} {safe}, {unit}')} to {_WORD}"))

        def step(at: str, now: list[str]) -> list[str]:
            parts: list[str] = []
            for i in range(STEP):
                place = b.value(f"add i64 {at}, {i}")
                common = self.at.common(place)
                for v in range(self.vectors):
                    product = b.value(f"fmul {_SINGLE} {self.at.own(v, place)}, {common}")
                    scaled = b.value(f"fmul {_SINGLE} {product}, {units[v]}")
                    whole = b.value(f"fptosi {_SINGLE} {scaled} to {_WORD}")
                    if i:
                        parts[v] = b.value(f"add {_WORD} {parts[v]}, {whole}")
                    else:
                        parts.append(whole)
            sums = [b.value(f"add {_WORD} {x}, {y}") for x, y in zip(now, parts, strict=False)]
            # Where both have one sign and the sum has the other, it has overflowed; eight terms alone never do.
            over = now[-1]
            for x, y, z in zip(now, parts, sums, strict=False):
                signs = b.value(f"and {_WORD} {b.value(f'xor {_WORD} {x}, {z}')}, {b.value(f'xor {_WORD} {y}, {z}')}")
                over = b.value(f"or {_WORD} {over}, {signs}")
            return [*sums, over]

        found = loop(b, self.vectors + 1, _WORD, [*starts, "zeroinitializer"], step)
        flags = [b.value(f"icmp slt {_WORD} {found[-1]}, zeroinitializer")]
        for total in found[:-1]:
            size = _size(b, total)
            flags.append(b.value(f"icmp ugt {_WORD} {size}, {_all(_LARGEST_SUM)}"))
        return found[:-1], _any(b, flags)

    def _result(self, i: int, total: str, exponent: str) -> str:
        """The sum cut off to the result's precision, at its size."""
        b = self.b
        size = _size(b, total)
        nearest = b.value(f"sitofp {_WORD} {size} to {_SINGLE}")
        back = b.value(f"fptosi {_SINGLE} {nearest} to {_WORD}")
        above = b.value(f"sext <16 x i1> {b.value(f'icmp sgt {_WORD} {back}, {size}')} to {_WORD}")
        bits = b.value(f"add {_WORD} {b.value(f'bitcast {_SINGLE} {nearest} to {_WORD}')}, {above}")
        kept = b.value(f"and {_WORD} {bits}, {self.k.spread('i32', '%cut')}")
        lost = b.value(f"or <16 x i1> {b.value(f'icmp ne {_WORD} {back}, {size}')}, "
                       f"{b.value(f'icmp ne {_WORD} {bits}, {kept}')}")  # fmt: skip
        odd = self.k.spread("i32", "%inexact")
        odd = b.value(f"select <16 x i1> {lost}, {_WORD} {odd}, {_WORD} zeroinitializer")
        kept = b.value(f"or {_WORD} {kept}, {odd}")
        sign = b.value(f"and {_WORD} {total}, {_all(-(1 << 31))}")
        single = b.value(f"bitcast {_WORD} {b.value(f'or {_WORD} {kept}, {sign}')} to {_SINGLE}")
        field = b.value(f"add {_WORD} {exponent}, {_all(127)}")
        down = self._scale(b.value(f"sub {_WORD} {field}, {self.k.spread('i32', '%fraction')}"))
        return self.k.special(b.value(f"fmul {_SINGLE} {single}, {down}"), self.addends[i])

    def _scale(self, field: str) -> str:
        """Powers of two of f32 from their biased exponents."""
        return self.b.value(f"bitcast {_WORD} {self.b.value(f'shl {_WORD} {field}, {_all(23)}')} to {_SINGLE}")

    # --- in f64 -------------------------------------------------------------------------------------------------------

    def _wide_own(self, kind: str, vector: int, at: str) -> str:
        if kind == "power":
            return self._power(self.at.own_exponents(at), vector)
        return self.b.value(f"fpext {_SINGLE} {self.at.own(vector, at)} to <16 x double>")

    def _wide_common(self, kind: str, at: str) -> str:
        if kind == "power":
            return self._power(self.at.common_exponents(at), 0)
        return self.b.value(f"fpext {_SINGLE} {self.at.common(at)} to <16 x double>")

    def _power(self, exponents: str, vector: int) -> str:
        """Powers of two of a vector's part of some exponents."""
        b, kind = self.b, self.short
        order = ", ".join(f"i32 {16 * vector + lane}" for lane in range(16))
        part = b.value(f"shufflevector {kind} {exponents}, {kind} poison, <16 x i32> <{order}>")
        wide = b.value(f"sext <16 x i16> {part} to <16 x i64>")
        field = b.value(f"add <16 x i64> {wide}, {splat('1023', 'i64', 16)}")
        bits = b.value(f"shl <16 x i64> {field}, {splat('52', 'i64', 16)}")
        none = b.value(f"icmp eq <16 x i64> {wide}, {splat(str(NO_EXPONENT), 'i64', 16)}")
        bits = b.value(f"select <16 x i1> {none}, <16 x i64> zeroinitializer, <16 x i64> {bits}")
        return b.value(f"bitcast <16 x i64> {bits} to <16 x double>")


def _all(number: int) -> str:
    return splat(str(number), "i32", 16)


def _call(b: Body, function: str, kind: str, *arguments: str) -> str:
    width, element = kind[1:-1].split(" x ")
    suffix = f"v{width}{element.replace('float', 'f32')}"
    return b.value(f"call {kind} @llvm.{function}.{suffix}({', '.join(f'{kind} {x}' for x in arguments)})")


def _size(b: Body, total: str) -> str:
    return b.value(f"call {_WORD} @llvm.abs.v16i32({_WORD} {total}, i1 false)")


def _any(b: Body, flags: list[str]) -> str:
    """Whether any of these vectors of 16 flags has one."""
    found = flags[0]
    for more in flags[1:]:
        found = b.value(f"or <16 x i1> {found}, {more}")
    bits = b.value(f"bitcast <16 x i1> {found} to i16")
    return b.value(f"icmp ne i16 {bits}, 0")


def declarations() -> str:
    """Intrinsics that these functions and those of `tilefactors` call."""
    word, wide, short = "<16 x i32>", "<64 x i16>", "<16 x i16>"
    return (
        "\n".join(
            [
                f"declare {word} @llvm.smax.v16i32({word}, {word})",
                f"declare {wide} @llvm.smax.v64i16({wide}, {wide})",
                f"declare {short} @llvm.smax.v16i16({short}, {short})",
                f"declare {word} @llvm.abs.v16i32({word}, i1)",
                f"declare {_SINGLE} @llvm.fabs.v16f32({_SINGLE})",
                f"declare i32 @llvm.vector.reduce.smax.v16i32({word})",
            ]
        )
        + "\n"
    )
