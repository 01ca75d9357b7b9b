"""Floating-point part of the NumPy algebra.

Everything but f32 and f64 add, sub, mul, div and sqrt to nearest comes from exact algorithms: NumPy has neither a
fused multiply-add nor rounding modes.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ptxtools.semantics import exact
from ptxtools.semantics.algebra import Algebra, Value
from ptxtools.semantics.types import is_signed, word_bits

_REAL: dict[str, type] = {"f32": np.float32, "f64": np.float64}
_UNSIGNED: dict[int, type] = {32: np.uint32, 64: np.uint64}
_ORDERED = {
    "eq": np.equal, "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal,
}  # fmt: skip
_TO_INTEGRAL = {"rn": np.rint, "rz": np.trunc, "rm": np.floor, "rp": np.ceil}
_SPLITTER = np.float64(2**27 + 1)


def _number(t: str, value: Value) -> Any:
    return np.asarray(value).view(_REAL[t])


def _bits(t: str, number: Any) -> Value:
    return np.asarray(number, _REAL[t]).view(_UNSIGNED[word_bits(t)])


def _halves(x: Any) -> tuple[Any, Any]:
    """Veltkamp's split of a f64 into two numbers of at most 26 bits."""
    scaled = _SPLITTER * x
    high = scaled - (scaled - x)
    return high, x - high


class FloatOperations(Algebra):
    """Mixed into NumpyAlgebra."""

    def fadd(self, t: str, a: Value, b: Value) -> Value:
        return _bits(t, np.add(_number(t, a), _number(t, b)))

    def fsub(self, t: str, a: Value, b: Value) -> Value:
        return _bits(t, np.subtract(_number(t, a), _number(t, b)))

    def fmul(self, t: str, a: Value, b: Value) -> Value:
        return _bits(t, np.multiply(_number(t, a), _number(t, b)))

    def fdiv(self, t: str, a: Value, b: Value) -> Value:
        return _bits(t, np.divide(_number(t, a), _number(t, b)))

    def fsqrt(self, t: str, a: Value) -> Value:
        return _bits(t, np.sqrt(_number(t, a)))

    def fma(self, t: str, a: Value, b: Value, c: Value) -> Value:
        if t == "f64":
            return exact.directed(self, "fma", t, "rn", a, b, c)
        x, y, z = (self.float_to_float("f32", "f64", value) for value in (a, b, c))
        total = exact.sum_to_odd(self, self.fmul("f64", x, y), z)
        return self.float_to_float("f64", "f32", total)

    def product_error(self, a: Value, b: Value, product: Value) -> Value:
        x_high, x_low = _halves(_number("f64", a))
        y_high, y_low = _halves(_number("f64", b))
        error = ((x_high * y_high - _number("f64", product)) + x_high * y_low + x_low * y_high) + x_low * y_low
        return _bits("f64", error)

    def fcompare(self, condition: str, t: str, a: Value, b: Value) -> Value:
        x, y = _number(t, a), _number(t, b)
        if condition in _ORDERED:
            return _ORDERED[condition](x, y)
        unordered = np.isnan(x) | np.isnan(y)
        if condition in ("nan", "num"):
            return unordered if condition == "nan" else ~unordered
        if condition == "ne":
            return (x != y) & ~unordered
        return (x != y) if condition == "neu" else _ORDERED[condition[:-1]](x, y) | unordered

    def integral(self, t: str, rounding: str, a: Value) -> Value:
        return _bits(t, _TO_INTEGRAL[rounding](_number(t, a)))

    def float_to_int(self, source: str, target: str, a: Value, nan: int = 0) -> Value:
        """Clamp before the cast: NumPy leaves out-of-range values to the CPU."""
        number = _number(source, a).astype(np.float64)
        bits = word_bits(target)
        integer = np.dtype(f"{'i' if is_signed(target) else 'u'}{bits // 8}")
        limits = np.iinfo(integer)
        above, below = number >= float(limits.max) + 1.0 * (bits < 64), number < float(limits.min)
        inside = np.where(above | below | np.isnan(number), 0.0, number)
        result = inside.astype(integer)
        result = np.where(above, integer.type(limits.max), np.where(below, integer.type(limits.min), result))
        result = result.view(_UNSIGNED[bits])
        return np.where(np.isnan(number), _UNSIGNED[bits](nan), result)

    def int_to_float(self, source: str, target: str, a: Value) -> Value:
        integer = np.dtype(f"{'i' if is_signed(source) else 'u'}{word_bits(source) // 8}")
        return _bits(target, np.asarray(a).view(integer).astype(_REAL[target]))

    def float_to_float(self, source: str, target: str, a: Value) -> Value:
        return _bits(target, _number(source, a).astype(_REAL[target]))

    def half_to_single(self, a: Value) -> Value:
        return _bits("f32", np.asarray(a).view(np.float16).astype(np.float32))

    def single_to_half(self, a: Value, rounding: str = "rn") -> Value:
        if rounding != "rn":
            return exact.narrow(self, exact.F32, exact.F16, a, rounding)
        return _number("f32", a).astype(np.float16).view(np.uint16)

    def directed(self, operation: str, t: str, rounding: str, *operands: Value) -> Value:
        return exact.directed(self, operation, t, rounding, *operands)

    def directed_float(self, source: str, target: str, rounding: str, a: Value) -> Value:
        return exact.directed_float(self, source, target, rounding, a)

    def fma_to_odd(self, a: Value, b: Value, c: Value) -> Value:
        return exact.fma_to_odd(self, a, b, c)
