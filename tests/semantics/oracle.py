"""Slow and obvious answers: Python integers and exact rationals, nothing from ptxtools' own arithmetic."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction


@dataclass(frozen=True)
class Layout:
    """exponent and mantissa bits, bias; `largest` finite pattern; whether patterns above mean infinity and NaN."""

    exponent: int
    mantissa: int
    bias: int
    largest: int
    infinity: int | None

    @property
    def sign(self) -> int:
        return 1 << (self.exponent + self.mantissa)


LAYOUTS = {
    "f64": Layout(11, 52, 1023, 0x7FEF_FFFF_FFFF_FFFF, 0x7FF0_0000_0000_0000),
    "f32": Layout(8, 23, 127, 0x7F7F_FFFF, 0x7F80_0000),
    "tf32": Layout(8, 10, 127, 0x3FBFF, 0x3FC00),
    "f16": Layout(5, 10, 15, 0x7BFF, 0x7C00),
    "bf16": Layout(8, 7, 127, 0x7F7F, 0x7F80),
    "e5m2": Layout(5, 2, 15, 0x7B, 0x7C),
    "e4m3": Layout(4, 3, 7, 0x7E, None),
    "e2m3": Layout(2, 3, 1, 0x1F, None),
    "e3m2": Layout(3, 2, 3, 0x1F, None),
    "e2m1": Layout(2, 1, 1, 0x07, None),
}
CANONICAL = {"f32": 0x7FFF_FFFF, "f64": 0xFFF8_0000_0000_0000, "f16": 0x7FFF, "bf16": 0x7FFF}

#: A number: an exact rational, or an infinity or NaN as float; zeros keep their sign as float.
Number = Fraction | float


def decode(pattern: int, t: str) -> Number:
    """What a bit pattern stands for."""
    form = LAYOUTS[t]
    magnitude = pattern & (form.sign - 1)
    sign = -1 if pattern & form.sign else 1
    if magnitude > form.largest:
        return sign * math.inf if magnitude == form.infinity else math.nan
    if magnitude == 0:
        return sign * 0.0
    field, fraction = magnitude >> form.mantissa, magnitude & ((1 << form.mantissa) - 1)
    if field:
        fraction |= 1 << form.mantissa
    return sign * fraction * Fraction(2) ** (max(field, 1) - form.bias - form.mantissa)


def is_special(x: Number) -> bool:
    return isinstance(x, float) and x != 0


def exact(x: Number) -> Fraction:
    return Fraction(x)


def is_negative(x: Number) -> bool:
    return math.copysign(1, x) < 0 if isinstance(x, float) else x < 0


def round_integer(q: Fraction, mode: str, negative: bool) -> int:
    """A magnitude to an integer."""
    whole = math.floor(q)
    rest = q - whole
    if mode == "rn":
        up = rest > Fraction(1, 2) or (rest == Fraction(1, 2) and whole & 1 == 1)
    elif mode == "rna":
        up = rest >= Fraction(1, 2)
    else:
        up = rest != 0 and mode == ("rm" if negative else "rp")
    return whole + up


def encode(x: Number, t: str, mode: str = "rn", *, satfinite: bool = False) -> int:
    """The pattern of `x` rounded once; NaN gives the canonical one."""
    form = LAYOUTS[t]
    if isinstance(x, float) and math.isnan(x):
        return CANONICAL[t]
    negative = is_negative(x)
    sign = form.sign if negative else 0
    limit = form.largest if satfinite or form.infinity is None else None
    if isinstance(x, float) and math.isinf(x):
        return sign | (limit if limit is not None else form.infinity or 0)
    magnitude = abs(exact(x))
    if magnitude == 0:
        return sign
    exponent = magnitude.numerator.bit_length() - magnitude.denominator.bit_length()
    if Fraction(2) ** exponent > magnitude:
        exponent -= 1
    exponent = max(exponent, 1 - form.bias)
    units = round_integer(magnitude / Fraction(2) ** (exponent - form.mantissa), mode, negative)
    pattern = ((exponent + form.bias - 1) << form.mantissa) + units  # carries walk into the exponent
    if pattern <= form.largest:
        return sign | pattern
    if limit is None:
        toward_zero = mode == "rz" or (mode == "rm" and not negative) or (mode == "rp" and negative)
        limit = form.largest if toward_zero else form.infinity
    assert limit is not None
    return sign | limit


def special_result(operation: str, *x: Number) -> float | None:
    """The infinity or NaN of an operation with such an operand, or on an invalid or divided-by zero; else None."""
    if any(isinstance(v, float) and math.isnan(v) for v in x):
        return math.nan
    a = x[0]
    sign = -1 if is_negative(a) != is_negative(x[1 if len(x) > 1 else 0]) else 1
    if operation == "sqrt":
        return math.nan if is_negative(a) and a != 0 else (a if isinstance(a, float) else None)
    if operation == "div":
        if is_special(a):
            return math.nan if is_special(x[1]) else sign * math.inf
        if is_special(x[1]):
            return sign * 0.0
        if x[1] == 0:
            return math.nan if a == 0 else sign * math.inf
        return sign * 0.0 if a == 0 else None
    if operation in ("mul", "fma"):
        b = x[1]
        if is_special(a) or is_special(b):
            product = math.nan if a == 0 or b == 0 else sign * math.inf
        else:
            product = sign * 0.0 if a == 0 or b == 0 else None
        if operation == "mul" or (product is None and not is_special(x[2])):
            return product
        if product is None:
            return float(x[2])
        return None if product == 0 and not is_special(x[2]) else product + (x[2] if is_special(x[2]) else 0.0)
    if is_special(a) or is_special(x[1]):
        return (a if is_special(a) else 0.0) + (x[1] if is_special(x[1]) else 0.0)  # type: ignore[operator]
    return None


def arithmetic(operation: str, t: str, mode: str, *patterns: int) -> int:
    """add mul div fma sqrt on bit patterns, rounded once; NaNs canonical."""
    x = [decode(p, t) for p in patterns]
    special = special_result(operation, *x)
    if special is not None:
        return encode(special, t)
    values = [exact(v) for v in x]
    if operation == "sqrt":
        return _sqrt(values[0], t, mode)
    if operation == "div":
        return encode(values[0] / values[1], t, mode)
    if operation == "mul":
        return encode(values[0] * values[1], t, mode)
    product = values[0] * values[1] if operation == "fma" else values[0]
    negative = is_negative(x[0]) != is_negative(x[1]) if operation == "fma" else is_negative(x[0])
    total = product + values[-1]
    if total == 0:
        same = negative == is_negative(x[-1])
        return encode(-0.0 if (negative if same else mode == "rm") else 0.0, t)
    return encode(total, t, mode)


def _sqrt(x: Fraction, t: str, mode: str) -> int:
    """The integer root of a shifted operand, and a tail that is not zero if there was a remainder."""
    scale = 800
    scaled = x * 4**scale
    root = math.isqrt(scaled.numerator // scaled.denominator)
    tail = Fraction(1, 3) if root * root != scaled else Fraction(0)
    return encode((root + tail) / Fraction(2) ** scale, t, mode)


def to_signed(value: int, bits: int) -> int:
    return value - (1 << bits) if value >> (bits - 1) & 1 else value


def number(value: int, t: str) -> int:
    """A bit pattern as the integer that a PTX integer type reads."""
    bits = int(t[1:])
    value &= (1 << bits) - 1
    return to_signed(value, bits) if t[0] == "s" else value


def limits(t: str) -> tuple[int, int]:
    bits = int(t[1:])
    return (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if t[0] == "s" else (0, (1 << bits) - 1)


def clamp(value: int, t: str) -> int:
    low, high = limits(t)
    return max(low, min(high, value))
