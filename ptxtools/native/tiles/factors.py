"""LLVM IR that brings a factor of a product from memory into the order in which `tileblocks` reads it.

A factor lies in chunks of 16 bytes, whose places a table gives. It is taken in groups of 16 rows (of A; columns of B):
its values become f32, [group][k][16], and their exponents i16, [group // 4][k][group % 4][16]. Functions for each type:
"k" for chunks along K, two for each row and 32 bytes of K (table: [group][32 bytes][row][2]); "mn" for chunks across K
(table: [group][k][chunk]); and of 16-bit types "mn_pairs", likewise, but rows come in the order of `PAIRS`.
"""

from __future__ import annotations

from ptxtools.machine.products import GROUP, PAIRS
from ptxtools.semantics.exact import FORMATS
from ptxtools.semantics.tensorcore import LEAST

from .sums import Body, element_of, repeat, splat

#: Groups of rows whose exponents stand together.
TOGETHER = 4
#: Types with bits of an element.
TYPES = {"f16": 16, "bf16": 16, "tf32": 32, "e4m3": 8, "e5m2": 8}
MAJORS = ("k", "mn", "mn_pairs")
#: Exponent of zero: far below that of any product; exponent of infinities and NaN.
NO_EXPONENT, NOT_FINITE = -1000, 128

_PARAMETERS = "ptr %base, ptr noalias readonly %table, i64 %groups, i64 %k, ptr noalias %values, ptr noalias %exponents"
_SINGLE, _WORD, _SHORT, _CHUNK = "<16 x float>", "<16 x i32>", "<16 x i16>", "<16 x i8>"


def name_of(t: str, major: str) -> str:
    """Symbol of the function for a type and a major."""
    return f"tile_factor_{t}_{major}"


_FORMS = [(t, major) for t, bits in TYPES.items() for major in MAJORS if bits == 16 or major != "mn_pairs"]
NAMES = tuple(name_of(t, major) for t, major in _FORMS)


def functions() -> list[str]:
    """IR of all of them. Each returns the greatest exponent: i32 (base, table, groups, k, values, exponents)."""
    return [_function(t, major) for t, major in _FORMS]


def _function(t: str, major: str) -> str:
    f = _Factor(t, PAIRS if major == "mn_pairs" else None)
    repeat(f.b, "%groups", 1, f.along if major == "k" else f.across)
    highest = f.b.value(f"load {_WORD}, ptr {f.highest}, align 64")
    answer = f.b.value(f"call i32 @llvm.vector.reduce.smax.v16i32({_WORD} {highest})")
    return f.b.function(name_of(t, major), _PARAMETERS, answer)


