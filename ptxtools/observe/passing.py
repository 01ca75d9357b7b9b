"""Which bits of a result nobody has written, from those of the sources: exact for what compilers build values with
piece by piece, and take them apart (moves, prmt, logic, shifts, bit fields, narrowing), and whole bytes or all of them
for other arithmetic.

Bits of a register are 16 bytes for each lane, the lowest first.
"""

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
#: Bytes of the widest register.
BYTES = 16
#: The number of sources whose bits the result has, at places that the other sources say; and that of those whose bits
#: decide the same bits of the result.
_MOVES = {"shl": 1, "shr": 1, "shf": 2, "bfe": 1, "bfi": 2, "prmt": 2, "brev": 1}
_LOGIC = {"and": 2, "or": 2, "xor": 2, "not": 1, "lop3": 3}
_CORNERS = {count: list(product((False, True), repeat=count)) for count in _LOGIC.values()}


def spread(mask: Array) -> Array:
    """All bits of some bytes of a register, of which a mask has one for each, by lane."""
    chosen = np.unpackbits(mask.astype("<u2").view(np.uint8).reshape(-1, 2), axis=1, bitorder="little")
    found: Array = chosen * np.uint8(0xFF)
    return found


def gathered(bits: Array) -> Array:
    """The bytes that have any of some bits, as a mask for each lane."""
    found: Array = np.packbits(bits != 0, axis=1, bitorder="little").view("<u2")[:, 0]
    return found


def unwritten_bits(at: View, touch: Touch, sources: list[Array], place: int) -> Array:
    """Of the destination at a place; sources: those of the sources."""
    opcode = at.op.opcode
    family = "" if opcode is None else opcode.family
    if touch.kind == "shfl":
        return sources[shuffles.VALUE - 1][shuffles.sources(at)]
    if touch.kind == "copy":
        return sources[0]
    if touch.kind == "pack":
        return _padded([_low(bits, type_) for bits, type_ in zip(sources, at.op.src_types[1:], strict=True)])
    if touch.kind == "unpack":
        first = sum(touch.widths[:place])
        return _padded([sources[0][:, first : first + touch.widths[place]]])
    sources = [_padded([_low(bits, type_)]) for bits, type_ in zip(sources, at.op.src_types[1:], strict=True)]
    if family in _MOVES and not any(bits.any() for bits in sources[_MOVES[family] :]):
        return _moved(at, sources, _MOVES[family])
    if family in _LOGIC:
        return _decided(at, sources, _LOGIC[family], place)
    if family == "cvt" and _narrows(at):
        return _padded([np.bitwise_or.reduce(sources)[:, : touch.widths[place]]])
    if family == "selp" and len(sources) == 3:
        chosen = np.where(at.source(3).astype(np.bool_)[:, None], sources[0], sources[1])
        return np.where((sources[2] != 0).any(1)[:, None], spread(_NO_BYTES + np.uint16(_mask(touch, place))), chosen)
    return spread(_computed_bytes(at, touch, [gathered(bits) for bits in sources], place))


def _mask(touch: Touch, place: int) -> int:
    """All bytes of the destination at a place."""
    return (1 << touch.widths[place]) - 1


def _computed_bytes(at: View, touch: Touch, masks: list[Array], place: int) -> Array:
    """The bytes of a result of arithmetic that depend on some of its sources, as masks."""
    opcode = at.op.opcode
    family = "" if opcode is None else opcode.family
    types = () if opcode is None else opcode.types
    kind, all_of_it = types[0] if types else "", np.uint16(_mask(touch, place))
    widths = [np.uint16((1 << _width(type_)) - 1) for type_ in at.op.src_types[1:]]
    found: Array
    together: Array = np.bitwise_or.reduce([*masks, _NO_BYTES])
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


def _width(type_: str) -> int:
    """Bytes of a type in a register."""
    return max(1, bits_of(type_) // 8)


def _low(bits: Array, type_: str) -> Array:
    """Those of a value of a type."""
    return bits[:, : _width(type_)]


def _padded(parts: list[Array]) -> Array:
    """Bits of a register whose parts have some."""
    found, first = np.zeros((LANES, BYTES), np.uint8), 0
    for part in parts:
        found[:, first : first + part.shape[1]] = part
        first += part.shape[1]
    return found


def _moved(at: View, sources: list[Array], count: int) -> Array:
    """The result of an operation that moves bits, on those that are not written."""
    inputs = [at.source(1 + number) for number in range(len(sources))]
    inputs[:count] = [_as_value(bits, like) for bits, like in zip(sources, inputs[:count], strict=False)]
    return _as_bits(_computed(at, inputs)[0])


def _decided(at: View, sources: list[Array], count: int, place: int) -> Array:
    """A bit of the result is written if it is the same whatever the bits are that are not."""
    inputs = [at.source(1 + number) for number in range(len(sources))]
    unknown = [_as_value(bits, like) for bits, like in zip(sources, inputs[:count], strict=False)]
    results = [_computed(at, [*_chosen(inputs, unknown, ones), *inputs[count:]])[0] for ones in _CORNERS[count]]
    always: Any = reduce(and_, results)
    ever: Any = reduce(or_, results)
    if place:  # whether any bit is set, and a predicate
        return np.where(((ever != 0) & (always == 0))[:, None], spread(_NO_BYTES + np.uint16(1)), sources[-1])
    return _as_bits(always ^ ever)


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


def _as_value(bits: Array, like: Array) -> Array:
    """Bits of a register as values of the type of others."""
    found: Array = (bits != 0).any(1)
    if like.dtype != np.bool_:
        found = np.ascontiguousarray(bits[:, : like.dtype.itemsize]).view(like.dtype)[:, 0]
    return found


def _as_bits(value: Array) -> Array:
    """Values as bits of a register."""
    if value.dtype == np.bool_:
        return spread(value.astype(np.uint16))
    return _padded([np.ascontiguousarray(value).view(np.uint8).reshape(len(value), -1)])


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
