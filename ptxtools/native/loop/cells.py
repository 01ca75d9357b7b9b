"""Cells of events: what a service leaves for native code, which then does the event's work (`structures.CELL`)."""

from __future__ import annotations

import ctypes
import struct
import threading
from typing import Any

import numpy as np
import numpy.typing as npt

from ptxtools.native.code.structures import CELL, TABLE, TABLES, Structure

_FORMATS = {"i32": struct.Struct("<I"), "i64": struct.Struct("<Q"), "ptr": struct.Struct("<Q")}


class Cell:
    """The cell of one event of a program, for all that run it. lock: for who changes it; kept: what it points to."""

    def __init__(self) -> None:
        self.memory = (ctypes.c_uint64 * (CELL.size // 8))()
        self.lock = threading.Lock()
        self.kept: dict[str, Any] = {}

    @property
    def address(self) -> int:
        return ctypes.addressof(self.memory)

    def set(self, name: str, value: int, structure: Structure = CELL) -> None:
        """Write a field; structure: what the cell's function makes of it."""
        offset, type_ = structure.fields[name]
        form = _FORMATS[type_]
        form.pack_into(self.memory, offset, value & (1 << 8 * form.size) - 1)

    def point(self, name: str, array: npt.NDArray[Any]) -> None:
        """Let a field point to an array, which stays as it is."""
        self.kept[name] = array
        self.set(name, array.__array_interface__["data"][0])

    def serve(self, function: int) -> None:
        """From now on native code does the work; all other fields have been set."""
        self.memory[0] = function


class Tables:
    """Where the chunks of matrices lie, by descriptor: entries come, and none goes, so that readers need no lock."""

    def __init__(self) -> None:
        self.rows = np.zeros((TABLES, TABLE.size // 8), np.uint64)
        self._places: dict[int, npt.NDArray[Any]] = {}

    def knows(self, descriptor: int) -> bool:
        """Whether nothing is to be added: it is there, or the table is full."""
        return _slot_of(descriptor)[0] in self._places or len(self._places) == TABLES

    def add(self, descriptor: int, places: npt.NDArray[Any], end: int) -> None:
        """places: byte offsets (i32) from the address's multiple of 1024; end: behind the last chunk."""
        key, row = _slot_of(descriptor)
        self._places[key] = places
        while self.rows[row % TABLES, 1]:
            row += 1
        entry = self.rows[row % TABLES]
        entry[0], entry[2] = key, end
        entry[1] = places.__array_interface__["data"][0]  # last: now it can be found


assert [TABLE.offset(name) for name in ("descriptor", "places", "end")] == [0, 8, 16]
assert CELL.offset("serve") == 0


def _slot_of(descriptor: int) -> tuple[int, int]:
    """As `wgmma.slot_of`, which loads with the first product: few kernels have any."""
    from ptxtools.native.tiles.wgmma import slot_of

    return slot_of(descriptor)
