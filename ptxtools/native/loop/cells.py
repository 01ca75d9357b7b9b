"""Cells of events: what a service leaves for native code, which then does the event's work (`structures.EVENT`)."""

from __future__ import annotations

import ctypes
import threading
from typing import Any

import numpy as np
import numpy.typing as npt

from ptxtools.native.code.structures import CELL_BYTES, EVENT, PAYLOADS, TABLE, TABLES, Address, Payload


class Cell:
    """The cell of one event of a program, for all that run it. lock: for who changes it; payload: as it was written;
    refused: native code can never do this event; tables: of the descriptors of A and B, for a product."""

    def __init__(self) -> None:
        self.memory = (ctypes.c_uint64 * (CELL_BYTES // 8))()
        self.lock = threading.Lock()
        self.payload: Payload | None = None
        self.refused = False
        self.tables: tuple[Tables, Tables] | None = None
        self._kept: list[object] = []

    @property
    def address(self) -> int:
        return ctypes.addressof(self.memory)

    def write(self, payload: Payload) -> None:
        """Set all fields behind the header, once."""
        structure = PAYLOADS[type(payload)]
        for name, value in zip(payload._fields, payload, strict=True):
            structure.write(self.memory, 0, name, value)
        self.payload = payload

    def keep(self, array: npt.NDArray[Any]) -> Address:
        """The address of an array for the payload; the array stays as long as the cell."""
        self._kept.append(array)
        return Address(array.__array_interface__["data"][0])

    def serve(self, function: int) -> None:
        """From now on native code does the work; the payload has been written."""
        EVENT.write(self.memory, 0, "serve", function)


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


def _slot_of(descriptor: int) -> tuple[int, int]:
    """As `wgmma.slot_of`, which loads with the first product: few kernels have any."""
    from ptxtools.native.tiles.wgmma import slot_of

    return slot_of(descriptor)
