"""Elements of a tensor that a copy touches, and moving them between global memory and a dense tile.

Two shapes cover all modes (`modes`). A `Block` is a box with a stride for each axis: tiled copies. `Rows` are rows of
consecutive elements that begin anywhere: gather4, scatter4 and the im2col modes. In both, the tile is dense and its
last axis runs over the bytes of a row.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from ptxtools.records import dataclass

Array: TypeAlias = npt.NDArray[Any]
#: Global memory: bytes of an address range, through which it can be written (address, size, write).
Memory: TypeAlias = "Callable[[int, int, bool], Array]"
#: Changes bytes of elements on their way, keeping the shape.
Conversion: TypeAlias = "Callable[[Array], Array]"
#: Memory = function of memory and tile: (view of memory, bytes of the tile in the same shape), both bytes, the last
#: axis without gaps.
Update: TypeAlias = "Callable[[Array, Array], None]"


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
        return self.unit * math.prod(axis.count for axis in self.axes)

    @property
    def row_bytes(self) -> int:
        return self.unit * self.axes[-1].count

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

    def pieces(self) -> tuple[Array, int]:
        """Addresses of the pieces of memory that it touches, and bytes of each."""
        inside = [axis.inside() for axis in self.axes]
        dense = self.axes[-1].step * self.axes[-1].stride == self.unit
        starts: Array = np.array(self.address)
        for number, (axis, part) in enumerate(zip(self.axes, inside, strict=True)):
            places = (axis.start + np.arange(part.start, part.stop) * axis.step) * axis.stride
            if dense and number == len(self.axes) - 1:
                places = places[:1]
            starts = starts[..., None] + places
        return starts.reshape(-1), self.unit * (inside[-1].stop - inside[-1].start if dense else 1)

    def _tile(self, tile: Array) -> Array:
        return tile.reshape(*(axis.count for axis in self.axes), self.unit)

    def load(self, memory: Memory, tile: Array, convert: Conversion | None = None) -> None:
        """Copy what exists into the tile; the rest of it stays as it is."""
        found = self._view(memory, False)
        if found is not None:
            source = found[1] if convert is None else convert(np.ascontiguousarray(found[1]))
            _copy(self._tile(tile)[found[0]], source)

    def store(self, memory: Memory, tile: Array) -> None:
        """Copy what exists from the tile."""
        found = self._view(memory, True)
        if found is not None:
            _copy(found[1], self._tile(tile)[found[0]])

    def change(self, memory: Memory, tile: Array, update: Update) -> None:
        """Reduce what exists of the tile into memory."""
        found = self._view(memory, True)
        if found is not None:
            update(found[1], np.ascontiguousarray(self._tile(tile)[found[0]]))


def _copy(target: Array, source: Array) -> None:
    """Copy bytes; in larger pieces where the innermost axes are dense."""
    unit = target.shape[-1]
    dense = all(a.ndim > 1 and a.strides[-2] == unit for a in (target, source))
    if dense:
        target, source = (_joined(a) for a in (target, source))
    np.copyto(target, source)


def _joined(array: Array) -> Array:
    """The last two axes as one: a view, since nothing lies between their elements."""
    return array.reshape(*array.shape[:-2], array.shape[-2] * array.shape[-1])


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

    @property
    def row_bytes(self) -> int:
        return self.unit * self.count

    def _places(self) -> tuple[Array, int, int, int] | None:
        """Byte addresses of the rows that exist; first and last byte of a row that do; lowest address."""
        part = Axis(self.start, self.count, 1, self.size, self.unit).inside()
        if part.start >= part.stop or not self.there.any():
            return None
        first, last = self.unit * part.start, self.unit * part.stop
        starts: Array = self.address + self.offsets[self.there] + self.start * self.unit + first
        return starts, first, last, int(starts.min())

    def pieces(self) -> tuple[Array, int]:
        """Addresses of the pieces of memory that it touches, and bytes of each."""
        found = self._places()
        return (np.zeros(0, np.int64), 1) if found is None else (found[0], found[2] - found[1])

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

    def load(self, memory: Memory, tile: Array, convert: Conversion | None = None) -> None:
        """Copy what exists into the tile; the rest of it stays as it is."""
        found = self._indices(memory, False)
        if found is not None:
            bytes_, index, first, last = found
            source = bytes_[index]
            self._tile(tile)[self.there, first:last] = source if convert is None else convert(source)

    def store(self, memory: Memory, tile: Array) -> None:
        """Copy what exists from the tile."""
        found = self._indices(memory, True)
        if found is not None:
            bytes_, index, first, last = found
            bytes_[index] = self._tile(tile)[self.there, first:last]

    def change(self, memory: Memory, tile: Array, update: Update) -> None:
        """Reduce what exists of the tile into memory, row after row: two rows may be the same place."""
        found = self._indices(memory, True)
        if found is not None:
            bytes_, index, first, last = found
            rows = np.ascontiguousarray(self._tile(tile)[self.there, first:last])
            for place, row in zip(index[:, 0].tolist(), rows, strict=True):
                update(bytes_[place : place + last - first], row)


Region: TypeAlias = "Block | Rows"
