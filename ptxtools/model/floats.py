"""Floating-point numbers as bits: what reductions in memory compute (9.7.9.14, 9.7.9.25.4.2, 9.7.13.5)."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable

#: Name of a type -> its bits, and how `struct` has it; bf16 is the upper half of an f32.
_FORMATS = {"f16": (16, "<e"), "bf16": (16, ""), "f32": (32, "<f"), "f64": (64, "<d")}
_PACKED = {f"{name}x2": name for name in ("f16", "bf16")}
NAMES = (*_FORMATS, *_PACKED)
FUNCTIONS: dict[str, Callable[[float, float], float]] = {
    "add": lambda a, b: a + b,
    "min": lambda a, b: b if math.isnan(a) else a if math.isnan(b) else min(a, b),
    "max": lambda a, b: b if math.isnan(a) else a if math.isnan(b) else max(a, b),
}


def bits_of(name: str) -> int:
    """The size of a type, all parts of a packed one."""
    return 2 * _FORMATS[_PACKED[name]][0] if name in _PACKED else _FORMATS[name][0]


def combined(function: str, name: str, numbers: list[int]) -> int:
    """The bits of a reduction of such numbers, in turn: each part of a packed type by itself."""
    if name in _PACKED:
        part = _PACKED[name]
        halves = [combined(function, part, [number >> at & 0xFFFF for number in numbers]) for at in (0, 16)]
        return halves[0] | halves[1] << 16
    values = [_value(name, number) for number in numbers]
    found = values[0]
    for value in values[1:]:
        found = FUNCTIONS[function](found, value)
    return _bits(name, found)


def _value(name: str, number: int) -> float:
    bits, how = _FORMATS[name]
    number &= (1 << bits) - 1
    if name == "bf16":
        number, bits, how = number << 16, 32, "<f"
    value: float = struct.unpack(how, number.to_bytes(bits // 8, "little"))[0]
    return value


def _bits(name: str, value: float) -> int:
    """Rounded to nearest even."""
    how = _FORMATS[name][1]
    if name == "bf16":
        whole = _bits("f32", value)
        if math.isnan(value):
            return whole >> 16 | 0x40
        return (whole + 0x7FFF + (whole >> 16 & 1)) >> 16
    try:
        return int.from_bytes(struct.pack(how, value), "little")
    except OverflowError:
        return int.from_bytes(struct.pack(how, math.copysign(math.inf, value)), "little")
