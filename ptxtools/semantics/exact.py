"""Correct rounding in terms of the algebra's integers and round-to-nearest f64.

There are two basic ideas. A real number is passed to a rounding step as a significand with spare low bits, the lowest
of which is *sticky*: it stands for all truncated bits. And an f64 operation's error is itself an f64 (error-free
transformations), so its sign says on which side of the rounded result the true one lies.
"""

from __future__ import annotations

from ptxtools.records import dataclass
from ptxtools.semantics.algebra import Algebra, Value


@dataclass(frozen=True, slots=True)
class Format:
    """A binary floating-point format in the low bits of a word: sign, exponent, mantissa.

    `largest` is the pattern of the greatest finite magnitude, `infinity` that of infinity (None: the format has none),
    `nan` the canonical NaN (None: it has none).
    """

    name: str
    exponent: int
    mantissa: int
    bias: int
    largest: int
    infinity: int | None
    nan: int | None

    @property
    def bits(self) -> int:
        return 1 + self.exponent + self.mantissa

    @property
    def sign(self) -> int:
        """The sign bit's mask."""
        return 1 << (self.exponent + self.mantissa)


def _ieee(name: str, exponent: int, mantissa: int, nan: int) -> Format:
    infinity = ((1 << exponent) - 1) << mantissa
    return Format(name, exponent, mantissa, (1 << (exponent - 1)) - 1, infinity - 1, infinity, nan)


# Canonical NaNs: 9.7.3 and what the hardware writes; f64 keeps payloads (see floating.py), this one is of invalid
# operations. Narrow formats: 5.2.3.
F64 = _ieee("f64", 11, 52, 0xFFF8_0000_0000_0000)
F32 = _ieee("f32", 8, 23, 0x7FFF_FFFF)
F16 = _ieee("f16", 5, 10, 0x7FFF)
BF16 = _ieee("bf16", 8, 7, 0x7FFF)
TF32 = _ieee("tf32", 8, 10, 0x3FFFF)
E5M2 = _ieee("e5m2", 5, 2, 0x7F)
E4M3 = Format("e4m3", 4, 3, 7, 0x7E, None, 0x7F)
E2M3 = Format("e2m3", 2, 3, 1, 0x1F, None, None)
E3M2 = Format("e3m2", 3, 2, 3, 0x1F, None, None)
E2M1 = Format("e2m1", 2, 1, 1, 0x07, None, None)
FORMATS = {f.name: f for f in (F64, F32, F16, BF16, TF32, E5M2, E4M3, E2M3, E3M2, E2M1)}


# --- rounding steps ---------------------------------------------------------------------------------------------------


def shift_right_sticky(A: Algebra, t: str, a: Value, n: Value) -> Value:
    """a >> n for 0 <= n < width, with the lowest bit set if a set bit was shifted out."""
    shifted = A.shr(t, a, n)
    lost = A.compare("ne", t, A.shl(t, shifted, n), a)
    return A.or_(t, shifted, A.resize("pred", t, lost))


def drop_bits(A: Algebra, t: str, a: Value, count: int, rounding: str, negative: Value, random: Value = None) -> Value:
    """Round the magnitude `a` to a multiple of 2**count and divide by that.

    rounding rn, rna (ties away), rz, rm, rp, or rs: `random` (count bits) is added and the carry kept. `negative` is
    the number's sign, for rm and rp.
    """
    if rounding == "rn":
        odd = A.and_with(t, A.shr_by(t, a, count), 1)
        a = A.add(t, a, A.add(t, odd, A.const(t, (1 << (count - 1)) - 1)))
    elif rounding == "rna":
        a = A.add(t, a, A.const(t, 1 << (count - 1)))
    elif rounding == "rs":
        a = A.add(t, a, random)
    elif rounding in ("rm", "rp"):
        up, down = A.const(t, (1 << count) - 1), A.const(t, 0)
        a = A.add(t, a, A.select(t, negative, up, down) if rounding == "rm" else A.select(t, negative, down, up))
    return A.shr_by(t, a, count)


