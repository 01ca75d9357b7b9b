"""How tensor cores add: the accumulation rules of each generation, over the value algebra (9.7.14.5, docs/numerics.md).

The manual leaves order and rounding of the sum open. What the chips do is known from measurements (MMA-Sim,
arXiv:2511.10909): the products of a chunk of K and the addend are aligned to the largest exponent among them, cut off
`fraction` bits below it, and added exactly; the sum is cut off to the result's precision. The exponent of a product is
the sum of its factors' exponents, so that its significand lies in [1, 4). Subnormal numbers keep their type's least
exponent and are never flushed.

All numbers are f64 here: every product and every cut-off term is exact in it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache

from .algebra import Algebra, Value
from .generations import GENERATIONS
from .products import Product

#: What `Launch.numerics` may be: IEEE arithmetic, or the generation whose tensor cores are imitated.
IEEE = "ieee"

_BYTES = {"tf32": 4, "f16": 2, "bf16": 2}
#: Least exponent of a normal number; that of subnormal ones too.
LEAST = {"f16": -14, "bf16": -126, "tf32": -126, "f32": -126, "e4m3": -6, "e5m2": -14, "e3m2": -2, "e2m3": 0,
         "e2m1": 0, "fp4": 0, "ue4m3": -6, "ue8m0": -127}  # fmt: skip
_EXPONENT = 0x7FF0_0000_0000_0000
_SIGN = 1 << 63
NAN32 = 0x7FFF_FFFF


@dataclass(frozen=True)
class Rule:
    """How one instruction adds.

    fraction: bits kept below the largest exponent, 0 for a chain of fused multiply-adds in `wide` ("f32" or "f64");
    chunk: columns of A added at once; result: "f32", "e8m13" (f32 with 13 fraction bits) or "f16"; group: products
    added exactly before they are aligned, for block-scaled fp4; late: chunks start from zero, and c is added last, to
    nearest even; paired: chunks take pairs of columns in turn, as registers of 8-bit elements come apart in halves.
    """

    fraction: int
    chunk: int
    result: str
    group: int = 1
    late: bool = False
    paired: bool = False
    wide: str = "f32"

    def chunks(self, k: int) -> list[Sequence[int]]:
        """The columns that are added at once, in order."""
        if self.paired:
            return [[column for column in range(k) if column // 2 % 2 == half] for half in (0, 1)]
        return [range(first, min(first + self.chunk, k)) for first in range(0, k, self.chunk)]


@cache
def rule_of(product: Product, numerics: str) -> Rule:
    """The rule for a product with floating-point factors."""
    result = "f16" if product.dtype == "f16" else "f32"
    if numerics == IEEE:
        return Rule(0, product.k, result, wide="f64" if product.scale else "f32")
    if product.scale:
        if product.atype == "fp4":
            return Rule(35, product.k, result, group=16)
        return Rule(25, product.k, result)
    if len(product.parts) > 1 and not GENERATIONS[numerics].quads:
        # m8n8k4 has no tensor-core instruction from sm_80 on: compilers make it from f32 multiply-adds.
        return Rule(0, product.k, result, late=True)
    return _plain_rule(product, numerics, result)


def _plain_rule(product: Product, numerics: str, result: str) -> Rule:
    size = _BYTES.get(product.atype, 1)
    doubled = 2 if product.sparse else 1  # of the columns of a sparse A half are stored
    generation = GENERATIONS[numerics]
    fraction, chunk = generation.fraction, doubled * generation.chunk // size
    late = paired = False
    if size == 1:
        if generation.eight == "short":
            fraction = 13
            result = "e8m13" if result == "f32" else result
        elif generation.eight == "halves":
            # Compiled for sm_90 and sm_100 to conversions to f16, two f16 products of half the shape, one of the lower
            # halves of all registers and one of the upper, and an addition of c (seen in ptxas 13.0's machine code).
            chunk, late, paired = product.k // 2, True, not product.sparse
    return Rule(fraction, min(chunk, product.k), result, late=late, paired=paired)


# --- decoding ---------------------------------------------------------------------------------------------------------

#: Shift that brings an element to the place of f16's fields, its mask without sign, and the power of two that corrects
#: the exponent's bias.
_NARROW = {"e4m3": (7, 0x7F, 8), "e3m2": (8, 0x1F, 12), "e2m3": (7, 0x1F, 14), "e2m1": (9, 0x07, 14)}
_SIGN_BIT = {"e4m3": 0x80, "e3m2": 0x20, "e2m3": 0x20, "e2m1": 0x08}


def decode(A: Algebra, t: str, bits: Value) -> Value:
    """An element, in the low bits of a u32 that may have others above, as f64."""
    if t in ("tf32", "f32"):
        single = A.and_with("u32", bits, 0xFFFF_E000) if t == "tf32" else bits
    elif t == "bf16":
        single = A.shl_by("u32", bits, 16)
    elif t in ("f16", "e5m2"):
        half = bits if t == "f16" else A.shl_by("u32", bits, 8)
        single = A.half_to_single(A.resize("u32", "u16", half))
    else:
        single = _decode_narrow(A, t, bits)
    return A.float_to_float("f32", "f64", single)


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


@dataclass(frozen=True)
class Factors:
    """What is multiplied, by row (of those computed together) and column k: values as f64, and their `power`s.

    scale: of a block-scaled product, both factors multiplied, for the block that column k is in, and their powers.
    """

    a: Callable[[int, int], Value]
    a_power: Callable[[int, int], Value]
    b: Callable[[int], Value]
    b_power: Callable[[int], Value]
    scale: Callable[[int, int], tuple[Value, Value]] | None = None


def accumulate(A: Algebra, rule: Rule, k: int, factors: Factors, addends: Sequence[Value]) -> list[Value]:
    """Results for each row, as f32 bits; for rule.result "f16" as f16 bits. addends: c as f64. Results for NaN and
    infinite operands are wrong: see `exceptional`."""
    if not rule.fraction:
        return _chain(A, rule, k, factors, addends)
    sums = [A.const("u64", 0) for _ in addends] if rule.late else list(addends)
    results: list[Value] = []
    for columns in rule.chunks(k):
        exact, powers = _aligned_sums(A, rule, columns, factors, sums)
        results = [_round(A, rule.result, s, p, rule.fraction) for s, p in zip(exact, powers, strict=True)]
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
    largest = [A.const("u64", 0) for _ in rows]
    for k in columns:
        b = factors.b_power(k)
        largest = [greater(A, p, A.fmul("f64", factors.a_power(row, k), b)) for row, p in enumerate(largest)]
    scales = None if factors.scale is None else [factors.scale(row, columns[0]) for row in rows]
    if scales is not None:
        largest = [A.fmul("f64", p, scale[1]) for p, scale in zip(largest, scales, strict=True)]
    powers = [greater(A, _addend_power(A, rule, c), p) for c, p in zip(addends, largest, strict=True)]
    units = [_units(A, rule, p) for p in powers]
    sums = [_cut(A, c, unit) for c, unit in zip(addends, units, strict=True)]
    if scales is not None:
        units = [A.fmul("f64", unit, scale[0]) for unit, scale in zip(units, scales, strict=True)]
    for k in columns:
        b = factors.b(k)
        for row in rows:
            sums[row] = A.fadd("f64", sums[row], _cut(A, A.fmul("f64", factors.a(row, k), b), units[row]))
    return sums, powers


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
    """The exact scaled sum of a group of columns, and 2 to the sum of the scales' exponents."""
    assert factors.scale is not None
    total = A.const("u64", 0)
    for k in group:
        total = A.fadd("f64", total, A.fmul("f64", factors.a(row, k), factors.b(k)))
    value, own = factors.scale(row, group.start)
    zero = A.fcompare("eq", "f64", total, A.const("u64", 0))
    return A.fmul("f64", total, value), A.select("u64", zero, A.const("u64", 0), own)


