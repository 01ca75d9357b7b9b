"""What is measured of the accesses of warps: the definition, which the reference engine uses.

Exact, by published rules:
- Global memory moves in sectors of 32 bytes. A warp's access touches as many as its lanes' addresses lie in; each
  lane's access is aligned to its size and lies in one.
- Shared memory has 32 banks, words of 4 bytes. In one pass each bank gives one word, to any number of lanes. Accesses
  of 8 and 16 bytes are made for half and quarter warps, one after another (CUDA Programming Guide, "Shared Memory").

A model, `Cache`: the L2 is direct-mapped, in sectors, empty when a grid begins, and accesses come in the order in which
the simulator makes them. A sector that is read and not in it comes from DRAM; one that is written goes there once while
it stays. There is no L1.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

Array: TypeAlias = "npt.NDArray[Any]"

SECTOR_BYTES = 32
BANKS, BANK_BYTES = 32, 4


class Cache:
    """The model of an L2 of so many bytes, rounded down to a power of two. cached: the sector in each place, 0 for
    none; dirty: the one that has been written there."""

    def __init__(self, size: int) -> None:
        self.entries = 1 << max(1, (size // SECTOR_BYTES).bit_length() - 1)
        self.cached = np.zeros(self.entries, np.uint32)
        self.dirty = np.zeros(self.entries, np.uint32)

    @property
    def size(self) -> int:
        return self.entries * SECTOR_BYTES

    def look_up(self, sectors: Array, writes: bool) -> int:
        """Sectors, among those of one access, that DRAM gives or gets."""
        missed = 0
        for number in sectors.astype(np.uint32).tolist():
            place = number & self.entries - 1
            missed += int((self.dirty if writes else self.cached)[place] != number)
            self.cached[place] = number
            if writes:
                self.dirty[place] = number
        return missed


def sectors(addresses: Array) -> Array:
    """Numbers of the sectors of a warp's access, in the order of its lanes."""
    numbers = addresses // np.uint64(SECTOR_BYTES)
    _, first = np.unique(numbers, return_index=True)
    found: Array = numbers[np.sort(first)]
    return found


def passes(lanes: Array, addresses: Array, size: int) -> tuple[int, int]:
    """Passes over the banks for a warp's access of `size` bytes for each of its lanes, and what lanes without conflicts
    would need."""
    unit = max(BANK_BYTES, size)
    group = BANKS * BANK_BYTES // unit  # lanes that are served together
    needed = least = 0
    for part in np.unique(lanes // group):
        units = np.unique(addresses[lanes // group == part] // np.uint64(unit))
        banks = units % np.uint64(group)
        needed += int(np.bincount(banks.astype(np.int64)).max())
        least += 1
    return needed, least