def overflow_pattern(A: Algebra, t: str, target: Format, rounding: str, negative: Value) -> Value:
    """The result for a finite number beyond the format's range (IEEE 754, 7.4): infinity or the largest magnitude."""
    largest = A.const(t, target.largest)
    if target.infinity is None or rounding == "rz":
        return largest
    infinity = A.const(t, target.infinity)
    if rounding == "rm":
        return A.select(t, negative, infinity, largest)
    if rounding == "rp":
        return A.select(t, negative, largest, infinity)
    return infinity


# --- from one format to a narrower one --------------------------------------------------------------------------------


def narrow(
    A: Algebra,
    source: Format,
    target: Format,
    x: Value,
    rounding: str,
    *,
    satfinite: bool = False,
    relu: bool = False,
    random: Value = None,
) -> Value:
    """Convert `x` (a word of `source`, f32 or f64) to `target`, correctly rounded, as a word of 16, 32 or 64 bits.

    The word is u16 for targets of at most 16 bits, else u32. `random`: for rs, a word of the source's width whose low
    bits are added below the target's last mantissa bit. relu: negative results become +0 (9.7.9.21).
    """
    t = f"u{source.bits}"
    if source.bias == target.bias and rounding not in ("rm", "rp") and not satfinite:
        return _shorten(A, t, source, target, x, rounding, relu, random)
    magnitude = A.and_with(t, x, source.sign - 1)
    negative = A.is_negative(t, x)
    aligned = _align(A, t, source, target, magnitude)
    result = drop_bits(A, t, aligned, source.mantissa - target.mantissa, rounding, negative, random)
    result = _clamp(A, t, source, target, result, magnitude, negative, rounding, satfinite)
    return _finish_narrow(A, t, source, target, result, magnitude, negative, relu)


def _shorten(
    A: Algebra, t: str, source: Format, target: Format, x: Value, rounding: str, relu: bool, random: Value
) -> Value:
    """`narrow` to a format with the same exponents and infinity: whatever is carried over, the sign stays on top."""
    result = drop_bits(A, t, x, source.mantissa - target.mantissa, rounding, None, random)
    if relu:
        result = A.select(t, A.is_negative(t, x), A.const(t, 0), result)
    result = A.select(t, A.fcompare("num", source.name, x, x), result, A.const(t, target.nan or 0))
    return A.resize(t, "u16" if target.bits <= 16 else "u32", result)


def _align(A: Algebra, t: str, source: Format, target: Format, magnitude: Value) -> Value:
    """The magnitude as a pattern of the target's exponent and the source's mantissa, subnormals shifted into place."""
    rebias = source.bias - target.bias
    normal = A.sub(t, magnitude, A.const(t, rebias << source.mantissa))
    if rebias == 0:
        return normal
    hidden = 1 << source.mantissa
    exponent = A.shr_by(t, magnitude, source.mantissa)
    significand = A.or_(t, A.and_with(t, magnitude, hidden - 1), A.const(t, hidden))
    distance = A.sub(t, A.const(t, rebias + 1), exponent)
    distance = A.minimum(t, distance, A.const(t, source.mantissa + 2))
    subnormal = shift_right_sticky(A, t, significand, distance)
    # A zero source has no hidden bit; a subnormal one lies far below half the target's least number, like any
    # number of the least source exponent: its exact bits do not matter, only that it is not zero.
    subnormal = A.select(t, A.is_zero(t, magnitude), A.const(t, 0), subnormal)
    return A.select(t, A.compare("gt", t, exponent, A.const(t, rebias)), normal, subnormal)


def _clamp(
    A: Algebra,
    t: str,
    source: Format,
    target: Format,
    result: Value,
    magnitude: Value,
    negative: Value,
    rounding: str,
    satfinite: bool,
) -> Value:
    largest = A.const(t, target.largest)
    if satfinite or target.infinity is None:
        return A.minimum(t, result, largest)
    too_large = A.compare("gt", t, result, largest)
    result = A.select(t, too_large, overflow_pattern(A, t, target, rounding, negative), result)
    assert source.infinity is not None
    infinite = A.compare("eq", t, magnitude, A.const(t, source.infinity))
    return A.select(t, infinite, A.const(t, target.infinity), result)


