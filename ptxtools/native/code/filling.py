"""Structures of the native code that Python fills again and again."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from typing import Any

from .layouts import PACKED, Structure, size_of


class Filling:
    """Fills a structure again and again: some fields with values that are the same each time, some with others, the
    rest with zeros. Numbers are signed, addresses are not."""

    def __init__(self, structure: Structure, fixed: Mapping[str, int], others: Sequence[str]) -> None:
        order = sorted((*fixed, *others), key=structure.offset)
        text, at = "<", 0
        for name in order:
            offset, type_ = structure.fields[name]
            text += f"{offset - at}x{PACKED[type_]}"
            at = offset + size_of(type_)
        self._form = struct.Struct(f"{text}{structure.size - at}x")
        self._row = [fixed.get(name, 0) for name in order]
        self._places = [order.index(name) for name in others]

    def fill(self, memory: Any, at: int, values: Sequence[int]) -> None:
        """Fill it at an offset of some memory (a buffer). values: of the others, in their order."""
        row = self._row.copy()
        for place, value in zip(self._places, values, strict=True):
            row[place] = value
        self._form.pack_into(memory, at, *row)
