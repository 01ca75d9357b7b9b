"""Vectors of a thread with two elements of each four, and back: spcompress, spdecompress (9.7.10.30, 9.7.10.31 of PTX
9.4); the choice of elements, which tcgen05.ld with .spcompress shares.

The manual shows the order in a figure: of a group, elements are kept in their order, and what is first stands in the
lowest bits, of indices as of elements. Of equal elements the first ones are kept; it leaves that to the chip.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from ptxtools.machine.events import View, serves
from ptxtools.records import NamedTuple

from .tensor.operands import number, registers, set_registers

Array: TypeAlias = npt.NDArray[Any]

_GROUP, _KEPT = 4, 2
_WORD = 32


class ElementType(NamedTuple):
    """bits: of the value, sign included; infinity: bits of the largest magnitude that is a number, None where all are;
    kind: "u", "s" or "f"."""

    kind: str
    bits: int
    infinity: int | None = None


_F32 = ElementType("f", 32, 0x7F80_0000)
#: By the size of an element and bits 2 to 4 of the descriptor (table 38).
_TYPES = {
    (16, 0): ElementType("f", 16, 0x7C00),
    (16, 1): ElementType("f", 16, 0x7F80),
    (8, 0): ElementType("u", 8),
    (8, 1): ElementType("s", 8),
    (8, 2): ElementType("f", 8, 0x7C),  # e5m2
    (8, 3): ElementType("f", 8, 0x7E),  # e4m3
    (8, 4): ElementType("f", 6),  # e3m2
    (8, 5): ElementType("f", 6),  # e2m3
}


def split(words: Array, bits: int) -> Array:
    """Elements of 32-bit words, the lowest bits first: words x … to elements x …, i64."""
    shifts = np.arange(0, _WORD, bits).reshape(1, -1, *[1] * (words.ndim - 1))
    elements: Array = words.astype(np.int64)[:, None] >> shifts & (1 << bits) - 1
    return elements.reshape(-1, *words.shape[1:])


def join(elements: Array, bits: int) -> Array:
    """Words of elements, zeros behind the last: the inverse of `split`, u32."""
    each = _WORD // bits
    count = -(-len(elements) // each)
    padded = np.zeros((count * each, *elements.shape[1:]), np.int64)
    padded[: len(elements)] = elements
    parts = padded.reshape(count, each, *elements.shape[1:])
    shifts = np.arange(0, _WORD, bits).reshape(1, -1, *[1] * (elements.ndim - 1))
    words: Array = (parts << shifts).sum(axis=1).astype(np.uint32)
    return words


def chosen(elements: Array, type_: ElementType, *, least: bool, magnitude: bool) -> Array:
    """Indices of the elements that are kept: elements x … to groups x 2 x …, in ascending order. NaNs come first."""
    keys, nan = _keys(elements, type_, magnitude)
    keys = np.where(nan, np.int64(1) << 40, -keys if least else keys)
    keys = keys.reshape(-1, _GROUP, *elements.shape[1:])
    first, second = keys[:, None], keys[:, :, None]  # of each pair: what may be kept before, and what is judged
    index = np.arange(_GROUP)
    earlier = (index[None, :] < index[:, None]).reshape(1, _GROUP, _GROUP, *[1] * (keys.ndim - 2))
    better = ((first > second) | (first == second) & earlier).sum(axis=2)
    return np.argsort(better >= _KEPT, axis=1, kind="stable")[:, :_KEPT]


def _keys(elements: Array, type_: ElementType, magnitude: bool) -> tuple[Array, Array]:
    """Numbers in the order of the values, with -0 before +0; which of them are NaN."""
    sign = np.int64(1) << type_.bits - 1
    low, negative = elements & sign - 1, (elements & sign) != 0
    nan = np.zeros(elements.shape, np.bool_)
    if type_.kind == "u":
        return elements, nan
    if type_.kind == "s":
        values = np.where(negative, low - sign, low)
        return np.abs(values) if magnitude else values, nan
    if type_.infinity is not None:
        nan = low > type_.infinity
    return (low if magnitude else np.where(negative, -low - 1, low)), nan


def compressed(elements: Array, places: Array) -> tuple[Array, Array]:
    """The elements that are kept, and their indices: kept elements x …."""
    groups = elements.reshape(-1, _GROUP, *elements.shape[1:])
    kept = np.take_along_axis(groups, places, axis=1)
    return kept.reshape(-1, *elements.shape[1:]), places.reshape(-1, *elements.shape[1:])


@serves("spcompress")
def compress(view: View) -> None:
    """Of each four elements two, and which they are. Every thread has a descriptor of its own."""
    op = view.op.opcode
    assert op is not None
    bits, index = int(op.mods["elemsize"][1:]), int(op.mods["idxsize"][1:])
    elements = split(registers(view, "data"), bits)
    places = np.zeros((len(elements) // _GROUP, _KEPT, elements.shape[1]), np.int64)
    descriptors = {lane: number(view, "spdesc", lane) for lane in view.lanes()}
    for descriptor in dict.fromkeys(descriptors.values()):
        lanes = [lane for lane, value in descriptors.items() if value == descriptor]
        type_ = _TYPES.get((bits, descriptor >> 2 & 7))
        if type_ is None or descriptor >> 5:
            raise view.trap(f"sparsity descriptor {descriptor:#x} does not fit elements of {bits} bits", lanes[0])
        least, magnitude = bool(descriptor & 2), bool(descriptor & 1)
        places[:, :, lanes] = chosen(elements[:, lanes], type_, least=least, magnitude=magnitude)
    kept, indices = compressed(elements, places)
    set_registers(view, "mdata", join(indices, index))
    set_registers(view, "cdata", join(kept, bits))


@serves("spdecompress")
def decompress(view: View) -> None:
    """Each element to its place in a group of zeros. An index beyond the group traps: what it does is the chip's."""
    op = view.op.opcode
    assert op is not None
    bits, index, repeat = (int(op.mods[name][1:]) for name in ("elemsize", "idxsize", "num"))
    kept, group = (int(part) for part in op.mods["spfactor"].removeprefix("sp::").split(":"))
    elements = split(registers(view, "cdata"), bits)[: kept * repeat].reshape(repeat, kept, -1)
    places = split(registers(view, "mdata"), index)[: kept * repeat].reshape(repeat, kept, -1)
    for lane in view.lanes():
        if places[:, :, lane].max() >= group:
            raise view.trap(f"spdecompress: an index is {places[:, :, lane].max()} in a group of {group}", lane)
    dense = np.zeros((repeat, group, elements.shape[2]), np.int64)
    for position in range(kept):  # of equal indices the last element stays
        np.put_along_axis(dense, places[:, position : position + 1] % group, elements[:, position : position + 1], 1)
    set_registers(view, "data", join(dense.reshape(repeat * group, -1), bits))


def compress_floats(words: Array, *, least: bool, magnitude: bool) -> tuple[Array, Array]:
    """tcgen05.ld with .spcompress: f32 in registers x 32 to the words of indices of 2 bits and those that are kept."""
    elements = words.astype(np.int64)
    kept, indices = compressed(elements, chosen(elements, _F32, least=least, magnitude=magnitude))
    return join(indices, 2), kept.astype(np.uint32)
