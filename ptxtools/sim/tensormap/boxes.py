"""Which elements of a tensor a copy touches, and moving them between global memory and a dense tile.

Two shapes cover all modes. A `Block` is a box with a stride for each axis: tiled copies. `Rows` are rows of
consecutive elements that begin anywhere: gather4, scatter4 and the im2col modes. In both, the tile is dense and its
last axis runs over the bytes of a row.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from .descriptor import TensorMap, TensorMapError

Array: TypeAlias = npt.NDArray[Any]
#: Global memory: bytes of an address range, through which it can be written (address, size, write).
Memory: TypeAlias = "Callable[[int, int, bool], Array]"


@dataclass(slots=True)
class Axis:
    """One axis of a box: `count` places from coordinate `start` on, `step` apart, of which 0 to `size` - 1 exist;
    `stride` bytes lie between neighbouring coordinates."""

    start: int
    count: int
    step: int
    size: int
    stride: int

    def inside(self) -> slice:
        """The places that exist."""
        first = max(0, -(self.start // self.step)) if self.start < 0 else 0
        last = min(self.count, -((self.start - self.size) // self.step)) if self.start < self.size else 0
        return slice(min(first, max(last, 0)), max(last, 0))


@dataclass(slots=True)
class Block:
    """A box: axes from the outermost to the innermost, whose places are units of `unit` bytes."""

    address: int
    axes: tuple[Axis, ...]
    unit: int

    @property
    def bytes(self) -> int:
        return self.unit * int(np.prod([axis.count for axis in self.axes]))

    def _view(self, memory: Memory, write: bool) -> tuple[tuple[slice, ...], Array] | None:
        """The part of the tile that exists, and the same part of global memory; None if nothing of it does."""
        inside = tuple(axis.inside() for axis in self.axes)
        counts = [part.stop - part.start for part in inside]
        if not all(counts):
            return None
        first, last = self.address, self.address
        for axis, part in zip(self.axes, inside, strict=True):
            first += (axis.start + part.start * axis.step) * axis.stride
            last += (axis.start + (part.stop - 1) * axis.step) * axis.stride
        bytes_ = memory(first, last + self.unit - first, write)
        strides = [axis.step * axis.stride for axis in self.axes]
        view: Array = np.ndarray((*counts, self.unit), np.uint8, bytes_, strides=(*strides, 1))
        return inside, view

    def _tile(self, tile: Array) -> Array:
        return tile.reshape(*(axis.count for axis in self.axes), self.unit)

    def load(self, memory: Memory, tile: Array) -> None:
        """Copy what exists into the tile; the rest of it stays as it is."""
        found = self._view(memory, False)
        if found is not None:
            _copy(self._tile(tile)[found[0]], found[1])

    def store(self, memory: Memory, tile: Array) -> None:
        """Copy what exists from the tile."""
        found = self._view(memory, True)
        if found is not None:
            _copy(found[1], self._tile(tile)[found[0]])

    def change(self, memory: Memory, tile: Array, function: Callable[[Array, Array], Array]) -> None:
        """Memory = function(memory, tile), bytes of whole units as contiguous arrays."""
        found = self._view(memory, True)
        if found is not None:
            inside, view = found
            old = np.ascontiguousarray(view)
            new = function(old.reshape(-1), np.ascontiguousarray(self._tile(tile)[inside]).reshape(-1))
            view[...] = new.reshape(view.shape)


def _copy(target: Array, source: Array) -> None:
    """Copy bytes; in larger pieces where the innermost axes are dense."""
    unit = target.shape[-1]
    dense = all(a.ndim > 1 and a.strides[-2] == unit for a in (target, source))
    if dense:
        target, source = (_joined(a) for a in (target, source))
    np.copyto(target, source)


def _joined(array: Array) -> Array:
    """The last two axes as one."""
    shape = (*array.shape[:-2], array.shape[-2] * array.shape[-1])
    joined: Array = np.lib.stride_tricks.as_strided(array, shape, (*array.strides[:-2], 1))
    return joined


@dataclass(slots=True)
class Rows:
    """Rows of `unit * count` bytes. offsets: of each row from `address` to the unit with coordinate 0 of dimension 0;
    there: which rows exist; start, size: first coordinate, and how many there are in dimension 0 (units)."""

    address: int
    offsets: Array
    there: Array
    start: int
    count: int
    size: int
    unit: int

    @property
    def bytes(self) -> int:
        return self.unit * self.count * len(self.offsets)

    def _places(self) -> tuple[Array, int, int, int] | None:
        """Byte addresses of the rows that exist; first and last byte of a row that do; lowest address."""
        part = Axis(self.start, self.count, 1, self.size, self.unit).inside()
        if part.start >= part.stop or not self.there.any():
            return None
        first, last = self.unit * part.start, self.unit * part.stop
        starts: Array = self.address + self.offsets[self.there] + self.start * self.unit + first
        return starts, first, last, int(starts.min())

    def _indices(self, memory: Memory, write: bool) -> tuple[Array, Array, int, int] | None:
        places = self._places()
        if places is None:
            return None
        starts, first, last, low = places
        bytes_ = memory(low, int(starts.max()) + last - first - low, write)
        index: Array = (starts - low)[:, None] + np.arange(last - first)
        return bytes_, index, first, last

    def _tile(self, tile: Array) -> Array:
        return tile.reshape(len(self.offsets), self.count * self.unit)

    def load(self, memory: Memory, tile: Array) -> None:
        """Copy what exists into the tile; the rest of it stays as it is."""
        found = self._indices(memory, False)
        if found is not None:
            bytes_, index, first, last = found
            self._tile(tile)[self.there, first:last] = bytes_[index]

    def store(self, memory: Memory, tile: Array) -> None:
        """Copy what exists from the tile."""
        found = self._indices(memory, True)
        if found is not None:
            bytes_, index, first, last = found
            bytes_[index] = self._tile(tile)[self.there, first:last]

    def change(self, memory: Memory, tile: Array, function: Callable[[Array, Array], Array]) -> None:
        """Memory = function(memory, tile), row after row: two rows may be the same place."""
        found = self._indices(memory, True)
        if found is not None:
            bytes_, index, first, last = found
            rows = np.ascontiguousarray(self._tile(tile)[self.there, first:last])
            for place, row in zip(index, rows, strict=True):
                bytes_[place] = function(bytes_[place], row)


Region: TypeAlias = "Block | Rows"


# --- modes ------------------------------------------------------------------------------------------------------------


def region(map_: TensorMap, mode: str, coordinates: Sequence[int], offsets: Sequence[int] = ()) -> Region:
    """What a copy touches (5.5.3 to 5.5.6).

    mode: load mode of the instruction; coordinates: of the instruction, innermost first; offsets: im2col offsets, or
    (wHalo, wOffset). Raises `TensorMapError` where map and instruction do not fit.
    """
    wanted = 2 if mode in ("tile::gather4", "tile::scatter4") else len(coordinates)
    if map_.rank != wanted:
        raise TensorMapError(f"a tensor map of {map_.rank} dimensions in an instruction for {wanted}")
    if (map_.mode != "tile") != mode.startswith("im2col"):
        raise TensorMapError(f"a tensor map for {map_.mode} copies in an instruction for {mode} copies")
    if coordinates[0] % map_.type.group:
        name = map_.type.name
        raise TensorMapError(f"coordinate {coordinates[0]} of dimension 0; {name} goes in groups of {map_.type.group}")
    if mode in ("tile::gather4", "tile::scatter4"):
        return _four_rows(map_, coordinates)
    if mode == "tile":
        return _tile(map_, coordinates)
    return _pixels(map_, mode, coordinates, offsets)


def _inner(map_: TensorMap, start: int) -> tuple[int, int, int]:
    """First coordinate, number of places in a row and size of dimension 0, in groups of elements."""
    group = map_.type.group
    return start // group, map_.row() // group, map_.shape[0] // group


def _tile(map_: TensorMap, coordinates: Sequence[int]) -> Block:
    start, count, size = _inner(map_, coordinates[0])
    outer = [
        Axis(x, -(-n // step), step, dim, stride)
        for x, n, step, dim, stride in zip(
            coordinates[1:], map_.box[1:], map_.element_strides[1:], map_.shape[1:], map_.strides, strict=True
        )
    ]
    unit = map_.type.memory
    if map_.interleave == "none":
        inner = [Axis(start, count, 1, size, unit)]
    else:
        inner, slices = _slices(map_, start, count, size)
        outer.insert(len(outer) - 1, slices)
    return Block(map_.address, tuple(reversed([*inner, *outer])), unit)


def _slices(map_: TensorMap, start: int, count: int, size: int) -> tuple[list[Axis], Axis]:
    """Interleaved tensors (5.5.6): channels come in slices of 16 or 32 bytes, each a whole volume of pixels.

    Where a slice lies is not written down; here a slice's volume follows the one before it, and in the tile slices
    are the axis outside the pixels.
    """
    unit = map_.type.memory
    width = (32 if map_.interleave == "32B" else 16) // unit
    if start % width or count % width:
        raise TensorMapError(f"channels {start} to {start + count - 1} are no whole slices of {width}")
    volume = map_.strides[map_.rank - 3] * map_.shape[map_.rank - 2]
    slices = Axis(start // width, count // width, 1, -(-size // width), volume)
    return [Axis(0, width, 1, width, unit)], slices


def _four_rows(map_: TensorMap, coordinates: Sequence[int]) -> Rows:
    """Four rows of a matrix, each with a coordinate of its own (5.5.3.4)."""
    start, count, size = _inner(map_, coordinates[0])
    rows = np.array(coordinates[1:5], np.int64)
    there = (rows >= 0) & (rows < map_.shape[1])
    return Rows(map_.address, rows * map_.strides[0], there, start, count, size, map_.type.memory)


def _pixels(map_: TensorMap, mode: str, coordinates: Sequence[int], offsets: Sequence[int]) -> Rows:
    """The pixels of an im2col copy in the order of the traversal (5.5.4, 5.5.5)."""
    if map_.interleave != "none":
        raise TensorMapError("im2col copies of interleaved tensors are not simulated")
    start, count, size = _inner(map_, coordinates[0])
    if mode in ("im2col::w", "im2col::w::128"):
        if map_.mode != "im2col_w":
            raise TensorMapError(f"a tensor map for im2col copies in an instruction for {mode} copies")
        found = _row_walk(map_, mode, coordinates, offsets[0], offsets[1])
    else:
        if map_.mode != "im2col":
            raise TensorMapError(f"a tensor map for im2col::w copies in an instruction for {mode} copies")
        found = _walk(map_, coordinates)
        if offsets:
            found[:, :-1] += np.array(offsets, np.int64)
    there: Array = np.all((found >= 0) & (found < np.array(map_.shape[1:])), axis=1)
    places: Array = found @ np.array(map_.strides, np.int64)
    return Rows(map_.address, places, there, start, count, size, map_.type.memory)


def _walk(map_: TensorMap, coordinates: Sequence[int]) -> Array:
    """Pixels (W, then H, D, and last N) that a column visits inside the bounding box."""
    at, steps = list(coordinates[1:]), map_.element_strides[1:]
    last = [size - 1 + corner for size, corner in zip(map_.shape[1:-1], map_.upper, strict=True)]
    found = np.empty((map_.pixels, map_.rank - 1), np.int64)
    for number in range(map_.pixels):
        found[number] = at
        for d in range(map_.rank - 2):
            at[d] += steps[d]
            if at[d] <= last[d]:
                break
            at[d] = map_.lower[d]
        else:
            at[-1] += 1
    return found


def _row_walk(map_: TensorMap, mode: str, coordinates: Sequence[int], halo: int, shift: int) -> Array:
    """Pixels along W and N only; halo pixels follow the last one of the column, or every 32 pixels, without wrapping.

    The order of halo pixels is our reading of the manual's examples.
    """
    step, low = map_.element_strides[1], map_.lower[0] + shift
    last = map_.shape[1] - 1 + map_.upper[0] + shift
    fixed = list(coordinates[2:-1])
    pixels, run = (128, 32) if mode.endswith("128") else (map_.pixels, map_.pixels)
    w, n = coordinates[1] + shift, coordinates[-1]
    found: list[list[int]] = []
    for number in range(pixels):
        found.append([w, *fixed, n])
        if number % run == run - 1:
            found += [[w + step * (i + 1), *fixed, n] for i in range(halo)]
        w += step
        if w > last:
            w, n = low, n + 1
    return np.array(found, np.int64)
