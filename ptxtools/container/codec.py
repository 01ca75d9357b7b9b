"""Numbers and texts as bytes: variable-length integers, columns, the string table.

A record is a sequence of unsigned LEB128 numbers; signed ones are zigzag coded (0, -1, 1, -2 … as 0, 1, 2, 3 …). A
column is a run of little-endian integers of one width (1, 2, 4 or 8 bytes).
"""

from __future__ import annotations

import re
import struct
import sys
from array import array
from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from typing import TypeAlias

from .errors import Damage

#: A tuple argument of a directive or attribute.
Scalar: TypeAlias = "int | str"

_CODES = {1: "B", 2: "H", 4: "I", 8: "Q"}
_SIGNED = {1: "b", 2: "h", 4: "i", 8: "q"}
_LITTLE = sys.byteorder == "little"
#: The longest number of a module: a 128-bit immediate, with zigzag and tag bits.
_MAX_BITS = 140
#: Different texts of one module, and characters that they share with previous ones: limits on the memory that a small
#: file can claim.
MAX_STRINGS, MAX_SHARED = 1 << 22, 1 << 28
#: The most characters that a text may share with the previous one.
_MOST_SHARED = 255


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
    """All numbers of a LEB128 run. Raises Damage if the last one is truncated or one is too long."""
    if data.isascii():  # no byte has its high bit set: every byte is a number
        return list(data)
    numbers: list[int] = []
    append = numbers.append
    value = shift = 0
    for byte in data:
        if byte < 0x80:
            if shift:
                append(value | byte << shift)
                value = shift = 0
            else:
                append(byte)
        else:
            value |= (byte & 0x7F) << shift
            shift += 7
            if shift > _MAX_BITS:
                raise Damage("a number is too long")
    if shift:
        raise Damage("a number is truncated")
    return numbers


def leading_numbers(data: memoryview, count: int) -> tuple[list[int], int]:
    """The first `count` numbers of a LEB128 run, and their size in bytes. Raises Damage."""
    end = 0
    for _ in range(count):
        while end < len(data) and data[end] > 0x7F:
            end += 1
        end += 1
    if end > len(data):
        raise Damage("a number is truncated")
    return decode_numbers(bytes(data[:end])), end


def zigzag(number: int) -> int:
    return number << 1 if number >= 0 else (-number << 1) - 1


def unzigzag(number: int) -> int:
    return -(number + 1 >> 1) if number & 1 else number >> 1


def width_for(numbers: Sequence[int]) -> int:
    """The narrowest column width for all of these unsigned numbers."""
    largest = max(numbers, default=0)
    return 1 if largest < 1 << 8 else 2 if largest < 1 << 16 else 4 if largest < 1 << 32 else 8


def signed_width_for(number: int) -> int:
    """The narrowest signed column width for the number: 1, 2, 4, 8; 0 if none suffices."""
    size = number if number >= 0 else ~number
    return 1 if size < 1 << 7 else 2 if size < 1 << 15 else 4 if size < 1 << 31 else 8 if size < 1 << 63 else 0


def pack_column(numbers: Sequence[int], width: int, signed: bool = False) -> bytes:
    column = array((_SIGNED if signed else _CODES)[width], numbers)
    if not _LITTLE:
        column.byteswap()
    return column.tobytes()


def unpack_column(data: bytes | memoryview, width: int, signed: bool = False) -> Sequence[int]:
    """The numbers of a column. Raises Damage if the length is not a multiple of a valid width."""
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
    """The string table under construction: every text once, numbered by first use."""

    def __init__(self) -> None:
        self.index: dict[str, int] = {"": 0}

    def __call__(self, text: str) -> int:
        return self.index.setdefault(text, len(self.index))

    def encode(self) -> bytes:
        """The table: each text as the prefix shared with the previous one, and the rest, terminated by NUL.

        Similar names follow each other (`%r1`, `%r2` …), so little is stored twice. Raises ValueError if a text
        contains a NUL, or there are too many.
        """
        if len(self.index) > MAX_STRINGS:
            raise ValueError(f"the module has more than {MAX_STRINGS:,} different names and texts")
        if any("\0" in text for text in self.index):
            raise ValueError("a name or string contains the character NUL")
        shared, rests, before = bytearray(), [], ""
        for text in self.index:
            count = _common(before, text)
            shared.append(count)
            rests.append(text[count:] + "\0")
            before = text
        return struct.pack("<I", len(shared)) + shared + "".join(rests).encode("utf-8", "surrogateescape")


def _common(first: str, second: str) -> int:
    """The length of the common prefix, up to the limit of a column."""
    most = min(len(first), len(second), _MOST_SHARED)
    for at in range(most):
        if first[at] != second[at]:
            return at
    return most


def decode_strings(data: bytes) -> list[str]:
    """The texts of a string table. Raises Damage."""
    (count,) = struct.unpack_from("<I", data)
    shared, rests = data[4 : 4 + count], _decode_texts(data[4 + count :])
    if count > MAX_STRINGS or len(shared) != count or len(rests) != count:
        raise Damage("the string table is truncated")
    if sum(shared) > MAX_SHARED:
        raise Damage("the string table expands to too many characters")
    text = ""
    strings = [text := text[:length] + rest for length, rest in zip(shared, rests, strict=True)]
    if sum(map(len, strings)) != sum(shared) + sum(map(len, rests)):
        raise Damage("a text shares more characters than the previous one has")
    return strings


def decode_plain_strings(data: bytes) -> list[str]:
    """The texts of a string table of format 1: whole, each terminated by NUL."""
    strings = _decode_texts(data)
    if len(strings) > MAX_STRINGS:
        raise Damage("the string table has too many texts")
    return strings


def _decode_texts(data: bytes) -> list[str]:
    if data[-1:] != b"\0":
        raise Damage("the string table is truncated")
    if data.count(0) > MAX_STRINGS:
        raise Damage("the string table has too many texts")
    return data[:-1].decode("utf-8", "surrogateescape").split("\0")


def all_match(lines: re.Pattern[str], texts: list[str]) -> bool:
    """Whether the pattern matches each text as a line; faster than one by one."""
    return not texts or ("\n".join(texts).count("\n") < len(texts) and bool(lines.fullmatch("\n".join([*texts, ""]))))


class Cursor:
    """Reads one record: a sequence of numbers, with the string table at hand."""

    __slots__ = ("next", "numbers", "strings")

    def __init__(self, numbers: Iterable[int], strings: Sequence[str]) -> None:
        self.numbers = iter(numbers)
        self.next: Callable[[], int] = self.numbers.__next__
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
        return self.scalars_of(1)[0]

    def scalars(self) -> tuple[Scalar, ...]:
        return tuple(self.scalars_of(self.next()))

    def scalars_of(self, count: int) -> list[Scalar]:
        """Read `count` scalars. Raises Damage if there are fewer."""
        strings = self.strings
        # The last term is `unzigzag(n >> 1)`.
        found = [strings[n >> 1] if n & 1 else (n >> 2) ^ -(n >> 1 & 1) for n in islice(self.numbers, count)]
        if len(found) != count:
            raise Damage("a record is truncated")
        return found


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
