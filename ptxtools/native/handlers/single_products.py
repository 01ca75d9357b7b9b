"""Products of f16, bf16 and tf32 with sums of f32, 16 rows of A by 8 columns of B (9.7.14.5), by the chip's rule.

All of a column of D is one vector, and so is a column of A: sixteen rows. Elements of B are scalars on the stack. The
arithmetic is that of `tiles.sums`: terms in f32, cut off to whole numbers, whose sums are exact. That is for finite
factors, and where they have the exponents of f32, for those whose products stay clear of f32's limits; for others
`products` computes in f64.
"""

from __future__ import annotations

from collections.abc import Sequence

from ptxtools.native.code.algebra import LLVMAlgebra
from ptxtools.native.tiles.decode import SIZE
from ptxtools.native.tiles.interface import rounding_of
from ptxtools.native.tiles.sums import MOST_FRACTION, STEP, VectorSums
from ptxtools.program.program import LANES
from ptxtools.semantics import tensorcore
from ptxtools.semantics.accumulation import RESULTS
from ptxtools.semantics.algebra import Value
from ptxtools.semantics.fragments import Fragment

from . import transposed
from .operands import Tile

_ROWS = 16
_EXPONENT = 0x7F80_0000
_WORDS, _SINGLES = f"<{_ROWS} x i32>", f"<{_ROWS} x float>"
#: Columns of D that are computed together.
_TOGETHER = 4
_TYPES = ("f16", "bf16", "tf32")
#: Plain addends, of f16: f32 from 2**-95 on and below 2**64.
_LEAST_PLAIN, _MOST_PLAIN = 127 - 95 << 23, 127 + 64 << 23
#: For types with f32's exponents: the largest power of two of A, of a product, and of an element of B in units of the
#: last bit that is kept, which are 2**25 to the smallest product; and the least one of a product.
_MOST_A, _MOST_PRODUCT, _MOST_SPAN, _LEAST_PRODUCT = 100, 120, 100, -95


def suits(t: Tile) -> bool:
    """Whether a product is computed here."""
    product, rule = t.product, t.rule
    if rule is None or len(product.parts) != 1 or product.sparse or product.scale:
        return False
    types = product.atype in _TYPES and product.atype == product.btype and product.ctype == product.dtype == "f32"
    plain = (product.m, product.n) == (_ROWS, 8) and types
    return plain and 0 < rule.fraction <= MOST_FRACTION and rule.group == 1 and not (rule.late or rule.paired)