def _finish_narrow(
    A: Algebra, t: str, source: Format, target: Format, result: Value, magnitude: Value, negative: Value, relu: bool
) -> Value:
    """Sign, NaN, .relu; then the target's word."""
    word = "u16" if target.bits <= 16 else "u32"
    assert source.infinity is not None
    is_nan = A.compare("gt", t, magnitude, A.const(t, source.infinity))
    if relu:
        result = A.select(t, negative, A.const(t, 0), result)
    else:
        sign = A.select(t, negative, A.const(t, target.sign), A.const(t, 0))
        result = A.or_(t, result, sign)
    nan = target.largest if target.nan is None else target.nan
    return A.resize(t, word, A.select(t, is_nan, A.const(t, nan), result))


def half_to_single(A: Algebra, half: Value) -> Value:
    """f16 to f32: move the fields, then let a multiplication by 2**112 rebias, which also normalises subnormals."""
    word = A.resize("u16", "u32", half)
    sign = A.shl_by("u32", A.and_with("u32", word, 0x8000), 16)
    magnitude = A.shl_by("u32", A.and_with("u32", word, 0x7FFF), 13)
    finite = A.fmul("f32", magnitude, A.real("f32", 2.0**112))
    special = A.compare("ge", "u32", magnitude, A.const("u32", 0x7C00 << 13))
    infinite = A.or_("u32", magnitude, A.const("u32", 0x7F80_0000))
    return A.or_("u32", sign, A.select("u32", special, infinite, finite))


def widen_small(A: Algebra, source: Format, x: Value) -> Value:
    """A format of at most 8 bits (in a u16 word) to f16, exact; NaN becomes f16's canonical NaN."""
    magnitude = A.and_with("u16", x, source.sign - 1)
    sign = A.shl_by("u16", A.and_with("u16", x, source.sign), 16 - source.bits)
    moved = A.shl_by("u16", magnitude, F16.mantissa - source.mantissa)
    if source.bias != F16.bias:
        # Rebias through f32: exact, and subnormals become normal.
        single = half_to_single(A, moved)
        scaled = A.fmul("f32", single, A.real("f32", 2.0 ** (F16.bias - source.bias)))
        moved = A.single_to_half(scaled)
    result = A.or_("u16", sign, moved)
    if source.nan is None:
        return result
    least_nan = source.nan if source.infinity is None else source.infinity + 1
    is_nan = A.compare("ge", "u16", magnitude, A.const("u16", least_nan))
    return A.select("u16", is_nan, A.const("u16", 0x7FFF), result)


# --- sums -------------------------------------------------------------------------------------------------------------


def two_sum(A: Algebra, a: Value, b: Value) -> tuple[Value, Value]:
    """f64 sum and its exact error (Knuth), for finite operands whose sum does not overflow."""
    total = A.fadd("f64", a, b)
    b_part = A.fsub("f64", total, a)
    a_part = A.fsub("f64", total, b_part)
    return total, A.fadd("f64", A.fsub("f64", a, a_part), A.fsub("f64", b, b_part))


def to_odd(A: Algebra, total: Value, error: Value) -> Value:
    """An f64 and the error it was rounded with, rounded to odd instead (Boldo and Melquiond).

    Rounding the result again, to at most 51 bits, then rounds the exact number once. A NaN error changes nothing.
    """
    inexact = A.fcompare("ne", "f64", error, A.real("f64", 0.0))
    even = A.is_zero("u64", A.and_with("u64", total, 1))
    same_side = A.compare("ge", "s64", A.xor("u64", total, error), A.const("s64", 0))
    step = A.select("u64", same_side, A.const("u64", 1), A.const("u64", -1))
    moved = A.add("u64", total, step)
    return A.select("u64", A.and_("pred", inexact, even), moved, total)


def sum_to_odd(A: Algebra, a: Value, b: Value) -> Value:
    """a + b in f64, rounded to odd; infinities and NaNs as ever."""
    total, error = two_sum(A, a, b)
    return to_odd(A, total, error)


