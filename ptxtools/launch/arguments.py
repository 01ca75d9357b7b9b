"""Arguments for kernel parameters, independent of a kernel and a device."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, BinaryIO, TypeAlias

from ptxtools.records import dataclass, field

from .elements import ElementType, element_of, element_type, encode, storage
from .errors import SpecError
from .pictures import begins_like_one, read_picture

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from .job import TexturePlan

    Array = NDArray[Any]


_MAGIC = b"\x93NUMPY"
#: Digits of a number in text: f64 has up to 767 significant ones, all other types fewer.
MOST_DIGITS = 1000


@dataclass(slots=True)
class Scalar:
    """A number. type: the element type written before it (`f32:1.5`), or None."""

    value: int | float
    type: ElementType | None = None


@dataclass(slots=True)
class Raw:
    """The bytes of a parameter."""

    data: bytes


@dataclass(slots=True)
class Null:
    """A null pointer."""


@dataclass(slots=True)
class Content:
    """The initial content of a buffer.

    kind: "file" (`path`), "zeros", "fill" (`value`), "arange", "random" (`seed`); element and shape are the
    array's, None and () for a file.
    """

    kind: str
    element: ElementType | None = None
    shape: tuple[int, ...] = ()
    value: int | float = 0
    seed: int = 0
    path: str = ""

    @property
    def bytes(self) -> int | None:
        """Size of the buffer; None for a file."""
        return None if self.element is None else count(self.shape) * self.element.bytes

    def array(self) -> Array:
        """The content as stored. Raises `SpecError`, `MemoryError`."""
        if self.element is None:
            array = read_array(self.path)
            try:
                element_of(array.dtype)
            except SpecError as error:
                raise SpecError(f"{self.path}: {error}") from None
            return array
        return _MAKERS[self.kind](self, self.element)

    def element_for(self, array: Array) -> ElementType:
        """The element type; for a file, its array's."""
        return self.element or element_of(array.dtype)


@dataclass(slots=True)
class BufferArgument:
    """The address of a buffer. `name` refers to a launch file's buffer; otherwise `content` creates one."""

    name: str = ""
    offset: int = 0
    content: Content | None = field(default=None)


@dataclass(slots=True)
class TextureArgument:
    """The handle of a texture or surface of a launch file; an option has a plan, and the content of its buffer (None:
    zeros)."""

    name: str
    plan: TexturePlan | None = None
    content: Content | None = None


@dataclass(slots=True)
class TensorMapArgument:
    """A tensor map of a launch file, by value."""

    name: str


@dataclass(slots=True)
class MulticastArgument:
    """The address of a multicast object of a launch file."""

    name: str
    offset: int = 0


Argument: TypeAlias = "Scalar | Raw | Null | BufferArgument | TensorMapArgument | TextureArgument | MulticastArgument"


def count(shape: tuple[int, ...]) -> int:
    """Number of elements of a shape."""
    product = 1
    for size in shape:
        product *= size
    return product


def read_array(path: str) -> Array:
    """An array from a .npy file, or the pixels of a .png file; raises `SpecError`."""
    import numpy as np

    if begins_like_one(path):
        return read_picture(path)

    try:
        array = _load(path)
    except OSError as error:
        raise SpecError(f"{path}: cannot be read: {error.strerror or error}") from None
    except MemoryError:
        raise SpecError(f"{path}: out of memory: its header specifies more than is available") from None
    except Exception as error:  # NumPy's reader fails in many ways on a damaged header
        raise SpecError(f"{path}: {_what_is_wrong(path, error)}") from None
    if not isinstance(array, np.ndarray):
        array.close()
        raise SpecError(f"{path}: an archive of several arrays; give a .npy file")
    if array.dtype.hasobject:
        raise SpecError(f"{path}: {_OBJECTS}")
    if not array.dtype.itemsize:
        raise SpecError(f"{path}: contains items of 0 bytes ({array.dtype})")
    if not array.dtype.isnative:  # structures with such fields, too
        array = array.astype(array.dtype.newbyteorder("<"))
    return np.ascontiguousarray(array).reshape(array.shape)


_OBJECTS = "contains Python objects, not numbers"


def _load(path: str) -> Any:
    """As `numpy.load`, which needs a seekable file; from a pipe, reads the array described by its header."""
    import numpy as np

    if os.path.isfile(path) or not os.path.exists(path):
        return np.load(path, allow_pickle=False)
    with open(path, "rb") as file:
        if not file.peek(1).startswith(_MAGIC[:1]):
            raise SpecError(f"{path}: not a .npy file")
        return np.lib.format.read_array(_Stream(file), allow_pickle=False)


