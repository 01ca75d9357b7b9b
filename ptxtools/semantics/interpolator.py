"""The hardware's function unit: rcp, rsqrt, sqrt, sin, cos, lg2, ex2 by table and quadratic interpolation, bit-exact.

Every function of a 23-bit fraction splits it into a table index h and an offset xl and computes

    S = (c0[h] << A) + k1*c1[h]*xl + k2*c2[h]*q(xl) + B,    value = S / 2**W

where q is a truncated square. S has up to 41 bits; it is kept as V = S >> cut and the low `cut` bits, so that 32-bit
arithmetic suffices.

The coefficients were measured and published by B. Carleton in ptx-math (MIT licence, github.com/bcarlet/ptx-math,
commit 2c7dc92), who found them equal to hardware of compute capability 5.x to 7.5 on all inputs of the non-.ftz forms.
"""

from __future__ import annotations

import json
import pkgutil
from functools import cache
from typing import Any

from ptxtools.records import dataclass
from ptxtools.semantics.algebra import Algebra, Value

NAN, INFINITY, SIGN, FRACTION = 0x7FFF_FFFF, 0x7F80_0000, 0x8000_0000, 0x7F_FFFF


@dataclass(frozen=True, slots=True)
class Interpolator:
    """One function's coefficients; slopes holds c1 in its low 20 bits and c2 above."""

    name: str
    offset_bits: int
    shift: int
    linear: int
    quadratic: int
    bias: int
    values: tuple[int, ...]
    slopes: tuple[int, ...]


@cache
def _tables() -> dict[str, Any]:
    data = pkgutil.get_data(__package__, "approximate_tables.json")
    assert data is not None
    tables: dict[str, Any] = json.loads(data)
    return tables


@cache
def interpolator(name: str) -> Interpolator:
    """rcp sqrt rsqrt sin ex2 lg2"""
    t = _tables()[name]
    slopes = tuple(c1 | c2 << 20 for c1, c2 in zip(t["c1"], t["c2"], strict=True))
    linear, quadratic = t["signs"][1] * t["k1"], t["signs"][2] * t["k2"]
    return Interpolator(name, t["xl_bits"], t["A"], linear, quadratic, t["B"], tuple(t["c0"]), slopes)


def _square(A: Algebra, x: Value) -> Value:
    """The truncated square of a 17-bit number: partial-product columns 0 to 18 are absent; in units of 2**19."""
    upper, bits = A.resize("u32", "u16", A.shr_by("u32", x, 9)), A.resize("u32", "u16", x)
    total = A.shr_by("u16", A.mul("u16", upper, upper), 1)
    zero = A.const("u16", 0)
    for i in range(2, 9):
        bit = A.is_nonzero("u16", A.and_with("u16", bits, 1 << i))
        total = A.add("u16", total, A.select("u16", bit, A.shr_by("u16", upper, 9 - i), zero))
    return A.resize("u16", "u32", total)


def evaluate(A: Algebra, name: str, fraction: Value, parity: Value = None, cut: int = 12) -> tuple[Value, Value]:
    """(S >> cut, S mod 2**cut) of a 23-bit fraction; parity (0 or 1) selects the table's upper half."""
    f = interpolator(name)
    index = A.shr_by("u32", fraction, f.offset_bits)
    if parity is not None:
        index = A.add("u32", index, A.shl_by("u32", parity, 6))
    offset = A.and_with("u32", fraction, (1 << f.offset_bits) - 1)
    square = A.once("mufu_square", _square, A.shl_by("u32", offset, 17 - f.offset_bits))
    value, slopes = A.tables(f"mufu_{name}", (f.values, f.slopes), index)
    linear = A.mul("u32", A.and_with("u32", slopes, 0xFFFFF), A.const("u32", f.linear))
    quadratic = A.mul("u32", A.shr_by("u32", slopes, 20), A.const("u32", f.quadratic))
    low = A.mul("u32", linear, A.and_with("u32", offset, (1 << cut) - 1))
    low = A.add("u32", low, A.add("u32", A.mul("u32", quadratic, square), A.const("u32", f.bias)))
    high = A.add("u32", A.shl_by("u32", value, f.shift - cut), A.mul("u32", linear, A.shr_by("u32", offset, cut)))
    return A.add("u32", high, A.shr_by("s32", low, cut)), A.and_with("u32", low, (1 << cut) - 1)


# --- the units: subnormal inputs count as zeros of their sign, results below 2**-126 become zero ----------------------


