"""Sizes and alignments of types in memory, by the data layout of NVVM IR (3.25)."""

from __future__ import annotations

from functools import reduce

from ptxtools.records import NamedTuple

from ..assembly.reader import MOST_NESTED
from ..assembly.types import Type
from .context import Context

#: Bytes of a pointer, and the largest alignment of a number.
_POINTER, _LARGEST = 8, 16


class Extent(NamedTuple):
    """Bytes with padding, and the alignment in bytes."""

    size: int
    align: int


def extent(context: Context, type: Type) -> Extent | None:
    """The size of a value of a type; None for one that is not known, or that is no value in memory."""
    return _Extents(context).of(type)


class _Extents:
    def __init__(self, context: Context) -> None:
        self._context = context
        self._known: dict[Type, Extent | None] = {}

    def of(self, type: Type, depth: int = 0) -> Extent | None:
        type = self._context.resolved(type)
        if type not in self._known:
            self._known[type] = None  # a type that has itself for a member has no size
            self._known[type] = self._found(type, depth)
        return self._known[type]

    def _found(self, type: Type, depth: int) -> Extent | None:
        if type.kind in ("int", "float"):
            bytes_ = -(-type.bits // 8)
            align = min(_LARGEST, _power_of_two(bytes_))
            return _padded(bytes_, align)
        if type.kind == "pointer":
            return Extent(_POINTER, _POINTER)
        if depth > MOST_NESTED or type.kind not in ("array", "vector", "struct"):
            return None
        if type.kind == "vector" and not type.open:
            element = type.elements[0]
            bytes_ = -(-type.count * (element.bits or 8 * _POINTER) // 8)
            return _padded(bytes_, _power_of_two(bytes_))
        members = [self.of(one, depth + 1) for one in type.elements]
        known = [one for one in members if one is not None]
        if len(known) < len(members) or type.kind == "vector":
            return None
        if type.kind == "array":
            return Extent(known[0].size * type.count, known[0].align)
        if type.open:
            return Extent(sum(one.size for one in known), 1)
        end = reduce(lambda at, one: _padded(at, one.align).size + one.size, known, 0)
        return _padded(end, max((one.align for one in known), default=1))


def _padded(size: int, align: int) -> Extent:
    return Extent(-(-size // align) * align, align)


def _power_of_two(size: int) -> int:
    """The next one that is not below."""
    return 1 << max(0, size - 1).bit_length()
