"""Widths and kinds of PTX types for the semantics (5.2)."""

from __future__ import annotations

import re
from functools import cache

_SCALAR_BITS = {"pred": 1, "tf32": 32, "bf16": 16}
_NARROW_BITS = {"s2f6": 8, "ue5m3": 8, "e4m3": 8, "e5m2": 8, "ue8m0": 8, "ue4m3": 8, "e2m3": 8, "e3m2": 8, "e2m1": 4}


@cache
def bits_of(type_: str) -> int:
    """Width in bits of a PTX type, packed ones as a whole: bits_of("f16x2") is 32, bits_of("pred") is 1."""
    if type_ in _SCALAR_BITS:
        return _SCALAR_BITS[type_]
    element, _, count = type_.partition("x")
    if element in _NARROW_BITS:
        return _NARROW_BITS[element] * int(count or 1)
    if element in _SCALAR_BITS:
        return _SCALAR_BITS[element] * int(count or 1)
    match = re.fullmatch(r"[usbf](\d+)", element)
    if match is None:
        raise ValueError(f"no width known for type .{type_}")
    return int(match[1]) * int(count or 1)


@cache
def word_bits(type_: str) -> int:
    """Width of the integer that holds a value of this type in both algebras: 1, 16, 32, 64 or 128."""
    bits = bits_of(type_)
    return bits if bits == 1 else max(16, bits)


def is_signed(type_: str) -> bool:
    """True of .s8 to .s64 and of packed signed integers."""
    return type_[0] == "s"


def is_integer(type_: str) -> bool:
    """True of .u*, .s* and .b* of a single element."""
    return type_[0] in "usb" and type_[1:].isdigit()


def unsigned(width: int) -> str:
    """The unsigned type of this many bits."""
    return f"u{width}"


def with_sign(type_: str, width: int) -> str:
    """The integer type of another width and the same signedness: with_sign("s16", 32) is "s32"."""
    return f"{'s' if is_signed(type_) else 'u'}{width}"


def element_of(type_: str) -> tuple[str, int]:
    """Element type and count of a packed type: ("f16", 2) for f16x2, (type, 1) for a scalar."""
    element, _, count = type_.partition("x")
    return (element, int(count)) if count else (type_, 1)