class _Stream:
    """A read-only file without a position, so that NumPy does not try to seek."""

    def __init__(self, file: BinaryIO) -> None:
        self.read = file.read


def _what_is_wrong(path: str, error: Exception) -> str:
    """NumPy takes anything but a .npy file for a pickle, with misleading advice."""
    if isinstance(error, SpecError):
        return str(error).removeprefix(f"{path}: ")
    if "Object arrays" in str(error):
        return _OBJECTS
    if not os.path.isfile(path):  # data read from a pipe is gone
        return f"a damaged .npy file: {str(error).partition(chr(10))[0]}"
    try:
        with open(path, "rb") as file:
            magic = file.read(6)
    except (OSError, ValueError):
        return f"cannot be read: {error}"
    if not magic:
        return "not a .npy file: it is empty"
    return "not a .npy file" if magic != _MAGIC else f"a damaged .npy file: {str(error).partition(chr(10))[0]}"


def _zeros(content: Content, element: ElementType) -> Array:
    import numpy as np

    return np.zeros(content.shape, storage(element))


def _fill(content: Content, element: ElementType) -> Array:
    import numpy as np

    value = check_number(content.value, element)
    one = encode(np.array([value], dtype=_number_type(element, value)), element)
    return np.full(content.shape, one[0], one.dtype)


def _arange(content: Content, element: ElementType) -> Array:
    import numpy as np

    return encode(np.arange(count(content.shape)), element).reshape(content.shape)


def _random(content: Content, element: ElementType) -> Array:
    """`numpy.random.default_rng(seed)`: `random` in f64 for f64 and in f32 for every other float, rounded toward zero
    where it would become 1; `integers` over the full range of the type otherwise."""
    import numpy as np

    generator = np.random.default_rng(content.seed)
    if element.kind == "f":
        if element.bits == 64:
            return generator.random(content.shape)
        values: Array = generator.random(content.shape, dtype=np.float32)
        if element.name == "tf32":
            return values.view(np.uint32) & np.uint32(0xFFFFE000)
        return values if element.bits == 32 else _below_one(encode(values, element), element)
    low = 0 if element.kind == "u" else -(1 << (element.bits - 1))
    high = low + (1 << element.bits) - 1
    return generator.integers(low, high, content.shape, dtype=storage(element).type, endpoint=True)


def _below_one(stored: Array, element: ElementType) -> Array:
    """Keep [0, 1) half open: bit patterns of positive floats are ordered, so the one below 1 is one less."""
    import numpy as np

    one = encode(np.array([1.0]), element)
    width = np.dtype(f"u{element.bytes}")
    bits = stored.view(width)
    return np.where(bits == one.view(width)[0], bits - width.type(1), bits).astype(width).view(stored.dtype)


def _number_type(element: ElementType, value: int | float) -> str:
    if element.kind == "f":
        return "float64"
    return "uint64" if value >= 0 else "int64"


def check_number(value: int | float, element: ElementType) -> int | float:
    """`value` as a number of that type; raises `SpecError` if it does not fit. Integers may be signed or unsigned."""
    if element.kind == "f":
        try:
            return float(value)
        except OverflowError:
            raise SpecError(f"{value} does not fit into {element.name}") from None
    if isinstance(value, float):
        if not value.is_integer():
            raise SpecError(f"{value} is not an integer, which {element.name} requires")
        value = int(value)
    if not -(1 << (element.bits - 1)) <= value < 1 << element.bits:
        raise SpecError(f"{value} does not fit into {element.name}")
    return value


_MAKERS = {"zeros": _zeros, "fill": _fill, "arange": _arange, "random": _random}


def shaped(text: str) -> tuple[ElementType, tuple[int, ...]]:
    """`f32[32,32]` as element type and shape; raises `SpecError`."""
    name, bracket, rest = text.partition("[")
    if not bracket or not rest.endswith("]"):
        raise SpecError(f"'{text}' is not TYPE[SIZE,…], such as f32[1024] or u8[16,16]")
    element = element_type(name.strip())
    sizes = [part.strip() for part in rest[:-1].split(",")]
    if not all(part.isdecimal() and len(part) <= MOST_DIGITS for part in sizes):
        raise SpecError(f"'{rest[:-1]}' in '{text}' is not a list of sizes")
    shape = tuple(int(part) for part in sizes)
    if count(shape) * element.bytes >= 1 << 48 or len(shape) > 32:
        raise SpecError(f"'{text}' is too large")
    return element, shape
