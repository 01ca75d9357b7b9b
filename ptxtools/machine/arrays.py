"""The value algebra over NumPy arrays: the reference for every instruction's meaning.

Values are arrays (or scalars) of uint16, uint32 and uint64, predicates of bool, of any length; 128-bit values are
pairs of uint64 arrays. Run semantics inside `quiet()`, or NumPy warns about overflow and NaNs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from ptxtools.program.program import WINDOWS
from ptxtools.semantics.algebra import Value
from ptxtools.semantics.types import bits_of, is_signed, word_bits

from .arrays_float import FloatOperations

Array = npt.NDArray[Any]

_UNSIGNED: dict[int, type] = {1: np.bool_, 16: np.uint16, 32: np.uint32, 64: np.uint64}
_SIGNED: dict[int, type] = {16: np.int16, 32: np.int32, 64: np.int64}
_COMPARE = {
    "eq": np.equal, "ne": np.not_equal, "lt": np.less,
    "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal,
}  # fmt: skip


def quiet() -> np.errstate:
    """The NumPy error state that semantics need: overflow and invalid operations are results, not warnings."""
    return np.errstate(all="ignore")


@cache
def dtype(t: str) -> type:
    """The NumPy type of values of PTX type `t`."""
    return _UNSIGNED[word_bits(t)]


@cache
def _constant(t: str, value: int) -> Any:
    return dtype(t)(bool(value) if t == "pred" else value & (1 << word_bits(t)) - 1)


@cache
def _table(t: str, name: str, entries: tuple[int, ...]) -> Array:
    return np.array(entries, dtype(t))


@cache
def _number_view(t: str) -> type:
    bits = word_bits(t)
    return _SIGNED[bits] if is_signed(t) else _UNSIGNED[bits]


class NumpyAlgebra(FloatOperations):
    """Evaluates each operation at once; `context` supplies engine values by name (Algebra.context)."""

    def __init__(self, context: Callable[[str], int] | None = None) -> None:
        self._context = context

    def const(self, t: str, value: int) -> Value:
        if bits_of(t) == 128:
            return (_constant("u64", value & (1 << 64) - 1), _constant("u64", value >> 64))
        return _constant(t, value)

    def context(self, name: str) -> Value:
        window = WINDOWS.get(name)
        if window is not None:
            return self.const("u64", window)
        if self._context is None:
            raise LookupError(f"this algebra has no context value {name!r}")
        return np.uint64(self._context(name))

    def table(self, t: str, name: str, entries: Sequence[int], index: Value) -> Value:
        return _table(t, name, tuple(entries))[index]

    def select(self, t: str, p: Value, a: Value, b: Value) -> Value:
        if isinstance(a, tuple):
            return tuple(np.where(p, x, y) for x, y in zip(a, b, strict=True))
        return np.where(p, a, b)

    # --- integers -----------------------------------------------------------------------------------------------------

    def add(self, t: str, a: Value, b: Value) -> Value:
        return np.add(a, b)

    def sub(self, t: str, a: Value, b: Value) -> Value:
        return np.subtract(a, b)

    def mul(self, t: str, a: Value, b: Value) -> Value:
        return np.multiply(a, b)

    def mul_high(self, t: str, a: Value, b: Value) -> Value:
        bits = word_bits(t)
        if bits < 64:
            wide = _SIGNED[2 * bits] if is_signed(t) else _UNSIGNED[2 * bits]
            product = np.multiply(self._view(t, a), self._view(t, b), dtype=wide)
            return np.right_shift(product, wide(bits)).astype(_UNSIGNED[bits])
        return self._mul_high_64(t, a, b)

    def _mul_high_64(self, t: str, a: Value, b: Value) -> Value:
        low, half = np.uint64(0xFFFFFFFF), np.uint64(32)
        a_low, a_high, b_low, b_high = a & low, a >> half, b & low, b >> half
        crosses = ((a_low * b_low) >> half) + ((a_low * b_high) & low) + ((a_high * b_low) & low)
        high = a_high * b_high + ((a_low * b_high) >> half) + ((a_high * b_low) >> half) + (crosses >> half)
        if is_signed(t):
            zero = np.uint64(0)
            high = high - np.where(a >> np.uint64(63), b, zero) - np.where(b >> np.uint64(63), a, zero)
        return high

    def div(self, t: str, a: Value, b: Value) -> Value:
        if not is_signed(t):
            return np.floor_divide(a, b)
        x, y = self._magnitude(t, a), self._magnitude(t, b)
        quotient = np.floor_divide(x, y)
        return np.where(self.is_negative(t, np.bitwise_xor(a, b)), self.neg(t, quotient), quotient)

    def rem(self, t: str, a: Value, b: Value) -> Value:
        return np.subtract(a, np.multiply(self.div(t, a, b), b))

    def _magnitude(self, t: str, a: Value) -> Value:
        return np.where(self.is_negative(t, a), self.neg(t, a), a)

    def add_saturating(self, t: str, a: Value, b: Value) -> Value:
        total = np.add(a, b)
        if not is_signed(t):
            return np.where(total < a, self.const(t, -1), total)
        overflow = self.is_negative(t, (a ^ total) & (b ^ total))
        return np.where(overflow, self._limit(t, a), total)

    def sub_saturating(self, t: str, a: Value, b: Value) -> Value:
        difference = np.subtract(a, b)
        if not is_signed(t):
            return np.where(a < b, self.const(t, 0), difference)
        overflow = self.is_negative(t, (a ^ b) & (a ^ difference))
        return np.where(overflow, self._limit(t, a), difference)

    def _limit(self, t: str, a: Value) -> Value:
        """The end of the range on `a`'s side of zero."""
        most = (1 << (word_bits(t) - 1)) - 1
        return np.where(self.is_negative(t, a), self.const(t, ~most), self.const(t, most))

    def minimum(self, t: str, a: Value, b: Value) -> Value:
        return np.where(self.compare("lt", t, a, b), a, b)

    def maximum(self, t: str, a: Value, b: Value) -> Value:
        return np.where(self.compare("gt", t, a, b), a, b)

    def and_(self, t: str, a: Value, b: Value) -> Value:
        return np.bitwise_and(a, b)

    def or_(self, t: str, a: Value, b: Value) -> Value:
        return np.bitwise_or(a, b)

    def xor(self, t: str, a: Value, b: Value) -> Value:
        return np.bitwise_xor(a, b)

    def not_(self, t: str, a: Value) -> Value:
        return np.bitwise_not(a)

    def shl(self, t: str, a: Value, n: Value) -> Value:
        return np.left_shift(a, n)

    def shr(self, t: str, a: Value, n: Value) -> Value:
        if is_signed(t):
            return np.right_shift(self._view(t, a), self._view(t, n)).view(dtype(t))
        return np.right_shift(a, n)

    def funnel_left(self, t: str, high: Value, low: Value, n: Value) -> Value:
        complement = self.sub(t, self.const(t, word_bits(t) - 1), n)
        return np.left_shift(high, n) | np.right_shift(np.right_shift(low, self.const(t, 1)), complement)

    def compare(self, condition: str, t: str, a: Value, b: Value) -> Value:
        return _COMPARE[condition](self._view(t, a), self._view(t, b))

    def popcount(self, t: str, a: Value) -> Value:
        return np.bitwise_count(a).astype(dtype(t))

    def leading_zeros(self, t: str, a: Value) -> Value:
        bits = word_bits(t)
        smeared = a
        distance = 1
        while distance < bits:
            smeared = smeared | np.right_shift(smeared, self.const(t, distance))
            distance *= 2
        return np.subtract(self.const(t, bits), self.popcount(t, smeared))

    def reverse_bits(self, t: str, a: Value) -> Value:
        bits = word_bits(t)
        distance = 1
        while distance < bits:
            keep = sum(((1 << distance) - 1) << i for i in range(0, bits, 2 * distance))
            mask, step = self.const(t, keep), self.const(t, distance)
            a = ((a & mask) << step) | ((a >> step) & mask)
            distance *= 2
        return a

    def resize(self, source: str, target: str, a: Value) -> Value:
        if source != "pred" and is_signed(source):
            return self._view(source, a).astype(_SIGNED[word_bits(target)]).view(dtype(target))
        return np.asarray(a).astype(dtype(target))

    def _view(self, t: str, a: Value) -> Array:
        value: Array = np.asarray(a).view(_number_view(t))
        return value
