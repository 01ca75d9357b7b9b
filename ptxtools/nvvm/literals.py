"""Numbers as LLVM 23 writes them, and compilers built on it, in the notation that older LLVMs read.

It writes bits as `f0x3F800000`, infinities as `-inf` and quiet NaNs as `+qnan`, and decimals that are rounded to their
type (`float 1.002960e+00`), where older ones demand decimals that are exact.
"""

from __future__ import annotations

import re
import struct

#: A string or a comment, the bits of a number, a decimal, or a word for a number.
_NUMBER = re.compile(
    r'"[^"\n]*"|;[^\n]*|\bf0x([0-9A-Fa-f]{4}|[0-9A-Fa-f]{8}|[0-9A-Fa-f]{16})\b|(?<![\w.$%@-])(-?\d+\.\d+(?:e[-+]\d+)?)\b'
    r"|(?<=[ (])([-+](?:inf|qnan))\b(?![.$-])"
)
#: The bits of the words: as the double that is equal, as a half and as a bfloat.
_WORDS = {"inf": (0x7FF << 52, 0x7C00, 0x7F80), "qnan": (0xFFF << 51, 0x7E00, 0x7FC0)}
#: The last type before a number on its line is the number's.
_TYPE = re.compile(r"(?<![\w.$%@-])(half|bfloat|float|double)\b")
_MAYBE = re.compile(r"\bf0x|\d\.\d*[1-9]\d*(?:e|\b)|[ (][-+](?:inf|qnan)\b")


def with_old_numbers(text: str) -> str:
    """The text with numbers that LLVM 22 and older read; the text itself if all are so."""
    if not _MAYBE.search(text):
        return text
    changed = _NUMBER.sub(_old, text)
    return text if changed == text else changed


def _old(found: re.Match[str]) -> str:
    bits, decimal, word = found.groups()
    if bits is None and decimal is None and word is None:
        return found[0]
    if bits is not None and len(bits) == 16:
        return f"0x{bits}"
    if bits is not None and len(bits) == 8:
        return _written(struct.unpack(">f", bytes.fromhex(bits))[0])
    line = found.string[found.string.rfind("\n", 0, found.start()) + 1 : found.start()]
    type = (_TYPE.findall(line) or ["half"])[-1]
    if word is not None:
        wide, half, bfloat = _WORDS[word[1:]]
        negative = word[0] == "-"
        if type in ("half", "bfloat"):
            return f"0x{'H' if type == 'half' else 'R'}{(half if type == 'half' else bfloat) | negative << 15:04X}"
        return f"0x{wide | negative << 63:016X}"
    if bits is not None:
        return f"0x{'R' if type == 'bfloat' else 'H'}{bits}"
    return _rounded(decimal, type)


def _rounded(decimal: str, type: str) -> str:
    """A decimal as the bits of its type, unless it is exact."""
    value = float(decimal)
    try:
        if type == "half":
            half = struct.pack(">e", value)
            return decimal if struct.unpack(">e", half)[0] == value else f"0xH{half.hex().upper()}"
        if type == "double":
            return decimal
        single = struct.pack(">f", value)
    except OverflowError:
        return decimal
    if type == "float":
        return decimal if struct.unpack(">f", single)[0] == value else _written(struct.unpack(">f", single)[0])
    bits = int.from_bytes(single, "big")
    if not bits & 0xFFFF and struct.unpack(">f", single)[0] == value:
        return decimal
    return f"0xR{bits + 0x7FFF + (bits >> 16 & 1) >> 16 & 0xFFFF:04X}"


def _written(value: float) -> str:
    """A float, as older LLVMs have it: the bits of the double that is equal to it."""
    return "0x" + struct.pack(">d", value).hex().upper()