class _Factor:
    """One function under construction."""

    def __init__(self, t: str, order: tuple[int, ...] | None) -> None:
        self.t, self.bits, self.b, self.order = t, TYPES[t], Body(), order
        self.highest = self.b.room(_WORD)
        self.b.line(f"store {_WORD} {_all(NO_EXPONENT)}, ptr {self.highest}, align 64")

    # --- chunks along K -----------------------------------------------------------------------------------------------

    def along(self, group: str) -> None:
        """A group of 16 rows: 32 bytes of each at a time, which are turned."""
        b = self.b
        each = 256 // self.bits
        spans = b.value(f"udiv i64 %k, {each}")

        def span(number: str) -> None:
            line = b.value(f"add i64 {b.value(f'mul i64 {group}, {spans}')}, {number}")
            first = b.value(f"mul i64 {line}, {2 * GROUP}")
            chunks = [self._chunk(b.value(f"add i64 {first}, {i}")) for i in range(2 * GROUP)]
            rows = [_joined(b, chunks[i : i + 2], self.bits) for i in range(0, 2 * GROUP, 2)]
            start = b.value(f"mul i64 {number}, {each}")
            for half in range(0, each, 16):
                width = min(16, each)
                order = ", ".join(f"i32 {half + i % width}" for i in range(16))
                kind = f"<{each} x i{self.bits}>"
                parts = [
                    b.value(f"shufflevector {kind} {row}, {kind} poison, <16 x i32> <{order}>") if each != 16 else row
                    for row in rows
                ]
                turned = _turned(b, [self.number(part) for part in parts])
                for i in range(width):
                    self._store(group, b.value(f"add i64 {start}, {half + i}"), turned[i])

        repeat(b, spans, 1, span)

    # --- chunks across K ----------------------------------------------------------------------------------------------

    def across(self, group: str) -> None:
        """A group of 16 rows: the chunks of one column of A after the other."""
        b = self.b
        count = self.bits * GROUP // 128

        def column(k: str) -> None:
            line = b.value(f"add i64 {b.value(f'mul i64 {group}, %k')}, {k}")
            first = b.value(f"mul i64 {line}, {count}")
            chunks = [self._chunk(b.value(f"add i64 {first}, {i}")) for i in range(count)]
            values = self.number(_joined(b, chunks, self.bits))
            if self.order is not None:
                order = ", ".join(f"i32 {i}" for i in self.order)
                values = b.value(f"shufflevector {_SINGLE} {values}, {_SINGLE} poison, <16 x i32> <{order}>")
            self._store(group, k, values)

        repeat(b, "%k", 1, column)

    # --- elements -----------------------------------------------------------------------------------------------------

    def _chunk(self, index: str) -> str:
        b = self.b
        offset = b.value(f"load i32, ptr {element_of(b, 'i32', '%table', index)}")
        return b.value(f"load {_CHUNK}, ptr {b.value(f'getelementptr i8, ptr %base, i32 {offset}')}, align 1")

    def number(self, codes: str) -> str:
        """16 elements as f32; NaN stays NaN, and infinity infinity."""
        b = self.b
        if self.t == "tf32":  # the low 13 bits do not count
            return b.value(f"bitcast {_WORD} {b.value(f'and {_WORD} {codes}, {_all(-(1 << 13))}')} to {_SINGLE}")
        form = FORMATS[self.t]
        code = b.value(f"zext <16 x i{self.bits}> {codes} to {_WORD}")
        if self.t == "bf16":
            return b.value(f"bitcast {_WORD} {b.value(f'shl {_WORD} {code}, {_all(16)}')} to {_SINGLE}")
        sign = b.value(f"shl {_WORD} {b.value(f'and {_WORD} {code}, {_all(form.sign)}')}, {_all(32 - self.bits)}")
        size = b.value(f"and {_WORD} {code}, {_all(form.sign - 1)}")
        field = b.value(f"shl {_WORD} {size}, {_all(23 - form.mantissa)}")
        # The exponent's bias differs; subnormal numbers become normal ones.
        factor = splat(f"0x{1023 + 127 - form.bias:03X}0000000000000", "float", 16)
        scaled = b.value(f"fmul {_SINGLE} {b.value(f'bitcast {_WORD} {field} to {_SINGLE}')}, {factor}")
        plain = b.value(f"bitcast {_SINGLE} {scaled} to {_WORD}")
        least = form.infinity if form.infinity is not None else form.nan
        finite = b.value(f"icmp ult {_WORD} {size}, {_all(least or 0)}")
        special = b.value(f"or {_WORD} {field}, {_all(0x7F80_0000)}")
        whole = b.value(f"select <16 x i1> {finite}, {_WORD} {plain}, {_WORD} {special}")
        return b.value(f"bitcast {_WORD} {b.value(f'or {_WORD} {whole}, {sign}')} to {_SINGLE}")

    def _store(self, group: str, k: str, values: str) -> None:
        b = self.b
        bits = b.value(f"bitcast {_SINGLE} {values} to {_WORD}")
        size = b.value(f"and {_WORD} {bits}, {_all(0x7FFF_FFFF)}")
        own = b.value(f"sub {_WORD} {b.value(f'lshr {_WORD} {size}, {_all(23)}')}, {_all(127)}")
        own = b.value(f"call {_WORD} @llvm.smax.v16i32({_WORD} {own}, {_WORD} {_all(LEAST[self.t])})")
        zero = b.value(f"icmp eq {_WORD} {size}, zeroinitializer")
        own = b.value(f"select <16 x i1> {zero}, {_WORD} {_all(NO_EXPONENT)}, {_WORD} {own}")
        known = b.value(f"load {_WORD}, ptr {self.highest}, align 64")
        more = b.value(f"call {_WORD} @llvm.smax.v16i32({_WORD} {own}, {_WORD} {known})")
        b.line(f"store {_WORD} {more}, ptr {self.highest}, align 64")
        line = b.value(f"add i64 {b.value(f'mul i64 {group}, %k')}, {k}")
        b.line(f"store {_SINGLE} {values}, ptr {element_of(b, _SINGLE, '%values', line)}, align 64")
        four = b.value(f"udiv i64 {group}, {TOGETHER}")
        place = b.value(f"add i64 {b.value(f'mul i64 {four}, %k')}, {k}")
        place = b.value(f"mul i64 {place}, {TOGETHER}")
        place = b.value(f"add i64 {place}, {b.value(f'urem i64 {group}, {TOGETHER}')}")
        short = b.value(f"trunc {_WORD} {own} to {_SHORT}")
        b.line(f"store {_SHORT} {short}, ptr {element_of(b, _SHORT, '%exponents', place)}, align 32")


def _all(number: int) -> str:
    """A number in all 16 places."""
    return splat(str(number), "i32", 16)


def _joined(b: Body, chunks: list[str], bits: int) -> str:
    """One, two or four chunks as one vector of elements."""
    width = 16
    while len(chunks) > 1:
        order = ", ".join(f"i32 {i}" for i in range(2 * width))
        kind = f"<{width} x i8>"
        pairs = zip(chunks[::2], chunks[1::2], strict=True)
        chunks = [b.value(f"shufflevector {kind} {x}, {kind} {y}, <{2 * width} x i32> <{order}>") for x, y in pairs]
        width *= 2
    return b.value(f"bitcast <{width} x i8> {chunks[0]} to <{8 * width // bits} x i{bits}>")


def _turned(b: Body, rows: list[str]) -> list[str]:
    """16 vectors of 16 f32 with rows and columns exchanged: inside of quarters, then the quarters themselves."""

    def mix(x: str, y: str, order: list[int]) -> str:
        text = ", ".join(f"i32 {i}" for i in order)
        return b.value(f"shufflevector {_SINGLE} {x}, {_SINGLE} {y}, <16 x i32> <{text}>")

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
