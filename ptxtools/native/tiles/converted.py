"""LLVM IR that converts a factor, as `factors` has arranged it, to what `fused` multiplies: f64, and bytes with the
exponents and with those of the lowest bits, whose highest bit is the sign.

Bytes are relative to a base for each factor, so that no exponent is above `TOP`; a factor whose bits span more than 32
places has `NO_BASE`. The bytes of 64 elements lie as AVX-512 packs their four vectors: four elements of each, the next
four of each, and so on. For "warp" these vectors are of both blocks in turn, so that a row has eight bytes together.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ptxtools.native.code.emitter import ZERO, Emitter, splat

from .decode import SHORT, SINGLE, SIZE, WORD, everywhere
from .factors import NO_EXPONENT, TOGETHER
from .vectors import is_wide

COMMON = "tile_fused_common"
#: Bias of the exponents of f32.
BIAS = 127
#: The greatest exponent of a factor beside its base; what is added to exponents of lowest bits, which are then from 0
#: to `TOP` + `ROOM`; that of zero, more than all sums of others and less than 64.
TOP, ROOM, LOW_OF_ZERO = 15, 16, 63
#: The exponent of zero: sums with it are below all others, and none is below -128.
_OF_ZERO = -64
BYTES, DOUBLES, _BYTE16 = "<64 x i8>", "<8 x double>", "<16 x i8>"
#: Rows of the common factor whose f64 lie together for each k.
NEAR = 8
#: Instead of a base, where the bits of a factor span too much.
NO_BASE = 1 << 20
PARAMETERS = (
    "ptr %values, ptr %exponents, i64 %groups, i64 %k, i32 %most, i32 %sign, ptr %wide, ptr %powers, ptr %lowest"
)
#: Stores a column of 16 rows, after its group and its place in K: f64, exponents, lowest bits.
Store = Callable[[Emitter, str, str, str, str, str], None]


def own_of(layout: str) -> str:
    """Symbol of the function that converts the factor with 64 rows."""
    return f"tile_fused_own_{layout}"


NAMES = (COMMON, own_of("warp"), own_of("rows"))


def function(code: Emitter, name: str) -> str:
    """IR of one of them.

    It gets what `factors` has arranged (values, exponents, groups of 16, K, greatest exponent, sign bit to be turned;
    out: f64, exponents, lowest bits) and returns the base, or `NO_BASE`. common: f64 [eight rows][k][8], bytes
    [16 rows][k][16]. own for "warp", one group: f64 [k][32], rows twice; bytes [k][128], rows eight times. own for
    "rows", of 64 columns: [k][64], f64 in the order in which vectors of two words are unpacked. Only "warp" turns
    signs.
    """
    return _conversion(code, name, (_common, _own_of_warp, _own_of_rows)[NAMES.index(name)])


def _conversion(code: Emitter, name: str, store: Store) -> str:
    b = code
    floor = b.apply("smax", "i32", "%most", str(-BIAS - 23))
    base = b.value(f"sub i32 {floor}, {TOP}")
    turned = b.spread("i32", "%sign", 16)
    short = b.spread("i16", b.value(f"trunc i32 {base} to i16"), 16)
    lows = _Lows(b, base)

    def column(group: str, at: str) -> None:
        line = b.value(f"add i64 {b.value(f'mul i64 {group}, %k')}, {at}")
        bits = b.value(f"load {WORD}, ptr {b.element(WORD, '%values', line)}, align 64")
        if name == own_of("warp"):
            bits = b.value(f"xor {WORD} {bits}, {turned}")
        four = b.value(f"mul i64 {b.value(f'lshr i64 {group}, 2')}, %k")
        four = b.value(f"shl i64 {b.value(f'add i64 {four}, {at}')}, 2")
        within = b.value(f"and i64 {group}, {TOGETHER - 1}")
        powers = b.value(f"load {SHORT}, ptr {b.element(SHORT, '%exponents', four, within)}, align 32")
        relative = b.apply("smax", SHORT, b.value(f"sub {SHORT} {powers}, {short}"), splat("i16", _OF_ZERO))
        relative = b.value(f"trunc {SHORT} {relative} to {_BYTE16}")
        store(b, group, at, bits, relative, lows.bytes(bits, powers))

    def columns(group: str) -> None:
        work, done = b.label(), b.label()
        b.branch(lows.span_too_much(), done, work)
        b.begin(work)
        b.repeat("%k", 1, lambda at: column(group, at))
        b.jump(done)
        b.begin(done)

    b.repeat("%groups", 1, columns)
    answer = b.value(f"select i1 {lows.span_too_much()}, i32 {NO_BASE}, i32 {base}")
    return b.function(name, PARAMETERS, answer)


class _Lows:
    """Exponents of the lowest bits of a factor, relative to a base, and the least of them; in 32 bits, or without
    AVX-512, where two vectors of these are one of 16 bits, in 16."""

    def __init__(self, code: Emitter, base: str) -> None:
        self.code = b = code
        self.wide = is_wide(code)
        self.element, self.kind = ("i32", WORD) if self.wide else ("i16", SHORT)
        self._least = b.room(self.kind)
        b.line(f"store {self.kind} {ZERO}, ptr {self._least}, align 64")
        bias = b.value(f"add i32 {base}, {2 * BIAS + 23 - ROOM}")
        self._bias = b.spread(self.element, bias if self.wide else b.value(f"trunc i32 {bias} to i16"), 16)

    def span_too_much(self) -> str:
        """Whether one is below 0."""
        b = self.code
        known = b.value(f"load {self.kind}, ptr {self._least}, align 64")
        least = b.call(f"llvm.vector.reduce.smin.v16{self.element}", self.element, [(self.kind, known)])
        return b.value(f"icmp slt {self.element} {least}, 0")

    def bytes(self, bits: str, exponents: str) -> str:
        """Those of f32, and their signs."""
        b, kind = self.code, self.kind
        size = b.value(f"and {WORD} {bits}, {everywhere(SIZE)}")
        whole = b.value(f"or {WORD} {bits}, {everywhere(1 << 23)}")
        last = b.value(f"and {WORD} {whole}, {b.value(f'sub {WORD} {ZERO}, {whole}')}")
        place = b.value(f"bitcast {SINGLE} {b.value(f'sitofp {WORD} {last} to {SINGLE}')} to {WORD}")
        # Both have exponents above 23 bits, and of these `place` has none.
        normal = b.apply("umax", WORD, size, everywhere(1 << 23))
        both = b.value(f"lshr {WORD} {b.value(f'add {WORD} {place}, {normal}')}, {everywhere(23)}")
        low = b.value(f"sub {kind} {self._narrow(both)}, {self._bias}")
        zero = b.value(
            f"icmp eq {WORD} {size}, {ZERO}" if self.wide else
            f"icmp eq {SHORT} {exponents}, {splat('i16', NO_EXPONENT)}"
        )  # fmt: skip
        low = b.value(f"select <16 x i1> {zero}, {kind} {splat(self.element, LOW_OF_ZERO)}, {kind} {low}")
        known = b.value(f"load {kind}, ptr {self._least}, align 64")
        b.line(f"store {kind} {b.apply('smin', kind, low, known)}, ptr {self._least}, align 64")
        high = self._narrow(b.value(f"lshr {WORD} {bits}, {everywhere(24 if self.wide else 16)}"))
        if not self.wide:
            high = b.value(f"lshr {SHORT} {high}, {splat('i16', 8)}")
        sign = b.value(f"and {kind} {high}, {splat(self.element, 128)}")
        return b.value(f"trunc {kind} {b.value(f'or {kind} {low}, {sign}')} to {_BYTE16}")

    def _narrow(self, words: str) -> str:
        return words if self.wide else self.code.value(f"trunc {WORD} {words} to {SHORT}")


def _wide(b: Emitter, bits: str, order: Sequence[int]) -> str:
    """Eight of 16 f32 as f64."""
    values = b.value(f"bitcast {WORD} {bits} to {SINGLE}")
    return b.value(f"fpext <8 x float> {b.shuffle(SINGLE, order, values)} to {DOUBLES}")


def _common(b: Emitter, group: str, at: str, bits: str, powers: str, lowest: str) -> None:
    twice = b.value(f"shl i64 {group}, 1")
    for half in range(2):
        line = b.value(f"mul i64 {b.value(f'add i64 {twice}, {half}')}, %k")
        line = b.value(f"add i64 {line}, {at}")
        order = range(NEAR * half, NEAR * half + NEAR)
        b.line(f"store {DOUBLES} {_wide(b, bits, order)}, ptr {b.element(DOUBLES, '%wide', line)}, align 64")
    line = b.value(f"add i64 {b.value(f'mul i64 {group}, %k')}, {at}")
    for some, base in ((powers, "%powers"), (lowest, "%lowest")):
        b.line(f"store {_BYTE16} {some}, ptr {b.element(_BYTE16, base, line)}, align 16")


def _own_of_warp(b: Emitter, _: str, at: str, bits: str, powers: str, lowest: str) -> None:
    for v in range(4):
        place = b.element("double", "%wide", b.value(f"shl i64 {at}, 5"), str(8 * v))
        b.line(f"store {DOUBLES} {_wide(b, bits, [4 * v + i // 2 for i in range(8)])}, ptr {place}, align 64")
    for half in range(2):
        order = [8 * half + 4 * (i // 8 % 2) + i // 16 for i in range(64)]
        for some, base in ((powers, "%powers"), (lowest, "%lowest")):
            place = b.element(BYTES, base, b.value(f"shl i64 {at}, 1"), str(half))
            b.line(f"store {BYTES} {b.shuffle(_BYTE16, order, some)}, ptr {place}, align 64")


def _own_of_rows(b: Emitter, group: str, at: str, bits: str, powers: str, lowest: str) -> None:
    line = b.value(f"add i64 {b.value(f'shl i64 {at}, 6')}, {b.value(f'shl i64 {group}, 4')}")
    for half in range(2):
        order = [4 * (i // 2) + 2 * half + i % 2 for i in range(8)]
        place = b.element("double", "%wide", line, str(8 * half))
        b.line(f"store {DOUBLES} {_wide(b, bits, order)}, ptr {place}, align 64")
    for some, base in ((powers, "%powers"), (lowest, "%lowest")):
        four = b.value(f"bitcast {_BYTE16} {some} to <4 x i32>")
        for i in range(4):
            place = b.element("i32", base, b.value(f"shl i64 {at}, 4"), group, str(4 * i))
            b.line(f"store i32 {b.value(f'extractelement <4 x i32> {four}, i32 {i}')}, ptr {place}, align 4")