def _exponent(A: Algebra, x: Value) -> Value:
    return A.and_with("u32", A.shr_by("u32", x, 23), 0xFF)


def _choose(A: Algebra, result: Value, *cases: tuple[Value, Value]) -> Value:
    """Later (predicate, pattern) cases win."""
    for predicate, pattern in cases:
        result = A.select("u32", predicate, pattern, result)
    return result


def _is(A: Algebra, field: Value, number: int) -> Value:
    return A.compare("eq", "u32", field, A.const("u32", number))


def _is_nan(A: Algebra, x: Value) -> Value:
    return A.compare("gt", "u32", A.and_with("u32", x, SIGN - 1), A.const("u32", INFINITY))


def rcp(A: Algebra, x: Value) -> Value:
    """1/x"""
    sign, exponent = A.and_with("u32", x, SIGN), _exponent(A, x)
    value, _ = evaluate(A, "rcp", A.and_with("u32", x, FRACTION))
    one = A.shr_by("u32", value, 27)
    field = A.sub("s32", A.add("s32", A.const("s32", 253), one), exponent)
    fraction = A.and_with("u32", A.shr("u32", value, A.add("u32", one, A.const("u32", 3))), FRACTION)
    result = A.or_("u32", A.shl_by("u32", field, 23), fraction)
    zero = A.const("u32", 0)
    result = A.select("u32", A.compare("gt", "s32", field, zero), result, zero)
    result = _choose(
        A, result,
        (_is(A, exponent, 0), A.const("u32", INFINITY)),
        (_is(A, exponent, 255), zero),
    )  # fmt: skip
    return A.select("u32", _is_nan(A, x), A.const("u32", NAN), A.or_("u32", result, sign))


def _half_exponent(A: Algebra, exponent: Value, bias: int) -> tuple[Value, Value]:
    """(g, p) with exponent - bias = 2g + p, p 0 or 1."""
    unbiased = A.sub("s32", exponent, A.const("s32", bias))
    return A.shr_by("s32", unbiased, 1), A.and_with("u32", unbiased, 1)


def rsqrt(A: Algebra, x: Value) -> Value:
    """1/sqrt(x)"""
    sign, exponent, fraction = A.and_with("u32", x, SIGN), _exponent(A, x), A.and_with("u32", x, FRACTION)
    half, parity = _half_exponent(A, exponent, 127)
    value, _ = evaluate(A, "rsqrt", fraction, parity)
    field = A.sub("s32", A.const("s32", 126), half)
    bits = A.and_with("u32", A.shr_by("u32", value, 4), FRACTION)
    power = A.is_zero("u32", A.or_("u32", fraction, parity))  # an even power of two is exact
    field = A.select("s32", power, A.add("s32", field, A.const("s32", 1)), field)
    bits = A.select("u32", power, A.const("u32", 0), bits)
    result = A.or_("u32", A.shl_by("u32", field, 23), bits)
    return _choose(
        A, result,
        (_is(A, exponent, 255), A.const("u32", 0)),
        (A.is_negative("u32", x), A.const("u32", NAN)),
        (_is(A, exponent, 0), A.or_("u32", sign, A.const("u32", INFINITY))),
        (_is_nan(A, x), A.const("u32", NAN)),
    )  # fmt: skip


def sqrt(A: Algebra, x: Value) -> Value:
    """The square root."""
    sign, exponent = A.and_with("u32", x, SIGN), _exponent(A, x)
    half, parity = _half_exponent(A, exponent, 127)
    value, _ = evaluate(A, "sqrt", A.and_with("u32", x, FRACTION), parity)
    field = A.add("s32", A.const("s32", 127), half)
    bits = A.and_with("u32", A.shr_by("u32", value, 5), FRACTION)
    result = A.or_("u32", A.shl_by("u32", field, 23), bits)
    return _choose(
        A, result,
        (_is(A, exponent, 255), A.const("u32", INFINITY)),
        (A.is_negative("u32", x), A.const("u32", NAN)),
        (_is(A, exponent, 0), sign),
        (_is_nan(A, x), A.const("u32", NAN)),
    )  # fmt: skip


