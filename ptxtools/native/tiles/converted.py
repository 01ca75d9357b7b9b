"""LLVM IR that converts a factor, as `factors` has arranged it, to what `fused` multiplies: f64, and bytes with the
exponents and with those of the lowest bits, whose highest bit is the sign.

Bytes are relative to a base for each factor, so that no exponent is above `TOP`; a factor whose bits span more than 32
places has `NO_BASE`. The bytes of 64 elements lie as AVX-512 packs their four vectors: four elements of each, the next
four of each, and so on. For "warp" these vectors are of both blocks in turn, so that a row has eight bytes together.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ptxtools.native.code.emitter import ZERO, Emitter, splat

from .decode import SINGLE, SIZE, WORD, everywhere
from .factors import TOGETHER

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
    bases, turned = b.spread("i32", base, 16), b.spread("i32", "%sign", 16)
    least = b.room(WORD)
    b.line(f"store {WORD} {ZERO}, ptr {least}, align 64")
    to_low = b.value(f"add {WORD} {bases}, {everywhere(2 * BIAS + 23 - ROOM)}")
    short = b.spread("i16", b.value(f"trunc i32 {base} to i16"), 16)

    def column(group: str, at: str) -> None:
        line = b.value(f"add i64 {b.value(f'mul i64 {group}, %k')}, {at}")
        bits = b.value(f"load {WORD}, ptr {b.element(WORD, '%values', line)}, align 64")
        if name == own_of("warp"):
            bits = b.value(f"xor {WORD} {bits}, {turned}")
        four = b.value(f"mul i64 {b.value(f'lshr i64 {group}, 2')}, %k")
        four = b.value(f"shl i64 {b.value(f'add i64 {four}, {at}')}, 2")
        within = b.value(f"and i64 {group}, {TOGETHER - 1}")
        powers = b.value(f"load <16 x i16>, ptr {b.element('<16 x i16>', '%exponents', four, within)}, align 32")
        powers = b.value(f"sub <16 x i16> {powers}, {short}")
        powers = b.value(
            f"trunc <16 x i16> {b.apply('smax', '<16 x i16>', powers, splat('i16', _OF_ZERO))} to {_BYTE16}"
        )
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
    return b.function(name, PARAMETERS, answer)


def _lowest_bits(b: Emitter, bits: str, to_low: str, least: str) -> str:
    """Bytes: exponents of the lowest bits of f32, which are to be above 0, and the signs."""
    size = b.value(f"and {WORD} {bits}, {everywhere(SIZE)}")
    whole = b.value(f"or {WORD} {bits}, {everywhere(1 << 23)}")
    last = b.value(f"and {WORD} {whole}, {b.value(f'sub {WORD} {ZERO}, {whole}')}")
    place = b.value(f"bitcast {SINGLE} {b.value(f'sitofp {WORD} {last} to {SINGLE}')} to {WORD}")
    # Both have exponents above 23 bits, and of these `place` has none.
    normal = b.apply("umax", WORD, size, everywhere(1 << 23))
    both = b.value(f"lshr {WORD} {b.value(f'add {WORD} {place}, {normal}')}, {everywhere(23)}")
    low = b.value(f"sub {WORD} {both}, {to_low}")
    zero = b.value(f"icmp eq {WORD} {size}, {ZERO}")
    low = b.value(f"select <16 x i1> {zero}, {WORD} {everywhere(LOW_OF_ZERO)}, {WORD} {low}")
    known = b.value(f"load {WORD}, ptr {least}, align 64")
    b.line(f"store {WORD} {b.apply('smin', WORD, low, known)}, ptr {least}, align 64")
    sign = b.value(f"and {WORD} {b.value(f'lshr {WORD} {bits}, {everywhere(24)}')}, {everywhere(128)}")
    return b.value(f"trunc {WORD} {b.value(f'or {WORD} {low}, {sign}')} to {_BYTE16}")


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
