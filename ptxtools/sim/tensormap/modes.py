"""The elements of a tensor touched by each mode of a copy (5.5.3 to 5.5.6).

Coordinates are innermost first. Of interleaved tensors dimension 0 is W, in pixels of a slice (16 or 32 bytes of
channels), then come H and D, then the slice, last N; a copy touches one slice. Of others dimension 0 is C.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .boxes import Array, Axis, Block, Region, Rows
from .descriptor import TensorMap, TensorMapError

#: Pixels of an im2col::w::128 copy, and those after which halo pixels are loaded (5.5.5.3).
_WIDE, _RUN = 128, 32
#: wHalo and wOffset are below these (9.7.9.25.5.2).
_MOST_HALO = {"im2col::w": 512, "im2col::w::128": 32}
_MOST_OFFSET = 32
_FOUR_ROWS = ("tile::gather4", "tile::scatter4")
_WIDE_MODES = tuple(_MOST_HALO)


def region(map_: TensorMap, mode: str, coordinates: Sequence[int], offsets: Sequence[int] = ()) -> Region:
    """What a copy touches.

    mode: load mode of the instruction; coordinates: of the instruction; offsets: im2col offsets, or (wHalo, wOffset).
    Raises `TensorMapError` where map and instruction do not fit.
    """
    wanted = 2 if mode in _FOUR_ROWS else len(coordinates)
    if map_.rank != wanted:
        raise TensorMapError(f"a tensor map of {map_.rank} dimensions in an instruction for {wanted}")
    if (map_.mode != "tile") != mode.startswith("im2col"):
        raise TensorMapError(f"a tensor map for {map_.mode} copies in an instruction for {mode} copies")
    multiple = 128 if map_.type.padded else map_.type.group
    if coordinates[0] % multiple:
        name = map_.type.name
        raise TensorMapError(f"coordinate {coordinates[0]} of dimension 0; {name} requires a multiple of {multiple}")
    if mode in _FOUR_ROWS:
        return _four_rows(map_, coordinates)
    if mode == "tile":
        return _tile(map_, coordinates)
    return _pixels(map_, mode, coordinates, offsets)


def _inner(map_: TensorMap, start: int) -> tuple[int, int, int]:
    """First coordinate, number of places in a row and size of dimension 0, in groups of elements."""
    group = map_.type.group
    return start // group, map_.row() // group, map_.shape[0] // group


def _tile(map_: TensorMap, coordinates: Sequence[int]) -> Block:
    steps, unit = map_.element_strides, map_.slice_bytes or map_.type.memory
    outer = [
        Axis(x, -(-n // step), step, dim, stride)
        for x, n, step, dim, stride in zip(
            coordinates[1:], map_.box[1:], steps[1:], map_.shape[1:], map_.strides, strict=True
        )
    ]
    if map_.slice_bytes:
        inner = Axis(coordinates[0], -(-map_.box[0] // steps[0]), steps[0], map_.shape[0], unit)
        outer[-2].count = 1
    else:
        start, count, size = _inner(map_, coordinates[0])
        inner = Axis(start, count, 1, size, unit)
    return Block(map_.address, tuple(reversed([inner, *outer])), unit)


def _four_rows(map_: TensorMap, coordinates: Sequence[int]) -> Rows:
    """Four rows of a matrix, each with a coordinate of its own (5.5.3.4)."""
    if map_.box[1] != 1 or map_.slice_bytes:
        raise TensorMapError(f"a box of {list(map_.box)} in a copy of four rows; it must be one row, not interleaved")
    start, count, size = _inner(map_, coordinates[0])
    rows = np.array(coordinates[1:5], np.int64)
    there = (rows >= 0) & (rows < map_.shape[1])
    return Rows(map_.address, rows * map_.strides[0], there, start, count, size, map_.type.memory)


# --- im2col -----------------------------------------------------------------------------------------------------------


def _pixels(map_: TensorMap, mode: str, coordinates: Sequence[int], offsets: Sequence[int]) -> Rows:
    """The pixels of an im2col copy in the order in which they lie in shared memory (5.5.4, 5.5.5)."""
    wide = map_.mode == "im2col_w"
    if mode != "im2col_no_offs" and wide != (mode in _WIDE_MODES):
        raise TensorMapError(f"a tensor map for {map_.mode} copies in an instruction for {mode} copies")
    halo, shift = offsets if wide and offsets else (0, 0)
    if (halo and halo >= _MOST_HALO[mode]) or shift >= _MOST_OFFSET:
        raise TensorMapError(f"wHalo {halo} and wOffset {shift} of an {mode} copy")
    first = 0 if map_.slice_bytes else 1
    visited = _order(mode, _WIDE if mode == "im2col::w::128" else map_.pixels, halo)
    found = _walk(map_, coordinates, first, shift, 1 + int(visited.max()))[visited]
    if offsets and not wide:
        _check_offsets(map_, offsets)
        found[:, first : first + map_.rank - 2] += np.array(offsets, np.int64)
    if not map_.slice_bytes:
        outer, strides = found[:, 1:], map_.strides
        there: Array = np.all((outer >= 0) & (outer < np.array(map_.shape[1:])), axis=1)
        places: Array = outer @ np.array(strides, np.int64)
        return Rows(map_.address, places, there, *_inner(map_, coordinates[0]), map_.type.memory)
    there = np.all((found >= 0) & (found < np.array(map_.shape)), axis=1)
    places = found @ np.array((map_.slice_bytes, *map_.strides), np.int64)
    return Rows(map_.address, places, there, 0, 1, 1, map_.slice_bytes)


def _order(mode: str, pixels: int, halo: int) -> Array:
    """Numbers in the walk of the pixels in shared memory. Halo pixels continue the walk behind the column; those of
    im2col::w::128 behind each run of 32, and lie behind all 128: the first ones of each run, then the second ones."""
    if mode != "im2col::w::128":
        return np.arange(pixels + halo)
    behind = np.arange(_RUN, pixels + 1, _RUN) + np.arange(halo)[:, None]
    return np.concatenate([np.arange(pixels), behind.reshape(-1)])


def _walk(map_: TensorMap, coordinates: Sequence[int], first: int, shift: int, count: int) -> Array:
    """Coordinates (of all dimensions) of the first `count` pixels of a walk through the bounding box: along W, which
    is dimension `first`, then H, D and last N; im2col::w walks along W and N only. shift: wOffset."""
    inside = range(first, first + (1 if map_.mode == "im2col_w" else map_.rank - 2))
    at = list(coordinates)
    at[first] += shift
    low = {d: corner + shift for d, corner in zip(inside, map_.lower, strict=True)}
    last = {d: map_.shape[d] - 1 + corner + shift for d, corner in zip(inside, map_.upper, strict=True)}
    for d in inside:
        if at[d] > last[d] or (at[d] < low[d] and map_.mode != "im2col_w"):
            raise TensorMapError(
                f"coordinate {at[d]} of dimension {d} is outside of the bounding box {low[d]} to {last[d]}"
            )
    found = np.empty((count, map_.rank), np.int64)
    for number in range(count):
        found[number] = at
        for d in inside:
            at[d] += map_.element_strides[d]
            if at[d] <= last[d]:
                break
            at[d] = low[d]
        else:
            at[-1] += 1
    return found


def _check_offsets(map_: TensorMap, offsets: Sequence[int]) -> None:
    most = 1 << map_.corner_bits
    if any(offset >= most for offset in offsets):
        raise TensorMapError(f"im2col offsets {list(offsets)}: for {map_.rank} dimensions they must be below {most}")
