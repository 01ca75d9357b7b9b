"""Expectations: does a buffer hold what was expected, and where is it furthest off? Summaries of buffers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .elements import ELEMENTS, ElementType, decode, element_of, storage
from .errors import SpecError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[Any]

WORST = 5  # elements that a report shows
FIRST = 8  # elements that a summary shows


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
    """One element that is off: its index, both values, and by how much (nan where that is no number)."""

    index: tuple[int, ...]
    got: Any
    expected: Any
    off: float


@dataclass(frozen=True, slots=True)
class Mismatch:
    """wrong: elements that differ, of total; worst: those that are furthest off, worst first."""

    wrong: int
    total: int
    worst: tuple[Difference, ...]

    def lines(self) -> list[str]:
        """The report, one line an element."""
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
    """Hold stored values against expected ones; None when all pass. Raises `SpecError` for another shape.

    The expected array may be in the same stored form, or in any other number type. Two NaNs count as equal, and +0
    equals -0. One of the two may be flat.
    """
    import numpy as np

    got = _same_shape(got, expected)
    if got.dtype == expected.dtype and same_bytes(got, expected):
        return None
    left, right = decode(got, element).reshape(-1), _expected_values(expected, element).reshape(-1)
    if left.dtype.kind in "iub" and right.dtype.kind in "iub":
        wrong = left != right
    else:
        a, b = left.astype(np.float64), right.astype(np.float64)
        with np.errstate(invalid="ignore", over="ignore"):
            near = np.abs(a - b) <= tolerance.absolute + tolerance.relative * np.abs(b)
        wrong = ~((near & np.isfinite(b)) | (a == b) | (np.isnan(a) & np.isnan(b)))
    return _mismatch(left, right, wrong, expected.shape) if wrong.any() else None


def same_bytes(a: Array, b: Array) -> bool:
    """Whether two contiguous arrays of one size have the same bytes. Parts are compared, to need little memory."""
    left, right = a.reshape(-1).view("u1"), b.reshape(-1).view("u1")
    part = 1 << 22
    return all(bool((left[at : at + part] == right[at : at + part]).all()) for at in range(0, left.size, part))


def _same_shape(got: Array, expected: Array) -> Array:
    if got.shape == expected.shape:
        return got
    if got.size == expected.size and (got.ndim <= 1 or expected.ndim <= 1):
        return got.reshape(expected.shape)
    raise SpecError(f"{show_shape(expected.shape)} elements are expected, but the buffer has {show_shape(got.shape)}")


def _expected_values(expected: Array, element: ElementType) -> Array:
    if expected.dtype.kind == "V" and expected.dtype.names is None and expected.dtype.itemsize == element.bytes:
        return decode(expected.view(storage(element)), element)
    if expected.dtype == storage(element):
        return decode(expected, element)
    return decode(expected, element_of(expected.dtype))


def _mismatch(left: Array, right: Array, wrong: Array, shape: tuple[int, ...]) -> Mismatch:
    import numpy as np

    at = np.flatnonzero(wrong)
    with np.errstate(invalid="ignore", over="ignore"):
        off = np.abs(left[at].astype(np.float64) - right[at].astype(np.float64))
    order = np.argsort(-np.where(np.isnan(off), np.inf, off), kind="stable")[:WORST]
    worst = tuple(
        Difference(
            tuple(int(i) for i in np.unravel_index(at[n], shape or (1,))), left[at[n]], right[at[n]], float(off[n])
        )
        for n in order
    )
    return Mismatch(len(at), left.size, worst)


def show_value(value: Any) -> str:
    """A number as text: floats with as many digits as it takes to tell them apart."""
    if hasattr(value, "dtype") and value.dtype.kind == "f":
        return str(value.item()) if value.dtype.itemsize == 8 else f"{value.item():.9g}"
    return str(value)


def show_shape(shape: tuple[int, ...]) -> str:
    return f"[{','.join(map(str, shape))}]"


def summary(stored: Array, element: ElementType) -> str:
    """Shape, type and first values: `f32[1024] = 0 1 2 3 4 5 6 7 …`."""
    head = decode(stored.reshape(-1)[:FIRST], element)
    if head.dtype.names is not None or head.dtype.kind in "Vc":
        head = head.view("u1")[:FIRST]
    values = " ".join(show_value(v) for v in head)
    return f"{element.name}{show_shape(stored.shape)} = {values}{' …' if stored.size > FIRST else ''}"


def bytes_as(data: bytes, expected: Array) -> tuple[Array, ElementType]:
    """Raw memory as an array of the expected one's type; raises `SpecError` when the sizes differ."""
    import numpy as np

    if len(data) != expected.nbytes:
        raise SpecError(f"{expected.nbytes} bytes are expected, but the variable has {len(data)}")
    got = np.frombuffer(data, dtype=expected.dtype).reshape(expected.shape)
    known = expected.dtype.kind in "iufb"
    return got, element_of(expected.dtype) if known else ELEMENTS["u8"]
