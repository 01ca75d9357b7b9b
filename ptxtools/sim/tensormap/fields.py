"""Single fields of the 128 bytes, as `tensormap.replace` changes them (9.7.9.26)."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

#: Field: (byte offset of the 32-bit word, lowest bit, bits) of those in one place.
_SIMPLE = {
    "rank": (0x08, 4, 3), "elemtype": (0x08, 7, 4), "interleave_layout": (0x08, 11, 2), "swizzle_mode": (0x08, 13, 2),
    "fill_mode": (0x08, 15, 1), "swizzle_atomicity": (0x08, 19, 3),
}  # fmt: skip
_VERSION = (0x08, 1, 3)


def _put(map_: Array, place: tuple[int, int, int], value: int) -> None:
    offset, low, bits = place
    word = map_[offset : offset + 4].view(np.uint32)
    mask = (1 << bits) - 1 << low
    word[0] = int(word[0]) & ~mask | value << low & mask


def replace(map_: Array, field: str, dimension: int, value: int) -> None:
    """Change a field of a map (128 bytes): `dimension` counts from 0; a stride's from dimension 1 of the tensor."""
    _put(map_, _VERSION, 1)
    if field in _SIMPLE:
        _put(map_, _SIMPLE[field], value)
    elif field == "global_address":
        map_[:8].view(np.uint64)[0] = value
    elif field == "global_dim":
        _put(map_, (0x20 + 4 * dimension, 0, 32), value - 1)
    elif field == "element_stride":
        _put(map_, (0x34, 3 * dimension, 3), value - 1)
    elif field == "box_dim":
        _put(map_, (0x38, 8 * (dimension - 1), 8) if dimension else (0x34, 24, 8), value - 1)
    elif field == "global_stride" and dimension < 4:
        _put(map_, (0x0C + 4 * dimension, 0, 32), value >> 4)
        _put(map_, (0x1C, 4 * dimension, 4), value >> 36)
