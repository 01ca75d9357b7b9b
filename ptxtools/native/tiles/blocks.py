"""LLVM IR of products of factors that `factors` has arranged: D = A * B + C as tensor cores add (docs/numerics.md).

A block is 64 elements of D, four vectors. The largest exponent of each element comes from sums of 16-bit exponents.
Products are exact in f32; each is brought to the scale of its element and cut off to a whole number, and these are
added in 32 bits. That needs exponents in a certain range, and sums below 2**31: a block in which they are not is
computed in f64 instead, which is exact for all finite factors.

Layouts of D: "warp", the registers of a warp's 16 rows of wgmma (9.7.15.5.1.1), where a block is two registers, 16 rows
of four columns two apart; and "rows", where it is 64 columns of a row, or what is left of them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from ptxtools.machine.products import GROUP
from ptxtools.native.code.emitter import Emitter, splat
from ptxtools.records import dataclass

from .decode import SHORT, SINGLE, SIZE, WORD, everywhere
from .factors import NO_EXPONENT, TOGETHER
from .stored import HALVES, Stored
from .sums import VectorSums, chain_elements, elements, loop, unrolled

#: Elements of D in a block; vectors of 16 that it has.
BLOCK, VECTORS = GROUP * TOGETHER, TOGETHER
#: Greatest exponent of factors whose products are far from overflow in f32; lowest exponent of an element for which
#: the scales of its terms and of its sum are normal numbers of f32.
HIGHEST, LOWEST = 62, -100
#: Bias of the exponents of f32; biased exponents below the next number mean that there is no product; distance of the
#: lowest and the highest exponent.
_BIAS, _NOTHING = 127, -400
_RANGE = 127 - LOWEST
#: The greatest sum that is certain to stay below 2**31 when it is rounded to f32.
_LARGEST_SUM = 0x7FFF_FF7F

#: How products are added: as `Rule` says with its `fraction`; f32 multiply-adds in the order of K; the same in f64;
#: ones of "and" of single bits, of which a factor has 32 to a column; as the first, for what `fused` leaves: D is f32,
#: and brief code, of which little is called, is all in f64.
SUMS = ("", "plain", "wide", "bits", "rest")

COUNTING = "<" + ", ".join(f"i32 {i}" for i in range(16)) + ">"
_COMMON = "i32 %fraction, i64 %mask, i64 %odd, i32 %least, i32 %keep, i32 %form, i1 %force"
_FACTORS = (
    "ptr noalias readonly %a, ptr noalias readonly %ap, ptr noalias readonly %b, ptr noalias readonly %bp, ptr %c, "
)
PARAMETERS = {
    "warp": _FACTORS + "ptr %out, i64 %columns, i64 %k, " + _COMMON,
    "rows": _FACTORS + "ptr %out, i64 %rows, i64 %columns, i64 %k, i64 %stride.c, i64 %stride.out, " + _COMMON,
}


def name_of(layout: str, sums: str = "") -> str:
    """Symbol of the function for a layout and a way to add (`SUMS`)."""
    return f"tile_block_{layout}_{sums}".rstrip("_")


EXPAND = "tile_expand"
_OF_BOTH = ("", "plain", "rest")
_MADE = [*((layout, sums) for layout in PARAMETERS for sums in _OF_BOTH), ("rows", "wide"), ("warp", "bits")]
NAMES = (EXPAND, *(name_of(*made) for made in _MADE))


def function(code: Emitter, name: str) -> str:
    """IR of one of them.

    warp (a [k][64], their exponents, b, its exponents, i64 offsets of registers, frame, N, K, …): A's 16 rows stand
    four times each. rows (a, its exponents, b, its exponents, c, out, M, N, K, words between rows of c and of out, …).
    force: compute all blocks in f64. expand (values, exponents, K, sign bit to be turned, values and exponents for
    "warp"): a group of 16 rows with each four times.
    """
    if name == EXPAND:
        return _expand(code)
    layout, sums = _MADE[NAMES.index(name) - 1]
    return {"warp": _warp, "rows": _rows}[layout](code, name, sums)


#: Emits the load of something at a column of A.
Load: TypeAlias = Callable[[str], str]


@dataclass(frozen=True)
class _BlockOperands:
    """The operands of a block: `own` factors, a vector of f32 for each vector of D at a column of A, and `common` ones,
    the same for all; and their exponents (i16) for the whole block. Addresses of D and C: one for each vector. shift:
    where their halves begin in a word (i32), or "" if they have words of their own; some: elements that are stored, or
    "" for all."""

    own: Callable[[int, str], str]
    common: Load
    own_exponents: Load
    common_exponents: Load
    d: list[str]
    c: list[str]
    shift: str = ""
    some: str = ""


def _warp(code: Emitter, name: str, sums: str) -> str:
    """%c: offsets of the registers."""
    b, alone = code, _alone(code, sums)
    k = _sums_of_64(b)
    halves = b.value(f"icmp eq i32 %form, {HALVES}")
    each, column, lower = (b.value(f"select i1 {halves}, i64 {x}, i64 {y}") for x, y in ((2, 4), (0, 1), (1, 2)))
    bits = b.value(f"select i1 {halves}, i64 16, i64 0")

    def block(pair: str) -> None:  # columns of B are in groups of four: the even ones of eight, then the odd ones
        group, quad = b.value(f"lshr i64 {pair}, 2"), b.value(f"and i64 {pair}, 3")
        quad = b.value(f"shl i64 {quad}, 2")
        four = b.value(f"lshr i64 {pair}, 4")
        within = b.value(f"and i64 {pair}, 15")
        within = b.value(f"shl i64 {within}, 2")

        def value_b(at: str) -> str:
            line = b.value(f"add i64 {b.value(f'mul i64 {group}, %k')}, {at}")
            place = b.element("float", "%b", b.value(f"shl i64 {line}, 4"), quad)
            return _four_times(b, "float", b.value(f"load <4 x float>, ptr {place}, align 16"), 16)

        def exponents_b(at: str) -> str:
            line = b.value(f"add i64 {b.value(f'mul i64 {four}, %k')}, {at}")
            place = b.element("i16", "%bp", b.value(f"shl i64 {line}, 6"), within)
            return _four_times(b, "i16", b.value(f"load <4 x i16>, ptr {place}, align 8"), GROUP if alone else BLOCK)

        def value_a(vector: int, at: str) -> str:
            line = b.value(f"shl i64 {at}, 6")
            return b.value(f"load {SINGLE}, ptr {b.element('float', '%a', line, str(16 * vector))}, align 64")

        def exponents_a(at: str) -> str:
            return b.value(f"load <64 x i16>, ptr {b.element('<64 x i16>', '%ap', at)}, align 64")

        odd = b.value(f"and i64 {pair}, 1")
        first = b.value(f"mul i64 {b.value(f'lshr i64 {pair}, 1')}, {each}")
        first = b.value(f"add i64 {first}, {b.value(f'mul i64 {odd}, {column}')}")
        if alone:
            b.repeat(str(VECTORS), 1, lambda vector: one(first, vector, value_b, exponents_b))
            return
        places = []
        for half in ("0", lower):
            offset = b.value(f"load i64, ptr {b.element('i64', '%c', first, half)}")
            register = b.value(f"getelementptr i8, ptr %out, i64 {offset}")
            places += [register, b.element("float", register, "16")]
        shift = b.value(f"trunc i64 {b.value(f'mul i64 {odd}, {bits}')} to i32")
        _block(k, _BlockOperands(value_a, value_b, exponents_a, exponents_b, places, places, shift), sums, VECTORS)

    def one(first: str, vector: str, value_b: Load, exponents_b: Load) -> None:
        """A vector of a block."""
        register = b.value(f"add i64 {first}, {b.value(f'and i64 {vector}, 2')}")
        offset = b.value(f"load i64, ptr {b.element('i64', '%c', register)}")
        start = b.value(f"shl i64 {vector}, 4")
        place = b.value(f"getelementptr i8, ptr %out, i64 {offset}")
        place = b.element("float", place, b.value(f"and i64 {start}, 16"))

        def value_a(_: int, at: str) -> str:
            line = b.value(f"shl i64 {at}, 6")
            return b.value(f"load {SINGLE}, ptr {b.element('float', '%a', line, start)}, align 64")

        def exponents_a(at: str) -> str:
            line = b.value(f"shl i64 {at}, 6")
            return b.value(f"load {SHORT}, ptr {b.element('i16', '%ap', line, start)}, align 32")

        _block(k, _BlockOperands(value_a, value_b, exponents_a, exponents_b, [place], [place]), sums, 1)

    pairs = b.value("lshr i64 %columns, 2")
    b.repeat(pairs, 1, block)
    return b.function(name, PARAMETERS["warp"])


def _expand(code: Emitter) -> str:
    b = code

    def column(at: str) -> None:
        line = b.value(f"shl i64 {at}, 6")
        for quad in range(4):
            place = b.element("i32", "%a", b.value(f"shl i64 {at}, 4"), str(4 * quad))
            turned = b.spread("i32", "%sign", 4)
            four = b.value(f"xor <4 x i32> {b.value(f'load <4 x i32>, ptr {place}, align 16')}, {turned}")
            place = b.element("i32", "%out", line, str(16 * quad))
            b.line(f"store {WORD} {_each_four_times(b, 'i32', four)}, ptr {place}, align 64")
            place = b.element("i16", "%ap", line, str(4 * quad))
            four = b.value(f"load <4 x i16>, ptr {place}, align 8")
            place = b.element("i16", "%outp", line, str(16 * quad))
            b.line(f"store {SHORT} {_each_four_times(b, 'i16', four)}, ptr {place}, align 32")

    b.repeat("%k", 1, column)
    return b.function(EXPAND, "ptr %a, ptr %ap, i64 %k, i32 %sign, ptr %out, ptr %outp")


def _each_four_times(b: Emitter, kind: str, four: str) -> str:
    return b.shuffle(f"<4 x {kind}>", (i // 4 for i in range(16)), four)


def _rows(code: Emitter, name: str, sums: str) -> str:
    b = code
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
            place = b.element("float", "%a", line_of(group_a, at, 4), place_a)
            return k.spread("float", b.value(f"load float, ptr {place}"))

        def exponents_a(at: str) -> str:
            place = b.element("i16", "%ap", line_of(four_a, at, 6), within_a)
            return b.spread("i16", b.value(f"load i16, ptr {place}"), 16 * vectors)

        def value_b(vector: int, at: str) -> str:
            line = b.value(f"add i64 {lines[vector]}, {at}")
            return b.value(f"load {SINGLE}, ptr {b.element(SINGLE, '%b', line)}, align 64")

        def exponents_b(at: str) -> str:
            place = b.element("i16", "%bp", line_of(four_b, at, 6), within_b)
            return b.value(f"load <{16 * vectors} x i16>, ptr {place}, align 32")

        def places(base: str, stride: str) -> list[str]:
            line = b.value(f"add i64 {b.value(f'mul i64 {row}, {stride}')}, {column}")
            return [b.element("float", base, line, str(16 * i)) for i in range(vectors)]

        some = ""
        if vectors == 1:  # there may be fewer columns left than a vector has
            left = b.value(f"trunc i64 {b.value(f'sub i64 %columns, {column}')} to i32")
            some = b.value(f"icmp slt {WORD} {COUNTING}, {k.spread('i32', left)}")
        d, c = places("%out", "%stride.out"), places("%c", "%stride.c")
        _block(k, _BlockOperands(value_b, value_a, exponents_b, exponents_a, d, c, some=some), sums, vectors)

    whole = "0" if _alone(b, sums) else b.value("and i64 %columns, -64")
    rest = b.value(f"sub i64 %columns, {whole}")
    if whole != "0":
        b.repeat(whole, BLOCK, lambda column: b.repeat("%rows", 1, lambda row: block(row, column, VECTORS)))
    b.repeat(rest, 16,
        lambda more: b.repeat("%rows", 1, lambda row: block(row, b.value(f"add i64 {whole}, {more}"), 1)),
    )  # fmt: skip
    return b.function(name, PARAMETERS["rows"])


def _alone(b: Emitter, sums: str) -> bool:
    """Whether each vector of a block is to be computed by itself, for which LLVM takes less time."""
    return sums == "rest" and b.brief


def _sums_of_64(b: Emitter) -> VectorSums:
    k = VectorSums(b, 16, wide=True)
    k.constants()
    b.line(f"%bias = add i32 %fraction, {2 * _BIAS}")
    b.line(f"%cut = trunc i64 {b.value('lshr i64 %mask, 29')} to i32")
    b.line(f"%inexact = trunc i64 {b.value('lshr i64 %odd, 29')} to i32")
    return k


def _four_times(b: Emitter, kind: str, four: str, width: int) -> str:
    """Four elements, repeated."""
    return b.shuffle(f"<4 x {kind}>", (i % 4 for i in range(width)), four)


# --- one block --------------------------------------------------------------------------------------------------------


def _block(k: VectorSums, at: _BlockOperands, sums: str, vectors: int) -> None:
    rest = sums == "rest"
    stored = Stored(k, at.d, at.c, at.shift, at.some, single=rest)
    if sums == "bits":
        stored.store_whole(_counts(k.code, at, vectors))
        return
    addends, fields = stored.addends()
    if rest and k.code.brief:
        stored.store_singles(_Sums(k, at, vectors, addends, fields, stored).in_f64())
    elif sums and not rest:
        wide = sums == "wide"
        chain = VectorSums(k.code, 16, wide=wide)

        def own(_: str, i: int, where: str) -> str:
            return _widened(k.code, at.own(i, where), wide)

        def common(_: str, where: str) -> str:
            return _widened(k.code, at.common(where), wide)

        stored.store(chain_elements(chain, vectors, addends, own, common), whole=not wide)
    else:
        _Sums(k, at, vectors, addends, fields, stored).emit()


def _widened(b: Emitter, single: str, wide: bool) -> str:
    return b.value(f"fpext {SINGLE} {single} to <16 x double>") if wide else single


def _counts(b: Emitter, at: _BlockOperands, vectors: int) -> list[str]:
    """Ones that columns of single bits have in common."""

    def step(place: str, now: list[str]) -> list[str]:
        for i in range(unrolled(b)):
            column = b.value(f"add i64 {place}, {i}")
            common = b.value(f"bitcast {SINGLE} {at.common(column)} to {WORD}")
            for v in range(vectors):
                own = b.value(f"bitcast {SINGLE} {at.own(v, column)} to {WORD}")
                ones = b.apply("ctpop", WORD, b.value(f"and {WORD} {own}, {common}"))
                now[v] = b.value(f"add {WORD} {now[v]}, {ones}")
        return now

    return loop(b, vectors, WORD, "zeroinitializer", step, unrolled(b))


class _Sums:
    """The fast way, and a way in f64 for blocks that it cannot compute. Exponents are biased, as in f32."""

    def __init__(
        self, k: VectorSums, at: _BlockOperands, vectors: int, addends: list[str], fields: list[str], stored: Stored
    ) -> None:  # fmt: skip
        self.sums, self.code, self.at, self.vectors = k, k.code, at, vectors
        self.addends, self.fields, self.stored = addends, fields, stored
        self.short = f"<{16 * vectors} x i16>"

    def emit(self) -> None:
        b = self.code
        unusual, fast, slow, done, sums, cut, odd = (b.label() for _ in range(7))
        products = self._products()
        largest = [b.apply("smax", WORD, p, q) for p, q in zip(products, self.fields, strict=True)]
        before = b.label()
        b.jump(before)
        b.begin(before)
        wrong = b.value(f"or i1 %force, {_outside(b, largest)}")
        b.branch(wrong, unusual, fast)
        b.begin(unusual)
        bad, raised = self._raised(products, largest)
        b.branch(bad, slow, fast)
        b.begin(fast)
        exponents = [b.value(f"phi {WORD} [{x}, %{before}], [{y}, %{unusual}]")
                     for x, y in zip(largest, raised, strict=True)]  # fmt: skip
        totals, over = self._totals(exponents)
        b.branch(over, slow, sums)
        b.begin(sums)
        scales = [self._scale(b.value(f"sub {WORD} {e}, {self.sums.spread('i32', '%fraction')}")) for e in exponents]
        if not self.stored.single:
            b.branch(b.value("icmp eq i32 %inexact, 0"), cut, odd)
            b.begin(odd)
            self.stored.store_halves([self._to_odd(*pair) for pair in zip(totals, scales, strict=True)])
            b.jump(done)
            b.begin(cut)
        self.stored.store_singles([self._cut(*pair) for pair in zip(totals, scales, strict=True)])
        b.jump(done)
        b.begin(slow)
        self.stored.store(self.in_f64())
        b.jump(done)
        b.begin(done)

    def _products(self) -> list[str]:
        """The largest exponent among the products of each element, as i32."""
        b, kind = self.code, self.short

        def step(at: str, now: list[str]) -> list[str]:
            found = now[0]
            for i in range(unrolled(b)):
                place = b.value(f"add i64 {at}, {i}")
                total = b.value(f"add {kind} {self.at.own_exponents(place)}, {self.at.common_exponents(place)}")
                found = b.apply("smax", kind, total, found)
            return [found]

        (largest,) = loop(b, 1, kind, splat("i16", 2 * NO_EXPONENT), step, unrolled(b))
        biased = b.value(f"add {kind} {largest}, {splat('i16', _BIAS)}")
        parts = [b.part("i16", 16 * self.vectors, biased, 16 * i, 16) for i in range(self.vectors)]
        return [b.value(f"sext {SHORT} {part} to {WORD}") for part in parts]

    def _raised(self, products: list[str], largest: list[str]) -> tuple[str, list[str]]:
        """Whether some element, neither nothing at all nor in range, cannot be computed in the fast way; and exponents
        of the others, at least the lowest."""
        b = self.code
        wrong = []
        for product, addend, found in zip(products, self.addends, largest, strict=True):
            bits = b.value(f"bitcast {SINGLE} {addend} to {WORD}")
            size = b.value(f"and {WORD} {bits}, {everywhere(SIZE)}")
            some = b.value(f"or <16 x i1> {b.value(f'icmp ne {WORD} {size}, zeroinitializer')}, "
                           f"{b.value(f'icmp sgt {WORD} {product}, {everywhere(_NOTHING)}')}")  # fmt: skip
            wrong.append(b.value(f"and <16 x i1> {some}, {_is_outside(b, found)}"))
        raised = [b.apply("smax", WORD, found, everywhere(LOWEST + _BIAS)) for found in largest]
        return b.value(f"or i1 %force, {_any(b, wrong)}"), raised

    def _totals(self, exponents: list[str]) -> tuple[list[str], str]:
        """Sums of the terms in units of 2**-fraction of the largest exponent, and whether one is too large."""
        b = self.code
        bias = self.sums.spread("i32", "%bias")
        units = [self._scale(b.value(f"sub {WORD} {bias}, {exponent}")) for exponent in exponents]
        starts = [
            b.value(f"fptosi {SINGLE} {b.value(f'fmul {SINGLE} {addend}, {unit}')} to {WORD}")
            for addend, unit in zip(self.addends, units, strict=True)
        ]

        def step(at: str, now: list[str]) -> list[str]:
            # Eight terms stay below 2**30; if what they are added to does, too, nothing overflows.
            over = now[-1]
            for x in now[:-1]:
                near = b.value(f"xor {WORD} {x}, {b.value(f'add {WORD} {x}, {x}')}")
                over = b.value(f"or {WORD} {over}, {near}")
            parts: list[str] = []
            for i in range(unrolled(b)):
                place = b.value(f"add i64 {at}, {i}")
                common = self.at.common(place)
                for v in range(self.vectors):
                    product = b.value(f"fmul {SINGLE} {self.at.own(v, place)}, {common}")
                    scaled = b.value(f"fmul {SINGLE} {product}, {units[v]}")
                    whole = b.value(f"fptosi {SINGLE} {scaled} to {WORD}")
                    if i:
                        parts[v] = b.value(f"add {WORD} {parts[v]}, {whole}")
                    else:
                        parts.append(whole)
            sums = [b.value(f"add {WORD} {x}, {y}") for x, y in zip(now, parts, strict=False)]
            return [*sums, over]

        found = loop(b, self.vectors + 1, WORD, [*starts, "zeroinitializer"], step, unrolled(b))
        flags = [b.value(f"icmp slt {WORD} {found[-1]}, zeroinitializer")]
        if not self.code.rounds:
            flags += [b.value(f"icmp ugt {WORD} {_size(b, total)}, {everywhere(_LARGEST_SUM)}") for total in found[:-1]]
        return found[:-1], _any(b, flags)

    def _cut(self, total: str, scale: str) -> str:
        """The sum cut off to the result's precision, at its size."""
        b = self.code
        if b.rounds:
            bits = b.value(f"bitcast {SINGLE} {b.toward_zero(total)} to {WORD}")
            kept = b.value(f"and {WORD} {bits}, {self.sums.spread('i32', '%cut')}")
        else:
            kept = self._signed(
                total, b.value(f"and {WORD} {self._lower(total)[0]}, {self.sums.spread('i32', '%cut')}")
            )
        return b.value(f"fmul {SINGLE} {b.value(f'bitcast {WORD} {kept} to {SINGLE}')}, {scale}")

    def _lower(self, total: str) -> tuple[str, str]:
        """The size of a sum cut off to f32, as bits, and whether something was lost."""
        b = self.code
        size = _size(b, total)
        nearest = b.value(f"sitofp {WORD} {size} to {SINGLE}")
        back = b.value(f"fptosi {SINGLE} {nearest} to {WORD}")
        above = b.value(f"sext <16 x i1> {b.value(f'icmp sgt {WORD} {back}, {size}')} to {WORD}")
        bits = b.value(f"add {WORD} {b.value(f'bitcast {SINGLE} {nearest} to {WORD}')}, {above}")
        return bits, b.value(f"icmp ne {WORD} {back}, {size}")

    def _signed(self, total: str, bits: str) -> str:
        b = self.code
        return b.value(f"or {WORD} {bits}, {b.value(f'and {WORD} {total}, {everywhere(-(1 << 31))}')}")

    def _to_odd(self, total: str, scale: str) -> str:
        """The sum cut off, with its last bit set if something was lost, for a second rounding."""
        b = self.code
        bits, inexact = self._lower(total)
        kept = b.value(f"and {WORD} {bits}, {self.sums.spread('i32', '%cut')}")
        lost = b.value(f"or <16 x i1> {inexact}, {b.value(f'icmp ne {WORD} {bits}, {kept}')}")
        odd = b.value(f"select <16 x i1> {lost}, {WORD} {self.sums.spread('i32', '%inexact')}, {WORD} zeroinitializer")
        kept = self._signed(total, b.value(f"or {WORD} {kept}, {odd}"))
        return b.value(f"fmul {SINGLE} {b.value(f'bitcast {WORD} {kept} to {SINGLE}')}, {scale}")

    def _scale(self, field: str) -> str:
        """Powers of two of f32 from their biased exponents."""
        return self.code.value(f"bitcast {WORD} {self.code.value(f'shl {WORD} {field}, {everywhere(23)}')} to {SINGLE}")

    # --- in f64 -------------------------------------------------------------------------------------------------------

    def in_f64(self) -> list[str]:
        """The elements as f32, for all finite factors."""
        return elements(self.sums, self.vectors, self.addends, self._wide_own, self._wide_common)

    def _wide_own(self, kind: str, vector: int, at: str) -> str:
        if kind == "power":
            return self._power(self.at.own_exponents(at), vector)
        return self.code.value(f"fpext {SINGLE} {self.at.own(vector, at)} to <16 x double>")

    def _wide_common(self, kind: str, at: str) -> str:
        if kind == "power":
            return self._power(self.at.common_exponents(at), 0)
        return self.code.value(f"fpext {SINGLE} {self.at.common(at)} to <16 x double>")

    def _power(self, exponents: str, vector: int) -> str:
        """Powers of two of a vector's part of some exponents."""
        b = self.code
        part = b.part("i16", 16 * self.vectors, exponents, 16 * vector, 16)
        wide = b.value(f"sext {SHORT} {part} to <16 x i64>")
        field = b.value(f"add <16 x i64> {wide}, {splat('i64', '1023')}")
        bits = b.value(f"shl <16 x i64> {field}, {splat('i64', '52')}")
        none = b.value(f"icmp eq <16 x i64> {wide}, {splat('i64', NO_EXPONENT)}")
        bits = b.value(f"select <16 x i1> {none}, <16 x i64> zeroinitializer, <16 x i64> {bits}")
        return b.value(f"bitcast <16 x i64> {bits} to <16 x double>")


