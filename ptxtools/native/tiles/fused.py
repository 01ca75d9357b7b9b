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
from functools import partial
from typing import TypeAlias

from ptxtools.machine.products import GROUP
from ptxtools.native.code import modes
from ptxtools.native.code.emitter import ZERO, Emitter, splat, vector

from . import blocks, converted
from .converted import BIAS, COMMON, LOW_OF_ZERO, NEAR, ROOM, own_of
from .decode import SIZE, everywhere
from .factors import TOGETHER
from .vectors import NEEDED, Vectors

LAYOUTS = ("warp", "rows")
_WIDE_BIAS = 1023
#: The lowest biased exponent of an element; the lowest sum of exponents, if no factor is zero.
_LOWEST, _LEAST = BIAS + blocks.LOWEST, -2 * ROOM
#: Sums are to be less than 2**31 - `_MARGIN` in size. What is added to them: their low words are then twice that, or
#: more.
_MARGIN = 1 << 27
_MIDDLE = -(1 << 31) + _MARGIN
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


#: Part of a loop: the type of the values that it carries, their starts, what makes those after one more k.
_Job: TypeAlias = tuple[str, list[str], Callable[[str, list[str]], list[str]]]


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


class _Product(Vectors):
    """The function for a layout under construction.

    A turn is eight vectors of D, 0 to 3 of each block: a chunk, or without AVX-512 the lower or upper halves of its
    vectors.
    """

    def __init__(self, code: Emitter, layout: str) -> None:
        super().__init__(code)
        self.layout = layout
        #: Rows of `common` in a block.
        self.rows = 4 if layout == "warp" else 1
        #: Which of the vectors have their terms added in one loop: 16 registers are enough for two of each block.
        each = 4 if self.wide else 2
        self.loops = [range(i, i + each) for i in range(0, 4, each)]
        self.nothing = splat("i8", -128)
        #: Whether bytes have loops of their own, since LLVM would have more in memory otherwise.
        self.apart = code.brief and not self.wide and layout == "rows"
        #: Which vectors of D, by block and number, the two vectors of bytes are for: four elements of each, the next
        #: four of each, and so on.
        self.quads = (
            [[(0, i), (1, i), (0, i + 1), (1, i + 1)] for i in (0, 2)] if layout == "warp"
            else [[(block, i) for i in range(4)] for block in range(2)]
        )  # fmt: skip
        self.quad_of = {one: divmod(4 * i + j, 4) for i, quad in enumerate(self.quads) for j, one in enumerate(quad)}

    def _constants(self) -> None:
        b = self.code
        if self.wide:
            # LLVM does not know that it is -1: else it makes a vector of the flags, and three instructions of two.
            minus = b.room(self.bytes)
            b.line(f"store volatile {self.bytes} {splat('i8', -1)}, ptr {minus}, align 64")
            self.minus = b.value(f"load volatile {self.bytes}, ptr {minus}, align 64")
        if not self.wide:
            self.saved = b.room(f"[16 x {self.word}]")
        # Fields of exponents of f32 and f64 are in the higher half of a word: as i16 for two vectors at once.
        self.units = self.everywhere_in(self.short, f"shl i32 {b.value(f'add i32 %fraction, {2 * BIAS}')}, 7")
        self.down = self.everywhere_in(self.short, "shl i32 %fraction, 7")
        start = (_WIDE_BIAS - BIAS + 52 << 4) + 8
        self.start = self.everywhere_in(self.short, f"sub i32 {start}, {b.value('shl i32 %fraction, 4')}")
        cut = b.value(f"trunc i64 {b.value('lshr i64 %mask, 29')} to i32")
        self.cut = b.spread("i32", cut, self.lanes)
        # Where addends are from if D does not count.
        nowhere = b.room("[4 x <16 x i32>]")
        b.line(f"store [4 x <16 x i32>] zeroinitializer, ptr {nowhere}, align 64")
        self.source = b.value(f"select i1 {b.value('icmp ne i32 %keep, 0')}, ptr %out, ptr {nowhere}")
        self.keep = b.value("sext i32 %keep to i64")
        # What makes biased exponents of sums of exponents, less 128.
        bias = b.value(f"add i32 %base, {BIAS}")
        self.bias = self.everywhere_in(self.bytes, f"sub i32 {bias}, 128")
        # An exponent less this is the sum that exponents of lowest bits must have.
        least = b.value(f"add i32 {b.value('add i32 %base, %fraction')}, {BIAS - 2 * ROOM}")
        self.least = self.everywhere_in(self.bytes, f"add i32 {least}, 0")
        fit = [b.value(f"icmp ule i32 {x}, 255") for x in (least, bias)]
        self.possible = b.value(f"and i1 {fit[0]}, {fit[1]}")
        # Whether a sum that is not in 32 bits is not much too large, and all bits of a result count, too.
        longest = b.value(f"shl i64 %k, {b.value('zext i32 %fraction to i64')}")
        whole = b.value(f"icmp eq i32 {cut}, -1")
        self.small = b.value(f"icmp ule i64 {longest}, {1 << 29}")
        self.plain = b.value(f"and i1 {whole}, {self.small}")

    def function(self) -> str:
        """One loop over turns; a chunk that it cannot compute is left to `blocks`, as it was."""
        b = self.code
        self._constants()
        mode = self._mode()
        restart, begin, look, usual, undo, slow, end = (b.label() for _ in range(7))
        entry = self.here()
        b.jump(restart)

        b.begin(restart)
        first, after = b.name(), b.name()
        b.line(f"{first} = phi i64 [0, %{entry}], [{after}, %{slow}]")
        fresh = self._largest(first)
        found = self.here()
        b.branch(self.possible, begin, slow)

        b.begin(begin)
        turn, following = b.name(), b.name()
        largest, ahead_largest = [b.name(), b.name()], [b.name(), b.name()]
        stored = b.label()
        b.line(f"{turn} = phi i64 [{first}, %{found}], [{following}, %{stored}]")
        for name, one, other in zip(largest, fresh, ahead_largest, strict=True):
            b.line(f"{name} = phi {self.bytes} [{one}, %{found}], [{other}, %{stored}]")
        places, sources = self._places(turn), self._places(turn, sources=True)
        addends = self._addends(sources)
        if not self.wide:
            for addend, copy in zip(addends, self._copies(turn), strict=True):
                b.line(f"store {self.word} {addend}, ptr {copy}, align {4 * self.lanes}")
        fields = [self._fields(words) for words in self._by_quad(addends)]
        biased = [self.saturated("sadd", x, self.bias) for x in largest]
        biased = [b.value(f"xor {self.bytes} {x}, {self.nothing}") for x in biased]
        known = [b.apply("umax", self.bytes, *pair) for pair in zip(fields, biased, strict=True)]
        none = b.value(f"icmp slt {self.bytes} {b.apply('smin', self.bytes, *largest)}, {splat('i8', _LEAST)}")
        flags = b.value(f"or {vector('i1', 4 * self.lanes)} {none}, {self._outside(known)}")
        b.branch(self.any(flags, 4 * self.lanes), look, usual)
        b.begin(look)
        raised, bad = self._raised(self._addends(sources), fields, largest, biased)
        looked = self.here()
        b.branch(bad, undo, usual)

        b.begin(usual)
        ways = [[(known[i], begin), (raised[i], looked)] for i in range(2)]
        exponents = [b.value(f"phi {self.bytes} [{x}, %{begin}], [{y}, %{looked}]") for (x, _), (y, _) in ways]
        b.line(f"{following} = add i64 {turn}, {2 * self.lanes // 16}")
        last = b.value(f"icmp uge i64 {following}, %count")
        ahead = b.value(f"select i1 {last}, i64 {turn}, i64 {following}")
        limits = self._limits(exponents)
        failed = [(turn, looked)]
        counts, now = list[str](), list[str]()
        for vectors in self.loops:
            first_loop, last_loop = (vectors is self.loops[i] for i in (0, -1))
            starts, scales = self._starts(vectors, exponents, sources)
            sums, more, now = self._add(turn, ahead, vectors, starts, limits if first_loop else [], last_loop)
            counts = counts or more
            results, over = self._results(vectors, sums, counts, scales)
            inside = b.label()
            failed.append((turn, self.here()))
            b.branch(over, undo, inside)
            b.begin(inside)
            for i, result in results.items():
                b.line(f"store {self.single} {result}, ptr {places[i]}, align 4")
        for name, value in zip(ahead_largest, now, strict=True):
            b.line(f"{name} = freeze {self.bytes} {value}")
        b.jump(stored)
        b.begin(stored)
        b.branch(last, end, begin)

        b.begin(undo)
        left = self.phi("i64", *failed)
        if not self.wide:
            self._restore(left)
        undone = self.here()
        b.jump(slow)
        b.begin(slow)
        chunk = self._chunk(self.phi("i64", (first, found), (left, undone)))
        self._set(mode[0])
        self._otherwise(chunk)
        self._set(mode[1])
        b.line(f"{after} = add i64 {chunk}, 2")
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

    # --- the factor with few rows -------------------------------------------------------------------------------------

    def _index(self, chunk: str, near: int = NEAR) -> str:
        """Index of a chunk's first row for the first k, if so many rows lie together."""
        b = self.code
        row = b.value(f"mul i64 {chunk}, {self.rows}")
        line = b.value(f"mul i64 {b.value(f'udiv i64 {row}, {near}')}, %k")
        within = b.value(f"and i64 {row}, {near - 1}")
        return b.value(f"add i64 {b.value(f'mul i64 {line}, {near}')}, {within}")

    def _at(self, first: str, k: str, near: int = NEAR) -> str:
        """Index for a k."""
        return self.code.value(f"add i64 {first}, {self.code.value(f'mul i64 {k}, {near}')}")

    def _value(self, place: str, block: int, part: int) -> str:
        """f64 of `common` for a part of a block's vectors, if a chunk's first one for a k is at `place`."""
        b, count = self.code, self.lanes // 2
        place = b.element("double", place, str(self.rows * block + 2 * part))
        if self.rows == 1:
            return b.spread("double", b.value(f"load double, ptr {place}"), count)
        two = b.value(f"load <2 x double>, ptr {place}, align 16")
        return b.shuffle("<2 x double>", [i % 2 for i in range(count)], two)

    # --- the factor with 64 rows --------------------------------------------------------------------------------------

    def _bytes(self, own: str, common: str, k: str, index: str) -> list[str]:
        """Sums of bytes of both factors, for the two vectors of a turn, whose first ones of `own` are there."""
        b, size, warp = self.code, 4 * self.lanes, self.layout == "warp"
        line = b.element("i8", own, b.value(f"shl i64 {k}, {7 if warp else 6}"))
        places = [b.element("i8", line, str(64 * i)) for i in range(2 if warp else 1)]
        mine = [b.value(f"load {self.bytes}, ptr {place}, align {size}") for place in places]
        place = b.element("i8", common, index)
        if warp:  # all columns of both blocks
            eight = b.spread("i64", b.value(f"load i64, ptr {place}, align 8"), size // 8)
            theirs = [b.value(f"bitcast {vector('i64', size // 8)} {eight} to {self.bytes}")]
        else:
            places = [b.element("i8", place, str(block)) for block in range(2)]
            theirs = [b.spread("i8", b.value(f"load i8, ptr {place}"), size) for place in places]
        return [b.value(f"add {self.bytes} {mine[i % len(mine)]}, {theirs[i % len(theirs)]}") for i in range(2)]

    def _own_values(self, line: str, number: int) -> list[str]:
        """f64 for the two parts of a vector, or one for both, if a turn's first one for a k is there."""
        b = self.code
        numbers = [8 * number] if self.layout == "warp" else [16 * number, 16 * number + 8]
        places = [b.element("double", line, str(at)) for at in numbers]
        return [b.value(f"load {self.doubles}, ptr {place}, align {4 * self.lanes}") for place in places]

    # --- exponents ----------------------------------------------------------------------------------------------------

    def _greater(self, k: str, index: str, own: str, now: list[str]) -> list[str]:
        """The largest sums of exponents with those for one more k."""
        sums = self._bytes(own, "%commone", k, index)
        return [self.code.apply("smax", self.bytes, known, one) for known, one in zip(now, sums, strict=True)]

    def _largest(self, turn: str) -> list[str]:
        first, own = self._index(self._chunk(turn), GROUP), self._own("i8", "%owne", turn)
        return self.loop(
            [self.bytes] * 2, [self.nothing] * 2,
            lambda k, now: self._greater(k, self._at(first, k, GROUP), own, now),
        )  # fmt: skip

    def _fields(self, words: Sequence[str]) -> str:
        """Biased exponents of four vectors."""
        return self.packed([self.code.value(f"lshr {self.word} {word}, {splat('i32', 23)}") for word in words])

    def _outside(self, exponents: Sequence[str]) -> str:
        """Flags of exponents that this does not have."""
        b = self.code
        moved = [b.value(f"sub {self.bytes} {x}, {splat('i8', _LOWEST)}") for x in exponents]
        return b.value(
            f"icmp ugt {self.bytes} {b.apply('umax', self.bytes, *moved)}, {splat('i8', 2 * BIAS - _LOWEST)}"
        )

    def _by_quad(self, values: Sequence[str]) -> list[list[str]]:
        """What there is of each vector of D, for the vectors of bytes."""
        return [[values[4 * block + v] for block, v in quad] for quad in self.quads]

    def _raised(
        self, addends: Sequence[str], fields: list[str], largest: list[str], biased: list[str]
    ) -> tuple[list[str], str]:
        """Exponents where some elements have no products: at least the lowest. Whether that is wrong, as the element is
        not nothing at all, or another exponent is outside."""
        b, bits = self.code, vector("i1", 4 * self.lanes)
        lowest, raised, wrong = splat("i8", _LOWEST), [], []
        for i, words in enumerate(self._by_quad(addends)):
            sizes = [b.value(f"and {self.word} {x}, {everywhere(SIZE)}") for x in words]
            sizes = [b.apply("umin", self.word, x, everywhere(1)) for x in sizes]
            none = b.value(f"icmp slt {self.bytes} {largest[i]}, {splat('i8', _LEAST)}")
            exponent = b.value(f"select {bits} {none}, {self.bytes} {ZERO}, {self.bytes} {biased[i]}")
            exponent = b.apply("umax", self.bytes, exponent, fields[i])
            some = b.value(f"icmp ne {self.bytes} {self.packed(sizes)}, {ZERO}")
            there = b.value(f"xor {bits} {none}, {splat('i1', 'true')}")
            some = b.value(f"or {bits} {some}, {there}")
            wrong.append(b.value(f"and {bits} {some}, {b.value(f'icmp ult {self.bytes} {exponent}, {lowest}')}"))
            raised.append(b.apply("umax", self.bytes, exponent, lowest))
        bad = b.value(f"or {bits} {b.value(f'or {bits} {wrong[0]}, {wrong[1]}')}, {self._outside(raised)}")
        return raised, self.any(bad, 4 * self.lanes)

    # --- sums ---------------------------------------------------------------------------------------------------------

    def _starts(
        self, vectors: Sequence[int], exponents: list[str], sources: Sequence[str]
    ) -> tuple[list[str], dict[tuple[int, int], str]]:
        """1.5 * 2**52 units, `_MIDDLE`, and the addend in whole ones, for the two parts of some vectors of both blocks;
        fields of the exponents of units, for halves of vectors of bytes."""
        b, short = self.code, self.short
        result, fields, scales = [], dict[tuple[int, int], tuple[str, str]](), dict[tuple[int, int], str]()
        for block in range(2):
            for v in vectors:
                i, at = self.quad_of[block, v]
                half = i, at // 2
                if half not in fields:
                    field = self.unpacked(self.bytes, short, at // 2, ZERO, exponents[i])
                    field = b.value(f"lshr {short} {field}, {splat('i16', 1)}")
                    scales[half] = b.value(f"sub {short} {field}, {self.down}")
                    high = b.value(f"lshr {short} {field}, {splat('i16', 3)}")
                    high = b.value(f"add {short} {high}, {self.start}")
                    fields[half] = b.value(f"sub {short} {self.units}, {field}"), high
                unit, start = fields[half]
                word = b.value(f"load {self.single}, ptr {sources[4 * block + v]}, align 4")
                scale = self.unpacked(short, self.single, at % 2, ZERO, unit)
                whole = b.value(f"fptosi {self.single} {b.value(f'fmul {self.single} {word}, {scale}')} to {self.word}")
                low = b.value(f"add {self.word} {whole}, {everywhere(_MIDDLE)}")
                high = self.unpacked(short, self.word, at % 2, ZERO, start)
                result += [self.unpacked(self.word, self.doubles, part, low, high) for part in range(2)]
        return result, scales

    def _limits(self, exponents: list[str]) -> list[str]:
        """What the lowest bits of negative terms are below if they are rounded away from zero."""
        b, limits = self.code, []
        for x in exponents:
            needed = b.apply("umin", self.bytes, self.saturated("usub", x, self.least), splat("i8", LOW_OF_ZERO))
            limits.append(b.value(f"xor {self.bytes} {needed}, {self.nothing}"))
        return limits

    def _counted(self, k: str, index: str, own: str, limits: list[str], counts: list[str]) -> list[str]:
        """Counts of terms that were rounded away from zero, with those for one more k."""
        b, result = self.code, []
        sums = self._bytes(own, "%commonl", k, index)
        for lowest, limit, count in zip(sums, limits, counts, strict=True):
            under = b.value(f"icmp slt {self.bytes} {lowest}, {limit}")
            if self.wide:  # flags are masks
                more = b.value(f"sub {self.bytes} {count}, {self.minus}")
                result.append(b.value(f"select <64 x i1> {under}, {self.bytes} {more}, {self.bytes} {count}"))
                continue
            ones = b.value(f"sext {vector('i1', 4 * self.lanes)} {under} to {self.bytes}")
            result.append(b.value(f"sub {self.bytes} {count}, {ones}"))
        return result

    def _terms(self, k: str, index: str, own: str, vectors: Sequence[int], sums: list[str]) -> list[str]:
        """Sums of the parts of some vectors, of both blocks, with the terms for one more k."""
        b, result = self.code, list(sums)
        line = b.element("double", own, b.value(f"shl i64 {k}, {5 if self.layout == 'warp' else 6}"))
        place = b.element("double", "%common", index)

        def add(i: int, block: int, part: int, own: str, common: str) -> None:
            at = 2 * (len(vectors) * block + i) + part
            result[at] = self._fused(own, common, sums[at])

        # As many values as possible are used as soon as they are there.
        if self.layout == "warp":
            values = [self._own_values(line, v)[0] for v in vectors]
            for block in range(2):
                for part in range(2):
                    common = self._value(place, block, part)
                    for i, value in enumerate(values):
                        add(i, block, part, value, common)
            return result
        commons = [self._value(place, block, 0) for block in range(2)]
        for i, v in enumerate(vectors):
            for part, value in enumerate(self._own_values(line, v)):
                for block, common in enumerate(commons):
                    add(i, block, part, value, common)
        return result

    def _fused(self, *factors: str) -> str:
        if not self.wide:
            return self.code.apply("fma", self.doubles, *factors)
        given = [*((self.doubles, x) for x in factors), ("i32", _TOWARD_ZERO)]
        return self.code.call("llvm.x86.avx512.vfmadd.pd.512", self.doubles, given)

    def _add(
        self, turn: str, ahead: str, vectors: Sequence[int], starts: list[str], limits: list[str], looks: bool
    ) -> tuple[list[str], list[str], list[str]]:
        """Sums of some vectors with all terms, in units. With limits, counts too; if it looks, also the largest
        exponents of the turn `ahead`."""
        here, line = (self._index(self._chunk(turn), near) for near in (NEAR, GROUP))
        after = self._index(self._chunk(ahead), GROUP)
        own, lows = self._own("double", "%own", turn), self._own("i8", "%ownl", turn)
        powers = self._own("i8", "%owne", ahead)
        jobs: list[_Job] = [
            (self.doubles, starts, lambda *of: self._terms(of[0], self._at(here, of[0]), own, vectors, of[1]))
        ]
        if limits:
            zeros = [ZERO] * 2
            jobs.append(
                (self.bytes, zeros, lambda *of: self._counted(of[0], self._at(line, of[0], GROUP), lows, limits, of[1]))
            )
        if looks:
            nothing = [self.nothing] * 2
            jobs.append(
                (self.bytes, nothing, lambda *of: self._greater(of[0], self._at(after, of[0], GROUP), powers, of[1]))
            )

        def step(some: list[_Job], k: str, now: list[str]) -> list[str]:
            done = list[str]()
            for _, begin, job in some:
                done += job(k, now[len(done) : len(done) + len(begin)])
            return done

        found = list[str]()
        for some in [[job] for job in jobs] if self.apart else [jobs]:
            kinds, begin = [kind for kind, begin, _ in some for _ in begin], [x for _, begin, _ in some for x in begin]
            found += self.loop(kinds, begin, partial(step, some))
        sums, known = found[: len(starts)], found[len(starts) :]
        return sums, known[: len(limits)], known[len(limits) :]

    def _results(
        self, vectors: Sequence[int], sums: list[str], counts: list[str], scales: dict[tuple[int, int], str]
    ) -> tuple[dict[int, str], str]:
        """Vectors of D by their numbers; whether a sum is not certain to be in 32 bits."""
        b, short = self.code, self.short
        lows, singles, scaled, numbers = list[str](), list[str](), list[str](), dict[tuple[int, int], str]()
        words = [b.value(f"bitcast {self.doubles} {x} to {self.word}") for x in sums]
        order = [4 * (j // 4) + (0, 2, self.lanes, self.lanes + 2)[j % 4] for j in range(self.lanes)]
        places = [(block, v) for block in range(2) for v in vectors]
        for n, (i, at) in enumerate(self.quad_of[place] for place in places):
            half = i, at // 2
            if half not in numbers:
                numbers[half] = self.unpacked(self.bytes, short, at // 2, counts[i], ZERO)
            lows.append(b.shuffle(self.word, order, *words[2 * n : 2 * n + 2]))
            # The number less `_MIDDLE`.
            added = self.unpacked(short, self.word, at % 2, numbers[half], splat("i16", -_MIDDLE >> 16))
            total = b.value(f"add {self.word} {lows[-1]}, {added}")
            singles.append(
                b.toward_zero(total) if self.wide else b.value(f"sitofp {self.word} {total} to {self.single}")
            )
            scaled.append(self.unpacked(short, self.single, at % 2, ZERO, scales[half]))
        least = lows[0]
        for low in lows[1:]:
            least = b.apply("umin", self.word, least, low)
        if not b.brief:
            plain, rest, large, done = self.here(), b.label(), b.label(), b.label()
            b.branch(self.plain, done, rest)
            b.begin(rest)
        cut = []
        for single in singles:
            bits = b.value(f"and {self.word} {b.value(f'bitcast {self.single} {single} to {self.word}')}, {self.cut}")
            cut.append(b.value(f"bitcast {self.word} {bits} to {self.single}"))
        if not b.brief:
            b.branch(self.small, done, large)
            b.begin(large)
        some = words[0]
        for word in words[1:]:
            some = b.value(f"or {self.word} {some}, {word}")
        high = ", ".join(f"i32 {255 * (i % 2)}" for i in range(self.lanes))
        lost = b.value(f"icmp ne {self.word} {b.value(f'and {self.word} {some}, <{high}>')}, {ZERO}")
        none = b.value(f"select {vector('i1', self.lanes)} {lost}, {self.word} {ZERO}, {self.word} {least}")
        if b.brief:
            singles, least = cut, none
        else:
            b.jump(done)
            b.begin(done)
            ways = zip(singles, cut, strict=True)
            singles = [self.phi(self.single, (x, plain), (y, rest), (y, large)) for x, y in ways]
            least = self.phi(self.word, (least, plain), (least, rest), (none, large))
        results = {
            4 * block + v: b.value(f"fmul {self.single} {single}, {scale}")
            for (block, v), single, scale in zip(places, singles, scaled, strict=True)
        }
        over = b.value(f"icmp ult {self.word} {least}, {everywhere(2 * _MARGIN)}")
        return results, self.any(over, self.lanes)

    # --- D ------------------------------------------------------------------------------------------------------------

    def _chunk(self, turn: str) -> str:
        """The first block of a turn."""
        return turn if self.wide else self.code.value(f"and i64 {turn}, -2")

    def _moved(self, turn: str, count: int) -> list[str]:
        """How far a turn's elements are behind those of its chunk, if they can be: none, or `count`."""
        if self.wide:
            return []
        return [self.code.value(f"mul i64 {self.code.value(f'and i64 {turn}, 1')}, {count}")]

    def _own(self, kind: str, base: str, turn: str) -> str:
        """Address of a turn's first f64 or byte."""
        moved = self._moved(turn, 4 * self.lanes if kind == "i8" else self.lanes // 2)
        return self.code.element(kind, base, *moved) if moved else base

    def _places(self, turn: str, *, sources: bool = False) -> list[str]:
        """Addresses of the vectors of D of both blocks; or of their addends: zeros, if D does not count."""
        b, chunk, moved = self.code, self._chunk(turn), self._moved(turn, self.lanes)
        if self.layout == "rows":
            lines = [b.value(f"mul i64 {b.value(f'add i64 {chunk}, {block}')}, %stride") for block in range(2)]
            offsets = [b.value(f"shl i64 {line}, 2") for line in lines]
        else:
            registers = b.value(f"shl i64 {chunk}, 1")
            at = [b.element("i64", "%c", registers, str(register)) for register in (0, 2, 1, 3)]
            offsets = [b.value(f"load i64, ptr {place}") for place in at]
        if sources:
            offsets = [b.value(f"and i64 {offset}, {self.keep}") for offset in offsets]
        first = self.source if sources else "%out"
        bases = [b.value(f"getelementptr i8, ptr {first}, i64 {offset}") for offset in offsets]
        return [b.element("float", base, str(16 * i), *moved) for base in bases for i in range(8 // len(bases))]

    def _addends(self, sources: Sequence[str]) -> list[str]:
        return [self.code.value(f"load {self.word}, ptr {source}, align 4") for source in sources]

    def _copies(self, turn: str) -> list[str]:
        """Where the addends are kept."""
        return [self.code.element(self.word, self.saved, str(i), *self._moved(turn, 8)) for i in range(8)]

    def _restore(self, turn: str) -> None:
        """Addends of this turn, and of another one of its chunk."""
        b, chunk = self.code, self._chunk(turn)

        def one(at: str) -> None:
            where = b.value(f"add i64 {chunk}, {at}")
            for place, word in zip(self._places(where), self._addends(self._copies(where)), strict=True):
                b.line(f"store {self.word} {word}, ptr {place}, align 4")

        b.repeat(b.value(f"add i64 {b.value(f'sub i64 {turn}, {chunk}')}, 1"), 1, one)

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