def fma_to_odd(A: Algebra, a: Value, b: Value, c: Value) -> Value:
    """Algebra.fma_to_odd through f64: its 53 bits hold the product exactly."""
    x, y, z = (A.float_to_float("f32", "f64", value) for value in (a, b, c))
    total = sum_to_odd(A, A.fmul("f64", x, y), z)
    result = narrow(A, F64, F32, total, "rz")
    inexact = A.fcompare("ne", "f64", A.float_to_float("f32", "f64", result), total)
    return A.or_("u32", result, A.resize("pred", "u32", inexact))


# --- directed rounding ------------------------------------------------------------------------------------------------


def directed(A: Algebra, operation: str, t: str, rounding: str, *operands: Value) -> Value:
    """add sub mul fma div sqrt of f32 or f64, rounded rz, rm, rp (f64 also rn). NaN results are any NaN."""
    if operation == "sub":
        a, b = operands
        return directed(A, "add", t, rounding, a, A.xor(t, b, A.const(t, FORMATS[t].sign)))
    if t == "f32":
        return _directed_single(A, operation, rounding, *operands)
    return _directed_double(A, operation, rounding, *operands)


def directed_float(A: Algebra, source: str, target: str, rounding: str, a: Value) -> Value:
    """Algebra.directed_float: integers through f64, of 64 bits as the sum of two."""
    if source == "f64":
        return narrow(A, F64, F32, a, rounding)
    if source[1:] == "32":
        double = A.int_to_float(source, "f64", a)
    elif target == "f64":
        return A.directed("add", "f64", rounding, *integer_halves(A, source, a))
    else:
        double = sum_to_odd(A, *integer_halves(A, source, a))
    return double if target == "f64" else narrow(A, F64, F32, double, rounding)


def integer_halves(A: Algebra, t: str, a: Value) -> tuple[Value, Value]:
    """A 64-bit integer as two f64 whose sum it is."""
    return A.int_to_float(t, "f64", A.and_with("u64", a, 0xFFFF_FFFF_0000_0000)), A.int_to_float(
        "u64", "f64", A.and_with("u64", a, 0xFFFF_FFFF)
    )


def _directed_single(A: Algebra, operation: str, rounding: str, *operands: Value) -> Value:
    """Through f64, whose 53 bits hold a product exactly and never round a quotient or root onto an f32."""
    wide = [A.float_to_float("f32", "f64", operand) for operand in operands]
    if operation == "mul":
        result = A.fmul("f64", wide[0], wide[1])
    elif operation == "div":
        result = A.fdiv("f64", wide[0], wide[1])
    elif operation == "sqrt":
        result = A.fsqrt("f64", wide[0])
    else:
        product, addend = (A.fmul("f64", wide[0], wide[1]), wide[2]) if operation == "fma" else (wide[0], wide[1])
        result = _signed_zero(A, rounding, product, addend, sum_to_odd(A, product, addend))
    return narrow(A, F64, F32, result, rounding)


def _signed_zero(A: Algebra, rounding: str, a: Value, b: Value, total: Value) -> Value:
    """An exact zero sum is -0 when rounding down, unless both terms are +0 (IEEE 754, 6.3)."""
    if rounding != "rm":
        return total
    sign = A.and_with("u64", A.or_("u64", a, b), 1 << 63)
    zero = A.fcompare("eq", "f64", total, A.real("f64", 0.0))
    return A.select("u64", zero, sign, total)


@dataclass(slots=True)
class _Scaled:
    """A finite f64 as significand * 2**exponent: significand an f64 in [1, 2) with the sign, or 0; exponent s64."""

    significand: Value
    exponent: Value


_ZERO_EXPONENT = -4000  # below every sum of two exponents, so that a zero never decides a scale


