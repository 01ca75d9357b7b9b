"""LLVM IR that arranges a factor of a product from memory in the order in which `blocks` reads it.

A factor is in chunks of 16 bytes, whose offsets are in a table. It is processed in groups of 16 rows (of A; columns of
B): its values become f32, [group][k][16], and their exponents i16, [group // 4][k][group % 4][16]. Functions for each
type: "k" for chunks along K, two for each row and 32 bytes of K (table: [group][32 bytes][row][2]); "mn" for chunks
across K (table: [group][k][chunk]); for 16-bit types also "mn_pairs", which is like "mn" with rows in the order of
`PAIRS`.
"""

from __future__ import annotations

from ptxtools.machine.products import GROUP, PAIRS
from ptxtools.native.code.emitter import ZERO, Emitter, splat
from ptxtools.semantics.tensorcore import LEAST

from .decode import PACKED, SHORT, SINGLE, SIZE, TYPES, WHOLE, WORD, base_of, decode, decode_packed, everywhere

#: Groups of rows whose exponents are stored together.
TOGETHER = 4
MAJORS = ("k", "mn", "mn_pairs")
#: Exponent of zero: far below that of any product; exponent of infinities and NaN.
NO_EXPONENT, NOT_FINITE = -1000, 128
_BIAS = 127

PARAMETERS = "ptr %base, ptr noalias readonly %table, i64 %groups, i64 %k, ptr noalias %values, ptr noalias %exponents"
_CHUNK = "<16 x i8>"


def name_of(t: str, major: str) -> str:
    """Symbol of the function for a type and a major."""
    return f"tile_factor_{t.replace('.', '_')}_{major}"


#: Types that can be transposed.
_WIDE = ("f16", "bf16", "tf32", "e4m3", "e5m2", "s8", "u8")
_FORMS = [(t, major) for t, bits in TYPES.items() for major in MAJORS
          if major == "k" or (t in _WIDE and (bits == 16 or major != "mn_pairs"))]  # fmt: skip
NAMES = tuple(name_of(t, major) for t, major in _FORMS)


def function(code: Emitter, name: str) -> str:
    """IR of one of them. It returns the greatest exponent: i32 (base, table, groups, k, values, exponents)."""
    t, major = _FORMS[NAMES.index(name)]
    f = _Factor(code, t, PAIRS if major == "mn_pairs" else None)
    code.repeat("%groups", 1, f.along if major == "k" else f.across)
    highest = code.value(f"load {SHORT}, ptr {f.highest}, align 32")
    answer = code.call("llvm.vector.reduce.smax.v16i16", "i16", [(SHORT, highest)])
    return code.function(name_of(t, major), PARAMETERS, code.value(f"sext i16 {answer} to i32"))


