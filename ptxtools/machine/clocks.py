"""What warps know of each other, for native code (`machine.filters.Bounds.clocks`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from .residents import MOST_TIMES

if TYPE_CHECKING:
    import numpy.typing as npt

Array: TypeAlias = "npt.NDArray[Any]"

_LATEST = 5


class Clocks:
    """Tables for the warps of a grid, numbered CTA by CTA.

    warps: by time, the warp that it belongs to; known: for each warp, up to which time it knows what each other one has
    done, and of itself up to which its lanes know it of each other; times: for each warp the time of its accesses, 0
    until it makes one, the time up to which it knows all that warps of its CTA have done, the same for the grid, and
    whether it has begun."""

    def __init__(self, count: int, per_cta: int) -> None:
        self.count, self.per_cta = count, per_cta
        self.warps: Array = np.zeros(MOST_TIMES, np.uint32)
        self.known: Array = np.zeros((count, count), np.uint32)
        self.times: Array = np.zeros((count, 4), np.uint32)
        addresses = [table.__array_interface__["data"][0] for table in (self.warps, self.known, self.times)]
        #: As native code has it (`CLOCKS`).
        self.header: Array = np.array([*addresses, count, per_cta, 0, MOST_TIMES], np.uint64)

    @property
    def latest(self) -> int:
        """The last time that there is: no other one is later."""
        return int(self.header[_LATEST])

    def next(self, warp: int) -> int:
        """A time for a warp. Raises OverflowError when there are no more."""
        found = self.latest + 1
        if found >= MOST_TIMES:
            raise OverflowError
        self.header[_LATEST], self.warps[found] = found, warp
        return found

    @property
    def address(self) -> int:
        return int(self.header.__array_interface__["data"][0])