def _scaled(A: Algebra, x: Value) -> _Scaled:
    magnitude = A.and_with("u64", x, F64.sign - 1)
    tiny = A.compare("lt", "u64", magnitude, A.const("u64", 1 << 52))
    y = A.select("u64", tiny, A.fmul("f64", x, A.real("f64", 2.0**54)), x)
    field = A.and_with("u64", A.shr_by("u64", y, 52), 0x7FF)
    bias = A.select("u64", tiny, A.const("u64", 1023 + 54), A.const("u64", 1023))
    one = A.const("u64", 0x3FF0_0000_0000_0000)
    significand = A.or_("u64", A.and_with("u64", y, 0x800F_FFFF_FFFF_FFFF), one)
    zero = A.is_zero("u64", magnitude)
    signed_zero = A.and_with("u64", x, F64.sign)
    return _Scaled(
        A.select("u64", zero, signed_zero, significand),
        A.select("s64", zero, A.const("s64", _ZERO_EXPONENT), A.sub("s64", field, bias)),
    )


def _power_of_two(A: Algebra, exponent: Value) -> Value:
    """2**exponent as f64 for -1000 <= exponent <= 1000 (s64)."""
    return A.shl_by("u64", A.add("s64", exponent, A.const("s64", 1023)), 52)


def _directed_double(A: Algebra, operation: str, rounding: str, *operands: Value) -> Value:
    nearest = {"mul": A.fmul, "div": A.fdiv, "add": A.fadd}
    if operation in ("fma", "add"):
        a, b = operands[0], operands[1] if operation == "fma" else A.real("f64", 1.0)
        c = operands[-1]
        result = _fused(A, rounding, a, b, c)
        return _unless_special(A, result, A.fadd("f64", _special_product(A, a, b), c), operands)
    x = _scaled(A, operands[0])
    if operation == "sqrt":
        return _unless_special(A, _root(A, rounding, x), A.fsqrt("f64", operands[0]), operands)
    y = _scaled(A, operands[1])
    plain = nearest[operation]("f64", *operands)
    if operation == "mul":
        product = A.fmul("f64", x.significand, y.significand)
        error = A.product_error(x.significand, y.significand, product)
        exponent = A.add("s64", x.exponent, y.exponent)
        return _unless_special(A, _round_scaled(A, product, error, exponent, rounding), plain, operands)
    quotient = A.fdiv("f64", x.significand, y.significand)
    remainder = _remainder(A, x.significand, quotient, y.significand)
    error = A.xor("u64", remainder, A.and_with("u64", y.significand, F64.sign))
    exponent = A.sub("s64", x.exponent, y.exponent)
    result = _round_scaled(A, quotient, error, exponent, rounding)
    zero_divisor = A.is_zero("u64", A.and_with("u64", operands[1], F64.sign - 1))
    return _unless_special(A, A.select("u64", zero_divisor, plain, result), plain, operands)


def _special_product(A: Algebra, a: Value, b: Value) -> Value:
    """a*b if a factor is infinite or NaN, else a zero: a finite product does not change an infinite sum."""
    infinity = A.const("u64", 0x7FF0_0000_0000_0000)
    special = A.or_(
        "pred",
        A.compare("eq", "u64", A.and_("u64", a, infinity), infinity),
        A.compare("eq", "u64", A.and_("u64", b, infinity), infinity),
    )
    return A.select("u64", special, A.fmul("f64", a, b), A.const("u64", 0))


def _remainder(A: Algebra, x: Value, quotient: Value, y: Value) -> Value:
    """x - quotient*y, exact when quotient is x/y (or y is sqrt(x)) rounded to nearest."""
    product = A.fmul("f64", quotient, y)
    return A.fsub("f64", A.fsub("f64", x, product), A.product_error(quotient, y, product))


def _root(A: Algebra, rounding: str, x: _Scaled) -> Value:
    odd = A.is_nonzero("s64", A.and_with("s64", x.exponent, 1))
    radicand = A.select("u64", odd, A.fadd("f64", x.significand, x.significand), x.significand)
    root = A.fsqrt("f64", radicand)
    exponent = A.shr_by("s64", x.exponent, 1)
    return _round_scaled(A, root, _remainder(A, radicand, root, root), exponent, rounding)


