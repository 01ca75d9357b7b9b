"""Sparse A: half of its columns are stored, and metadata gives their positions (9.7.15.6.1, 9.7.16.10.8).

The metadata is one nibble for each chunk of K: two columns of tf32, four of 16- and 8-bit types, eight of fp4 (there
pairs of columns are kept).
"""

from __future__ import annotations

import numpy as np

from ptxtools.records import NamedTuple

from .numbers import Array


class Grain(NamedTuple):
    """Logical columns of a chunk, columns stored of it, and columns that stay together."""

    chunk: int
    stored: int
    together: int


_ONE_OF_TWO, _TWO_OF_FOUR, _PAIRS = Grain(2, 1, 1), Grain(4, 2, 1), Grain(8, 4, 2)


def grain_of(t: str) -> Grain:
    """The grain in which columns of this type are left out."""
    return _ONE_OF_TWO if t == "tf32" else _PAIRS if t == "fp4" else _TWO_OF_FOUR


def columns(t: str, nibbles: Array) -> Array:
    """Logical column of each stored element: M x K/2 from M x chunks of nibbles (u8)."""
    grain = grain_of(t)
    rows, chunks = nibbles.shape
    first, second = (nibbles & np.uint8(3)).astype(np.intp), (nibbles >> np.uint8(2)).astype(np.intp)
    if grain is _ONE_OF_TWO:
        places = (first // 2)[..., None]
    else:
        places = np.stack((first, second), axis=-1)
    if grain.together == 2:
        places = (2 * places[..., None] + np.arange(2)).reshape(rows, chunks, 4)
    return (places + grain.chunk * np.arange(chunks)[None, :, None]).reshape(rows, -1)


def expand(stored: Array, places: Array) -> Array:
    """The dense matrix: M x K from M x K/2 and the columns of its elements; the rest is zero."""
    rows, half = stored.shape
    dense = np.zeros((rows, 2 * half), stored.dtype)
    dense[np.arange(rows)[:, None], places] = stored
    return dense
