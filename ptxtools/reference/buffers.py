"""Memory as NumPy arrays: the same bytes seen as elements of 1, 2, 4 and 8 bytes."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
_ELEMENT: dict[int, type] = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}


class Buffer:
    """`size` bytes. Element accesses take byte offsets that are multiples of the element's size."""

    __slots__ = ("_views", "bytes", "size")

    def __init__(self, data: Array) -> None:
        self.bytes = data
        self.size = len(data)
        self._views: dict[int, Array] = {1: data}

    @classmethod
    def zeros(cls, size: int) -> Buffer:
        return cls(np.zeros(-(-size // 8), np.uint64).view(np.uint8)[:size])

    @classmethod
    def copy_of(cls, data: bytes) -> Buffer:
        buffer = cls.zeros(len(data))
        buffer.bytes[:] = np.frombuffer(data, np.uint8)
        return buffer

    @classmethod
    def at(cls, address: int, size: int) -> Buffer:
        """Memory of this process; empty for size 0."""
        if not size:
            return cls.zeros(0)
        return cls(np.ctypeslib.as_array((ctypes.c_uint8 * size).from_address(address)))

    def view(self, size: int) -> Array:
        found = self._views.get(size)
        if found is None:
            whole = self.size // size * size
            found = self._views[size] = self.bytes[:whole].view(_ELEMENT[size])
        return found

    def load(self, offsets: Array, size: int) -> Array:
        """Elements of `size` bytes; 1-byte elements come as uint16."""
        values: Array = self.view(size)[offsets // size]
        return values.astype(np.uint16) if size == 1 else values

    def store(self, offsets: Array, size: int, values: Array) -> None:
        """Of several stores to one location the last one wins."""
        self.view(size)[offsets // size] = values
