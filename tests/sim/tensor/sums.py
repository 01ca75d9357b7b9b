"""Sums of products as the chips make them, in fractions: written apart from the engine (docs/numerics.md)."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from gmpy2 import mpq, mpz

from ptxtools.semantics.accumulation import Rule


def power(e: int) -> mpq:
    """2**e."""
    return mpq(mpz(1) << e) if e >= 0 else mpq(1, mpz(1) << -e)


def exponent(x: mpq, least: int) -> int:
    """Of a number that is not zero."""
    size = abs(x)
    e = size.numerator.bit_length() - size.denominator.bit_length()
    return max(e if size >= power(e) else e - 1, least)


def cut(x: mpq, unit: mpq) -> mpq:
    whole = abs(x) // unit * unit
    return whole if x >= 0 else -whole


def to_float(x: mpq, result: str) -> float:
    """The result format: f32 and e8m13 are cut off, f16 is to nearest even."""
    if x == 0:
        return 0.0
    if result == "f16":
        nearest = float(Fraction(int(x.numerator), int(x.denominator)))  # float() of an mpq cuts off
        with np.errstate(over="ignore"):
            return float(np.float64(nearest).astype(np.float16))
    bits = 13 if result == "e8m13" else 23
    x = cut(x, power(exponent(x, -126) - bits))
    return float(x) if abs(x) < power(128) else float("inf") * (1 if x > 0 else -1)


def expected(a: np.ndarray, b: np.ndarray, c: float, rule: Rule, least: tuple[int, int]) -> float:
    """One element of D by the rule, in exact arithmetic; `least` exponents of the formats of A and B.

    NaN and infinities in, or out of invalid products and sums, go before everything else.
    """
    wide = sum((float(x) * float(y) for x, y in zip(a, b, strict=True)), start=float(c))
    if not (np.isfinite(a).all() and np.isfinite(b).all() and math.isfinite(c)):
        return wide
    total = mpq(float(c))
    for first in range(0, len(a), rule.chunk):
        terms, exponents = [total], [exponent(total, -14 if rule.result == "f16" else -126) if total else -126]
        for x, y in zip(a[first : first + rule.chunk], b[first : first + rule.chunk], strict=True):
            x, y = mpq(float(x)), mpq(float(y))
            if x and y:
                terms.append(x * y)
                exponents.append(exponent(x, least[0]) + exponent(y, least[1]))
        unit = power(max(exponents) - rule.fraction)
        value = to_float(sum(cut(t, unit) for t in terms), rule.result)
        if np.isinf(value):
            return value
        total = mpq(value)
    return float(total)