def _is_outside(b: Emitter, exponents: str) -> str:
    """Flags of biased exponents that the fast way does not have: too low, or of what is not finite."""
    return b.value(
        f"icmp ugt {WORD} {b.value(f'sub {WORD} {exponents}, {everywhere(LOWEST + _BIAS)}')}, {everywhere(_RANGE)}"
    )


def _outside(b: Emitter, exponents: list[str]) -> str:
    """Whether some of them are outside."""
    most = [b.value(f"sub {WORD} {one}, {everywhere(LOWEST + _BIAS)}") for one in exponents]
    found = most[0]
    for more in most[1:]:
        found = b.apply("umax", WORD, found, more)
    return _any(b, [b.value(f"icmp ugt {WORD} {found}, {everywhere(_RANGE)}")])


def _size(b: Emitter, total: str) -> str:
    return b.call("llvm.abs.v16i32", WORD, [(WORD, total), ("i1", "false")])


def _any(b: Emitter, flags: list[str]) -> str:
    """Whether any of these vectors of 16 flags has one."""
    found = flags[0]
    for more in flags[1:]:
        found = b.value(f"or <16 x i1> {found}, {more}")
    bits = b.value(f"bitcast <16 x i1> {found} to i16")
    return b.value(f"icmp ne i16 {bits}, 0")
