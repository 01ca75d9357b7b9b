"""The clusters of a grid, as workers claim them: all in one row, or in parts, of which each worker begins with its own.

Parts are the same in each launch of a shape, so a worker mostly finds the data of the last launch in the caches of its
processor. They are for kernels whose CTAs never wait for each other (`ptxtools.program.passes.waits`): where one
may, those that have begun must be the first of the grid, as many as can be resident.
"""

from __future__ import annotations

import ctypes

from ptxtools.native.code.filling import array_of
from ptxtools.native.code.structures import PART

#: Pieces of a part that are claimed one by one: a claim takes a while, too, and nobody helps with the rest of a piece.
_PIECES = 128
_WORDS = PART.size // 8
_NEXT = PART.offset("next") // 8


class Parts:
    """So many clusters in so many parts."""

    def __init__(self, clusters: int, count: int = 1) -> None:
        self.count = count
        self._rows = array_of(ctypes.c_uint64, _WORDS * (count + 1))()
        start = -ctypes.addressof(self._rows) % PART.size  # rows begin at lines of a cache
        self.address = ctypes.addressof(self._rows) + start
        self._first = start // 8 + _NEXT
        self._bounds = [number * clusters // count for number in range(count + 1)]
        for number, (begin, end) in enumerate(zip(self._bounds, self._bounds[1:], strict=False)):
            piece = max(1, (end - begin) // _PIECES)
            for name, value in (("next", begin), ("begin", begin), ("end", end), ("piece", piece)):
                PART.write(self._rows, start + number * PART.size, name, value)

    @property
    def taken(self) -> int:
        """Clusters that workers have claimed."""
        given = self._rows[self._first :: _WORDS]
        bounds = self._bounds
        return sum(min(next_, end) - begin for next_, begin, end in zip(given, bounds, bounds[1:], strict=False))
