"""The layout of a tile's rows in shared memory, swizzled or not (5.5.7).

Swizzling is an exclusive or of address bits inside rows of 128 bytes. It acts on addresses in shared memory, not on
offsets in the tile; `128B_atom_32B_flip_8B` also swaps the halves of 16 bytes in odd rows. Rows shorter than the span
that a mode mixes begin a span apart.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from ptxtools.records import dataclass

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
    """The swizzled location of the byte for `address` (numbers or arrays)."""
    if mode == "none":
        return address
    mask, shift = _MASKS[mode]
    address = address ^ ((address >> shift) & mask)
    return address ^ ((address >> 4) & 8) if mode.endswith("flip_8B") else address


@dataclass(frozen=True, slots=True)
class Layout:
    """A tile in shared memory: `rows` of `pieces`, each `data` bytes at the start of `room` bytes; rows begin `pitch`
    bytes apart. What lies between is not touched."""

    mode: str
    rows: int
    pieces: int
    data: int
    room: int
    pitch: int

    @property
    def bytes(self) -> int:
        """Bytes of the tile itself."""
        return self.rows * self.pieces * self.data

    @property
    def extent(self) -> int:
        """Bytes from the tile's first to its last; a swizzled one may reach to the end of its last 128-byte row."""
        size = (self.rows - 1) * self.pitch + self.pieces * self.room
        return size if self.mode == "none" else -(-size // ROW) * ROW

    @property
    def _plain(self) -> bool:
        return self.mode == "none" and self.data == self.room and self.pitch == self.pieces * self.room

    def scatter(self, tile: Array, region: Array, start: int) -> None:
        """Put a dense tile (bytes) into shared memory. region: shared memory from the tile's address `start` on."""
        if self._plain:
            region[: self.bytes] = tile
        else:
            words, order = self._words(region, start)
            words[order] = tile.view(words.dtype)

    def gather(self, region: Array, start: int) -> Array:
        """The dense tile that lies in shared memory; the inverse of `scatter`."""
        if self._plain:
            return region[: self.bytes]
        words, order = self._words(region, start)
        found: Array = words[order].view(np.uint8)
        return found

    def _words(self, region: Array, start: int) -> tuple[Array, Array]:
        """Shared memory as words, and the word where each of the tile lies."""
        width = 4 if self.data % 8 else 8
        return region[: len(region) // width * width].view(f"u{width}"), _order(self, start % PERIOD, width)


@lru_cache(maxsize=256)
def _order(layout: Layout, start: int, width: int) -> Array:
    """For each word of a tile that begins `start` bytes into a period: the word where it lies."""
    rows, pieces = np.arange(layout.rows), np.arange(layout.pieces)
    within = np.arange(layout.data // width) * width
    places = start + (rows * layout.pitch)[:, None, None] + (pieces * layout.room)[:, None] + within
    order: Array = (swizzled(places, layout.mode) - start).reshape(-1) // width
    order.setflags(write=False)
    return order
