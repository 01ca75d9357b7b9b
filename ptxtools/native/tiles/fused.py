"""LLVM IR of products with sums of f32 on CPUs with AVX-512 or AVX2: multiply, cut off and add in one instruction.

An f64 multiply-add that rounds toward zero does all three, if what it adds to has its last bit at the unit of its
element, `fraction` bits below the largest exponent. So a sum begins with 1.5 * 2**52 units, and the low half of its
bits is the sum in units, as an integer. As that number is positive, terms are rounded down. Those that are negative and
no whole number of units must be one more, and they are counted: if the lowest bits of two factors are 2**i and 2**j,
that of their product is 2**(i + j).

Exponents and lowest bits are bytes (`converted`). A block of D is 64 elements, as in `blocks`, and a chunk two blocks,
whose factor with 64 rows is the same (`own`; `common` is the other). While the terms of a chunk are added, the largest
exponents of the next one are found. Chunks that this cannot compute go through the functions of `blocks`: exponents out
of range, or sums that may leave 32 bits.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence

from ptxtools.machine.products import GROUP
from ptxtools.native.code import modes
from ptxtools.native.code.emitter import ZERO, Emitter, splat, vector

from . import blocks, converted
from .converted import BIAS, BYTES, COMMON, DOUBLES, LOW_OF_ZERO, NEAR, ROOM, own_of
from .decode import SINGLE, SIZE, WORD, everywhere
from .factors import TOGETHER

LAYOUTS = ("warp", "rows")
#: Features that the code needs, with AVX-512 and without.
NEEDED = frozenset({"avx512f", "avx512bw", "avx512dq", "avx512vl"}), frozenset({"avx2", "fma"})
_WIDE_BIAS = 1023
#: The lowest biased exponent of an element; what is added to sums of exponents, which are then 1 and more, and 0 if a
#: factor is zero.
_LOWEST, _SHIFT = BIAS + blocks.LOWEST, 2 * ROOM + 1
_BELOW = 128 - _SHIFT
#: Columns of A in a turn of a loop.
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


#: What is compiled together.
GROUPS = ((COMMON,), *((name_of(layout), own_of(layout)) for layout in LAYOUTS))
NAMES = tuple(name for group in GROUPS for name in group)


def possible(features: Iterable[str]) -> bool:
    """Whether a CPU with these features has the instructions."""
    return any(needed.issubset(features) for needed in NEEDED)


def functions(code: Emitter, names: Collection[str] = NAMES) -> list[str]:
    """IR of them and of `converted`, if the CPU has the instructions.

    Products (own, its exponents and lowest bits, common, its, D, blocks, K, sum of both bases, …): "warp" with offsets
    of registers, "rows" with words between rows; then what `blocks` needs for a chunk.
    """
    if not possible(code.features):
        return []
    found = [converted.function(code, name) for name in converted.NAMES if name in names]
    return found + [_Product(code, layout).function() for layout in LAYOUTS if name_of(layout) in names]


# --- products ---------------------------------------------------------------------------------------------------------


class _Product:
    """The function for a layout under construction. The vectors of a chunk's blocks have numbers 0 to 3 and 4 to 7."""

    def __init__(self, code: Emitter, layout: str) -> None:
        self.code, self.layout = code, layout
        #: Rows of `common` in a block.
        self.rows = 4 if layout == "warp" else 1
        #: Whether there is AVX-512: 32 registers, and rounding that each instruction says.
        self.wide = NEEDED[0].issubset(code.features)
        self.nothing = splat("i8", -128)

    def _everywhere(self, expression: str) -> str:
        return self.code.spread("i32", self.code.value(expression), 16)

    def _constants(self) -> None:
        b = self.code
        self.kinds = [WORD] * 8 + [BYTES] * 4
        self.rooms = [b.room(kind) for kind in self.kinds]
        self.units = self._everywhere(f"shl i32 {b.value(f'add i32 %fraction, {2 * BIAS}')}, 23")
        self.down = self._everywhere("shl i32 %fraction, 23")
        self.cut = self._everywhere(f"trunc i64 {b.value('lshr i64 %mask, 29')} to i32")
        start = (_WIDE_BIAS - BIAS + 52 << 20) + (1 << 19)
        self.start = self._everywhere(f"sub i32 {start}, {b.value('shl i32 %fraction, 20')}")
        self.keep = b.spread("i32", "%keep", 16)
        self.only = b.value(f"and {WORD} {self.keep}, {everywhere(255 << 23)}")
        # What makes biased exponents of products of those that begin at 0.
        bias = b.value(f"add i32 %base, {BIAS - 128}")
        both = [b.apply("smax", "i32", x, "0") for x in (bias, b.value(f"sub i32 0, {bias}"))]
        both = [b.value(f"trunc i32 {b.apply('umin', 'i32', x, '255')} to i8") for x in both]
        self.more, self.less = (b.spread("i8", x, 64) for x in both)
        self.offset = self._everywhere(f"add i32 %base, {BIAS - _SHIFT}")
        # An exponent less this is the sum that exponents of lowest bits must have.
        least = b.value(f"add i32 {b.value('add i32 %base, %fraction')}, {BIAS - 2 * ROOM}")
        self.least = b.spread("i8", b.value(f"trunc i32 {least} to i8"), 64)
        self.possible = b.value(f"icmp ule i32 {least}, 255")

    def function(self) -> str:
        """One loop over chunks; what it cannot compute is left to `blocks` before anything is stored."""
        b = self.code
        self._constants()
        mode = self._mode()
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
            b.line(f"{name} = phi {BYTES} [{one}, %{found}], [{other}, %{store}]")
        places = self._places(chunk)
        above = [b.value(f"xor {BYTES} {x}, {self.nothing}") for x in largest]
        sums = [b.apply("usub.sat", BYTES, x, splat("i8", _BELOW)) for x in above]
        biased = [b.apply("usub.sat", BYTES, b.apply("uadd.sat", BYTES, x, self.more), self.less) for x in above]
        exponents = [
            b.apply("umax", WORD, self._field(place), self._of_vector(biased[i // 4], i % 4))
            for i, place in enumerate(places)
        ]
        packed = self._packed(exponents)
        # What is seldom used, or only once all terms are added, is not to stay in registers.
        for value, kind, room in zip([*exponents, *packed, *sums], self.kinds, self.rooms, strict=True):
            b.line(f"store {kind} {value}, ptr {room}, align 64")
        none = [b.value(f"icmp eq {BYTES} {x}, {ZERO}") for x in sums]
        b.branch(self._any([*none, *self._outside(packed)]), look, usual)
        b.begin(look)
        bad = self._raise(places)
        looked = self._here()
        b.branch(bad, slow, usual)

        b.begin(usual)
        exponents, packed = self._kept(0, 8), self._kept(8, 10)
        b.line(f"{following} = add i64 {chunk}, 2")
        last = b.value(f"icmp uge i64 {following}, %count")
        ahead = b.value(f"select i1 {last}, i64 {chunk}, i64 {following}")
        add = self._add if self.wide else self._add_in_parts
        results, over, now = add(chunk, ahead, places, exponents, packed)
        for name, value in zip(ahead_largest, now, strict=True):
            b.line(f"{name} = freeze {BYTES} {value}")
        added = self._here()
        b.branch(over, slow, store)

        b.begin(store)
        for total, exponent, place in zip(results, self._kept(0, 8), places, strict=True):
            field = b.value(f"shl {WORD} {exponent}, {everywhere(23)}")
            scale = b.value(f"bitcast {WORD} {b.value(f'sub {WORD} {field}, {self.down}')} to {SINGLE}")
            single = b.toward_zero(total) if self.wide else b.value(f"sitofp {WORD} {total} to {SINGLE}")
            bits = b.value(f"and {WORD} {b.value(f'bitcast {SINGLE} {single} to {WORD}')}, {self.cut}")
            result = b.value(f"fmul {SINGLE} {b.value(f'bitcast {WORD} {bits} to {SINGLE}')}, {scale}")
            b.line(f"store {SINGLE} {result}, ptr {place}, align 4")
        b.branch(last, end, begin)

        b.begin(slow)
        failed = self._phi("i64", (first, found), (chunk, looked), (chunk, added))
        self._set(mode[0])
        self._otherwise(failed)
        self._set(mode[1])
        b.line(f"{after} = add i64 {failed}, 2")
        b.branch(b.value(f"icmp ult i64 {after}, %count"), restart, end)
        b.begin(end)
        self._set(mode[0])
        return b.function(name_of(self.layout), PARAMETERS[self.layout])

    def _mode(self) -> tuple[str, str]:
        """Where the CPU's rounding mode is kept, and where the one is that this needs, which is set from now on; only
        without AVX-512. It is set in blocks without arithmetic, between those that depend on it."""
        if self.wide:
            return "", ""
        b, before, inside = self.code, self.code.room("i32"), self.code.room("i32")
        b.declare(modes.STORE, f"declare void @{modes.STORE}(ptr)")
        b.declare(modes.LOAD, f"declare void @{modes.LOAD}(ptr)")
        b.line(f"call void @{modes.STORE}(ptr {before})")
        b.line(f"store i32 {modes.MXCSR['rz']}, ptr {inside}")
        self._set(inside)
        return before, inside

    def _set(self, mode: str) -> None:
        if mode:
            self.code.line(f"call void @{modes.LOAD}(ptr {mode})")

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
        self, turn: int, kinds: list[str], starts: Sequence[str], step: Callable[[str, list[str]], list[str]]
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

    def _index(self, chunk: str, near: int = NEAR) -> str:
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
        return b.value(f"bitcast {WORD} {b.spread('i32', word, 16)} to {BYTES}")

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

    def _greater(self, k: str, index: str, now: list[str], first: int = 0) -> list[str]:
        """The largest sums of exponents of some blocks with those for one more k."""
        b = self.code
        own = b.value(f"load {BYTES}, ptr {b.element(BYTES, '%owne', k)}, align 64")
        sums = [b.apply("sadd.sat", BYTES, own, self._bytes("%commone", index, first + i)) for i in range(len(now))]
        return [b.apply("smax", BYTES, known, one) for known, one in zip(now, sums, strict=True)]

    def _largest(self, chunk: str) -> list[str]:
        b, first = self.code, self._index(chunk)
        return self._loop(
            1, [BYTES] * 2, [self.nothing] * 2,
            lambda k, now: self._greater(k, b.value(f"add i64 {first}, {b.value(f'mul i64 {k}, {NEAR}')}"), now),
        )  # fmt: skip

    def _of_vector(self, packed: str, number: int) -> str:
        """The bytes of one of a block's vectors, as i32."""
        b = self.code
        order = [16 * (i // 16) + 4 * number + i % 16 // 4 if i % 4 == 0 else 64 for i in range(64)]
        return b.value(f"bitcast {BYTES} {b.shuffle(BYTES, order, packed, ZERO)} to {WORD}")

    def _of_products(self, sums: list[str], number: int) -> tuple[str, str]:
        """Biased exponents of products for a vector, wrong where there are none; and what they come from."""
        found = self._of_vector(sums[number // 4], number % 4)
        return self.code.value(f"add {WORD} {found}, {self.offset}"), found

    def _packed(self, exponents: list[str]) -> list[str]:
        """Biased exponents as bytes."""
        pairs = [self._pack("packssdw", "i32", x, y) for x, y in zip(exponents[::2], exponents[1::2], strict=True)]
        return [self._pack("packuswb", "i16", x, y) for x, y in zip(pairs[::2], pairs[1::2], strict=True)]

    def _pack(self, operation: str, element: str, x: str, y: str) -> str:
        """Elements of two vectors with half of the bits each, within 128 bits."""
        b, bits = self.code, int(element[1:])
        count = 512 // bits
        given, result = vector(element, count), vector(f"i{bits // 2}", 2 * count)
        if self.wide:
            return b.call(f"llvm.x86.avx512.{operation}.512", result, [(given, x), (given, y)])
        half = vector(element, count // 2)
        packed = [
            b.call(f"llvm.x86.avx2.{operation}", vector(f"i{bits // 2}", count),
                   [(half, b.part(element, count, each, at, count // 2)) for each in (x, y)])
            for at in (0, count // 2)
        ]  # fmt: skip
        return b.concatenate(f"i{bits // 2}", packed, count)

    def _outside(self, packed: list[str]) -> list[str]:
        """Flags of exponents that this does not have."""
        b, lowest = self.code, splat("i8", _LOWEST)
        above = splat("i8", 2 * BIAS - _LOWEST)
        return [b.value(f"icmp ugt {BYTES} {b.value(f'sub {BYTES} {x}, {lowest}')}, {above}") for x in packed]

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
        return [b.value(f"bitcast {WORD} {b.shuffle(WORD, order, whole, high)} to {DOUBLES}") for order in orders]

    def _limits(self, exponents: list[str]) -> list[str]:
        """What the lowest bits of negative terms are below if they are rounded away from zero."""
        b, limits = self.code, []
        for x in exponents:
            needed = b.apply("umin", BYTES, b.apply("usub.sat", BYTES, x, self.least), splat("i8", LOW_OF_ZERO))
            limits.append(b.value(f"xor {BYTES} {needed}, {self.nothing}"))
        return limits

    def _counted(self, k: str, index: str, limits: list[str], counts: list[str], first: int = 0) -> list[str]:
        """Counts of terms of some blocks that were rounded away from zero, with those for one more k."""
        b, result = self.code, []
        low = b.value(f"load {BYTES}, ptr {b.element(BYTES, '%ownl', k)}, align 64")
        for block, (limit, count) in enumerate(zip(limits, counts, strict=True), first):
            lowest = b.value(f"add {BYTES} {low}, {self._bytes('%commonl', index, block)}")
            ones = b.value(f"sext <64 x i1> {b.value(f'icmp slt {BYTES} {lowest}, {limit}')} to {BYTES}")
            result.append(b.value(f"sub {BYTES} {count}, {ones}"))
        return result

    def _terms(self, k: str, index: str, halves: range, sums: list[str]) -> list[str]:
        """Sums of some halves of vectors, of both blocks, with the terms for one more k."""
        b, result = self.code, list(sums)
        commons = [self._values(index, block) for block in range(2)]
        each = 4 if self.layout == "warp" else 8
        for i, half in enumerate(halves):  # those of a vector of "warp" have the same
            own = half // 2 if self.layout == "warp" else half
            place = b.element(DOUBLES, "%own", b.value(f"mul i64 {k}, {each}"), str(own))
            value = b.value(f"load {DOUBLES}, ptr {place}, align 64")
            for block in range(2):
                at = len(halves) * block + i
                factors = value, commons[block][half % 2], sums[at]
                result[at] = self._fused(*factors)
        return result

    def _fused(self, *factors: str) -> str:
        if not self.wide:
            return self.code.apply("fma", DOUBLES, *factors)
        given = [*((DOUBLES, x) for x in factors), ("i32", _TOWARD_ZERO)]
        return self.code.call("llvm.x86.avx512.vfmadd.pd.512", DOUBLES, given)

    def _add(
        self, chunk: str, ahead: str, places: list[str], exponents: list[str], packed: list[str]
    ) -> tuple[list[str], str, list[str]]:
        """Sums with all terms, in units; whether one of them is not certain to be in 32 bits; and the largest exponents
        of the chunk `ahead`. packed: the exponents as bytes."""
        b = self.code
        starts = [part for place, exponent in zip(places, exponents, strict=True)
                  for part in self._start(self._word(place), exponent)]  # fmt: skip
        first, after = self._index(chunk), self._index(ahead)
        limits = self._limits(packed)

        def step(k: str, now: list[str]) -> list[str]:
            line = b.value(f"mul i64 {k}, {NEAR}")
            index = b.value(f"add i64 {first}, {line}")
            return [
                *self._terms(k, index, range(8), now[:16]), *self._counted(k, index, limits, now[16:18]),
                *self._greater(k, b.value(f"add i64 {after}, {line}"), now[18:]),
            ]  # fmt: skip

        kinds = [DOUBLES] * 16 + [BYTES] * 4
        found = self._loop(_TURN, kinds, [*starts, ZERO, ZERO, self.nothing, self.nothing], step)
        pairs = [self._result(i, found[2 * i : 2 * i + 2], found[16:18]) for i in range(8)]
        return [result for result, _ in pairs], self._over([high for _, high in pairs]), found[18:]

    def _add_in_parts(
        self, chunk: str, ahead: str, places: list[str], exponents: list[str], packed: list[str]
    ) -> tuple[list[str], str, list[str]]:
        """The same in loops that 16 registers of 256 bits are enough for: two vectors and the bytes of a block."""
        b = self.code
        here, after = self._index(chunk), self._index(ahead)
        limits = self._limits(packed)

        def index_of(start: str, k: str) -> str:
            return b.value(f"add i64 {start}, {b.value(f'mul i64 {k}, {NEAR}')}")

        def part(number: int) -> tuple[list[str], str]:
            """Sums of these vectors of both blocks; counts of one block, or its largest exponents."""
            halves, block = range(2 * number, 2 * number + 2), number % 2
            starts = [part for i in (number, 4 + number) for part in self._start(self._word(places[i]), exponents[i])]

            def step(k: str, now: list[str]) -> list[str]:
                index, known = index_of(here, k), now[4:]
                if number < 2:
                    known = self._counted(k, index, limits[block : block + 1], known, block)
                else:
                    known = self._greater(k, index_of(after, k), known, block)
                return [*self._terms(k, index, halves, now[:4]), *known]

            start = ZERO if number < 2 else self.nothing
            *sums, known = self._loop(_TURN, [DOUBLES] * 4 + [BYTES], [*starts, start], step)
            return sums, known

        def results(number: int, sums: list[str]) -> None:
            for i, parts in ((number, sums[:2]), (4 + number, sums[2:])):
                totals[i], found = self._result(i, parts, counts)
                high[:] = [b.value(f"or {WORD} {found}, {known}") for known in high] or [found]

        totals, high = [""] * 8, list[str]()
        (first, *counts), (second, other) = (part(i) for i in range(2))
        counts.append(other)
        results(0, first)
        results(1, second)
        largest = []
        for number in (2, 3):
            sums, known = part(number)
            results(number, sums)
            largest.append(known)
        return totals, self._over(high), largest

    def _result(self, number: int, parts: list[str], counts: list[str]) -> tuple[str, str]:
        """A vector's sums in units, and what has bits in its low bytes where one is not certain to be in 32 bits."""
        b = self.code
        parts = [b.value(f"bitcast {DOUBLES} {x} to {WORD}") for x in parts]
        low, high = (
            b.shuffle(WORD, [4 * (i // 4) + (0, 2, 16, 18)[i % 4] + word for i in range(16)], *parts)
            for word in range(2)
        )
        result = b.value(f"add {WORD} {low}, {self._of_vector(counts[number // 4], number % 4)}")
        # The low byte of the high half has the sign of the sum.
        return result, b.value(f"xor {WORD} {high}, {b.value(f'ashr {WORD} {result}, {everywhere(31)}')}")

    def _over(self, found: list[str]) -> str:
        """Whether one of these has bits in its low bytes."""
        b = self.code
        over = found[0]
        for more in found[1:]:
            over = b.value(f"or {WORD} {over}, {more}")
        lost = b.value(f"icmp ne {WORD} {b.value(f'and {WORD} {over}, {everywhere(255)}')}, {ZERO}")
        return b.value(f"icmp ne i16 {b.value(f'bitcast <16 x i1> {lost} to i16')}, 0")

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