def _fused(A: Algebra, rounding: str, a: Value, b: Value, c: Value) -> Value:
    """a*b + c: exact as three f64 after scaling; the last two are summed to odd, which keeps the error's sign."""
    x, y, z = _scaled(A, a), _scaled(A, b), _scaled(A, c)
    product_exponent = A.add("s64", x.exponent, y.exponent)
    scale = A.maximum("s64", product_exponent, z.exponent)
    floor = A.const("s64", -250)
    product_scale = _power_of_two(A, A.maximum("s64", A.sub("s64", product_exponent, scale), floor))
    addend_scale = _power_of_two(A, A.maximum("s64", A.sub("s64", z.exponent, scale), floor))
    # Terms 2**250 apart only tell each other's sign, so a smaller distance than the true one does no harm.
    product = A.fmul("f64", x.significand, y.significand)
    tail = A.fmul("f64", A.product_error(x.significand, y.significand, product), product_scale)
    product = A.fmul("f64", product, product_scale)
    addend = A.fmul("f64", z.significand, addend_scale)
    upper, lower = two_sum(A, addend, tail)
    head, rest = two_sum(A, product, upper)
    total, error = two_sum(A, head, sum_to_odd(A, rest, lower))
    result = _round_scaled(A, total, error, scale, rounding)
    zero = A.is_zero("u64", A.and_with("u64", total, F64.sign - 1))
    terms = (A.fmul("f64", x.significand, y.significand), z.significand)
    both_negative = A.and_with("u64", A.and_("u64", *terms), F64.sign)
    exact_zero = A.and_with("u64", A.or_("u64", *terms), F64.sign) if rounding == "rm" else both_negative
    return A.select("u64", zero, exact_zero, result)


def _round_scaled(A: Algebra, value: Value, error: Value, exponent: Value, rounding: str) -> Value:
    """(value + error) * 2**exponent rounded once to f64; |error| is below half a unit in value's last place.

    Only the sign of `error` counts; a `value` of zero keeps its sign.
    """
    sign = A.and_with("u64", value, F64.sign)
    negative = A.is_nonzero("u64", sign)
    field = A.and_with("u64", A.shr_by("u64", value, 52), 0x7FF)
    significand = A.or_("u64", A.and_with("u64", value, (1 << 52) - 1), A.const("u64", 1 << 52))
    inexact = A.is_nonzero("u64", A.and_with("u64", error, F64.sign - 1))
    outward = A.compare("ge", "s64", A.xor("u64", value, error), A.const("s64", 0))
    side = A.select("u64", outward, A.const("u64", 1), A.const("u64", -1))
    sticky = A.select("u64", inexact, side, A.const("u64", 0))
    spare = A.add("u64", A.shl_by("u64", significand, 3), sticky)
    biased = A.add("s64", field, exponent)
    below = A.sub("s64", A.const("s64", 1), biased)
    distance = A.minimum("s64", A.maximum("s64", below, A.const("s64", 0)), A.const("s64", 60))
    rounded = drop_bits(A, "u64", shift_right_sticky(A, "u64", spare, distance), 3, rounding, negative)
    above = A.minimum("s64", A.maximum("s64", A.sub("s64", biased, A.const("s64", 1)), A.const("s64", 0)),
                      A.const("s64", 2047))  # fmt: skip
    pattern = A.add("u64", A.shl_by("u64", above, 52), rounded)
    too_large = A.compare("gt", "u64", pattern, A.const("u64", F64.largest))
    pattern = A.select("u64", too_large, overflow_pattern(A, "u64", F64, rounding, negative), pattern)
    zero = A.is_zero("u64", A.and_with("u64", value, F64.sign - 1))
    return A.or_("u64", A.select("u64", zero, A.const("u64", 0), pattern), sign)


def _unless_special(A: Algebra, result: Value, plain: Value, operands: tuple[Value, ...]) -> Value:
    """`plain`, the result to nearest, where an operand is infinite or NaN or the result is NaN or of that kind."""
    infinity = A.const("u64", 0x7FF0_0000_0000_0000)
    special = A.fcompare("nan", "f64", plain, plain)
    for operand in operands:
        exponent = A.and_("u64", operand, infinity)
        special = A.or_("pred", special, A.compare("eq", "u64", exponent, infinity))
    return A.select("u64", special, plain, result)
