"""Registers of tcgen05.ld and tcgen05.st: their cells in tensor memory, and what .red makes of them (9.7.16.8)."""

from __future__ import annotations

from collections.abc import Sequence

#: Registers of a thread for each repetition of a shape (9.7.16.2.3).
REGISTERS = {"32x32b": 1, "16x64b": 1, "16x128b": 2, "16x256b": 4, "16x32bx2": 1}
#: Lanes of a shape; the address names the first one.
LANES = {"32x32b": 32, "16x64b": 16, "16x128b": 16, "16x256b": 16, "16x32bx2": 16}
_WORD, _SIGN, _LARGEST, _NAN, _INFINITY = 0xFFFFFFFF, 1 << 31, 0x7FFFFFFF, 0x7FFFFFFF, 0x7F800000


def cells(shape: str, lane: int, count: int) -> list[tuple[int, int]]:
    """Lane and column, relative to the address, of each register of a thread (9.7.16.2.3). Threads 16 to 31 of
    16x32bx2 count from a second address."""
    row, pair = lane // 4, lane % 4
    if shape == "32x32b":
        return [(lane, at) for at in range(count)]
    if shape == "16x32bx2":
        return [(lane % 16, at) for at in range(count)]
    if shape == "16x64b":
        return [(row + 8 * (lane % 2), pair // 2 + 2 * at) for at in range(count)]
    if shape == "16x128b":
        return [(row + 8 * (at % 2), pair + 4 * (at // 2)) for at in range(count)]
    return [(row + 8 * (at // 2 % 2), 2 * pair + at % 2 + 8 * (at // 4)) for at in range(count)]


def reduced(rule: str, values: Sequence[int]) -> int:
    """The least or greatest of some words, by `min` or `max`, `abs`, `NaN` and a type (9.7.16.8.3)."""
    words = rule.split(".")
    choose, type_ = min if words[0] == "min" else max, words[-1]
    values = [value & _WORD for value in values]
    if type_ == "u32":
        return choose(values)
    if type_ == "s32":
        return choose((value ^ _SIGN) for value in values) ^ _SIGN
    if "abs" in words:
        values = [value & _LARGEST for value in values]
    numbers = [value for value in values if value & _LARGEST <= _INFINITY]
    if not numbers or ("NaN" in words and len(numbers) < len(values)):
        return _NAN
    return choose(numbers, key=lambda value: _WORD - value if value & _SIGN else value | _SIGN)
