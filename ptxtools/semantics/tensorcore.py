"""How tensor cores add, over the value algebra (9.7.14.5, docs/numerics.md): the meaning of `accumulation`'s rules.

The manual leaves order and rounding of the sum open. The chips' behaviour is known from measurements (MMA-Sim,
arXiv:2511.10909): the products of a chunk of K and the addend are aligned to the largest exponent among them, cut off
`fraction` bits below it, and added exactly; the sum is cut off to the result's precision. The exponent of a product is
the sum of its factors' exponents, so that its significand lies in [1, 4). Subnormal numbers keep their type's least
exponent and are never flushed.

All numbers are f64 here: every product and every cut-off term is exact in it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from ptxtools.records import dataclass

from .accumulation import RESULTS, Result, Rule
from .algebra import Algebra, Value
from .products import Product

#: Least exponent of a normal number; that of subnormal ones too.
LEAST = {"f16": -14, "bf16": -126, "tf32": -126, "f32": -126, "e4m3": -6, "e5m2": -14, "e3m2": -2, "e2m3": 0,
         "e2m1": 0, "fp4": 0, "ue4m3": -6, "ue8m0": -127}  # fmt: skip
_EXPONENT = 0x7FF0_0000_0000_0000
_SIGN = 1 << 63
NAN32 = 0x7FFF_FFFF


# --- decoding ---------------------------------------------------------------------------------------------------------

#: Shift that brings an element to the place of f16's fields, its mask without sign, and the power of two that corrects
#: the exponent's bias.
_NARROW = {"e4m3": (7, 0x7F, 8), "e3m2": (8, 0x1F, 12), "e2m3": (7, 0x1F, 14), "e2m1": (9, 0x07, 14)}
_SIGN_BIT = {"e4m3": 0x80, "e3m2": 0x20, "e2m3": 0x20, "e2m1": 0x08}


def decode(A: Algebra, t: str, bits: Value) -> Value:
    """An element, in the low bits of a u32 that may have others above, as f64."""
    return A.float_to_float("f32", "f64", decode_single(A, t, bits))


def decode_single(A: Algebra, t: str, bits: Value) -> Value:
    """The same as f32, which has every value of every type."""
    if t == "tf32":  # the low 13 bits do not count
        return A.and_with("u32", bits, 0xFFFF_E000)
    if t == "f32":
        return bits
    if t == "bf16":
        return A.shl_by("u32", bits, 16)
    if t in ("f16", "e5m2"):
        half = bits if t == "f16" else A.shl_by("u32", bits, 8)
        return A.half_to_single(A.resize("u32", "u16", half))
    return _decode_narrow(A, t, bits)


def _decode_narrow(A: Algebra, t: str, bits: Value) -> Value:
    if t == "fp4":
        t = "e2m1"
    elif t == "e2m1":  # in a byte of its own, in bits 2 to 5
        bits = A.shr_by("u32", bits, 2)
    shift, mask, power = _NARROW[t]
    sign = _SIGN_BIT[t]
    magnitude = A.and_with("u32", bits, mask)
    half = A.or_(
        "u32",
        A.shl_by("u32", magnitude, shift),
        A.shl_by("u32", A.and_with("u32", bits, sign), 16 - sign.bit_length()),
    )
    single = A.half_to_single(A.resize("u32", "u16", half))
    single = A.fmul("f32", single, A.real("f32", float(1 << power)))
    if t == "e4m3":
        nan = A.compare("eq", "u32", magnitude, A.const("u32", 0x7F))
        single = A.select("u32", nan, A.const("u32", NAN32), single)
    return single


def decode_whole(A: Algebra, t: str, bits: Value, place: int = 0) -> Value:
    """A whole number of type s8, u8, s4 or u4, from bit `place` of a u32, as s32; of b1 a single bit."""
    width = int(t[1:])
    moved = A.shl_by("u32", bits, 32 - width - place)
    return A.shr_by("s32" if t[0] == "s" else "u32", moved, 32 - width)


def decode_scale(A: Algebra, t: str, byte: Value) -> Value:
    """A scale factor, in the low byte of a u32, as f64 (9.7.14.5.12); the sign of ue4m3 is ignored."""
    if t == "ue4m3":
        return decode(A, "e4m3", A.and_with("u32", byte, 0x7F))
    exponent = A.and_with("u32", byte, 0xFF)
    wide = A.resize("u32", "u64", A.add("u32", exponent, A.const("u32", 1023 - 127)))
    nan = A.compare("eq", "u32", exponent, A.const("u32", 0xFF))
    return A.select("u64", nan, A.const("u64", _EXPONENT | 1 << 51), A.shl_by("u64", wide, 52))


def power(A: Algebra, number: Value, least: int) -> Value:
    """2 to the number's exponent, which is at least `least`; 0 for 0, infinite for what is not finite. All f64."""
    magnitude = A.and_with("u64", number, _SIGN - 1)
    own = greater(A, A.and_with("u64", number, _EXPONENT), A.real("f64", 2.0**least))
    return A.select("u64", A.fcompare("eq", "f64", magnitude, A.const("u64", 0)), A.const("u64", 0), own)


