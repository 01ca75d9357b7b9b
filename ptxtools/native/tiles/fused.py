"""LLVM IR of products with sums of f32 on CPUs with AVX-512: multiply, cut off and add in one instruction.

An f64 multiply-add that rounds toward zero does all three, if what it adds to has its last bit at the unit of its
element, `fraction` bits below the largest exponent. So a sum begins with 1.5 * 2**52 units, and the low half of its
bits is the sum in units, as an integer. As that number is positive, terms are rounded down. Those that are negative and
no whole number of units must be one more, and they are counted: if the lowest bits of two factors are 2**i and 2**j,
that of their product is 2**(i + j).

Exponents and lowest bits are bytes, relative to a base for each factor, so that none is above `_TOP`; a factor whose
bits span more than 32 places has `NO_BASE`. A block of D is 64 elements, as in `blocks`, and a chunk two blocks, whose
factor with 64 rows is the same (`own`; `common` is the other). While the terms of a chunk are added, the largest
exponents of the next one are found. Chunks that this cannot compute go through the functions of `blocks`: exponents out
of range, or sums that may leave 32 bits.

The bytes of a block lie as AVX-512 packs its four vectors: four elements of each, the next four of each, and so on.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence

from ptxtools.machine.products import GROUP
from ptxtools.native.code.emitter import ZERO, Emitter, splat

from . import blocks
from .decode import SINGLE, SIZE, WORD, everywhere
from .factors import TOGETHER

LAYOUTS = ("warp", "rows")
COMMON = "tile_fused_common"
#: Features that the code needs.
NEEDED = frozenset({"avx512f", "avx512bw", "avx512dq", "avx512vl"})
_BIAS, _WIDE_BIAS = 127, 1023
#: The greatest exponent of a factor beside its base; what is added to exponents of lowest bits, which are then from 0
#: to `_TOP` + `_ROOM`; that of zero, more than all sums of others and less than 64.
_TOP, _ROOM, _LOW_OF_ZERO = 15, 16, 63
#: The lowest biased exponent of an element; what is added to sums of exponents, which are then 1 and more, and 0 if a
#: factor is zero.
_LOWEST, _SHIFT = _BIAS + blocks.LOWEST, 2 * _ROOM + 1
_BELOW = 128 - _SHIFT
_BYTES, _DOUBLES, _BYTE16 = "<64 x i8>", "<8 x double>", "<16 x i8>"
#: Rows of the common factor that lie together for each k.
_NEAR = 8
#: Columns of A in a turn of the loop.
_TURN = 8
#: Bits of AVX-512's rounding: toward zero, no exceptions.
_TOWARD_ZERO = "11"

_CHUNKS = (
    "ptr noalias readonly %own, ptr noalias readonly %owne, ptr noalias readonly %ownl, ptr noalias readonly %common, "
    "ptr noalias readonly %commone, ptr noalias readonly %commonl, ptr %out, i64 %count, i64 %k, i32 %base, "
)
_OTHERWISE = "ptr %other, ptr %a, ptr %ap, ptr %b, ptr %bp, "
_RULE = "i32 %fraction, i64 %mask, i64 %odd, i32 %least, i32 %keep, i32 %form"
PARAMETERS = {
    "warp": _CHUNKS + "ptr %c, " + _OTHERWISE + "ptr %expand, i32 %sign, ptr %a4, ptr %ap4, " + _RULE,
    "rows": _CHUNKS + "i64 %stride, " + _OTHERWISE + _RULE,
}


def name_of(layout: str) -> str:
    """Symbol of the function for a layout."""
    return f"tile_fused_{layout}"


def own_of(layout: str) -> str:
    """Symbol of the function that converts the factor with 64 rows."""
    return f"tile_fused_own_{layout}"


#: What is compiled together.
GROUPS = ((COMMON,), *((name_of(layout), own_of(layout)) for layout in LAYOUTS))
NAMES = tuple(name for group in GROUPS for name in group)


def possible(features: Iterable[str]) -> bool:
    """Whether a CPU with these features has the instructions."""
    return NEEDED.issubset(features)


def functions(code: Emitter, names: Collection[str] = NAMES) -> list[str]:
    """IR of them, if the CPU has the instructions.

    Conversions of what `factors` has arranged (values, exponents, groups of 16, K, greatest exponent, sign bit to be
    turned; out: f64, exponents, lowest bits) return the base, or `NO_BASE`. common: [eight rows][k][8]. own for
    "warp", one group: f64 [k][32], rows twice; bytes [k][64], rows four times. own for "rows", of 64 columns: [k][64],
    f64 in the order in which vectors of two words are unpacked.

    Products (own, its exponents and lowest bits, common, its, D, blocks, K, sum of both bases, …): "warp" with offsets
    of registers, "rows" with words between rows; then what `blocks` needs for a chunk.
    """
    if not possible(code.features):
        return []
    stores = {COMMON: _common, own_of("warp"): _own_of_warp, own_of("rows"): _own_of_rows}
    found = [_conversion(code, name, store) for name, store in stores.items() if name in names]
    return found + [_Product(code, layout).function() for layout in LAYOUTS if name_of(layout) in names]


# --- conversions ------------------------------------------------------------------------------------------------------

#: Stores a column of 16 rows, after its group and its place in K: f64, exponents, lowest bits.
Store = Callable[[Emitter, str, str, str, str, str], None]
#: Instead of a base, where the bits of a factor span too much.
NO_BASE = 1 << 20
_CONVERSION = (
    "ptr %values, ptr %exponents, i64 %groups, i64 %k, i32 %most, i32 %sign, ptr %wide, ptr %powers, ptr %lowest"
)


def _conversion(code: Emitter, name: str, store: Store) -> str:
    b = code
    floor = b.apply("smax", "i32", "%most", str(-_BIAS - 23))
    base = b.value(f"sub i32 {floor}, {_TOP}")
    bases, turned = b.spread("i32", base, 16), b.spread("i32", "%sign", 16)
    least = b.room(WORD)
    b.line(f"store {WORD} {ZERO}, ptr {least}, align 64")
    to_low = b.value(f"add {WORD} {bases}, {everywhere(2 * _BIAS + 23 - _ROOM)}")
    short = b.spread("i16", b.value(f"trunc i32 {base} to i16"), 16)

    def column(group: str, at: str) -> None:
        line = b.value(f"add i64 {b.value(f'mul i64 {group}, %k')}, {at}")
        bits = b.value(f"load {WORD}, ptr {b.element(WORD, '%values', line)}, align 64")
        bits = b.value(f"xor {WORD} {bits}, {turned}")
        four = b.value(f"mul i64 {b.value(f'lshr i64 {group}, 2')}, %k")
        four = b.value(f"shl i64 {b.value(f'add i64 {four}, {at}')}, 2")
        within = b.value(f"and i64 {group}, {TOGETHER - 1}")
        powers = b.value(f"load <16 x i16>, ptr {b.element('<16 x i16>', '%exponents', four, within)}, align 32")
        powers = b.value(f"sub <16 x i16> {powers}, {short}")
        powers = b.value(f"trunc <16 x i16> {b.apply('smax', '<16 x i16>', powers, splat('i16', -128))} to {_BYTE16}")
        store(b, group, at, bits, powers, _lowest_bits(b, bits, to_low, least))

    def spans_too_much() -> str:
        known = b.value(f"load {WORD}, ptr {least}, align 64")
        return b.value(f"icmp slt i32 {b.call('llvm.vector.reduce.smin.v16i32', 'i32', [(WORD, known)])}, 0")

    def columns(group: str) -> None:
        work, done = b.label(), b.label()
        b.branch(spans_too_much(), done, work)
        b.begin(work)
        b.repeat("%k", 1, lambda at: column(group, at))
        b.jump(done)
        b.begin(done)

    b.repeat("%groups", 1, columns)
    answer = b.value(f"select i1 {spans_too_much()}, i32 {NO_BASE}, i32 {base}")
    return b.function(name, _CONVERSION, answer)


def _lowest_bits(b: Emitter, bits: str, to_low: str, least: str) -> str:
    """Bytes: exponents of the lowest bits of f32, which are to be above 0, and the signs."""
    size = b.value(f"and {WORD} {bits}, {everywhere(SIZE)}")
    fraction = b.value(f"and {WORD} {bits}, {everywhere((1 << 23) - 1)}")
    whole = b.value(f"or {WORD} {fraction}, {everywhere(1 << 23)}")
    last = b.value(f"and {WORD} {whole}, {b.value(f'sub {WORD} {ZERO}, {whole}')}")
    place = b.value(f"bitcast {SINGLE} {b.value(f'sitofp {WORD} {last} to {SINGLE}')} to {WORD}")
    shift, field = (b.value(f"lshr {WORD} {x}, {everywhere(23)}") for x in (place, size))
    field = b.apply("umax", WORD, field, everywhere(1))
    low = b.value(f"sub {WORD} {b.value(f'add {WORD} {shift}, {field}')}, {to_low}")
    zero = b.value(f"icmp eq {WORD} {size}, {ZERO}")
    low = b.value(f"select <16 x i1> {zero}, {WORD} {everywhere(_LOW_OF_ZERO)}, {WORD} {low}")
    known = b.value(f"load {WORD}, ptr {least}, align 64")
    b.line(f"store {WORD} {b.apply('smin', WORD, low, known)}, ptr {least}, align 64")
    sign = b.value(f"and {WORD} {b.value(f'lshr {WORD} {bits}, {everywhere(24)}')}, {everywhere(128)}")
    return b.value(f"trunc {WORD} {b.value(f'or {WORD} {low}, {sign}')} to {_BYTE16}")


def _wide(b: Emitter, bits: str, order: Sequence[int]) -> str:
    """Eight of 16 f32 as f64."""
    values = b.value(f"bitcast {WORD} {bits} to {SINGLE}")
    return b.value(f"fpext <8 x float> {b.shuffle(SINGLE, order, values)} to {_DOUBLES}")


def _common(b: Emitter, group: str, at: str, bits: str, powers: str, lowest: str) -> None:
    twice = b.value(f"shl i64 {group}, 1")
    for half in range(2):
        line = b.value(f"mul i64 {b.value(f'add i64 {twice}, {half}')}, %k")
        line = b.value(f"add i64 {line}, {at}")
        order = range(_NEAR * half, _NEAR * half + _NEAR)
        b.line(f"store {_DOUBLES} {_wide(b, bits, order)}, ptr {b.element(_DOUBLES, '%wide', line)}, align 64")
        for some, base in ((powers, "%powers"), (lowest, "%lowest")):
            part = b.part("i8", 16, some, _NEAR * half, _NEAR)
            b.line(f"store <8 x i8> {part}, ptr {b.element('<8 x i8>', base, line)}, align 8")


def _own_of_warp(b: Emitter, _: str, at: str, bits: str, powers: str, lowest: str) -> None:
    for v in range(4):
        place = b.element("double", "%wide", b.value(f"shl i64 {at}, 5"), str(8 * v))
        b.line(f"store {_DOUBLES} {_wide(b, bits, [4 * v + i // 2 for i in range(8)])}, ptr {place}, align 64")
    order = [4 * (i // 4 % 4) + i // 16 for i in range(64)]
    for some, base in ((powers, "%powers"), (lowest, "%lowest")):
        b.line(f"store {_BYTES} {b.shuffle(_BYTE16, order, some)}, ptr {b.element(_BYTES, base, at)}, align 64")


def _own_of_rows(b: Emitter, group: str, at: str, bits: str, powers: str, lowest: str) -> None:
    line = b.value(f"add i64 {b.value(f'shl i64 {at}, 6')}, {b.value(f'shl i64 {group}, 4')}")
    for half in range(2):
        order = [4 * (i // 2) + 2 * half + i % 2 for i in range(8)]
        place = b.element("double", "%wide", line, str(8 * half))
        b.line(f"store {_DOUBLES} {_wide(b, bits, order)}, ptr {place}, align 64")
    for some, base in ((powers, "%powers"), (lowest, "%lowest")):
        four = b.value(f"bitcast {_BYTE16} {some} to <4 x i32>")
        for i in range(4):
            place = b.element("i32", base, b.value(f"shl i64 {at}, 4"), group, str(4 * i))
            b.line(f"store i32 {b.value(f'extractelement <4 x i32> {four}, i32 {i}')}, ptr {place}, align 4")


# --- products ---------------------------------------------------------------------------------------------------------


class _Product:
    """The function for a layout under construction. The vectors of a chunk's blocks have numbers 0 to 3 and 4 to 7."""

    def __init__(self, code: Emitter, layout: str) -> None:
        self.code, self.layout = code, layout
        #: Rows of `common` in a block.
        self.rows = 4 if layout == "warp" else 1
        self.nothing = splat("i8", -128)

    def _everywhere(self, expression: str) -> str:
        return self.code.spread("i32", self.code.value(expression), 16)

    def _constants(self) -> None:
        b = self.code
        self.kinds = [WORD] * 8 + [_BYTES] * 4
        self.rooms = [b.room(kind) for kind in self.kinds]
        self.units = self._everywhere(f"shl i32 {b.value(f'add i32 %fraction, {2 * _BIAS}')}, 23")
        self.down = self._everywhere("shl i32 %fraction, 23")
        self.cut = self._everywhere(f"trunc i64 {b.value('lshr i64 %mask, 29')} to i32")
        start = (_WIDE_BIAS - _BIAS + 52 << 20) + (1 << 19)
        self.start = self._everywhere(f"sub i32 {start}, {b.value('shl i32 %fraction, 20')}")
        self.keep = b.spread("i32", "%keep", 16)
        self.only = b.value(f"and {WORD} {self.keep}, {everywhere(255 << 23)}")
        # What makes biased exponents of products of those that begin at 0.
        bias = b.value(f"add i32 %base, {_BIAS - 128}")
        both = [b.apply("smax", "i32", x, "0") for x in (bias, b.value(f"sub i32 0, {bias}"))]
        both = [b.value(f"trunc i32 {b.apply('umin', 'i32', x, '255')} to i8") for x in both]
        self.more, self.less = (b.spread("i8", x, 64) for x in both)
        self.offset = self._everywhere(f"add i32 %base, {_BIAS - _SHIFT}")
        # An exponent less this is the sum that exponents of lowest bits must have.
        least = b.value(f"add i32 {b.value('add i32 %base, %fraction')}, {_BIAS - 2 * _ROOM}")
        self.least = b.spread("i8", b.value(f"trunc i32 {least} to i8"), 64)
        self.possible = b.value(f"icmp ule i32 {least}, 255")

    def function(self) -> str:
        """One loop over chunks; what it cannot compute is left to `blocks` before anything is stored."""
        b = self.code
        self._constants()
        restart, begin, look, usual, slow, store, end = (b.label() for _ in range(7))
        entry = self._here()
        b.jump(restart)

        b.begin(restart)
        first, after = b.name(), b.name()
        b.line(f"{first} = phi i64 [0, %{entry}], [{after}, %{slow}]")
        fresh = self._largest(first)
        found = self._here()
        b.branch(self.possible, begin, slow)

        b.begin(begin)
        chunk, following = b.name(), b.name()
        largest, ahead_largest = [b.name(), b.name()], [b.name(), b.name()]
        b.line(f"{chunk} = phi i64 [{first}, %{found}], [{following}, %{store}]")
        for name, one, other in zip(largest, fresh, ahead_largest, strict=True):
            b.line(f"{name} = phi {_BYTES} [{one}, %{found}], [{other}, %{store}]")
        places = self._places(chunk)
        above = [b.value(f"xor {_BYTES} {x}, {self.nothing}") for x in largest]
        sums = [b.apply("usub.sat", _BYTES, x, splat("i8", _BELOW)) for x in above]
        biased = [b.apply("usub.sat", _BYTES, b.apply("uadd.sat", _BYTES, x, self.more), self.less) for x in above]
        exponents = [
            b.apply("umax", WORD, self._field(place), self._of_vector(biased[i // 4], i % 4))
            for i, place in enumerate(places)
        ]
        packed = self._packed(exponents)
        # What is seldom used, or only once all terms are added, is not to stay in registers.
        for value, kind, room in zip([*exponents, *packed, *sums], self.kinds, self.rooms, strict=True):
            b.line(f"store {kind} {value}, ptr {room}, align 64")
        none = [b.value(f"icmp eq {_BYTES} {x}, {ZERO}") for x in sums]
        b.branch(self._any([*none, *self._outside(packed)]), look, usual)
        b.begin(look)
        bad = self._raise(places)
        looked = self._here()
        b.branch(bad, slow, usual)

        b.begin(usual)
        exponents, packed = self._kept(0, 8), self._kept(8, 10)
        starts = [part for place, exponent in zip(places, exponents, strict=True)
                  for part in self._start(self._word(place), exponent)]  # fmt: skip
        b.line(f"{following} = add i64 {chunk}, 2")
        last = b.value(f"icmp uge i64 {following}, %count")
        ahead = b.value(f"select i1 {last}, i64 {chunk}, i64 {following}")
        totals, counts, now = self._add(chunk, ahead, starts, packed)
        for name, value in zip(ahead_largest, now, strict=True):
            b.line(f"{name} = freeze {_BYTES} {value}")
        results, over = self._results(totals, counts)
        added = self._here()
        b.branch(over, slow, store)

        b.begin(store)
        for total, exponent, place in zip(results, self._kept(0, 8), places, strict=True):
            field = b.value(f"shl {WORD} {exponent}, {everywhere(23)}")
            scale = b.value(f"bitcast {WORD} {b.value(f'sub {WORD} {field}, {self.down}')} to {SINGLE}")
            bits = b.value(f"and {WORD} {b.value(f'bitcast {SINGLE} {b.toward_zero(total)} to {WORD}')}, {self.cut}")
            result = b.value(f"fmul {SINGLE} {b.value(f'bitcast {WORD} {bits} to {SINGLE}')}, {scale}")
            b.line(f"store {SINGLE} {result}, ptr {place}, align 4")
        b.branch(last, end, begin)

        b.begin(slow)
        failed = self._phi("i64", (first, found), (chunk, looked), (chunk, added))
        self._otherwise(failed)
        b.line(f"{after} = add i64 {failed}, 2")
        b.branch(b.value(f"icmp ult i64 {after}, %count"), restart, end)
        b.begin(end)
        return b.function(name_of(self.layout), PARAMETERS[self.layout])

    def _here(self) -> str:
        """The label of a block that begins here."""
        label = self.code.label()
        self.code.jump(label)
        self.code.begin(label)
        return label

    def _phi(self, kind: str, *ways: tuple[str, str]) -> str:
        return self.code.value(f"phi {kind} " + ", ".join(f"[{value}, %{label}]" for value, label in ways))

    def _any(self, flags: Sequence[str]) -> str:
        """Whether any of these vectors of 64 flags has one."""
        b = self.code
        found = flags[0]
        for more in flags[1:]:
            found = b.value(f"or <64 x i1> {found}, {more}")
        return b.value(f"icmp ne i64 {b.value(f'bitcast <64 x i1> {found} to i64')}, 0")

    def _loop(
        self, turn: int, kinds: list[str], starts: list[str], step: Callable[[str, list[str]], list[str]]
    ) -> list[str]:
        """for (k = 0; k < %k; k += turn) with these values carried; each step is one k."""
        b = self.code
        body, end = b.label(), b.label()
        before = self._here()
        b.jump(body)
        b.begin(body)
        k, following = b.name(), b.name()
        now, after = [b.name() for _ in kinds], [b.name() for _ in kinds]
        b.line(f"{k} = phi i64 [0, %{before}], [{following}, %{body}]")
        for kind, name, start, new in zip(kinds, now, starts, after, strict=True):
            b.line(f"{name} = phi {kind} [{start}, %{before}], [{new}, %{body}]")
        values = now
        for i in range(turn):
            values = step(b.value(f"add i64 {k}, {i}"), values)
        for kind, name, value in zip(kinds, after, values, strict=True):
            b.line(f"{name} = freeze {kind} {value}")
        b.line(f"{following} = add i64 {k}, {turn}")
        b.branch(b.value(f"icmp ult i64 {following}, %k"), body, end)
        b.begin(end)
        return after

    # --- the factor with few rows -------------------------------------------------------------------------------------

    def _index(self, chunk: str, near: int = _NEAR) -> str:
        """Index of a chunk's first row for the first k, if so many rows lie together."""
        b = self.code
        row = b.value(f"mul i64 {chunk}, {self.rows}")
        line = b.value(f"mul i64 {b.value(f'udiv i64 {row}, {near}')}, %k")
        within = b.value(f"and i64 {row}, {near - 1}")
        return b.value(f"add i64 {b.value(f'mul i64 {line}, {near}')}, {within}")

    def _bytes(self, base: str, index: str, block: int) -> str:
        """A byte of each row of a block of `common`, for all elements."""
        b = self.code
        place = b.element("i8", base, index, str(self.rows * block))
        if self.rows == 1:
            return b.spread("i8", b.value(f"load i8, ptr {place}"), 64)
        word = b.value(f"load i32, ptr {place}, align 4")
        return b.value(f"bitcast {WORD} {b.spread('i32', word, 16)} to {_BYTES}")

    def _values(self, index: str, block: int) -> list[str]:
        """f64 of `common` for the two halves of a block's vectors."""
        b = self.code
        place = b.element("double", "%common", index, str(self.rows * block))
        if self.rows == 1:
            return [b.spread("double", b.value(f"load double, ptr {place}"), 8)] * 2
        result = []
        for half in range(2):
            two = b.value(f"load <2 x double>, ptr {b.element('double', place, str(2 * half))}, align 16")
            result.append(b.shuffle("<2 x double>", [i % 2 for i in range(8)], two))
        return result

    # --- exponents ----------------------------------------------------------------------------------------------------

    def _greater(self, k: str, index: str, now: list[str]) -> list[str]:
        """The largest sums of exponents of both blocks with those for one more k."""
        b = self.code
        own = b.value(f"load {_BYTES}, ptr {b.element(_BYTES, '%owne', k)}, align 64")
        sums = [b.apply("sadd.sat", _BYTES, own, self._bytes("%commone", index, block)) for block in range(2)]
        return [b.apply("smax", _BYTES, known, one) for known, one in zip(now, sums, strict=True)]

    def _largest(self, chunk: str) -> list[str]:
        b, first = self.code, self._index(chunk)
        return self._loop(
            1, [_BYTES] * 2, [self.nothing] * 2,
            lambda k, now: self._greater(k, b.value(f"add i64 {first}, {b.value(f'mul i64 {k}, {_NEAR}')}"), now),
        )  # fmt: skip

    def _of_vector(self, packed: str, number: int) -> str:
        """The bytes of one of a block's vectors, as i32."""
        b = self.code
        order = [16 * (i // 16) + 4 * number + i % 16 // 4 if i % 4 == 0 else 64 for i in range(64)]
        return b.value(f"bitcast {_BYTES} {b.shuffle(_BYTES, order, packed, ZERO)} to {WORD}")

    def _of_products(self, sums: list[str], number: int) -> tuple[str, str]:
        """Biased exponents of products for a vector, wrong where there are none; and what they come from."""
        found = self._of_vector(sums[number // 4], number % 4)
        return self.code.value(f"add {WORD} {found}, {self.offset}"), found

    def _packed(self, exponents: list[str]) -> list[str]:
        """Biased exponents as bytes."""
        b = self.code
        pairs = [
            b.call("llvm.x86.avx512.packssdw.512", "<32 x i16>", [(WORD, x), (WORD, y)])
            for x, y in zip(exponents[::2], exponents[1::2], strict=True)
        ]
        return [
            b.call("llvm.x86.avx512.packuswb.512", _BYTES, [("<32 x i16>", x), ("<32 x i16>", y)])
            for x, y in zip(pairs[::2], pairs[1::2], strict=True)
        ]

    def _outside(self, packed: list[str]) -> list[str]:
        """Flags of exponents that this does not have."""
        b, lowest = self.code, splat("i8", _LOWEST)
        above = splat("i8", 2 * _BIAS - _LOWEST)
        return [b.value(f"icmp ugt {_BYTES} {b.value(f'sub {_BYTES} {x}, {lowest}')}, {above}") for x in packed]

    def _raise(self, places: list[str]) -> str:
        """Exponents of chunks where some elements have no products: at least the lowest. Whether that is wrong, as the
        element is not nothing at all, or another exponent is outside."""
        b = self.code
        sums = self._kept(10, 12)
        wrong, raised = "", []
        for i, place in enumerate(places):
            word = self._word(place)
            known, found = self._of_products(sums, i)
            none = b.value(f"icmp eq {WORD} {found}, {ZERO}")
            known = b.value(f"select <16 x i1> {none}, {WORD} {ZERO}, {WORD} {known}")
            exponent = b.apply("smax", WORD, known, self._field(place))
            some = b.value(f"or {WORD} {found}, {b.value(f'and {WORD} {word}, {everywhere(SIZE)}')}")
            flag = b.value(f"and <16 x i1> {b.value(f'icmp ne {WORD} {some}, {ZERO}')}, "
                           f"{b.value(f'icmp slt {WORD} {exponent}, {everywhere(_LOWEST)}')}")  # fmt: skip
            wrong = b.value(f"or <16 x i1> {wrong}, {flag}") if wrong else flag
            raised.append(b.apply("smax", WORD, exponent, everywhere(_LOWEST)))
        packed = self._packed(raised)
        for value, kind, room in zip([*raised, *packed], self.kinds, self.rooms, strict=False):
            b.line(f"store {kind} {value}, ptr {room}, align 64")
        low = b.value(f"icmp ne i16 {b.value(f'bitcast <16 x i1> {wrong} to i16')}, 0")
        return b.value(f"or i1 {low}, {self._any(self._outside(packed))}")

    def _kept(self, first: int, end: int) -> list[str]:
        """What has been stored: exponents of vectors; the same as bytes, of blocks; sums of exponents, of blocks."""
        rows = list(zip(self.kinds, self.rooms, strict=True))[first:end]
        return [self.code.value(f"load {kind}, ptr {room}, align 64") for kind, room in rows]

    # --- sums ---------------------------------------------------------------------------------------------------------

    def _start(self, word: str, exponent: str) -> list[str]:
        """1.5 * 2**52 units, and the addend in whole ones, for the two halves of a vector."""
        b = self.code
        field = b.value(f"shl {WORD} {exponent}, {everywhere(23)}")
        unit = b.value(f"bitcast {WORD} {b.value(f'sub {WORD} {self.units}, {field}')} to {SINGLE}")
        scaled = b.value(f"fmul {SINGLE} {b.value(f'bitcast {WORD} {word} to {SINGLE}')}, {unit}")
        whole = b.value(f"fptosi {SINGLE} {scaled} to {WORD}")
        high = b.value(f"add {WORD} {b.value(f'shl {WORD} {exponent}, {everywhere(20)}')}, {self.start}")
        high = b.value(f"add {WORD} {high}, {b.value(f'ashr {WORD} {whole}, {everywhere(31)}')}")
        orders = [[4 * (i // 4) + half + i % 4 // 2 + 16 * (i % 2) for i in range(16)] for half in (0, 2)]
        return [b.value(f"bitcast {WORD} {b.shuffle(WORD, order, whole, high)} to {_DOUBLES}") for order in orders]

    def _add(
        self, chunk: str, ahead: str, starts: list[str], exponents: list[str]
    ) -> tuple[list[str], list[str], list[str]]:
        """Sums with all terms, counts of terms that were rounded away from zero, and the largest exponents of the
        chunk `ahead`."""
        b = self.code
        first, after = self._index(chunk), self._index(ahead)
        limits = []
        for x in exponents:
            needed = b.apply("umin", _BYTES, b.apply("usub.sat", _BYTES, x, self.least), splat("i8", _LOW_OF_ZERO))
            limits.append(b.value(f"xor {_BYTES} {needed}, {self.nothing}"))

        def step(k: str, now: list[str]) -> list[str]:
            sums, counts, largest = now[:16], now[16:18], now[18:]
            line = b.value(f"mul i64 {k}, {_NEAR}")
            index = b.value(f"add i64 {first}, {line}")
            commons = [self._values(index, block) for block in range(2)]
            for number in range(8):  # of a half of a vector; those of "warp" have the same
                own = number // 2 if self.layout == "warp" else number
                place = b.element(
                    _DOUBLES, "%own", b.value(f"mul i64 {k}, {4 if self.layout == 'warp' else 8}"), str(own)
                )
                value = b.value(f"load {_DOUBLES}, ptr {place}, align 64")
                for block in range(2):
                    at = 8 * block + number
                    given = [(_DOUBLES, x) for x in (value, commons[block][number % 2], sums[at])]
                    sums[at] = b.call("llvm.x86.avx512.vfmadd.pd.512", _DOUBLES, [*given, ("i32", _TOWARD_ZERO)])
            low = b.value(f"load {_BYTES}, ptr {b.element(_BYTES, '%ownl', k)}, align 64")
            for block in range(2):
                lowest = b.value(f"add {_BYTES} {low}, {self._bytes('%commonl', index, block)}")
                ones = b.value(f"sext <64 x i1> {b.value(f'icmp slt {_BYTES} {lowest}, {limits[block]}')} to {_BYTES}")
                counts[block] = b.value(f"sub {_BYTES} {counts[block]}, {ones}")
            return [*sums, *counts, *self._greater(k, b.value(f"add i64 {after}, {line}"), largest)]

        kinds = [_DOUBLES] * 16 + [_BYTES] * 4
        found = self._loop(_TURN, kinds, [*starts, ZERO, ZERO, self.nothing, self.nothing], step)
        return found[:16], found[16:18], found[18:]

    def _results(self, totals: list[str], counts: list[str]) -> tuple[list[str], str]:
        """Sums in units, and whether one of them is not certain to be in 32 bits."""
        b = self.code
        results, over = [], ""
        for number in range(8):
            parts = [b.value(f"bitcast {_DOUBLES} {x} to {WORD}") for x in totals[2 * number : 2 * number + 2]]
            low, high = (
                b.shuffle(WORD, [4 * (i // 4) + (0, 2, 16, 18)[i % 4] + word for i in range(16)], *parts)
                for word in range(2)
            )
            result = b.value(f"add {WORD} {low}, {self._of_vector(counts[number // 4], number % 4)}")
            differs = b.value(f"xor {WORD} {high}, {b.value(f'ashr {WORD} {result}, {everywhere(31)}')}")
            over = b.value(f"or {WORD} {over}, {differs}") if over else differs
            results.append(result)
        # The low byte of the high half has the sign of the sum.
        lost = b.value(f"icmp ne {WORD} {b.value(f'and {WORD} {over}, {everywhere(255)}')}, {ZERO}")
        return results, b.value(f"icmp ne i16 {b.value(f'bitcast <16 x i1> {lost} to i16')}, 0")

    # --- D ------------------------------------------------------------------------------------------------------------

    def _word(self, place: str) -> str:
        """Elements of C, zeros if it is not added."""
        b = self.code
        return b.value(f"and {WORD} {b.value(f'load {WORD}, ptr {place}, align 4')}, {self.keep}")

    def _field(self, place: str) -> str:
        """Their biased exponents."""
        b = self.code
        bits = b.value(f"and {WORD} {b.value(f'load {WORD}, ptr {place}, align 4')}, {self.only}")
        return b.value(f"lshr {WORD} {bits}, {everywhere(23)}")

    def _places(self, chunk: str) -> list[str]:
        """Addresses of the vectors of D."""
        b = self.code
        result = []
        if self.layout == "rows":
            for block in range(2):
                line = b.value(f"mul i64 {b.value(f'add i64 {chunk}, {block}')}, %stride")
                result += [b.element("float", "%out", line, str(16 * i)) for i in range(4)]
            return result
        registers = b.value(f"shl i64 {chunk}, 1")
        for register in (0, 2, 1, 3):
            offset = b.value(f"load i64, ptr {b.element('i64', '%c', registers, str(register))}")
            place = b.value(f"getelementptr i8, ptr %out, i64 {offset}")
            result += [place, b.element("float", place, "16")]
        return result

    def _otherwise(self, chunk: str) -> None:
        """A chunk by the functions of `blocks`."""
        b = self.code
        values, powers = self._index(chunk, GROUP), self._index(chunk, GROUP * TOGETHER)
        rule = "i32 %fraction, i64 %mask, i64 %odd, i32 %least, i32 %keep, i32 %form, i1 false"
        if self.layout == "warp":
            b.line("call void %expand(ptr %a, ptr %ap, i64 %k, i32 %sign, ptr %a4, ptr %ap4)")
            columns, exponents = b.element("float", "%b", values), b.element("i16", "%bp", powers)
            registers = b.element("i64", "%c", b.value(f"shl i64 {chunk}, 1"))
            b.line(f"call void %other(ptr %a4, ptr %ap4, ptr {columns}, ptr {exponents}, ptr {registers}, ptr %out, "
                   f"i64 8, i64 %k, {rule})")  # fmt: skip
            return
        rows, exponents = b.element("float", "%a", values), b.element("i16", "%ap", powers)
        place = b.element("float", "%out", b.value(f"mul i64 {chunk}, %stride"))
        b.line(f"call void %other(ptr {rows}, ptr {exponents}, ptr %b, ptr %bp, ptr {place}, ptr {place}, i64 2, "
               f"i64 {4 * GROUP}, i64 %k, i64 %stride, i64 %stride, {rule})")  # fmt: skip
