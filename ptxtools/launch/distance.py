"""Differences of numbers: exact for integers and between integers and floats, else in f64 or complex arithmetic."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[Any]


def distance(got: Array, expected: Array) -> Array:
    """|got - expected| of two flat arrays as f64, nan where one is not a number. It is 0 only for equal numbers.

    The kinds are those of NumPy: integers and truth values of up to 64 bits, floats of up to 64, complex of up to 128.
    """
    import numpy as np

    kinds = _kind(got), _kind(expected)
    with np.errstate(invalid="ignore", over="ignore"):
        if kinds == ("i", "i"):
            return _apart(*_sign_and_magnitude(got), *_sign_and_magnitude(expected))
        if kinds == ("i", "f"):
            return _from_integer(got, expected.astype(np.float64))
        if kinds == ("f", "i"):
            return _from_integer(expected, got.astype(np.float64))
        if "c" in kinds:
            return np.hypot(distance(got.real, expected.real), distance(_imaginary(got), _imaginary(expected)))
        return np.abs(got.astype(np.float64) - expected.astype(np.float64))


def close(got: Array, expected: Array, relative: float, absolute: float) -> Array:
    """Where |got - expected| <= absolute + relative * |expected|; integers must be equal, regardless of the tolerance.

    NaN meets NaN, and an infinity itself. What a complex number may be off depends on its magnitude; where one of the
    two is not finite, each part must be close to the other's.
    """
    import numpy as np

    kinds = _kind(got), _kind(expected)
    if kinds == ("i", "i"):
        same: Array = distance(got, expected) == 0
        return same
    with np.errstate(invalid="ignore", over="ignore"):
        size = np.abs(expected.astype(np.complex128 if kinds[1] == "c" else np.float64))
        near = distance(got, expected) <= absolute + relative * size
        if "c" in kinds:
            parts = close(got.real, expected.real, relative, absolute)
            parts &= close(_imaginary(got), _imaginary(expected), relative, absolute)
            chosen: Array = np.where(np.isfinite(got) & np.isfinite(expected), near, parts)
            return chosen
        both_nan = np.isnan(got) & np.isnan(expected) if kinds == ("f", "f") else np.False_
        passes: Array = (
            (near & np.isfinite(got) & np.isfinite(expected)) | (got == expected) & ~np.isfinite(expected) | both_nan
        )
        return passes


def _kind(array: Array) -> str:
    return "i" if array.dtype.kind in "iub" else array.dtype.kind


def _imaginary(array: Array) -> Array:
    """Those of real numbers are zeros of f64, integers' too: no NumPy array of integers has parts."""
    import numpy as np

    return array.imag if array.dtype.kind == "c" else np.zeros(array.shape)


def _sign_and_magnitude(array: Array) -> tuple[Array, Array]:
    import numpy as np

    if array.dtype.kind != "i":
        return np.zeros(array.shape, np.bool_), array.astype(np.uint64)
    negative, bits = array < 0, array.astype(np.int64).view(np.uint64)
    return negative, np.where(negative, np.uint64(0) - bits, bits)


def _apart(a_negative: Array, a: Array, b_negative: Array, b: Array) -> Array:
    """The distance of two integers: the difference of 64-bit magnitudes is exact before it is rounded to f64."""
    import numpy as np

    same = np.where(a > b, a - b, b - a).astype(np.float64)
    return np.where(a_negative == b_negative, same, a.astype(np.float64) + b.astype(np.float64))


def _from_integer(integer: Array, number: Array) -> Array:
    """The distance of an integer and an f64. One with a fraction is below 2^53: rounding the integer hides
    nothing. Neither does it above 2^64, which itself is what 2^64 - 1 would be rounded to."""
    import numpy as np

    negative, magnitude = _sign_and_magnitude(integer)
    whole = (np.trunc(number) == number) & (np.abs(number) < 2.0**64)
    size = np.where(whole, np.abs(number), 0.0).astype(np.uint64)
    beyond = np.where(
        number == 2.0**64, (~magnitude).astype(np.float64) + 1, np.abs(integer.astype(np.float64) - number)
    )
    return np.where(whole, _apart(negative, magnitude, number < 0, size), beyond)
