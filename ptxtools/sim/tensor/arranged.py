"""Offsets of the chunks of a matrix in shared memory, in the order of `machine.products.Chunks`."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from ptxtools.machine.products import GROUP
from ptxtools.records import NamedTuple, replace

from . import shared
from .numbers import Array

_ALIGNED = 1024


class ChunkOffsets(NamedTuple):
    """Byte offsets (i32) from `base`, a multiple of 1024; `end`: end of the last chunk, also from `base`."""

    offsets: Array
    base: int
    end: int


@lru_cache(2048)
def chunk_offsets(
    descriptor: shared.Descriptor, mn: int, k: int, bits: int, *, mn_major: bool, order: tuple[int, ...] | None = None
) -> ChunkOffsets:
    """The chunks of a matrix in shared memory. order: of the rows in each 16, if K leads."""
    base = 0 if descriptor.absolute else descriptor.start // _ALIGNED * _ALIGNED
    near = replace(descriptor, start=descriptor.start - base)
    numbers = shared.chunks_of(near, mn, k, bits, mn_major=mn_major)
    groups = -(-mn // GROUP)
    found: Array
    if mn_major:
        each = GROUP * bits // (8 * shared.CHUNK)
        padded = np.pad(numbers, ((0, 0), (0, groups * each - numbers.shape[1])), mode="edge")
        found = padded.reshape(k, groups, each).transpose(1, 0, 2)
    else:
        padded = np.pad(numbers, ((0, groups * GROUP - mn), (0, 0)), mode="edge")
        found = padded.reshape(groups, GROUP, -1, 2)
        if order is not None:
            found = found[:, list(order)]
        found = found.transpose(0, 2, 1, 3)
    offsets = np.ascontiguousarray(shared.CHUNK * found, np.int32)
    return ChunkOffsets(offsets, base, shared.CHUNK * (int(numbers.max()) + 1))
