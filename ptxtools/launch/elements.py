"""Element types of buffers: how PTX's number formats are stored in NumPy arrays, created, and compared.

Types that NumPy has are stored as themselves. The others are stored as unsigned integers of their width, one element
per byte for those below 8 bits; an array of the `ml_dtypes` type has the same bytes.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from ptxtools.records import dataclass

from .errors import SpecError, nearest

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[Any]


@dataclass(frozen=True, slots=True)
class ElementType:
    """kind: "u", "s" or "f"; storage: name of the NumPy type of the array; bits: width of the format;
    narrow: name of the `ml_dtypes` type for formats that NumPy lacks."""

    name: str
    kind: str
    bits: int
    storage: str
    narrow: str = ""

    @property
    def bytes(self) -> int:
        """Bytes of one element in memory."""
        return max(self.bits // 8, 1)


#                name    kind bits storage    ml_dtypes
_TABLE = (
    ElementType("u8",    "u", 8,  "uint8"),
    ElementType("s8",    "s", 8,  "int8"),
    ElementType("u16",   "u", 16, "uint16"),
    ElementType("s16",   "s", 16, "int16"),
    ElementType("f16",   "f", 16, "float16"),
    ElementType("bf16",  "f", 16, "uint16",  "bfloat16"),
    ElementType("u32",   "u", 32, "uint32"),
    ElementType("s32",   "s", 32, "int32"),
    ElementType("f32",   "f", 32, "float32"),
    ElementType("tf32",  "f", 32, "uint32",  "tf32"),
    ElementType("u64",   "u", 64, "uint64"),
    ElementType("s64",   "s", 64, "int64"),
    ElementType("f64",   "f", 64, "float64"),
    ElementType("e4m3",  "f", 8,  "uint8",   "float8_e4m3fn"),
    ElementType("e5m2",  "f", 8,  "uint8",   "float8_e5m2"),
    ElementType("e2m3",  "f", 6,  "uint8",   "float6_e2m3fn"),
    ElementType("e3m2",  "f", 6,  "uint8",   "float6_e3m2fn"),
    ElementType("e2m1",  "f", 4,  "uint8",   "float4_e2m1fn"),
    ElementType("ue8m0", "f", 8,  "uint8",   "float8_e8m0fnu"),
    ElementType("ue4m3", "f", 8,  "uint8",   "float8_e4m3fn"),
)  # fmt: skip

ELEMENTS: dict[str, ElementType] = {row.name: row for row in _TABLE}


def element_type(name: str) -> ElementType:
    """The element type called `name`; raises `SpecError`, which suggests the nearest one."""
    found = ELEMENTS.get(name)
    if found is None:
        raise SpecError(f"unknown element type '{name}'{nearest(name, ELEMENTS)}; use one of {' '.join(ELEMENTS)}")
    return found


_BY_STORAGE = {row.storage: row.name for row in _TABLE if not row.narrow}
_BY_NARROW = {row.narrow: row.name for row in reversed(_TABLE) if row.narrow}


def element_of(dtype: np.dtype[Any]) -> ElementType:
    """The element type of an array's items; raises `SpecError` for types without a counterpart.

    Structured and void items are bytes.
    """
    name = dtype.name
    if name in _BY_STORAGE:
        return ELEMENTS[_BY_STORAGE[name]]
    if name in _BY_NARROW:
        return ELEMENTS[_BY_NARROW[name]]
    if name == "bool" or dtype.kind == "V":
        return ELEMENTS["u8"]
    if dtype.kind == "c":
        return ELEMENTS["f32" if dtype.itemsize == 8 else "f64"]
    raise SpecError(f"arrays of {dtype} have no PTX element type")


def is_narrow(dtype: np.dtype[Any]) -> bool:
    """Whether an array's items are numbers of `ml_dtypes`."""
    return dtype.name in _BY_NARROW


@cache
def storage(element: ElementType) -> np.dtype[Any]:
    import numpy as np

    return np.dtype(element.storage)


@cache
def narrow(element: ElementType) -> np.dtype[Any]:
    """The `ml_dtypes` type of a format that NumPy lacks."""
    import ml_dtypes
    import numpy as np

    found: np.dtype[Any] = np.dtype(getattr(ml_dtypes, element.narrow))
    return found


def encode(values: Array, element: ElementType) -> Array:
    """Convert numbers to their stored form, rounded to nearest even; integers are taken modulo 2^n."""
    import numpy as np

    if not element.narrow:
        with np.errstate(over="ignore", invalid="ignore"):
            return np.ascontiguousarray(values, dtype=storage(element))
    if element.name == "tf32":
        bits = np.ascontiguousarray(values, dtype=np.float32).view(np.uint32)
        rounded = (bits + np.uint32(0xFFF) + ((bits >> np.uint32(13)) & np.uint32(1))) & np.uint32(0xFFFFE000)
        return np.where((bits & np.uint32(0x7F800000)) == np.uint32(0x7F800000), bits, rounded).astype(np.uint32)
    wide = np.asarray(values, dtype=np.float64).astype(narrow(element))
    if element.name == "ue4m3":  # unsigned: there is no sign bit
        return wide.view(np.uint8) & np.uint8(0x7F)
    return wide.view(storage(element))


def decode(stored: Array, element: ElementType) -> Array:
    """Convert the stored form to numbers: narrow floats as f32, everything else unchanged."""
    import numpy as np

    flat = np.ascontiguousarray(stored)
    if flat.dtype.name == element.narrow:
        return flat.astype(np.float32)
    if not element.narrow:
        return flat
    if element.name == "tf32":
        return flat.view(np.float32)
    return flat.view(storage(element)).view(narrow(element)).astype(np.float32)
