"""Numbers and texts as bytes: variable-length integers, columns, the string table.

A record is a sequence of unsigned LEB128 numbers; signed ones are zigzag coded (0, -1, 1, -2 … as 0, 1, 2, 3 …). A
column is a run of little-endian integers of one width (1, 2, 4 or 8 bytes).
"""

from __future__ import annotations

import sys
from array import array
from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias

from .errors import Damage

#: A tuple argument of a directive or attribute.
Scalar: TypeAlias = "int | str"

_CODES = {1: "B", 2: "H", 4: "I", 8: "Q"}
_SIGNED = {1: "b", 2: "h", 4: "i", 8: "q"}
_LITTLE = sys.byteorder == "little"
#: No number of a module is longer: 128-bit immediates, zigzag and tag bits included.
_MAX_BITS = 140


def encode_numbers(numbers: Iterable[int]) -> bytes:
    """Unsigned numbers as LEB128."""
    out = bytearray()
    append = out.append
    for number in numbers:
        while number > 0x7F:
            append(number & 0x7F | 0x80)
            number >>= 7
        append(number)
    return bytes(out)


def decode_numbers(data: bytes) -> list[int]:
    """All numbers of a LEB128 run. Raises Damage when the last one is cut off or one is too long."""
    if data.isascii():  # no byte has its high bit set: every byte is a number
        return list(data)
    numbers: list[int] = []
    append = numbers.append
    value = shift = 0
    for byte in data:
        if byte < 0x80:
            append(value | byte << shift)
            value = shift = 0
        else:
            value |= (byte & 0x7F) << shift
            shift += 7
            if shift > _MAX_BITS:
                raise Damage("a number is too long")
    if shift:
        raise Damage("a number is cut off")
    return numbers


def zigzag(number: int) -> int:
    return number << 1 if number >= 0 else (-number << 1) - 1


def unzigzag(number: int) -> int:
    return -(number + 1 >> 1) if number & 1 else number >> 1


def width_for(numbers: Sequence[int]) -> int:
    """The narrowest width of a column that holds all of these unsigned numbers."""
    largest = max(numbers, default=0)
    return 1 if largest < 1 << 8 else 2 if largest < 1 << 16 else 4 if largest < 1 << 32 else 8


def signed_width_for(number: int) -> int:
    """The narrowest width of a signed column that holds the number: 1, 2, 4, 8; 0 when none does."""
    size = number if number >= 0 else ~number
    return 1 if size < 1 << 7 else 2 if size < 1 << 15 else 4 if size < 1 << 31 else 8 if size < 1 << 63 else 0


def pack_column(numbers: Sequence[int], width: int, signed: bool = False) -> bytes:
    column = array((_SIGNED if signed else _CODES)[width], numbers)
    if not _LITTLE:
        column.byteswap()
    return column.tobytes()


def unpack_column(data: bytes | memoryview, width: int, signed: bool = False) -> Sequence[int]:
    """The numbers of a column. Raises Damage when the length is no multiple of a valid width."""
    if width == 1 and not signed:
        return bytes(data)
    code = (_SIGNED if signed else _CODES).get(width)
    if code is None or len(data) % width:
        raise Damage("a column has an impossible width")
    column = array(code)
    column.frombytes(data)
    if not _LITTLE:
        column.byteswap()
    return column


class Strings:
    """The string table while it grows: every text once, numbered by first use."""

    def __init__(self) -> None:
        self.index: dict[str, int] = {"": 0}

    def __call__(self, text: str) -> int:
        return self.index.setdefault(text, len(self.index))

    def encode(self) -> bytes:
        """The texts in UTF-8, each ended by a NUL. Raises ValueError when a text holds a NUL."""
        if any("\0" in text for text in self.index):
            raise ValueError("a name or string contains the character NUL")
        return "".join(f"{text}\0" for text in self.index).encode("utf-8", "surrogateescape")


def decode_strings(data: bytes) -> list[str]:
    if data[-1:] != b"\0":
        raise Damage("the string table is cut off")
    return data[:-1].decode("utf-8", "surrogateescape").split("\0")


class Cursor:
    """Reads one record: a sequence of numbers, with the string table at hand."""

    __slots__ = ("next", "strings")

    def __init__(self, numbers: Iterable[int], strings: Sequence[str]) -> None:
        self.next: Callable[[], int] = iter(numbers).__next__
        self.strings = strings

    def text(self) -> str:
        return self.strings[self.next()]

    def signed(self) -> int:
        return unzigzag(self.next())

    def optional(self) -> int | None:
        """None as 0, else the zigzag coded number plus one."""
        number = self.next()
        return None if number == 0 else unzigzag(number - 1)

    def scalar(self) -> Scalar:
        number = self.next()
        return self.strings[number >> 1] if number & 1 else unzigzag(number >> 1)

    def scalars(self) -> tuple[Scalar, ...]:
        return tuple([self.scalar() for _ in range(self.next())])


class Builder:
    """Writes one record, the counterpart of `Cursor`."""

    __slots__ = ("numbers", "strings")

    def __init__(self, strings: Strings) -> None:
        self.numbers: list[int] = []
        self.strings = strings

    def add(self, *numbers: int) -> None:
        self.numbers.extend(numbers)

    def text(self, *texts: str) -> None:
        self.numbers.extend([self.strings(text) for text in texts])

    def signed(self, number: int) -> None:
        self.numbers.append(zigzag(number))

    def optional(self, number: int | None) -> None:
        self.numbers.append(0 if number is None else zigzag(number) + 1)

    def scalar(self, value: Scalar) -> None:
        self.numbers.append(self.strings(value) << 1 | 1 if isinstance(value, str) else zigzag(value) << 1)

    def scalars(self, values: Sequence[Scalar]) -> None:
        self.numbers.append(len(values))
        for value in values:
            self.scalar(value)