def greater(A: Algebra, a: Value, b: Value) -> Value:
    """The greater of two f64 that are no NaN."""
    return A.select("u64", A.fcompare("gt", "f64", a, b), a, b)


def decode_addend(A: Algebra, product: Product, bits: Value) -> Value:
    """c as f64, rounded to the result's type first where that is narrower. bits: u16 for f16, else u32."""
    if product.ctype == "f16":
        single = A.half_to_single(bits)
    else:
        single = A.half_to_single(A.single_to_half(bits)) if product.dtype == "f16" else bits
    return A.float_to_float("f32", "f64", single)


# --- adding -----------------------------------------------------------------------------------------------------------


#: An element of A by row (of those computed together) and column k; and one of B (for all columns of D) by k.
ElementsA: TypeAlias = Callable[[int, int], Value]
ElementsB: TypeAlias = Callable[[int], Value]


@dataclass(frozen=True)
class Factors:
    """What is multiplied, by row (of those computed together) and column k: values as f64, and their `power`s.

    scale: of a block-scaled product, both factors multiplied, for the block that column k is in, and their powers;
    blocks: how many blocks K has.
    """

    a: ElementsA
    a_power: ElementsA
    b: ElementsB
    b_power: ElementsB
    scale: Callable[[int, int], tuple[Value, Value]] | None = None
    blocks: int = 1


def accumulate_doubles(
    A: Algebra, rounding: str, k: int, a: ElementsA, b: ElementsB, addends: Sequence[Value]
) -> list[Value]:
    """Results of f64 products for each row: fused multiply-adds in the order of k."""
    sums = list(addends)
    for column in range(k):
        right = b(column)
        for row, total in enumerate(sums):
            if rounding == "rn":
                sums[row] = A.fma("f64", a(row, column), right, total)
            else:
                sums[row] = A.directed("fma", "f64", rounding, a(row, column), right, total)
    return sums


def accumulate_whole(
    A: Algebra, k: int, a: ElementsA, b: ElementsB, addends: Sequence[Value], *, saturate: bool, bits: str = ""
) -> list[Value]:
    """Results of whole numbers for each row, as s32: the exact sum, then c, wrapping or saturating once. bits: the
    operation of single bits, "and" or "xor", whose ones are counted; elements may be words of them."""
    sums = [A.const("s32", 0) for _ in addends]
    for column in range(k):
        right = b(column)
        for row, total in enumerate(sums):
            sums[row] = A.add("s32", total, _whole_term(A, bits, a(row, column), right))
    add = A.add_saturating if saturate else A.add
    return [add("s32", c, total) for c, total in zip(addends, sums, strict=True)]


def _whole_term(A: Algebra, bits: str, a: Value, b: Value) -> Value:
    if not bits:
        return A.mul("s32", a, b)
    return A.popcount("u32", A.and_("u32", a, b) if bits == "and" else A.xor("u32", a, b))


def accumulate(A: Algebra, rule: Rule, k: int, factors: Factors, addends: Sequence[Value]) -> list[Value]:
    """Results for each row, as f32 bits; for rule.result "f16" as f16 bits. addends: c as f64. Results for NaN and
    infinite operands are wrong: see `exceptional`."""
    if not rule.fraction:
        return _chain(A, rule, k, factors, addends)
    sums = [A.const("u64", 0) for _ in addends] if rule.late else list(addends)
    results: list[Value] = []
    for columns in rule.chunks(k):
        exact, powers = _aligned_sums(A, rule, columns, factors, sums)
        results = [_round(A, rule.format, s, p, rule.fraction) for s, p in zip(exact, powers, strict=True)]
        sums = [_to_double(A, rule.result, r) for r in results]
    if rule.late:
        results = [_add_last(A, rule, r, c) for r, c in zip(results, addends, strict=True)]
    return results


