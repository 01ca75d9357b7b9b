"""Tiles on their way between global and shared memory: fill, padding of sub-byte types, swizzle."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from . import swizzle
from .boxes import Memory, Region
from .descriptor import ElementType, TensorMap, TensorMapError

Array: TypeAlias = npt.NDArray[Any]

#: What `fill nan` writes. Of f16 it is the pattern that fma.oob looks for; the others are canonical NaNs.
_NAN = {"f2": 0x7EFF, "bf16": 0x7FFF, "f4": 0x7FFF_FFFF, "f8": 0x7FFF_FFFF_FFFF_FFFF}


def shared_bytes(map_: TensorMap, region: Region) -> int:
    """Bytes of the tile in shared memory, which are the bytes that its mbarrier counts."""
    return region.bytes // map_.type.memory * map_.type.shared


def _blank(map_: TensorMap, size: int) -> Array:
    """A tile of what is outside of the tensor."""
    if map_.fill == "zero":
        return np.zeros(size, np.uint8)
    width = map_.type.memory
    return np.full(size // width, _NAN[map_.type.format], f"u{width}").view(np.uint8)


def load(map_: TensorMap, region: Region, memory: Memory, target: Array, start: int) -> None:
    """Copy a box into shared memory. target: shared memory from the tile's address `start` on, to whole rows."""
    tile = _blank(map_, region.bytes)
    region.load(memory, tile)
    if map_.type.name.endswith(".ftz"):
        values = tile.view(np.uint32)
        values[(values & 0x7F80_0000) == 0] &= 0x8000_0000
    if map_.type.padded:
        padded = np.zeros((len(tile) // map_.type.memory, map_.type.shared), np.uint8)
        padded[:, : map_.type.memory] = tile.reshape(-1, map_.type.memory)
        tile = padded.reshape(-1)
    swizzle.scatter(tile, target, start, map_.swizzle)


def take(map_: TensorMap, region: Region, source: Array, start: int) -> Array:
    """The tile that lies in shared memory, as global memory wants it. Raises `TensorMapError`."""
    tile = swizzle.gather(source, shared_bytes(map_, region), start, map_.swizzle)
    if not map_.type.padded:
        return np.ascontiguousarray(tile)
    if map_.type.name != "b6x16_p32":
        raise TensorMapError(f"{map_.type.name} elements are copied to shared memory only")
    bits = np.unpackbits(tile.reshape(-1, 16), axis=1, bitorder="little").reshape(-1, 16, 8)[:, :, :6]
    return np.packbits(bits.reshape(-1, 96), axis=1, bitorder="little").reshape(-1)


# --- reductions -------------------------------------------------------------------------------------------------------

_INTEGERS = ("u4", "i4", "u8")
#: Formats that each operation takes (9.7.9.25.4.2, 9.7.9.25.5.3).
_FORMATS: dict[str, tuple[str, ...]] = {
    "add": (*_INTEGERS, "f2", "bf16", "f4", "f8"), "min": (*_INTEGERS, "i8", "f2", "bf16"),
    "max": (*_INTEGERS, "i8", "f2", "bf16"), "inc": ("u4",), "dec": ("u4",),
    "and": ("u4", "i4", "u8", "i8"), "or": ("u4", "i4", "u8", "i8"), "xor": ("u4", "i4", "u8", "i8"),
}  # fmt: skip
_FUNCTIONS: dict[str, Any] = {
    "add": np.add, "min": np.minimum, "max": np.maximum, "and": np.bitwise_and, "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "inc": lambda old, limit: np.where(old >= limit, np.uint32(0), old + np.uint32(1)),
    "dec": lambda old, limit: np.where((old == 0) | (old > limit), limit, old - np.uint32(1)),
}  # fmt: skip


def reduction(operation: str, type_: ElementType) -> Any:
    """Function (memory, tile) -> memory over bytes for a reduction. Raises `TensorMapError`."""
    if type_.format not in _FORMATS[operation]:
        raise TensorMapError(f"there is no reduction .{operation} of {type_.name} elements")
    return reduction_of(operation, type_.format)


def reduction_of(operation: str, format_: str) -> Any:
    """The same for a NumPy format, "bf16" included."""
    floating = format_[0] in "fb"
    function = {"min": np.fmin, "max": np.fmax}.get(operation) if floating else None
    function = function or _FUNCTIONS[operation]
    if format_ == "bf16":
        return lambda old, new: _bfloat16(function, old, new)

    def change(old: Array, new: Array) -> Array:
        with np.errstate(all="ignore"):
            changed: Array = function(old.view(format_), new.view(format_))
        if floating:
            changed = np.where(np.isnan(changed), _quiet(format_), changed)
        return np.ascontiguousarray(changed, format_).view(np.uint8)

    return change


def _quiet(format_: str) -> Any:
    """The canonical NaN (of f64 the quiet one)."""
    bits = {"f2": 0x7FFF, "f4": 0x7FFF_FFFF, "f8": 0x7FF8_0000_0000_0000}[format_]
    return np.array(bits, f"u{format_[1]}").view(format_)


def _bfloat16(function: Any, old: Array, new: Array) -> Array:
    """In f32, which holds sums of two bf16 values well enough to round once more, to nearest even."""
    wide = [x.view(np.uint16).astype(np.uint32) << np.uint32(16) for x in (old, new)]
    with np.errstate(all="ignore"):
        result = function(wide[0].view(np.float32), wide[1].view(np.float32))
    bits = result.view(np.uint32)
    rounded = (bits + np.uint32(0x7FFF) + (bits >> np.uint32(16) & np.uint32(1))) >> np.uint32(16)
    narrow = np.where(np.isnan(result), np.uint32(0x7FFF), rounded).astype(np.uint16)
    return np.ascontiguousarray(narrow).view(np.uint8)
