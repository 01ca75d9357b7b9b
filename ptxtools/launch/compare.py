"""Expectations: compare a buffer with the expected values, and find the worst elements. Summaries of buffers."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from ptxtools.records import dataclass

from .distance import close, distance
from .elements import ElementType, decode, element_of, is_narrow, storage
from .errors import SpecError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[Any]

WORST = 5  # elements that a report shows
FIRST = 8  # elements that a summary shows
_PART = 1 << 20  # elements that are compared at a time: temporary arrays stay small


@dataclass(frozen=True, slots=True)
class Tolerance:
    """A float passes when |got - expected| <= absolute + relative * |expected|."""

    relative: float = 0.0
    absolute: float = 0.0

    def __str__(self) -> str:
        if not self.relative and not self.absolute:
            return "exactly"
        return f"within {self.absolute:g} + {self.relative:g}·|expected|"


@dataclass(frozen=True, slots=True)
class Difference:
    """One wrong element: its index, both values, and the difference (nan if it is not a number)."""

    index: tuple[int, ...]
    got: Any
    expected: Any
    off: float


@dataclass(frozen=True, slots=True)
class Mismatch:
    """wrong: elements that differ, of total; worst: those with the largest differences, worst first."""

    wrong: int
    total: int
    worst: tuple[Difference, ...]

    def lines(self) -> list[str]:
        """The report, one line per element."""
        rows = [
            (f"[{','.join(map(str, d.index))}]", show_value(d.got), show_value(d.expected), f"{d.off:.6g}")
            for d in self.worst
        ]
        wide = [max((len(row[n]) for row in rows), default=0) for n in range(4)]
        return [
            f"{at:<{wide[0]}}  got {got:>{wide[1]}}  expected {expected:>{wide[2]}}  off by {off}"
            for at, got, expected, off in rows
        ]


def compare(got: Array, element: ElementType, expected: Array, tolerance: Tolerance) -> Mismatch | None:
    """Compare stored values with expected ones; None if all pass. Raises `SpecError` for another shape, and for what
    `check_comparable` refuses.

    The expected array may have the same storage type, or any other number type: values are compared as numbers, and
    exactly (`distance`). Two NaNs count as equal, and +0 equals -0. One of the two may be flat.
    """
    import numpy as np

    check_comparable(got.dtype, element, expected.dtype)
    got = _same_shape(got, expected)
    if got.dtype == expected.dtype and same_bytes(got, expected):
        return None
    left, right = got.reshape(-1), expected.reshape(-1)
    wrong, worst = 0, list[tuple[float, int]]()
    for start in range(0, left.size, _PART):
        a = _values(left[start : start + _PART], element)
        b = _expected_values(right[start : start + _PART], element)
        at = np.flatnonzero(~close(a, b, tolerance.relative, tolerance.absolute))
        if at.size:
            wrong += at.size
            off = distance(a[at], b[at])
            order = np.argsort(-np.where(np.isnan(off), np.inf, off), kind="stable")[:WORST]
            worst = sorted([*worst, *((float(off[n]), start + int(at[n])) for n in order)], key=_worst_first)[:WORST]
    if not wrong:
        return None
    shape = expected.shape or (1,)
    found = [
        Difference(
            tuple(int(i) for i in np.unravel_index(at, shape)),
            _values(left[at : at + 1], element)[0], _expected_values(right[at : at + 1], element)[0], off,
        )
        for off, at in worst
    ]  # fmt: skip
    return Mismatch(wrong, left.size, tuple(found))


def _worst_first(found: tuple[float, int]) -> tuple[float, int]:
    off, at = found
    return (-math.inf if math.isnan(off) else -off), at


def check_comparable(got: np.dtype[Any], element: ElementType, expected: np.dtype[Any]) -> None:
    """Raise `SpecError` where the items of a buffer and of an expected array cannot be compared as numbers."""
    for whose, dtype in (("", expected), ("the buffer ", got)):
        if dtype.names is not None:
            fields = ", ".join(dtype.names)
            raise SpecError(f"{whose}contains structures ({fields}), not numbers: compare arrays of numbers")
        if not is_number(dtype) and not (_untyped(dtype) and dtype.itemsize in (1, 2, 4, 8)):
            raise SpecError(f"{whose}contains {dtype}, which cannot be compared: only numbers of up to 64 bits can")
    untyped = _untyped(got), _untyped(expected)
    fits = expected.itemsize == (got.itemsize if untyped[0] else element.bytes)
    if any(untyped) and not (untyped[1] and fits and got.kind != "c"):
        raise SpecError(
            f"contains {expected} and the buffer {got}: items without a type compare only with items of the same size"
        )


def is_number(dtype: np.dtype[Any]) -> bool:
    """Whether items are numbers that can be compared: booleans, integers and floats of up to 64 bits, pairs of
    them, and those of `ml_dtypes`."""
    if dtype.kind in "biu":
        return True
    return dtype.itemsize <= {"f": 8, "c": 16}.get(dtype.kind, 0) or is_narrow(dtype)


def _untyped(dtype: np.dtype[Any]) -> bool:
    """Whether items are untyped bytes: NumPy saves those of `ml_dtypes` like this."""
    return dtype.kind == "V" and not is_narrow(dtype)


def same_bytes(a: Array, b: Array) -> bool:
    """Whether two contiguous arrays of the same size have the same bytes. Compares parts, to need little memory."""
    left, right = a.reshape(-1).view("u1"), b.reshape(-1).view("u1")
    part = 1 << 22
    return all(bool((left[at : at + part] == right[at : at + part]).all()) for at in range(0, left.size, part))


def _same_shape(got: Array, expected: Array) -> Array:
    if got.shape == expected.shape:
        return got
    if got.size == expected.size and (got.ndim <= 1 or expected.ndim <= 1):
        return got.reshape(expected.shape)
    raise SpecError(f"expected {show_shape(expected.shape)} elements, but the buffer has {show_shape(got.shape)}")


def _values(stored: Array, element: ElementType) -> Array:
    """Numbers of a buffer: items without a type as bits, booleans as their bytes."""
    if stored.dtype.kind == "b" or _untyped(stored.dtype):
        return stored.view(f"u{stored.dtype.itemsize}")
    return stored if stored.dtype.kind == "c" else decode(stored, element)


def _expected_values(expected: Array, element: ElementType) -> Array:
    if _untyped(expected.dtype) and expected.dtype.itemsize == element.bytes:
        return decode(expected.view(storage(element)), element)
    if expected.dtype == storage(element):
        return decode(expected, element)
    if expected.dtype.kind in "bc" or _untyped(expected.dtype):
        return _values(expected, element)
    return decode(expected, element_of(expected.dtype))


def show_value(value: Any) -> str:
    """A number as text: floats with as many digits as needed to distinguish them."""
    kind = getattr(getattr(value, "dtype", None), "kind", "")
    if kind == "c":
        real, imaginary = show_value(value.real), show_value(value.imag)
        return f"{real}{'' if imaginary[0] == '-' else '+'}{imaginary}j"
    if kind == "f":
        return str(value.item()) if value.dtype.itemsize == 8 else f"{value.item():.9g}"
    return str(value)


def show_shape(shape: tuple[int, ...]) -> str:
    return f"[{','.join(map(str, shape))}]"


def summary(stored: Array, element: ElementType) -> str:
    """Shape, type and first values: `f32[1024] = 0 1 2 3 4 5 6 7 …`. Structures and items without a type are bytes."""
    name, shape, size = element.name, stored.shape, stored.size
    if _untyped(stored.dtype):
        size = stored.nbytes
        head, shape = stored.reshape(-1)[:FIRST].view("u1")[:FIRST], (size,)
    elif stored.dtype.kind == "c":
        head, name = stored.reshape(-1)[:FIRST], stored.dtype.name
    else:
        head = _values(stored.reshape(-1)[:FIRST], element)
    values = " ".join(show_value(v) for v in head)
    return f"{name}{show_shape(shape)} = {values}{' …' if size > FIRST else ''}"


def bytes_as(data: bytes, expected: Array) -> tuple[Array, ElementType]:
    """Raw memory as an array of the expected one's type; raises `SpecError` if the sizes differ."""
    import numpy as np

    if len(data) != expected.nbytes:
        raise SpecError(f"expected {expected.nbytes} bytes, but the variable has {len(data)}")
    got = np.frombuffer(data, dtype=expected.dtype).reshape(expected.shape)
    return got, element_of(expected.dtype)
