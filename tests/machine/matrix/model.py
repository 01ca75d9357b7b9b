"""An independent account of matrix products: layouts as the manual prints them, sums in Python's integers.

Nothing here comes from ptxtools. Layouts go from (lane, register, element of the register) to (row, column), which is
how the manual states them; numbers are (m, e, f): m * 2**(e - f), e the exponent by which terms are aligned.
"""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass
from fractions import Fraction

NAN32, NAN16 = 0x7FFFFFFF, 0x7FFF

#: exponent bits, fraction bits, bias, what the top exponent means: "ieee" infinity and NaN, "nan" one NaN, "" numbers.
FORMATS = {
    "f16": (5, 10, 15, "ieee"), "bf16": (8, 7, 127, "ieee"), "tf32": (8, 10, 127, "ieee"), "f32": (8, 23, 127, "ieee"),
    "e4m3": (4, 3, 7, "nan"), "e5m2": (5, 2, 15, "ieee"), "e3m2": (3, 2, 3, ""), "e2m3": (2, 3, 1, ""),
    "e2m1": (2, 1, 1, ""),
}  # fmt: skip


@dataclass(frozen=True)
class Number:
    """m * 2**(e - f); special: "nan", "inf" or ""."""

    m: int
    e: int
    f: int
    special: str = ""

    @property
    def negative(self) -> bool:
        return self.m < 0


def decode(bits: int, t: str) -> Number:
    exponent_bits, fraction, bias, top = FORMATS[t]
    if t == "tf32":
        bits >>= 13
    sign = -1 if bits >> (exponent_bits + fraction) & 1 else 1
    e = bits >> fraction & (1 << exponent_bits) - 1
    m = bits & (1 << fraction) - 1
    if e == (1 << exponent_bits) - 1:
        if top == "ieee":
            return Number(sign, 0, 0, "nan" if m else "inf")
        if top == "nan" and m == (1 << fraction) - 1:
            return Number(sign, 0, 0, "nan")
    if e == 0:
        return Number(sign * m, 1 - bias, fraction)
    return Number(sign * (m | 1 << fraction), e - bias, fraction)


def scale(byte: int, t: str) -> Number:
    if t == "ue8m0":
        return Number(1, byte - 127, 0, "nan" if byte == 255 else "")
    return decode(byte & 0x7F, "e4m3")


def times(*factors: Number) -> Number:
    """A product that is not normalised."""
    m, e, f = 1, 0, 0
    special = ""
    zero = any(x.m == 0 for x in factors)
    for x in factors:
        m, e, f = m * x.m, e + x.e, f + x.f
        special = "nan" if "nan" in (special, x.special) else special or x.special
    return Number(m, e, f, "nan" if special == "inf" and zero else special)


def cut(x: Number, unit: int) -> int:
    """x in multiples of 2**unit, towards zero."""
    shift = x.e - x.f - unit
    size = abs(x.m) << shift if shift >= 0 else abs(x.m) >> -shift
    return -size if x.m < 0 else size


def fused(terms: list[Number], c: Number, fraction: int, least: int = -126) -> tuple[int, int] | str:
    """Sum of the terms and c in multiples of 2**unit, and unit; or "nan", "inf", "-inf". They are aligned to the
    largest exponent of those that are not zero, or to `least`."""
    everything = [*terms, c]
    if any(x.special == "nan" for x in everything):
        return "nan"
    signs = {x.negative for x in everything if x.special == "inf"}
    if signs:
        return "nan" if len(signs) > 1 else "-inf" if True in signs else "inf"
    top = max([least, *(x.e for x in everything if x.m)])
    unit = top - fraction
    return sum(cut(x, unit) for x in everything), unit


def f32_toward_zero(total: int, unit: int) -> int:
    size, sign = abs(total), 0x80000000 if total < 0 else 0
    if not size:
        return 0
    e = max(size.bit_length() - 1 + unit, -126)
    shift = unit - (e - 23)
    m = size << shift if shift >= 0 else size >> -shift
    if e > 127:
        return sign | 0x7F800000
    return sign | (m if m < 1 << 23 else (e + 127 << 23) + (m - (1 << 23)))


