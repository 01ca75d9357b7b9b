"""Which bytes of a result nobody has written, from those of the sources: exact for what compilers build values with
piece by piece (moves, prmt, logic, shifts by whole bytes, narrowing), and all of them for arithmetic."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ptxtools.program.details import Touch
from ptxtools.program.program import LANES
from ptxtools.semantics.types import bits_of

from . import shuffles

if TYPE_CHECKING:
    from ptxtools.machine.events import View
    from ptxtools.machine.observers import Array

_LANES = np.arange(LANES)
_NO_BYTES = np.zeros(LANES, np.uint16)


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
    if family == "prmt" and len(masks) == 3 and not masks[2].any():
        return _permuted(at, masks)
    if family == "selp" and len(masks) == 3:
        chosen = np.where(at.source(3).astype(np.bool_), masks[0], masks[1])
        return np.where(masks[2] != 0, all_of_it, chosen)
    if family in ("and", "or") and len(masks) == 2:
        return _joined(at, family, masks)
    if family in ("shl", "shr") and len(masks) == 2 and not masks[1].any():
        return _shifted(at, family, masks[0], all_of_it)
    found: Array
    together: Array = np.bitwise_or.reduce([*masks, _NO_BYTES])
    if family in ("xor", "not", "lop3") or (family == "cvt" and _narrows(at)):
        found = together & all_of_it
        return found
    packed = touch.widths[place] == 4 and kind.endswith("x2")
    if packed and family == "cvt" and len(masks) == 2 and touch.widths[place] == bits_of(kind) // 8:
        found = (masks[1] != 0) * np.uint16(3) | (masks[0] != 0) * np.uint16(12)  # the first source is the upper half
        return found
    if packed and all(width == 15 for width in widths):
        found = (together & 3 != 0) * np.uint16(3) | (together & 12 != 0) * np.uint16(12)
        return found
    if family in ("add", "sub", "addc", "subc") and kind[:1] in ("u", "s", "b"):
        lowest = together & (~together + np.uint16(1))  # carries go up
        found = np.where(together != 0, all_of_it & ~(lowest - np.uint16(1)), np.uint16(0))
        return found
    found = np.where(together != 0, all_of_it, np.uint16(0))
    return found


def _packed(at: View, masks: list[Array]) -> Array:
    found, first = np.zeros(LANES, np.uint16), 0
    for mask, type_ in zip(masks, at.op.src_types[1:], strict=True):
        width = max(1, bits_of(type_) // 8)
        found |= (mask & np.uint16((1 << width) - 1)) << np.uint16(first)
        first += width
    return found


def _permuted(at: View, masks: list[Array]) -> Array:
    """prmt (9.7.9.7): four bits of the selector for each byte of the result. Its modes count as using all bytes."""
    opcode = at.op.opcode
    assert opcode is not None
    both = masks[0] & np.uint16(15) | masks[1] << np.uint16(4)
    if any(opcode.has(mode) for mode in ("f4e", "b4e", "rc8", "ecl", "ecr", "rc16")):
        return np.where(both != 0, np.uint16(15), np.uint16(0))
    selector, found = at.source(3).astype(np.uint32), np.zeros(LANES, np.uint16)
    for byte in range(4):
        chosen = (selector >> np.uint32(4 * byte) & np.uint32(7)).astype(np.uint16)
        found |= (both >> chosen & np.uint16(1)) << np.uint16(byte)
    return found


def _joined(at: View, family: str, masks: list[Array]) -> Array:
    """A byte is written where a written byte of one side decides it: zeros in and, ones in or."""
    opcode = at.op.opcode
    predicates = opcode is not None and opcode.has("pred")
    found = masks[0] | masks[1]
    for number, mask in enumerate(masks):
        value = at.source(1 + number)
        if isinstance(value, tuple):
            continue
        bits = value.astype(np.uint64)
        for byte in range(1 if predicates else 8):
            part = bits >> np.uint64(8 * byte) & np.uint64(1 if predicates else 255)
            decided = part == (0 if family == "and" else 1 if predicates else 255)
            bit = np.uint16(1 << byte)
            found = np.where(decided & (mask & bit == 0), found & ~bit, found)
    return found


def _shifted(at: View, family: str, mask: Array, all_of_it: np.uint16) -> Array:
    """Shifts by whole bytes move them; all others spoil the bytes beside the unwritten ones."""
    amount = np.minimum(at.source(2).astype(np.uint64), np.uint64(64)).astype(np.uint32)
    whole, rest = (amount // 8).astype(np.uint16), amount % 8 != 0
    wide = mask.astype(np.uint32)
    moved = wide << whole if family == "shl" else wide >> whole
    beside = moved << 1 if family == "shl" else moved >> 1
    spread = np.where(rest, moved | beside, moved)
    opcode = at.op.opcode
    signed = opcode is not None and opcode.types[0].startswith("s")
    found: Array = (spread & all_of_it).astype(np.uint16)
    if family == "shr" and signed:
        return np.where(mask != 0, all_of_it, np.uint16(0))
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