class _Factor:
    """One function under construction."""

    def __init__(self, code: Emitter, t: str, order: tuple[int, ...] | None) -> None:
        self.type, self.bits, self.code, self.order = t, TYPES[t], code, order
        self.highest, self.square = self.code.room(SHORT), self.code.room(f"[{GROUP} x {SINGLE}]")
        self.code.line(f"store {SHORT} {splat('i16', NO_EXPONENT)}, ptr {self.highest}, align 32")

    # --- chunks along K -----------------------------------------------------------------------------------------------

    def along(self, group: str) -> None:
        """A group of 16 rows: 32 bytes of each at a time, which are transposed."""
        b = self.code
        each = 256 // self.bits
        spans = b.value(f"lshr i64 %k, {each.bit_length() - 1}")

        def span(number: str) -> None:
            line = b.value(f"add i64 {b.value(f'mul i64 {group}, {spans}')}, {number}")
            first = b.value(f"mul i64 {line}, {2 * GROUP}")
            start = b.value(f"mul i64 {number}, {each}")
            if b.brief:
                for half in range(0, each, 16):
                    self._turned_in_memory(group, b.value(f"add i64 {start}, {half}"), first, each, half)
                return
            chunks = [self._chunk(b.value(f"add i64 {first}, {i}")) for i in range(2 * GROUP)]
            for half in range(0, each, 16):
                width = min(16, each)
                turned = _turned(b, self._decoded_rows(chunks, each, half))
                for i in range(width):
                    self._store(group, b.value(f"add i64 {start}, {half + i}"), turned[i])

        b.repeat(spans, 1, span)

    def _turned_in_memory(self, group: str, start: str, first: str, each: int, half: int) -> None:
        """The same for up to 16 columns from number `half` on, in loops over rows and columns."""
        b, square = self.code, self.square

        def row(number: str) -> None:
            at = b.value(f"add i64 {first}, {b.value(f'shl i64 {number}, 1')}")
            pair = [self._chunk(at), self._chunk(b.value(f"add i64 {at}, 1"))]
            b.line(f"store {SINGLE} {self._decoded_rows(pair, each, half)[0]}, ptr {b.element(SINGLE, square, number)}")

        def column(number: str) -> None:
            places = ", ".join(f"i64 {16 * i}" for i in range(16))
            indices = b.value(f"add <16 x i64> {b.spread('i64', number, 16)}, <{places}>")
            lanes = b.value(f"getelementptr float, ptr {square}, <16 x i64> {indices}")
            arguments = [("<16 x ptr>", lanes), ("<16 x i1>", splat("i1", "true")), (SINGLE, "zeroinitializer")]
            self._store(group, b.value(f"add i64 {start}, {number}"),
                        b.call("llvm.masked.gather.v16f32.v16p0", SINGLE, arguments))  # fmt: skip

        b.repeat(str(GROUP), 1, row)
        b.repeat(str(min(16, each)), 1, column)

    def _decoded_rows(self, chunks: list[str], each: int, first: int) -> list[str]:
        """16 elements of every row, which has two chunks with `each` elements."""
        b = self.code
        if self.type in PACKED:
            inside = each // 2
            some = chunks[first // inside :: 2]
            return [decode_packed(b, self.type, chunk, first % inside) for chunk in some]
        rows = [_joined(b, chunks[i : i + 2], self.bits) for i in range(0, len(chunks), 2)]
        if each != 16:
            kind, order = f"<{each} x i{self.bits}>", [first + i % min(16, each) for i in range(16)]
            rows = [b.shuffle(kind, order, row) for row in rows]
        return [decode(b, self.type, row) for row in rows]

    # --- chunks across K ----------------------------------------------------------------------------------------------

    def across(self, group: str) -> None:
        """A group of 16 rows: the chunks of one column of A after another."""
        b = self.code
        count = self.bits * GROUP // 128

        def column(k: str) -> None:
            line = b.value(f"add i64 {b.value(f'mul i64 {group}, %k')}, {k}")
            first = b.value(f"mul i64 {line}, {count}")
            chunks = [self._chunk(b.value(f"add i64 {first}, {i}")) for i in range(count)]
            values = decode(b, self.type, _joined(b, chunks, self.bits))
            if self.order is not None:
                values = b.shuffle(SINGLE, self.order, values)
            self._store(group, k, values)

        b.repeat("%k", 1, column)

    # --- elements -----------------------------------------------------------------------------------------------------

    def _chunk(self, index: str) -> str:
        b = self.code
        offset = b.value(f"load i32, ptr {b.element('i32', '%table', index)}")
        return b.value(f"load {_CHUNK}, ptr {b.value(f'getelementptr i8, ptr %base, i32 {offset}')}, align 1")

    def _store(self, group: str, k: str, values: str) -> None:
        b = self.code
        line = b.value(f"add i64 {b.value(f'mul i64 {group}, %k')}, {k}")
        b.line(f"store {SINGLE} {values}, ptr {b.element(SINGLE, '%values', line)}, align 64")
        if self.type in WHOLE:
            return
        bits = b.value(f"bitcast {SINGLE} {values} to {WORD}")
        size = b.value(f"and {WORD} {bits}, {everywhere(SIZE)}")
        field = b.value(f"trunc {WORD} {b.value(f'lshr {WORD} {size}, {everywhere(23)}')} to {SHORT}")
        least = LEAST[base_of(self.type)]
        own = b.apply("smax", SHORT, b.value(f"sub {SHORT} {field}, {splat('i16', _BIAS)}"), splat("i16", least))
        # f32 that are subnormal are not zero.
        subnormal = least == 1 - _BIAS
        zero = b.value(f"icmp eq {WORD} {size}, {ZERO}" if subnormal else f"icmp eq {SHORT} {field}, {ZERO}")
        own = b.value(f"select <16 x i1> {zero}, {SHORT} {splat('i16', NO_EXPONENT)}, {SHORT} {own}")
        known = b.value(f"load {SHORT}, ptr {self.highest}, align 32")
        b.line(f"store {SHORT} {b.apply('smax', SHORT, own, known)}, ptr {self.highest}, align 32")
        b.line(f"store {SHORT} {own}, ptr {exponent_place(b, '%exponents', '%k', group, k)}, align 32")


def exponent_place(b: Emitter, base: str, k: str, group: str, column: str, row: str = "0") -> str:
    """Address of a row's exponent, or of those of a group."""
    four = b.value(f"udiv i64 {group}, {TOGETHER}")
    line = b.value(f"add i64 {b.value(f'mul i64 {four}, {k}')}, {column}")
    line = b.value(f"mul i64 {line}, {TOGETHER}")
    line = b.value(f"add i64 {line}, {b.value(f'urem i64 {group}, {TOGETHER}')}")
    return b.element("i16", base, b.value(f"shl i64 {line}, 4"), row)


def _joined(b: Emitter, chunks: list[str], bits: int) -> str:
    """One, two or four chunks as one vector of elements."""
    width = 16 * len(chunks)
    return b.value(f"bitcast <{width} x i8> {b.concatenate('i8', chunks, 16)} to <{8 * width // bits} x i{bits}>")


def _turned(b: Emitter, rows: list[str]) -> list[str]:
    """16 vectors of 16 f32 with rows and columns exchanged: within quarters, then the quarters themselves."""

    def mix(x: str, y: str, order: list[int]) -> str:
        return b.shuffle(SINGLE, order, x, y)

    quarters = range(0, 16, 4)
    low = [q + i for q in quarters for i in (0, 16, 1, 17)]
    high = [q + i for q in quarters for i in (2, 18, 3, 19)]
    even = [q + i for q in quarters for i in (0, 1, 16, 17)]
    odd = [q + i for q in quarters for i in (2, 3, 18, 19)]
    inside: list[list[str]] = []  # [four rows][k % 4]: quarter L holds the four rows at k = 4L + k % 4
    for i in range(0, 16, 4):
        a, c, d, e = rows[i : i + 4]
        first, second = (mix(a, c, low), mix(d, e, low)), (mix(a, c, high), mix(d, e, high))
        inside.append([mix(*first, even), mix(*first, odd), mix(*second, even), mix(*second, odd)])
    lower = [*range(8), *range(16, 24)]
    upper = [*range(8, 16), *range(24, 32)]
    evens = [*range(4), *range(8, 12), *range(16, 20), *range(24, 28)]
    odds = [i + 4 for i in evens]
    result = [""] * 16
    for r in range(4):
        a, c, d, e = (inside[i][r] for i in range(4))
        for at, order in ((0, lower), (8, upper)):
            x, y = mix(a, c, order), mix(d, e, order)
            result[at + r], result[at + 4 + r] = mix(x, y, evens), mix(x, y, odds)
    return result
