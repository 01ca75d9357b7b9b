"""Floating-point numbers as bits: what reductions in memory compute (9.7.9.14, 9.7.9.25.4.2, 9.7.13.5)."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Sequence

#: Name of a type -> its bits, and how `struct` has it; bf16 is the upper half of an f32.
_FORMATS = {"f16": (16, "<e"), "bf16": (16, ""), "f32": (32, "<f"), "f64": (64, "<d")}
#: Types of 8 bits: bits of the mantissa, the bias, and the greatest finite number; e4m3 has no infinity (5.2.3).
_NARROW = {"e4m3": (3, 7, 448.0), "e5m2": (2, 15, 57344.0)}
_PACKED = {f"{name}x{count}": (name, count)
           for name, counts in (("f16", (2,)), ("bf16", (2,)), ("e4m3", (1, 2, 4)), ("e5m2", (1, 2, 4)))
           for count in counts}  # fmt: skip
NAMES = (*_FORMATS, *_PACKED)
FUNCTIONS: dict[str, Callable[[float, float], float]] = {
    "add": lambda a, b: a + b,
    "min": lambda a, b: b if math.isnan(a) else a if math.isnan(b) else min(a, b),
    "max": lambda a, b: b if math.isnan(a) else a if math.isnan(b) else max(a, b),
}


def bits_of(name: str) -> int:
    """The size of a type, all parts of a packed one."""
    if name not in _PACKED:
        return 8 if name in _NARROW else _FORMATS[name][0]
    part, count = _PACKED[name]
    return count * bits_of(part)


def combined(function: str, name: str, numbers: Sequence[int], wide: str = "") -> int:
    """The bits of a reduction of such numbers, in turn, each part of a packed type by itself. wide: the type to which
    each step is rounded, if not their own."""
    if name in _PACKED:
        part, count = _PACKED[name]
        bits = bits_of(part)
        parts = [[number >> at * bits & (1 << bits) - 1 for number in numbers] for at in range(count)]
        return sum(combined(function, part, each, wide) << at * bits for at, each in enumerate(parts))
    between = wide or name
    values = [_value(name, number) for number in numbers]
    found = values[0]
    for value in values[1:]:
        found = _value(between, _bits(between, FUNCTIONS[function](found, value)))
    return _bits(name, found)


def _narrow(name: str, number: int) -> float:
    mantissa, bias, most = _NARROW[name]
    exponent, fraction = number >> mantissa & (1 << 7 - mantissa) - 1, number & (1 << mantissa) - 1
    found = math.ldexp(fraction + (bool(exponent) << mantissa), max(exponent, 1) - bias - mantissa)
    if found > most:
        found = math.nan if name == "e4m3" or fraction else math.inf
    return math.copysign(found, -1.0 if number & 0x80 else 1.0)


def _narrow_bits(name: str, value: float) -> int:
    """What is too large is NaN in e4m3, infinity in e5m2."""
    mantissa, bias, most = _NARROW[name]
    sign = 0x80 if math.copysign(1.0, value) < 0 else 0
    largest = 0x7F if name == "e4m3" else 0x7C
    if math.isnan(value):
        return sign | (0x7F if name == "e4m3" else 0x7E)
    if value == 0 or math.isinf(value):
        return sign | (largest if value else 0)
    exponent = max(math.frexp(abs(value))[1] - 1, 1 - bias)
    steps = round(math.ldexp(abs(value), mantissa - exponent))  # to nearest even, as Python rounds
    if math.ldexp(steps, exponent - mantissa) > most:
        return sign | largest
    return sign | (exponent + bias - 1 << mantissa) + steps


def _value(name: str, number: int) -> float:
    if name in _NARROW:
        return _narrow(name, number)
    bits, how = _FORMATS[name]
    number &= (1 << bits) - 1
    if name == "bf16":
        number, bits, how = number << 16, 32, "<f"
    value: float = struct.unpack(how, number.to_bytes(bits // 8, "little"))[0]
    return value


def _bits(name: str, value: float) -> int:
    """Rounded to nearest even."""
    if name in _NARROW:
        return _narrow_bits(name, value)
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