def lg2(A: Algebra, x: Value) -> Value:
    """The binary logarithm: a fixed-point number of 39 fraction bits, truncated to 24 significant ones."""
    exponent, fraction = _exponent(A, x), A.and_with("u32", x, FRACTION)
    value, low = evaluate(A, "lg2", fraction)
    part = A.or_("u64", A.shl_by("u64", A.resize("u32", "u64", value), 12), A.resize("u32", "u64", low))
    whole = A.resize("s32", "s64", A.sub("s32", exponent, A.const("s32", 127)))
    fixed = A.add("s64", A.shl_by("s64", whole, 39), part)
    magnitude = A.and_with("u64", A.maximum("s64", fixed, A.neg("s64", fixed)), ~7)
    double = A.fmul("f64", A.int_to_float("s64", "f64", magnitude), A.real("f64", 2.0**-39))
    single = A.float_to_float("f64", "f32", A.and_with("u64", double, ~((1 << 29) - 1)))
    below = A.compare("lt", "u32", exponent, A.const("u32", 127))
    result = A.or_("u32", single, A.select("u32", below, A.const("u32", SIGN), A.const("u32", 0)))
    return _choose(
        A, result,
        (_is(A, x, 0x3F80_0000), A.const("u32", 0)),
        (_is(A, exponent, 255), A.const("u32", INFINITY)),
        (A.is_negative("u32", x), A.const("u32", NAN)),
        (_is(A, exponent, 0), A.const("u32", SIGN | INFINITY)),
        (_is_nan(A, x), A.const("u32", NAN)),
    )  # fmt: skip


def ex2(A: Algebra, x: Value) -> Value:
    """2**x, from x * 2**23 cut off to a whole number; below zero, the complement of that of |x|."""
    fixed = A.float_to_int("f32", "s32", A.fmul("f32", x, A.real("f32", 2.0**23)), 1 << 31)
    part = A.is_nonzero("u32", A.and_with("u32", fixed, FRACTION))
    fixed = A.sub("s32", fixed, A.resize("pred", "u32", A.and_("pred", A.is_negative("u32", fixed), part)))
    value, _ = evaluate(A, "ex2", A.and_with("u32", fixed, FRACTION))
    bits = A.and_with("u32", A.shr_by("u32", value, 3), FRACTION)
    result = A.or_("u32", A.and_with("u32", fixed, ~FRACTION), bits)
    return _choose(
        A, A.add("u32", result, A.const("u32", 127 << 23)),
        (A.compare("ge", "s32", fixed, A.const("s32", 128 << 23)), A.const("u32", INFINITY)),
        (A.compare("lt", "s32", fixed, A.const("s32", -126 << 23)), A.const("u32", 0)),
        (_is_nan(A, x), A.const("u32", NAN)),
    )  # fmt: skip


# --- sin and cos of a number of turns ---------------------------------------------------------------------------------


def _quarter_turns(A: Algebra, turns: Value) -> Value:
    """|turns| in quarter turns with 23 fraction bits, modulo 4: floor(4 * |t| * 2**23) mod 2**25."""
    exponent = _exponent(A, turns)
    significand = A.or_("u32", A.and_with("u32", turns, FRACTION), A.const("u32", 1 << 23))
    shift = A.sub("s32", exponent, A.const("s32", 125))
    right = A.minimum("s32", A.maximum("s32", A.neg("s32", shift), A.const("s32", 0)), A.const("s32", 31))
    left = A.minimum("s32", A.maximum("s32", shift, A.const("s32", 0)), A.const("s32", 25))
    fixed = A.shl("u32", A.shr("u32", significand, right), left)
    fixed = A.and_with("u32", fixed, 0x1FF_FFFF)
    # A subnormal is far too small to count, and from 2**23 quarter turns on all that is left is whole turns.
    return A.select("u32", _is(A, exponent, 0), A.const("u32", 0), fixed)


def _sine_value(A: Algebra, fraction: Value, sign: Value) -> Value:
    """The first quadrant's value, 37 fraction bits truncated to 24 significant ones, with a sign bit."""
    value, low = evaluate(A, "sin", fraction, cut=7)
    small = A.compare("lt", "u32", value, A.const("u32", 1 << 24))
    fixed = A.select("u32", small, A.or_("u32", A.shl_by("u32", value, 7), low), value)
    scale = A.select("f32", small, A.real("f32", 2.0**-37), A.real("f32", 2.0**-30))
    spare = A.sub("s32", A.const("s32", 8), A.leading_zeros("u32", fixed))
    spare = A.maximum("s32", spare, A.const("s32", 0))
    fixed = A.shl("u32", A.shr("u32", fixed, spare), spare)
    return A.or_("u32", A.fmul("f32", A.int_to_float("s32", "f32", fixed), scale), sign)


