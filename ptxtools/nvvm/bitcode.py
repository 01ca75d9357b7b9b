"""What bitcode says of itself, read from its bitstream: LLVM upgrades what it reads, and these facts are lost by that.

The format is LLVM's ("LLVM Bitcode File Format"). Only blocks that hold the facts are read; functions are skipped.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

_MAGIC, _WRAPPER = b"BC\xc0\xde", b"\xde\xc0\x17\x0b"
#: Numbers of blocks.
_BLOCKINFO, _MODULE, _GROUPS, _IDENTIFICATION, _TYPES = 0, 8, 10, 13, 17
#: Abbreviations that every stream has: the others are defined in it.
_END, _ENTER, _DEFINE, _PLAIN = 0, 1, 2, 3
#: Encodings of an abbreviation's operands.
_FIXED, _VBR, _ARRAY, _CHAR6, _BLOB = 1, 2, 3, 4, 5
_CHARACTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._"
#: Records of the type table: a pointer with its pointee, as LLVM had them up to 16, and one without.
_POINTER, _OPAQUE_POINTER = 8, 25
#: The first LLVM whose pointers are opaque by default.
_OPAQUE_SINCE = 15


class BitcodeError(Exception):
    """The bitstream is damaged: says what is wrong, and where."""


@dataclass(slots=True)
class Facts:
    """producer: such as "LLVM7.0.1"; epoch: of the format; triple, layout, source: of the module; typed, opaque:
    whether its types have pointers with and without pointees; attributes: the names of those that are texts."""

    producer: str = ""
    epoch: int = 0
    triple: str = ""
    layout: str = ""
    source: str = ""
    typed: bool = False
    opaque: bool = False
    attributes: set[str] = field(default_factory=set)

    @property
    def dialect(self) -> str:
        """ "7" or "modern": by the pointers, or without any by the version of LLVM that wrote it."""
        if self.typed or self.opaque:
            return "7" if self.typed else "modern"
        version = re.search(r"(\d+)\.", self.producer)
        return "7" if version and int(version[1]) < _OPAQUE_SINCE else "modern"


def facts_of(data: bytes) -> Facts:
    """The facts of a module. Raises BitcodeError."""
    start, end = 0, len(data)
    if data[:4] == _WRAPPER:
        start, size = (int.from_bytes(data[at : at + 4], "little") for at in (8, 12))
        end = start + size
        if len(data) < 20 or end > len(data):
            raise BitcodeError("the wrapper's module extends past the file")
    if data[start : start + 4] != _MAGIC:
        raise BitcodeError("this is no bitcode")
    facts = Facts()
    reader = _Reader(data, (start + 4) * 8, end * 8)
    while reader.at + 32 <= reader.end:
        if reader.fixed(2) != _ENTER:
            break  # padding behind the last block
        for block, code, values in reader.block(2):
            _note(facts, block, code, values)
    if not reader.modules:
        raise BitcodeError("there is no module in it")
    return facts


def _note(facts: Facts, block: int, code: int, values: list[int]) -> None:
    if block == _TYPES:
        facts.typed |= code == _POINTER
        facts.opaque |= code == _OPAQUE_POINTER
    elif block == _IDENTIFICATION:
        if code == 1:
            facts.producer = _text(values)
        elif code == 2 and values:
            facts.epoch = values[0]
    elif block == _MODULE:
        if code == 2:
            facts.triple = _text(values)
        elif code == 3:
            facts.layout = _text(values)
        elif code == 16:
            facts.source = _text(values)
    elif block == _GROUPS and code == 3:
        facts.attributes.update(_text_attributes(values[2:]))


def _text(values: list[int]) -> str:
    return bytes(value & 255 for value in values).decode("utf-8", "replace")


def _text_attributes(values: list[int]) -> Iterator[str]:
    """The names among the attributes of a group: kind 3 or 4 and a text that ends with 0, and for 4 another one. Kinds
    0, 1, 5, 6 are numbers and types."""
    at = 0
    while at < len(values):
        kind = values[at]
        if kind in (3, 4):
            stop = values.index(0, at) if 0 in values[at:] else len(values)
            yield _text(values[at + 1 : stop])
            at = stop + 1
            if kind == 4:
                at = values.index(0, at) + 1 if 0 in values[at:] else len(values)
        elif kind in (0, 1, 5, 6):
            at += 3 if kind in (1, 6) else 2
        else:
            return


class _Reader:
    """A position in the bits, and the abbreviations that BLOCKINFO defined for each block."""

    def __init__(self, data: bytes, at: int, end: int) -> None:
        self._data, self.at, self.end = data, at, end
        self._defined: dict[int, list[list[tuple[int, int]]]] = {}
        self.modules = 0

    def fixed(self, width: int) -> int:
        if width > 64 or self.at + width > self.end:
            raise BitcodeError(f"it ends within a value, at byte {self.at // 8}")
        first = self.at // 8
        word = int.from_bytes(self._data[first : first + 9], "little")
        value = word >> (self.at % 8) & ((1 << width) - 1)
        self.at += width
        return value

    def vbr(self, width: int) -> int:
        if width < 2:
            raise BitcodeError(f"a value has chunks of {width} bits, at byte {self.at // 8}")
        value = shift = 0
        while True:
            chunk = self.fixed(width)
            value |= (chunk & ((1 << (width - 1)) - 1)) << shift
            shift += width - 1
            if not chunk >> (width - 1):
                return value
            if shift > 70:
                raise BitcodeError(f"a value does not end, at byte {self.at // 8}")

    def _align(self) -> None:
        self.at = (self.at + 31) // 32 * 32

    def block(self, outer: int, depth: int = 0) -> Iterator[tuple[int, int, list[int]]]:
        """The records of a block whose entry was just read, and of those in it: block, code, operands."""
        number, width = self.vbr(8), self.vbr(4)
        self._align()
        end = self.at + 32 + self.fixed(32) * 32
        if end > self.end or depth > 8 or not 2 <= width <= 32:
            raise BitcodeError(f"block {number} at byte {self.at // 8} extends past its end, or is nested too deeply")
        self.modules += number == _MODULE
        if number not in (_BLOCKINFO, _MODULE, _GROUPS, _IDENTIFICATION, _TYPES):
            self.at = end
            return
        known = list(self._defined.get(number, ()))
        described = -1  # the block that BLOCKINFO speaks of
        while self.at < end:
            kind = self.fixed(width)
            if kind == _END:
                break
            if kind == _ENTER:
                yield from self.block(width, depth + 1)
            elif kind == _DEFINE:
                made = self._abbreviation()
                (self._defined.setdefault(described, []) if number == _BLOCKINFO else known).append(made)
            else:
                code, values = self._record(known, kind)
                if number == _BLOCKINFO and code == 1 and values:
                    described = values[0]
                yield number, code, values
        self.at = end

    def _abbreviation(self) -> list[tuple[int, int]]:
        """Encoding and value of each operand; encoding 0 is a literal."""
        found = []
        for _ in range(self.vbr(5)):
            if self.fixed(1):
                found.append((0, self.vbr(8)))
            else:
                encoding = self.fixed(3)
                found.append((encoding, self.vbr(5) if encoding in (_FIXED, _VBR) else 0))
        return found

    def _record(self, known: list[list[tuple[int, int]]], kind: int) -> tuple[int, list[int]]:
        if kind == _PLAIN:
            code, count = self.vbr(6), self.vbr(6)
            return code, [self.vbr(6) for _ in range(count)]
        if kind - 4 >= len(known):
            raise BitcodeError(f"abbreviation {kind} is not defined, at byte {self.at // 8}")
        values: list[int] = []
        operands = iter(known[kind - 4])
        for encoding, value in operands:
            if encoding == _ARRAY:
                element = next(operands, (_FIXED, 0))
                values += [self._value(*element) for _ in range(self.vbr(6))]
            elif encoding == _BLOB:
                size = self.vbr(6)
                self._align()
                self.at += 8 * size
                self._align()
            else:
                values.append(self._value(encoding, value))
        if not values:
            raise BitcodeError(f"a record has no code, at byte {self.at // 8}")
        return values[0], values[1:]

    def _value(self, encoding: int, value: int) -> int:
        if encoding == _CHAR6:
            return ord(_CHARACTERS[self.fixed(6)])
        if encoding == _VBR:
            return self.vbr(value)
        return self.fixed(value) if encoding == _FIXED else value