def f16_nearest(total: int, unit: int) -> int:
    size, sign = abs(total), 0x8000 if total < 0 else 0
    if not size:
        return 0
    e = max(size.bit_length() - 1 + unit, -14)
    shift = unit - (e - 10)
    if shift >= 0:
        m = size << shift
    else:
        m, rest, half = size >> -shift, size & (1 << -shift) - 1, 1 << -shift - 1
        m += rest > half or (rest == half and m & 1)
    bits = m if e == -14 and m < 1 << 10 else (e + 15 << 10) + (m - (1 << 10))
    return sign | min(bits, 0x7C00)


def rounded(result: tuple[int, int] | str, out: str) -> int:
    if isinstance(result, str):
        special = {"nan": NAN32, "inf": 0x7F800000, "-inf": 0xFF800000}[result]
        return special if out != "f16" else NAN16 if result == "nan" else special >> 16 & 0x8000 | 0x7C00
    if out == "f16":
        return f16_nearest(*result)
    bits = f32_toward_zero(*result)
    return bits & ~0x3FF if out == "e8m13" else bits


def chip_dot(a: list[Number], b: list[Number], c: int, ctype: str, fraction: int, chunk: int, out: str) -> int:
    """One element of D by the chips' rule, chunk after chunk."""
    bits = c
    kind = ctype
    for first in range(0, len(a), chunk):
        terms = [times(x, y) for x, y in zip(a[first : first + chunk], b[first : first + chunk], strict=True)]
        bits = rounded(fused(terms, decode(bits, kind), fraction), out)
        kind = "f16" if out == "f16" else "f32"
    return bits


def scaled_dot(a: list[Number], b: list[Number], c: int, scales: list[tuple[Number, Number]]) -> int:
    """kind::mxf8f6f4: the scales' exponents join those of the products."""
    step = len(a) // len(scales)
    terms = [times(x, y, *scales[k // step]) for k, (x, y) in enumerate(zip(a, b, strict=True))]
    return rounded(fused(terms, decode(c, "f32"), 25), "f32")


def grouped_dot(a: list[Number], b: list[Number], c: int, scales: list[tuple[Number, Number]]) -> int:
    """kind::mxf4 and mxf4nvf4: 16 products exactly, then scaled; aligned by the scales' exponents, also those of a sum
    that is zero."""
    step = len(a) // len(scales)
    least = max([-126, *(x.e + y.e for x, y in scales if x.m and y.m)])
    terms = []
    for first in range(0, len(a), 16):
        total = 0  # in quarters
        for x, y in zip(a[first : first + 16], b[first : first + 16], strict=True):
            total += cut(times(x, y), -2)
        terms.append(times(Number(total, 0, 2), *scales[first // step]))
    return rounded(fused(terms, decode(c, "f32"), 35, least), "f32")


def single(bits: int) -> float:
    return float(struct.unpack("<f", struct.pack("<I", bits))[0])


# --- layouts, as in 9.7.14.5: from a lane's register and element to row and column ------------------------------------


def position_a(lane: int, register: int, element: int, packed: int, tall: bool) -> tuple[int, int]:
    g, t = lane >> 2, lane & 3
    if not tall:
        return g, packed * t + element + 4 * packed * register
    return g + 8 * (register & 1), packed * t + element + 4 * packed * (register >> 1)


def position_b(lane: int, register: int, element: int, packed: int) -> tuple[int, int]:
    return packed * (lane & 3) + element + 4 * packed * register, lane >> 2


def position_c(lane: int, index: int) -> tuple[int, int]:
    """The running number of the element among the lane's: row and column of an m16n8 or m8n8 matrix."""
    return (lane >> 2) + 8 * (index >> 1), 2 * (lane & 3) + (index & 1)


# --- f64 by fractions -------------------------------------------------------------------------------------------------


def exact(x: float) -> Fraction:
    return Fraction(x)


def to_double(x: Fraction, rounding: str) -> float:
    """The f64 next to x in the direction of .rn .rz .rm or .rp; no overflow, no subnormals."""
    nearest = float(x)  # Python rounds the quotient of integers to nearest even
    if rounding == ".rn" or Fraction(nearest) == x:
        return nearest
    down = rounding == ".rm" or (rounding == ".rz" and x > 0)
    if down:
        return nearest if Fraction(nearest) < x else math.nextafter(nearest, -math.inf)
    return nearest if Fraction(nearest) > x else math.nextafter(nearest, math.inf)