def sin(A: Algebra, turns: Value, infinite: Value) -> Value:
    """sin(2 pi * turns); NaN where `infinite` (the argument was infinite or NaN)."""
    fixed = _quarter_turns(A, turns)
    quadrant, fraction = A.shr_by("u32", fixed, 23), A.and_with("u32", fixed, FRACTION)
    odd = A.is_nonzero("u32", A.and_with("u32", quadrant, 1))
    fraction = A.select("u32", odd, A.xor("u32", fraction, A.const("u32", FRACTION)), fraction)
    flip = A.shl_by("u32", A.shr_by("u32", quadrant, 1), 31)
    sign = A.xor("u32", A.and_with("u32", turns, SIGN), flip)
    return A.select("u32", infinite, A.const("u32", NAN), _sine_value(A, fraction, sign))


def cos(A: Algebra, turns: Value, infinite: Value) -> Value:
    """cos(2 pi * turns), as for sin."""
    fixed = _quarter_turns(A, turns)
    quadrant, fraction = A.shr_by("u32", fixed, 23), A.and_with("u32", fixed, FRACTION)
    even = A.is_zero("u32", A.and_with("u32", quadrant, 1))
    fraction = A.select("u32", even, A.xor("u32", fraction, A.const("u32", FRACTION)), fraction)
    next_quadrant = A.add("u32", quadrant, A.const("u32", 1))
    sign = A.shl_by("u32", A.and_with("u32", A.shr_by("u32", next_quadrant, 1), 1), 31)
    return A.select("u32", infinite, A.const("u32", NAN), _sine_value(A, fraction, sign))


# --- seeds for f64: only the upper word takes part --------------------------------------------------------------------


def rcp64(A: Algebra, x: Value) -> Value:
    """1/x to 20 fraction bits, f64; the lower word of the argument is ignored."""
    high = A.resize("u64", "u32", A.shr_by("u64", x, 32))
    sign = A.and_with("u32", high, SIGN)
    exponent = A.and_with("u32", A.shr_by("u32", high, 20), 0x7FF)
    value, _ = evaluate(A, "rcp", A.shl_by("u32", A.and_with("u32", high, 0xFFFFF), 3))
    one = A.shr_by("u32", value, 27)
    field = A.sub("s32", A.add("s32", A.const("s32", 2045), one), exponent)
    bits = A.shr_by("u32", A.and_with("u32", A.shr("u32", value, A.add("u32", one, A.const("u32", 3))), FRACTION), 3)
    zero = A.const("u32", 0)
    result = A.or_("u32", A.shl_by("u32", field, 20), bits)
    result = A.select("u32", A.compare("gt", "s32", field, zero), result, zero)
    result = _choose(
        A, result,
        (_is(A, exponent, 0), A.const("u32", 0x7FF0_0000)),
        (_is(A, exponent, 2047), zero),
    )  # fmt: skip
    result = A.select("u32", _is_nan64(A, high), A.const("u32", NAN), A.or_("u32", result, sign))
    return A.shl_by("u64", A.resize("u32", "u64", result), 32)


def rsqrt64(A: Algebra, x: Value) -> Value:
    """1/sqrt(x) to 20 fraction bits, f64, as for rcp64."""
    high = A.resize("u64", "u32", A.shr_by("u64", x, 32))
    sign, fraction = A.and_with("u32", high, SIGN), A.and_with("u32", high, 0xFFFFF)
    exponent = A.and_with("u32", A.shr_by("u32", high, 20), 0x7FF)
    half, parity = _half_exponent(A, exponent, 1023)
    value, _ = evaluate(A, "rsqrt", A.shl_by("u32", fraction, 3), parity)
    field = A.sub("s32", A.const("s32", 1022), half)
    bits = A.shr_by("u32", A.and_with("u32", A.shr_by("u32", value, 4), FRACTION), 3)
    power = A.is_zero("u32", A.or_("u32", fraction, parity))
    field = A.select("s32", power, A.add("s32", field, A.const("s32", 1)), field)
    bits = A.select("u32", power, A.const("u32", 0), bits)
    result = _choose(
        A, A.or_("u32", A.shl_by("u32", field, 20), bits),
        (_is(A, exponent, 2047), A.const("u32", 0)),
        (A.is_negative("u32", high), A.const("u32", NAN)),
        (_is(A, exponent, 0), A.or_("u32", sign, A.const("u32", 0x7FF0_0000))),
        (_is_nan64(A, high), A.const("u32", NAN)),
    )  # fmt: skip
    return A.shl_by("u64", A.resize("u32", "u64", result), 32)


def _is_nan64(A: Algebra, high: Value) -> Value:
    return A.compare("gt", "u32", A.and_with("u32", high, SIGN - 1), A.const("u32", 0x7FF0_0000))
