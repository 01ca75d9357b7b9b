"""What warps know of each other, for native code (`machine.filters.Bounds.clocks`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

Array: TypeAlias = "npt.NDArray[Any]"

#: Times that there can be.
MOST_TIMES = 1 << 22


class Clocks:
    """Tables for the warps of a grid, numbered CTA by CTA.

    warps: by time, the warp that it belongs to; known: for each warp, up to which time it knows what each other one has
    done, and of itself up to which its lanes know it of each other; times: for each warp its own time, 0 before it has
    begun, the time up to which it knows all that warps of its CTA have done, and the same for the grid."""

    def __init__(self, count: int, per_cta: int) -> None:
        self.count, self.per_cta = count, per_cta
        self.warps: Array = np.zeros(MOST_TIMES, np.uint32)
        self.known: Array = np.zeros((count, count), np.uint32)
        self.times: Array = np.zeros((count, 3), np.uint32)
        addresses = [table.__array_interface__["data"][0] for table in (self.warps, self.known, self.times)]
        #: As native code has it (`CLOCKS`).
        self.header: Array = np.array([*addresses, count, per_cta], np.uint64)

    @property
    def address(self) -> int:
        return int(self.header.__array_interface__["data"][0])
