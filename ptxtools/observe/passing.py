"""Which bytes of a result nobody has written, from those of the sources: exact for what compilers build values with
piece by piece, and take them apart (moves, prmt, logic, shifts, bit fields, narrowing), and all of them for other
arithmetic."""

from __future__ import annotations

from functools import reduce
from itertools import product
from operator import and_, or_
from typing import TYPE_CHECKING, Any

import numpy as np

from ptxtools import semantics
from ptxtools.program.details import Touch
from ptxtools.program.program import LANES
from ptxtools.semantics.types import bits_of

from . import shuffles

if TYPE_CHECKING:
    from ptxtools.machine.events import View
    from ptxtools.machine.observers import Array

_NO_BYTES = np.zeros(LANES, np.uint16)
#: The number of sources whose bits the result has, at places that the other sources say; and that of those whose bits
#: decide the same bits of the result.
_MOVES = {"shl": 1, "shr": 1, "shf": 2, "bfe": 1, "bfi": 2, "prmt": 2, "brev": 1}
_LOGIC = {"and": 2, "or": 2, "xor": 2, "not": 1, "lop3": 3}
_CORNERS = {count: list(product((False, True), repeat=count)) for count in _LOGIC.values()}


def unwritten_bytes(at: View, touch: Touch, masks: list[Array], place: int) -> Array:
    """Of the destination at a place; masks: unwritten bytes of the sources, a bit each, by lane."""
    all_of_it = np.uint16((1 << touch.widths[place]) - 1)
    opcode = at.op.opcode
    family = "" if opcode is None else opcode.family
    types = () if opcode is None else opcode.types
    kind = types[0] if types else ""
    if touch.kind == "shfl":
        return masks[shuffles.VALUE - 1][shuffles.sources(at)]
    if touch.kind == "copy":
        return masks[0]
    if touch.kind == "pack":
        return _packed(at, masks)
    if touch.kind == "unpack":
        first = sum(touch.widths[:place])
        return masks[0] >> np.uint16(first) & all_of_it
    widths = [np.uint16((1 << max(1, bits_of(type_) // 8)) - 1) for type_ in at.op.src_types[1:]]
    masks = [mask & width for mask, width in zip(masks, widths, strict=True)]
    if family in _MOVES and not any(mask.any() for mask in masks[_MOVES[family] :]):
        return _moved(at, masks, _MOVES[family])
    if family == "selp" and len(masks) == 3:
        chosen = np.where(at.source(3).astype(np.bool_), masks[0], masks[1])
        return np.where(masks[2] != 0, all_of_it, chosen)
    if family in _LOGIC:
        return _decided(at, masks, _LOGIC[family], place)
    found: Array
    together: Array = np.bitwise_or.reduce([*masks, _NO_BYTES])
    if family == "cvt" and _narrows(at):
        found = together & all_of_it
        return found
    packed = touch.widths[place] == 4 and kind.endswith("x2")
    if packed and family == "cvt" and len(masks) == 2 and touch.widths[place] == bits_of(kind) // 8:
        found = (masks[1] != 0) * np.uint16(3) | (masks[0] != 0) * np.uint16(12)  # the first source is the upper half
        return found
    if packed and all(width == 15 for width in widths):
        found = (together & 3 != 0) * np.uint16(3) | (together & 12 != 0) * np.uint16(12)
        return found
    low = opcode is not None and family in ("mul", "mad") and opcode.has("lo")
    if (low or family in ("add", "sub", "addc", "subc")) and kind[:1] in ("u", "s", "b"):
        lowest = together & (~together + np.uint16(1))  # carries go up
        found = np.where(together != 0, all_of_it & ~(lowest - np.uint16(1)), np.uint16(0))
        return found
    found = np.where(together != 0, all_of_it, np.uint16(0))
    return found


def computes(at: View, touch: Touch) -> bool:
    """Whether a result is no copy of its sources, or of parts of them that are put together."""
    family = "" if at.op.opcode is None else at.op.opcode.family
    moves = family in _MOVES or family in _LOGIC or family == "selp" or (family == "cvt" and _narrows(at))
    return touch.kind == "alu" and not moves


def _packed(at: View, masks: list[Array]) -> Array:
    found, first = np.zeros(LANES, np.uint16), 0
    for mask, type_ in zip(masks, at.op.src_types[1:], strict=True):
        width = max(1, bits_of(type_) // 8)
        found |= (mask & np.uint16((1 << width) - 1)) << np.uint16(first)
        first += width
    return found


def _moved(at: View, masks: list[Array], count: int) -> Array:
    """The result of an operation that moves bits, on those that are not written."""
    inputs = [at.source(1 + number) for number in range(len(masks))]
    inputs[:count] = [_bits(mask, like) for mask, like in zip(masks, inputs[:count], strict=False)]
    return _bytes_of(_computed(at, inputs)[0])


def _decided(at: View, masks: list[Array], count: int, place: int) -> Array:
    """A bit of the result is written if it is the same whatever the bits are that are not."""
    inputs = [at.source(1 + number) for number in range(len(masks))]
    unknown = [_bits(mask, like) for mask, like in zip(masks, inputs[:count], strict=False)]
    results = [_computed(at, [*_chosen(inputs, unknown, ones), *inputs[count:]])[0] for ones in _CORNERS[count]]
    always: Any = reduce(and_, results)
    ever: Any = reduce(or_, results)
    if place:  # whether any bit is set, and a predicate
        found: Array = np.where((ever != 0) & (always == 0), np.uint16(1), masks[-1])
        return found
    return _bytes_of(always ^ ever)


def _chosen(inputs: list[Any], unknown: list[Any], ones: tuple[bool, ...]) -> list[Any]:
    """Values with ones or zeros for all that is unknown of each."""
    found = zip(inputs, unknown, ones, strict=False)
    return [value | some if one else value & ~some for value, some, one in found]


def _computed(at: View, inputs: list[Any]) -> tuple[Any, ...]:
    """The results of an operation on registers."""
    assert at.op.opcode is not None
    meaning = semantics.find(at.op.opcode)
    assert meaning is not None
    return meaning(at.algebra, at.op.opcode, *inputs)


def _bits(mask: Array, like: Array) -> Array:
    """All bits of some bytes, as values of the type of others."""
    bits: Array = mask != 0
    if like.dtype == np.bool_:
        return bits
    places = np.arange(8 * like.dtype.itemsize, dtype=np.uint64)
    chosen = (mask[:, None] >> (places // np.uint64(8)).astype(np.uint16) & np.uint16(1)).astype(np.uint64)
    bits = (chosen << places).sum(axis=1, dtype=np.uint64).astype(f"u{like.dtype.itemsize}").view(like.dtype)
    return bits


def _bytes_of(bits: Array) -> Array:
    """The bytes that have any of some bits."""
    if bits.dtype == np.bool_:
        return bits.astype(np.uint16)
    pieces = np.ascontiguousarray(bits).view(np.uint8).reshape(len(bits), -1) != 0
    found: Array = (pieces << np.arange(pieces.shape[1])).sum(axis=1).astype(np.uint16)
    return found


def _narrows(at: View) -> bool:
    """Whether a conversion keeps low bytes as they are, or puts zeros above them."""
    opcode = at.op.opcode
    types = () if opcode is None else opcode.types
    return (
        len(types) == 2
        and all(type_[0] in "usb" for type_ in types)
        and (bits_of(types[0]) <= bits_of(types[1]) or types[1][0] == "u")
        and not (opcode is not None and opcode.has("sat"))
    )
