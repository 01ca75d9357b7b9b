"""Structures of the native code that Python fills again and again."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Mapping, Sequence
from functools import lru_cache
from operator import itemgetter
from typing import Any

from .layouts import PACKED, Structure, size_of


@lru_cache(256)
def array_of(element: type[ctypes.c_char] | type[ctypes.c_uint64], count: int) -> type[ctypes.Array[Any]]:
    """An array type. ctypes forgets those that nobody keeps, and takes longer to make one than most uses of it."""
    return element * count


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
        self._fixed = tuple(fixed.values())
        given = [*fixed, *others]
        self._in_order = itemgetter(*(given.index(name) for name in order))

    def fill(self, memory: Any, at: int, values: Sequence[int]) -> None:
        """Fill it at an offset of some memory (a buffer). values: of the others, in their order."""
        self._form.pack_into(memory, at, *self._in_order((*self._fixed, *values)))