def _addend_power(A: Algebra, rule: Rule, c: Value) -> Value:
    """2 to the exponent of c, which has the result's type; that of 0 is the least of f32."""
    least = A.real("f64", 2.0 ** LEAST["f32"])
    if rule.result != "f16":
        return greater(A, A.and_with("u64", c, _EXPONENT), least)
    return greater(A, power(A, c, LEAST["f16"]), least)


def _cut(A: Algebra, term: Value, scale: Value) -> Value:
    return A.integral("f64", "rz", A.fmul("f64", term, scale))


def _round(A: Algebra, result: str, total: Value, own: Value, fraction: int) -> Value:
    """total * own / 2**fraction as f32 or f16 bits."""
    exact = A.fmul("f64", A.fmul("f64", total, own), A.real("f64", 2.0**-fraction))
    exact = A.fadd("f64", exact, A.const("u64", 0))  # a sum of zero is +0
    single = _toward_zero(A, exact)
    if result == "e8m13":
        return A.and_with("u32", single, 0xFFFF_FC00)
    if result == "f16":  # f32 to odd, so that the second rounding is right
        lost = A.fcompare("ne", "f64", A.float_to_float("f32", "f64", single), exact)
        return A.single_to_half(A.or_("u32", single, A.resize("pred", "u32", lost)))
    return single


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
        for column in range(k):
            total = A.fadd("f64", total, A.fmul("f64", _scaled(A, factors, row, column), factors.b(column)))
        single = A.float_to_float("f64", "f32", total)
        nan = A.fcompare("nan", "f64", total, total)
        size = A.and_with("u64", total, _SIGN - 1)
        infinite = A.fcompare("eq", "f64", size, A.const("u64", _EXPONENT))
        if rule.result == "f16":
            wrong = A.resize("u32", "u16", A.shr_by("u32", single, 16))
            sign = A.and_with("u16", wrong, 0x8000)
            special = A.select("u16", nan, A.const("u16", 0x7FFF), A.or_("u16", sign, A.const("u16", 0x7C00)))
            corrected.append(A.select("u16", A.or_("pred", nan, infinite), special, given))
        else:
            special = A.select("u32", nan, A.const("u32", NAN32), single)
            corrected.append(A.select("u32", A.or_("pred", nan, infinite), special, given))
    return corrected