def _aligned_sums(
    A: Algebra, rule: Rule, columns: Sequence[int], factors: Factors, addends: Sequence[Value]
) -> tuple[list[Value], list[Value]]:
    """Sum of the cut-off terms in units of the last bit kept, and 2 to the largest exponent, for each row."""
    if rule.group > 1:
        return _grouped_sums(A, rule, columns, factors, addends)
    rows = range(len(addends))
    powers = [_addend_power(A, rule, c) for c in addends]
    spans = _spans(columns, factors)
    scales = [None if factors.scale is None else [factors.scale(row, span[0]) for row in rows] for span in spans]
    for span, scale in zip(spans, scales, strict=True):
        largest = [A.const("u64", 0) for _ in rows]
        for k in span:
            b = factors.b_power(k)
            largest = [greater(A, p, A.fmul("f64", factors.a_power(row, k), b)) for row, p in enumerate(largest)]
        if scale is not None:
            largest = [A.fmul("f64", p, own) for p, (_, own) in zip(largest, scale, strict=True)]
        powers = [greater(A, p, q) for p, q in zip(powers, largest, strict=True)]
    units = [_units(A, rule, p) for p in powers]
    sums = [_cut(A, c, unit) for c, unit in zip(addends, units, strict=True)]
    for span, scale in zip(spans, scales, strict=True):
        scaled = units
        if scale is not None:
            scaled = [A.fmul("f64", unit, value) for unit, (value, _) in zip(units, scale, strict=True)]
        for k in span:
            b = factors.b(k)
            for row in rows:
                sums[row] = A.fadd("f64", sums[row], _cut(A, A.fmul("f64", factors.a(row, k), b), scaled[row]))
    return sums, powers


def _spans(columns: Sequence[int], factors: Factors) -> list[Sequence[int]]:
    """Columns with the same scale factors."""
    if factors.scale is None or factors.blocks == 1:
        return [columns]
    wide = len(columns) // factors.blocks
    return [columns[first : first + wide] for first in range(0, len(columns), wide)]


def _units(A: Algebra, rule: Rule, own: Value) -> Value:
    """2**fraction / own, for a power of two."""
    return A.sub("u64", A.const("u64", (2 * 1023 + rule.fraction) << 52), own)


def _grouped_sums(
    A: Algebra, rule: Rule, columns: Sequence[int], factors: Factors, addends: Sequence[Value]
) -> tuple[list[Value], list[Value]]:
    """The same where the terms are exact sums of a group, with the exponent of the group's scale factors."""
    sums, powers = [], []
    groups = [range(first, first + rule.group) for first in columns[:: rule.group]]
    for row, c in enumerate(addends):
        terms = [_group_term(A, group, factors, row) for group in groups]
        own = _addend_power(A, rule, c)
        for _, group_power in terms:
            own = greater(A, own, group_power)
        unit = _units(A, rule, own)
        total = _cut(A, c, unit)
        for term, _ in terms:
            total = A.fadd("f64", total, _cut(A, term, unit))
        sums.append(total)
        powers.append(own)
    return sums, powers


def _group_term(A: Algebra, group: range, factors: Factors, row: int) -> tuple[Value, Value]:
    """The exact scaled sum of a group of columns, and 2 to the sum of the scales' exponents, which counts even where
    the sum is zero."""
    assert factors.scale is not None
    total = A.const("u64", 0)
    for k in group:
        total = A.fadd("f64", total, A.fmul("f64", factors.a(row, k), factors.b(k)))
    value, own = factors.scale(row, group.start)
    return A.fmul("f64", total, value), own


def _addend_power(A: Algebra, rule: Rule, c: Value) -> Value:
    """2 to the exponent of c, which has the result's type; that of 0 is the least of f32."""
    least, own = RESULTS["f32"].least, rule.format.least
    if own == least:
        return greater(A, A.and_with("u64", c, _EXPONENT), A.real("f64", 2.0**least))
    return greater(A, power(A, c, own), A.real("f64", 2.0**least))


def _cut(A: Algebra, term: Value, scale: Value) -> Value:
    return A.integral("f64", "rz", A.fmul("f64", term, scale))


def _round(A: Algebra, result: Result, total: Value, own: Value, fraction: int) -> Value:
    """total * own / 2**fraction as f32 or f16 bits."""
    exact = A.fmul("f64", A.fmul("f64", total, own), A.real("f64", 2.0**-fraction))
    exact = A.fadd("f64", exact, A.const("u64", 0))  # a sum of zero is +0
    single = _toward_zero(A, exact)
    if result.nearest:  # f32 to odd, so that the second rounding, to f16, is right
        lost = A.fcompare("ne", "f64", A.float_to_float("f32", "f64", single), exact)
        return A.single_to_half(A.or_("u32", single, A.resize("pred", "u32", lost)))
    missing = RESULTS["f32"].fraction - result.fraction
    return A.and_with("u32", single, (1 << 32) - (1 << missing)) if missing else single


