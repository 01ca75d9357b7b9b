"""How swizzled tiles lie in shared memory (5.5.7): an exclusive or of address bits inside rows of 128 bytes.

It acts on addresses in shared memory, not on offsets in the tile. Which rows `128B_atom_32B_flip_8B` flips is not
written down: we flip the odd ones.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

#: Rows that are mixed; tiles begin at a multiple of this many bytes (9.7.9.25.5.2).
ROW = 128
#: The pattern of every mode repeats after this many bytes.
PERIOD = 1024

#: Mode: (bits of the address, how far down they go).
_MASKS = {
    "32B": (0x10, 3), "64B": (0x30, 3), "128B": (0x70, 3), "128B_atom_32B": (0x60, 2),
    "128B_atom_32B_flip_8B": (0x60, 2), "128B_atom_64B": (0x40, 1),
}  # fmt: skip


def swizzled(address: Any, mode: str) -> Any:
    """Where the byte that is meant for `address` lies (numbers or arrays)."""
    if mode == "none":
        return address
    mask, shift = _MASKS[mode]
    address = address ^ ((address >> shift) & mask)
    return address ^ ((address >> 4) & 8) if mode.endswith("flip_8B") else address


@lru_cache(maxsize=256)
def _order(mode: str, start: int, words: int) -> Array:
    """For each 8-byte word of a tile that begins `start` bytes into a period: the word where it lies."""
    places = swizzled(start + 8 * np.arange(words), mode)
    order: Array = (places - start) // 8
    return order


def scatter(tile: Array, region: Array, start: int, mode: str) -> None:
    """Put a dense tile (bytes) into shared memory. region: shared memory from the tile's address `start` on."""
    size = len(tile)
    if mode == "none":
        region[:size] = tile
        return
    words = size // 8
    whole = region[: len(region) // 8 * 8].view(np.uint64)
    whole[_order(mode, start % PERIOD, words)] = tile.view(np.uint64)


def gather(region: Array, size: int, start: int, mode: str) -> Array:
    """The dense tile of `size` bytes that lies in shared memory; the inverse of `scatter`."""
    if mode == "none":
        return region[:size]
    whole = region[: len(region) // 8 * 8].view(np.uint64)
    found: Array = whole[_order(mode, start % PERIOD, size // 8)].view(np.uint8)
    return found
