"""Tiles on their way between global and shared memory: fill, conversions, padding of sub-byte types, swizzle.

For the behaviour of an observed chip where the manual leaves it open, see `docs/tensormap.md`.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from ptxtools.semantics.half import OOB_NAN

from .boxes import Memory, Region
from .descriptor import TensorMap, TensorMapError
from .swizzle import Layout

Array: TypeAlias = npt.NDArray[Any]

#: What becomes of NaNs in tf32 elements.
_TF32_NAN = 0x7FFF_E000


def layout(map_: TensorMap, region: Region, *, store: bool = False) -> Layout:
    """The layout of the region's tile in shared memory. store: as a copy to global memory reads it."""
    row, type_ = region.row_bytes, map_.type
    pieces, data, room = 1, row, row
    if type_.padded:
        pieces, room = row // type_.memory, type_.shared
        data = room if store else type_.memory
    return Layout(map_.swizzle, region.bytes // row, pieces, data, room, max(pieces * room, map_.span))


def _blank(map_: TensorMap, size: int) -> Array:
    """A tile of what is outside of the tensor."""
    if map_.fill == "zero":
        return np.zeros(size, np.uint8)
    return np.full(size // 2, OOB_NAN, np.uint16).view(np.uint8)


def to_tf32(data: Array) -> Array:
    """Elements of tf32 maps lose their low 13 bits, rounded to nearest even; NaNs are canonical."""
    bits = data.reshape(-1).view(np.uint32)
    rounded = (bits + np.uint32(0xFFF) + (bits >> np.uint32(13) & np.uint32(1))) & np.uint32(0xFFFF_E000)
    nan = (bits & np.uint32(0x7FFF_FFFF)) > np.uint32(0x7F80_0000)
    converted: Array = np.where(nan, np.uint32(_TF32_NAN), rounded).view(np.uint8).reshape(data.shape)
    return converted


def load(map_: TensorMap, region: Region, memory: Memory, target: Array, start: int) -> None:
    """Copy a box into shared memory. target: shared memory from the tile's address `start` on, as far as it goes."""
    tile = _blank(map_, region.bytes)
    region.load(memory, tile, to_tf32 if map_.type.name.startswith("tf32") else None)
    layout(map_, region).scatter(tile, target, start)


def take(map_: TensorMap, region: Region, source: Array, start: int) -> Array:
    """The tile that lies in shared memory, as global memory wants it."""
    tile = layout(map_, region, store=True).gather(source, start)
    if not map_.type.padded:
        return np.ascontiguousarray(tile)
    return pack(tile)


def pack(tile: Array) -> Array:
    """Elements of six bits, from a byte each to all bits of their bytes."""
    bits = np.unpackbits(tile.reshape(-1, 16), axis=1, bitorder="little").reshape(-1, 16, 8)[:, :, :6]
    return np.packbits(bits.reshape(-1, 96), axis=1, bitorder="little").reshape(-1)


def check_store(map_: TensorMap) -> None:
    """Copies to global memory (9.7.9.25.5.1): raise `TensorMapError` where they cannot be made."""
    if map_.type.name == "b4x16_p64":
        raise TensorMapError(f"{map_.type.name} elements can only be copied to shared memory")
    if map_.swizzle.endswith("flip_8B"):
        raise TensorMapError(f"swizzle {map_.swizzle} is only for copies to shared memory")
    if any(corner < 0 for corner in map_.lower) or any(corner > 0 for corner in map_.upper):
        raise TensorMapError("the bounding box of a copy to global memory extends outside of the tensor")


# --- reductions -------------------------------------------------------------------------------------------------------

_INTEGERS = ("u32", "s32", "u64")
#: Element types that each operation takes (9.7.9.25.5.3).
_REDUCED: dict[str, tuple[str, ...]] = {
    "add": (*_INTEGERS, "f16", "bf16", "f32", "f32.ftz"), "min": (*_INTEGERS, "s64", "f16", "bf16"),
    "max": (*_INTEGERS, "s64", "f16", "bf16"), "inc": ("u32",), "dec": ("u32",),
    "and": (*_INTEGERS, "s64"), "or": (*_INTEGERS, "s64"), "xor": (*_INTEGERS, "s64"),
}  # fmt: skip


def check_reduction(map_: TensorMap, operation: str) -> None:
    """Raise `TensorMapError` unless the map's elements can be reduced so."""
    if map_.type.name not in _REDUCED[operation]:
        raise TensorMapError(f"there is no reduction .{operation} of {map_.type.name} elements")
