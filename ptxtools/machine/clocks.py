"""What warps know of each other, for native code (`machine.filters.Bounds.clocks`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from ptxtools.program.program import LANES

from .residents import MOMENT_WORDS, MOST_TIMES, PHASED_WORDS, USE_WORDS

if TYPE_CHECKING:
    import numpy.typing as npt

Array: TypeAlias = "npt.NDArray[Any]"

_LATEST = 5
_JOINING_WORDS = 8
_MOST = MOST_TIMES - 1  # what is guarded has the last one
#: Phases of an mbarrier of which is kept what was told.
_PHASES = 3
#: Mbarriers that native code looks after at a time, and bytes for them, at most.
_MOST_PHASED, _PHASED_BYTES = 4096, 8 << 20


class Clocks:
    """Tables for the warps of a grid, numbered CTA by CTA, and clusters of `size` CTAs; piece: bytes of shared memory
    that have words of their own, a power of two.

    warps: by time, the warp whose accesses it is the time of, or `count`; known: for each warp, up to which time it
    knows what each other one has done, and of itself up to which its lanes know it of each other; times: what native
    code notes of each warp; bars, clusters: of who comes to the barrier of each CTA and cluster; gathered, clustered:
    what those have told; fences: what each warp knew when it joined others last; lanes: up to which time each of its
    lanes knows the others by mbarriers; phased: what is noted of each mbarrier that native code looks after, the first
    one of none: `heads`, `told`, three rows of times, and `uses`, one row for each warp of its CTA."""

    def __init__(self, count: int, per_cta: int, size: int = 1, piece: int = 4) -> None:
        self.count, self.per_cta = count, per_cta
        ctas = count // per_cta
        self.warps: Array = np.zeros(MOST_TIMES, np.uint32)
        # Native code may read one time behind the last.
        self.known: Array = np.zeros(count * count + 1, np.uint32)[:-1].reshape(count, count)
        self.times: Array = np.zeros((count, MOMENT_WORDS), np.uint32)
        self.bars: Array = np.zeros((ctas, _JOINING_WORDS), np.uint32)
        self.clusters: Array = np.zeros((ctas // size, _JOINING_WORDS), np.uint32)
        self.gathered: Array = np.zeros((ctas, count), np.uint32)
        self.clustered: Array = np.zeros((ctas // size, 2, count), np.uint32)
        self.fences: Array = np.zeros((count, count), np.uint32)
        self.lanes: Array = np.zeros((count, LANES), np.uint32)
        words = PHASED_WORDS + _PHASES * count + USE_WORDS * per_cta
        self.phased: Array = np.zeros((max(2, min(_MOST_PHASED, _PHASED_BYTES // (4 * words))), words), np.uint32)
        behind = PHASED_WORDS + _PHASES * count
        self.heads: Array = self.phased[:, :PHASED_WORDS]
        self.told: Array = self.phased[:, PHASED_WORDS:behind].reshape(-1, _PHASES, count)
        self.uses: Array = self.phased[:, behind:].reshape(-1, per_cta, USE_WORDS)
        first = [_address(table) for table in (self.warps, self.known, self.times)]
        tables = self.bars, self.clusters, self.gathered, self.clustered, self.fences, self.lanes, self.phased
        last = [*map(_address, tables), 4 * words, piece.bit_length() - 1]
        #: As native code has it (`CLOCKS`).
        self.header: Array = np.array([*first, count, per_cta, 0, _MOST, *last], np.uint64)

    @property
    def latest(self) -> int:
        """The last time that there is: no other one is later."""
        return int(self.header[_LATEST])

    def next(self, warp: int | None = None) -> int:
        """A time for accesses of a warp, or for something else. Raises OverflowError when there are no more."""
        found = self.latest + 1
        if found >= _MOST:
            raise OverflowError
        self.header[_LATEST], self.warps[found] = found, self.count if warp is None else warp
        return found

    @property
    def address(self) -> int:
        return _address(self.header)


def _address(table: Array) -> int:
    return int(table.__array_interface__["data"][0])