def _toward_zero(A: Algebra, exact: Value) -> Value:
    """f64 to f32 bits, cut off; infinite from 2**128 on."""
    nearest = A.float_to_float("f64", "f32", exact)
    size = A.and_with("u64", exact, _SIGN - 1)
    back = A.and_with("u64", A.float_to_float("f32", "f64", nearest), _SIGN - 1)
    above = A.resize("pred", "u32", A.fcompare("gt", "f64", back, size))
    single = A.sub("u32", nearest, above)
    infinite = A.or_("u32", A.and_with("u32", nearest, 0x8000_0000), A.const("u32", 0x7F80_0000))
    return A.select("u32", A.fcompare("ge", "f64", size, A.real("f64", 2.0**128)), infinite, single)


def _to_double(A: Algebra, result: str, bits: Value) -> Value:
    single = A.half_to_single(bits) if result == "f16" else bits
    return A.float_to_float("f32", "f64", single)


def _from_single(A: Algebra, result: str, single: Value) -> Value:
    return A.single_to_half(single) if result == "f16" else single


def _add_last(A: Algebra, rule: Rule, bits: Value, c: Value) -> Value:
    single = A.half_to_single(bits) if rule.result == "f16" else bits
    total = A.fadd("f32", single, A.float_to_float("f64", "f32", c))
    return _from_single(A, rule.result, total)


def _chain(A: Algebra, rule: Rule, k: int, factors: Factors, addends: Sequence[Value]) -> list[Value]:
    """Fused multiply-adds in the order of k."""
    t = rule.wide
    start = [A.const("u64", 0) for _ in addends] if rule.late else addends
    sums = [_as(A, t, c) for c in start]
    for column in range(k):
        b = _as(A, t, factors.b(column))
        sums = [A.fma(t, _as(A, t, _scaled(A, factors, row, column)), b, s) for row, s in enumerate(sums)]
    if rule.late:
        sums = [A.fadd(t, s, _as(A, t, c)) for s, c in zip(sums, addends, strict=True)]
    singles = [A.float_to_float("f64", "f32", s) if t == "f64" else s for s in sums]
    singles = [A.select("u32", A.fcompare("nan", "f32", s, s), A.const("u32", NAN32), s) for s in singles]
    return [_from_single(A, rule.result, single) for single in singles]


def _scaled(A: Algebra, factors: Factors, row: int, column: int) -> Value:
    a = factors.a(row, column)
    return a if factors.scale is None else A.fmul("f64", a, factors.scale(row, column)[0])


def _as(A: Algebra, t: str, number: Value) -> Value:
    return A.float_to_float("f64", "f32", number) if t == "f32" else number


def exceptional(
    A: Algebra, rule: Rule, k: int, factors: Factors, addends: Sequence[Value], bits: Sequence[Value]
) -> list[Value]:
    """Results corrected where an operand is NaN or infinite: a NaN, or the infinity that the sum in f64 gives."""
    corrected = []
    for row, (c, given) in enumerate(zip(addends, bits, strict=True)):
        total = c
        for span in _spans(range(k), factors):
            scale = None if factors.scale is None else factors.scale(row, span[0])[0]
            for column in span:
                total = add_term(A, total, factors.a(row, column), factors.b(column), scale)
        corrected.append(corrected_by(A, rule, total, given))
    return corrected


def add_term(A: Algebra, total: Value, a: Value, b: Value, scale: Value | None) -> Value:
    """A sum in f64 with one term more, of `exceptional`."""
    return A.fadd("f64", total, A.fmul("f64", a if scale is None else A.fmul("f64", a, scale), b))


def corrected_by(A: Algebra, rule: Rule, total: Value, given: Value) -> Value:
    """A result, or what the sum in f64 says where that is NaN or infinite."""
    single = A.float_to_float("f64", "f32", total)
    nan = A.fcompare("nan", "f64", total, total)
    size = A.and_with("u64", total, _SIGN - 1)
    infinite = A.fcompare("eq", "f64", size, A.const("u64", _EXPONENT))
    if rule.result == "f16":
        wrong = A.resize("u32", "u16", A.shr_by("u32", single, 16))
        sign = A.and_with("u16", wrong, 0x8000)
        special = A.select("u16", nan, A.const("u16", 0x7FFF), A.or_("u16", sign, A.const("u16", 0x7C00)))
        return A.select("u16", A.or_("pred", nan, infinite), special, given)
    special = A.select("u32", nan, A.const("u32", NAN32), single)
    return A.select("u32", A.or_("pred", nan, infinite), special, given)