class SingleProduct:
    """The code of one product: `usable` comes first, `registers` after it."""

    def __init__(self, t: Tile) -> None:
        self.tile, self.code = t, t.code
        self.part, self.product = t.product.parts[0], t.product
        self.packed = self.part.a.packed
        self.columns: list[tuple[Value, Value]] = []  # values and powers of a column of A
        self.elements = self.element_powers = ""
        #: Columns of the registers of A and C, by their numbers.
        self.apart: dict[int, list[Value]] = {}
        #: Addends are only those of which nothing is lost when they are brought to the scale of the largest term, if
        #: there are no products but zero, and whose sums stay finite. Sums with products of f16 are such addends, too.
        rule = t.rule
        assert rule is not None
        fits = all(self._fits_words(len(columns)) for columns in rule.chunks(t.product.k))
        self.plain = t.product.atype == "f16" and fits

    def usable(self) -> str:
        """Decode the factors; i1: this code may compute with them."""
        e, t = self.code, self.tile
        A, wide = LLVMAlgebra(e, lanes=_ROWS), t.handler.algebra  # noqa: N806
        own: list[Value] = []
        for k in range(0, self.product.k, self.packed):
            word = self._rows(self.part.a, 0, k)
            for part in range(self.packed):
                value, power = self._decoded(A, A.shr_by("u32", word, 16 * part))
                self.columns.append((self._single(value), self._single(power)))
                own.append(power)
        count = self.packed * self.part.b.registers * LANES
        self.elements, self.element_powers = t.room("i32", count), t.room("i32", count)
        theirs: list[Value] = []
        for register in range(self.part.b.registers):
            word = t.source(t.first_b + register)
            for part in range(self.packed):
                value, power = self._decoded(wide, wide.shr_by("u32", word, 16 * part))
                theirs.append(power)
                at = (self.packed * register + part) * LANES
                for room, vector in ((self.elements, value), (self.element_powers, power)):
                    e.line(f"store <{LANES} x i32> {vector}, ptr {t.at(room, 'i32', at)}, align 64")
        usable = self._all_of(*self._limits(own, _ROWS), *self._limits(theirs, LANES))
        return e.value(f"and i1 {usable}, {self._plain_addends()}") if self.plain else usable

    def _plain_addends(self) -> str:
        """i1: all addends are zero, or far from the limits of f32."""
        e, words = self.code, f"<{LANES} x i32>"
        fine = ""
        for register in range(self.part.c.registers):
            word = self.tile.source(self.tile.first_c + register)
            size = e.value(f"and {words} {word}, splat (i32 {SIZE})")
            above = e.value(f"sub {words} {size}, splat (i32 {_LEAST_PLAIN})")
            near = e.value(f"icmp ult {words} {above}, splat (i32 {_MOST_PLAIN - _LEAST_PLAIN})")
            zero = e.value(f"icmp eq {words} {size}, zeroinitializer")
            both = e.value(f"or <{LANES} x i1> {near}, {zero}")
            fine = e.value(f"and <{LANES} x i1> {fine}, {both}") if fine else both
        return e.value(f"icmp eq i{LANES} {e.value(f'bitcast <{LANES} x i1> {fine} to i{LANES}')}, -1")

    def _limits(self, powers: Sequence[Value], lanes: int) -> tuple[str, str]:
        """The largest and the smallest exponent field of some elements, those of zeros left out (255 if there is no
        other)."""
        e, kind, found = self.code, f"<{lanes} x i32>", []
        for name, less in (("umax", "0"), ("umin", "1")):  # minus 1, zero is the largest number
            several = [e.value(f"sub {kind} {one}, splat (i32 {less})") if less != "0" else one for one in powers]
            while len(several) > 1:
                several = [e.apply(name, kind, *several[at : at + 2]) for at in range(0, len(several), 2)]
            one = e.call(f"llvm.vector.reduce.{name}.v{lanes}i32", "i32", [(kind, several[0])])
            field = e.value(f"lshr i32 {e.value(f'add i32 {one}, 1') if less != '0' else one}, 23")
            found.append(field)
        return found[0], found[1]

    def _all_of(self, most_a: str, least_a: str, most_b: str, least_b: str) -> str:
        """Whether factors with these exponents are finite, and their products and units are f32."""
        e, bias = self.code, 127
        conditions = [e.value(f"icmp ult i32 {most}, 255") for most in (most_a, most_b)]
        if self.product.atype != "f16":
            none = [e.value(f"icmp eq i32 {least}, 0") for least in (least_a, least_b)]  # only zeros
            nothing = e.value(f"or i1 {none[0]}, {none[1]}")
            smallest = e.value(f"add i32 {least_a}, {least_b}")
            largest = e.value(f"add i32 {most_a}, {most_b}")
            span = e.value(f"sub i32 {most_b}, {smallest}")
            limits = [
                e.value(f"icmp ule i32 {most_a}, {_MOST_A + bias}"),
                e.value(f"icmp ule i32 {largest}, {_MOST_PRODUCT + 2 * bias}"),
                e.value(f"icmp sle i32 {span}, {_MOST_SPAN - bias}"),
                e.value(f"icmp uge i32 {smallest}, {_LEAST_PRODUCT + 2 * bias}"),
            ]
            conditions += [e.value(f"or i1 {nothing}, {limit}") for limit in limits]
        fine = "true"
        for condition in conditions:
            fine = e.value(f"and i1 {fine}, {condition}")
        return fine

    def registers(self) -> list[Value]:
        """The registers of D."""
        e, t, n = self.code, self.tile, self.product.n
        rule = t.rule
        assert rule is not None
        rounding = rounding_of(rule)
        e.line(f"%rule.fraction = freeze i32 {rounding.fraction}")
        e.line(f"%rule.mask = freeze i64 {rounding.mask - (1 << 64)}")
        e.line(f"%rule.odd = freeze i64 {rounding.odd}")
        e.line(f"%rule.least = freeze i32 {rounding.least}")
        e.line("%rule.keep = freeze i32 -1")
        k = VectorSums(e, _ROWS, wide=False, rule="%rule.")
        k.constants()
        sums = t.room("i32", n * _ROWS)
        for column in range(n):
            c = self._rows(self.part.c, t.first_c, 0, column)
            e.line(f"store {_WORDS} {c}, ptr {t.at(sums, 'i32', column * _ROWS)}, align 64")
        for columns in rule.chunks(self.product.k):  # columns of D do not wait for each other
            index, close = t.loop(n // _TOGETHER)
            first = e.value(f"mul i32 {index}, {_TOGETHER}")
            chosen = [e.value(f"add i32 {first}, {number}") for number in range(_TOGETHER)]
            places = [t.at(sums, "i32", e.value(f"mul i32 {column}, {_ROWS}")) for column in chosen]
            addends = [e.value(f"load {_SINGLES}, ptr {place}, align 64") for place in places]
            for place, total in zip(places, self._added(k, columns, chosen, addends), strict=True):
                e.line(f"store {_SINGLES} {total}, ptr {place}, align 64")
            close()
        return self._results(sums)

    def _added(
        self, k: VectorSums, columns: Sequence[int], chosen: Sequence[str], addends: Sequence[Value]
    ) -> list[Value]:
        """Some columns of D with some columns of A multiplied and added, in step: none of them waits for another."""
        e, each = self.code, range(len(chosen))
        largest = [self._largest(k, columns, column) for column in chosen]
        if self.plain:
            most = [k.greater(largest[at], self._power(addends[at])) for at in each]
        else:
            most = [k.greater(largest[at], k.power_of(addends[at])) for at in each]
        units = [k.unit_of(one) for one in most]
        whole = [e.value(f"fptosi {_SINGLES} {k.multiply(addends[at], units[at])} to {_WORDS}") for at in each]
        if self._fits_words(len(columns)):
            for number in columns:
                for at in each:
                    whole[at] = e.value(f"add {_WORDS} {whole[at]}, {self._term(k, number, chosen[at], units[at])}")
            exact = [k.scaled_back(whole[at], units[at]) for at in each]
            if self.plain:
                return exact
            return [k.special(k.kept(exact[at], largest[at], addends[at]), addends[at]) for at in each]
        totals = [self._total(k, columns, chosen[at], units[at], whole[at]) for at in each]
        return [k.finish(totals[at], most[at], largest[at], addends[at]) for at in each]

    def _largest(self, k: VectorSums, columns: Sequence[int], column: str) -> Value:
        """The powers of the largest products, 0 where there are only zeros."""
        found = [k.multiply(self.columns[at][1], self._factor(self.element_powers, at, column)) for at in columns]
        while len(found) > 1:
            found = [k.greater(*found[at : at + 2]) for at in range(0, len(found), 2)]
        return found[0]

    def _power(self, addend: Value) -> Value:
        """2 to the exponent of a plain addend, or 0."""
        e = self.code
        bits = e.value(f"bitcast {_SINGLES} {addend} to {_WORDS}")
        return self._single(e.value(f"and {_WORDS} {bits}, splat (i32 {_EXPONENT})"))

    def _total(self, k: VectorSums, columns: Sequence[int], column: str, unit: Value, addend: Value) -> Value:
        """The sum of an addend and products in units, f64: some at a time in words."""
        e, whole, total = self.code, addend, ""
        for first in range(0, len(columns), STEP):
            for number in columns[first : first + STEP]:
                term = self._term(k, number, column, unit)
                whole = term if not whole else e.value(f"add {_WORDS} {whole}, {term}")
            wide = e.value(f"sitofp {_WORDS} {whole} to {k.doubles}")
            total = wide if not total else e.value(f"fadd {k.doubles} {total}, {wide}")
            whole = ""
        return total

    def _fits_words(self, terms: int) -> bool:
        """Whether the sum of so many products and the addend is below 2**31, and is a result's significand as it is but
        for the bits that f32 has no room for."""
        rule = self.tile.rule
        assert rule is not None
        exact = rule.format == RESULTS["f32"] and (terms + 1) << rule.fraction + 2 <= 1 << 31
        return exact and rule.fraction >= rule.format.fraction

    def _term(self, k: VectorSums, number: int, column: str, unit: Value) -> Value:
        """The products of a column of A, cut off to whole units."""
        scaled = k.multiply(unit, self._factor(self.elements, number, column))
        product = k.multiply(self.columns[number][0], scaled)
        return self.code.value(f"fptosi {_SINGLES} {product} to {_WORDS}")

    def _factor(self, room: str, number: int, column: str) -> Value:
        """An element of B in all rows: row `number`; the lanes of its columns are alike."""
        lane, register, bit = self.part.b.place(number, 0)
        after = self.part.b.place(number, 1)
        assert after[1:] == (register, bit)
        e, t = self.code, self.tile
        at = (self.packed * register + bit // 16) * LANES + lane
        index = e.value(f"add i32 {e.value(f'mul i32 {column}, {after[0] - lane}')}, {at}")
        return e.spread("float", e.value(f"load float, ptr {t.at(room, 'i32', index)}"), _ROWS)

    def _rows(self, fragment: Fragment, first: int, *place: int) -> Value:
        """The registers' words of sixteen rows: of the elements of A in a column, or of C in a column (0, column)."""
        column = place[-1]
        spots = [fragment.place(row, column) for row in range(_ROWS)]
        registers = sorted({register for _, register, _ in spots})
        halves = [self._half(first, spots[at : at + transposed.WIDTH]) for at in range(0, _ROWS, transposed.WIDTH)]
        if all(halves):
            return self.code.concatenate("i32", halves, transposed.WIDTH)
        words = [self.tile.source(first + register) for register in registers]
        order = [LANES * registers.index(register) + lane for lane, register, _ in spots]
        return self.code.shuffle(f"<{LANES} x i32>", order, *words)

    def _half(self, first: int, spots: Sequence[tuple[int, int, int]]) -> Value:
        """Words of eight rows that are every fourth lane of a register, where such are made apart; else ""."""
        lane, register, _ = spots[0]
        alike = [(lane + 4 * row, register) for row in range(len(spots))]
        if not self.code.unmasked or lane > 3 or alike != [(at, number) for at, number, _ in spots]:
            return ""
        if first + register not in self.apart:
            self.apart[first + register] = transposed.columns(self.code, self.tile.source(first + register))
        return self.apart[first + register][lane]

    def _results(self, sums: str) -> list[Value]:
        e, t, d = self.code, self.tile, self.part.d
        columns = [
            e.value(f"load {_WORDS}, ptr {t.at(sums, 'i32', column * _ROWS)}, align 64") for column in range(d.columns)
        ]
        spots: dict[tuple[int, int], tuple[int, int]] = {}
        for row in range(_ROWS):
            for column in range(d.columns):
                lane, register, _ = d.place(row, column)
                spots[register, lane] = (row, column)
        found = []
        for register in range(d.registers):
            places = [spots[register, lane] for lane in range(LANES)]
            if self.code.unmasked and places == [
                (places[0][0] + lane // 4, places[lane % 4][1]) for lane in range(LANES)
            ]:  # every fourth lane is of one column
                pieces = [
                    e.part("i32", _ROWS, columns[places[at][1]], places[0][0], transposed.WIDTH) for at in range(4)
                ]
                found.append(transposed.join(e, transposed.WIDTH, pieces))
                continue
            used = sorted({column for _, column in places})
            joined = e.concatenate("i32", [columns[column] for column in used], _ROWS)
            kind = f"<{_ROWS * len(used)} x i32>"
            found.append(e.shuffle(kind, [_ROWS * used.index(column) + row for row, column in places], joined))
        return found

    def _single(self, bits: Value) -> Value:
        return self.code.value(f"bitcast {_WORDS} {bits} to {_SINGLES}")

    def _decoded(self, A: LLVMAlgebra, word: Value) -> tuple[Value, Value]:  # noqa: N803
        """The element in the low bits of words as f32, and 2 to its exponent, 0 for zero; both as bits."""
        t = self.product.atype
        value = tensorcore.decode_single(A, t, word)
        least = A.real("f32", 2.0 ** tensorcore.LEAST[t])
        size = A.and_with("u32", value, 0x7FFF_FFFF)
        power = A.maximum("u32", A.and_with("u32", value, _EXPONENT), least)
        return value, A.select("u32", A.compare("eq", "u32", size, A.const("u32", 0)), A.const("u32", 0), power)
