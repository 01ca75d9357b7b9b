"""The bitstream ("LLVM Bitcode File Format"): blocks of records, which abbreviations describe.

Damage ends in a `BitcodeError` that names the byte, whatever the bytes are: nothing is read past the end of a block,
and a record has no more operands than its block has bits.
"""

from __future__ import annotations

from collections.abc import Callable

from ptxtools.records import dataclass, field

_MAGIC, _WRAPPER = b"BC\xc0\xde", b"\xde\xc0\x17\x0b"
#: Numbers of blocks.
BLOCKINFO, MODULE, LISTS, GROUPS, CONSTANTS, FUNCTION, IDENTIFICATION = 0, 8, 9, 10, 11, 12, 13
SYMBOLS, METADATA, ATTACHMENTS, TYPES, SUMMARY, KINDS, STRINGS, SCOPES = 14, 15, 16, 17, 20, 22, 23, 26
BUNDLES = 21
#: Abbreviations that every stream has: the others are defined in it.
_END, _ENTER, _DEFINE, _PLAIN = 0, 1, 2, 3
#: Encodings of an abbreviation's operands; 0 is a literal.
_FIXED, _VBR, _ARRAY, _CHAR6, _BLOB = 1, 2, 3, 4, 5
_CHARACTERS = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._"
_MOST_NESTED = 8

_Abbreviation = list[tuple[int, int]]


class BitcodeError(Exception):
    """The bitstream is damaged: says what is wrong, and where."""


@dataclass(slots=True)
class Record:
    """code; values: the operands; blob: of the last one, if it is one; at: the byte where it begins."""

    code: int
    values: list[int]
    at: int
    blob: bytes = b""


@dataclass(slots=True)
class Block:
    """A block: its records and blocks, in order."""

    number: int
    at: int
    parts: list[Record | Block] = field(default_factory=list)

    @property
    def records(self) -> list[Record]:
        return [one for one in self.parts if isinstance(one, Record)]

    def blocks(self, number: int) -> list[Block]:
        """Those of a number, without those in others."""
        return [one for one in self.parts if isinstance(one, Block) and one.number == number]


def blocks_of(data: bytes, wanted: Callable[[int], bool] = lambda number: True) -> list[Block]:
    """The outermost blocks of a bitcode file. wanted: whether to read a block; the others are empty.
    Raises BitcodeError."""
    start, end = 0, len(data)
    if data[:4] == _WRAPPER:
        start, size = (int.from_bytes(data[at : at + 4], "little") for at in (8, 12))
        end = start + size
        if len(data) < 20 or end > len(data):
            raise BitcodeError("the wrapper's module extends past the file")
    if data[start : start + 4] != _MAGIC:
        raise BitcodeError("this is no bitcode")
    reader = _Reader(data[:end], (start + 4) * 8, wanted)
    found = []
    while reader.at + 32 <= reader.end:
        if reader.fixed(2) != _ENTER:
            break  # padding behind the last block
        found.append(reader.block(reader.end))
    if not any(block.number == MODULE for block in found):
        raise BitcodeError("there is no module in it")
    return found


class _Reader:
    """A position in the bits, and the abbreviations that BLOCKINFO defined for each block."""

    def __init__(self, data: bytes, at: int, wanted: Callable[[int], bool]) -> None:
        self._data, self.at, self.end, self._wanted = data, at, len(data) * 8, wanted
        self._defined: dict[int, list[_Abbreviation]] = {}

    def fixed(self, width: int) -> int:
        at = self.at
        if width > 64 or at + width > self.end:
            raise self._fail("it ends within a value")
        first = at >> 3
        self.at = at + width
        return int.from_bytes(self._data[first : first + 9], "little") >> (at & 7) & ((1 << width) - 1)

    def _fail(self, message: str) -> BitcodeError:
        return BitcodeError(f"{message}, at byte {self.at // 8}")

    def vbr(self, width: int) -> int:
        """A number in chunks, whose highest bits say whether another one follows."""
        if width < 2:
            raise self._fail(f"a value has chunks of {width} bits")
        chunk = self.fixed(width)
        more = 1 << (width - 1)
        if chunk < more:
            return chunk
        value, shift = chunk - more, width - 1
        while True:
            chunk = self.fixed(width)
            value |= (chunk & (more - 1)) << shift
            shift += width - 1
            if chunk < more:
                return value & (1 << 64) - 1
            if shift > 70:
                raise self._fail("a value does not end")

    def _align(self) -> None:
        self.at = (self.at + 31) // 32 * 32

    def block(self, outer: int, depth: int = 0) -> Block:
        """The block whose entry was just read, in one that ends at `outer`."""
        number, width = self.vbr(8), self.vbr(4)
        self._align()
        end = self.at + 32 + self.fixed(32) * 32
        if end > outer or depth > _MOST_NESTED or not 2 <= width <= 32:
            raise self._fail(f"block {number} extends past its end, or is nested too deeply")
        found = Block(number, self.at // 8)
        if number == BLOCKINFO or self._wanted(number):
            whole, self.end = self.end, end
            self._contents(found, width, depth)
            self.end = whole
        self.at = end
        return found

    def _contents(self, block: Block, width: int, depth: int) -> None:
        known = list(self._defined.get(block.number, ()))
        described = -1  # the block that BLOCKINFO speaks of
        while self.at < self.end:
            kind = self.fixed(width)
            if kind == _END:
                return
            if kind == _ENTER:
                block.parts.append(self.block(self.end, depth + 1))
            elif kind == _DEFINE:
                made = self._abbreviation()
                (self._defined.setdefault(described, []) if block.number == BLOCKINFO else known).append(made)
            else:
                record = self._record(known, kind)
                if block.number == BLOCKINFO and record.code == 1 and record.values:
                    described = record.values[0]
                block.parts.append(record)

    def _abbreviation(self) -> _Abbreviation:
        """Encoding and value of each operand."""
        found = []
        for _ in range(self.vbr(5)):
            if self.fixed(1):
                found.append((0, self.vbr(8)))
            else:
                encoding = self.fixed(3)
                found.append((encoding, self.vbr(5) if encoding in (_FIXED, _VBR) else 0))
        return found

    def _count(self) -> int:
        """A number of elements, of which each takes a bit at least."""
        count = self.vbr(6)
        if count > self.end - self.at:
            raise self._fail("a record extends past its block")
        return count

    def _record(self, known: list[_Abbreviation], kind: int) -> Record:
        at = self.at // 8
        if kind == _PLAIN:
            code, count = self.vbr(6), self._count()
            vbr = self.vbr
            return Record(code, [vbr(6) for _ in range(count)], at)
        if kind - 4 >= len(known):
            raise self._fail(f"abbreviation {kind} is not defined")
        values: list[int] = []
        blob = b""
        operands = iter(known[kind - 4])
        for encoding, value in operands:
            if encoding == _ARRAY:
                element, wide = next(operands, (_FIXED, 0))
                count = self._count()
                values += self._bytes(count) if (element, wide) == (_FIXED, 8) else [
                    self._value(element, wide) for _ in range(count)
                ]  # fmt: skip
            elif encoding == _BLOB:
                size = self.vbr(6)
                self._align()
                if self.at + 8 * size > self.end:
                    raise self._fail("a record extends past its block")
                blob = self._data[self.at // 8 : self.at // 8 + size]
                self.at += 8 * size
                self._align()
            else:
                values.append(self._value(encoding, value))
        if not values:
            raise self._fail("a record has no code")
        return Record(values[0], values[1:], at, blob)

    def _bytes(self, count: int) -> list[int]:
        if self.at + 8 * count > self.end:
            raise self._fail("a record extends past its block")
        first, shift = self.at >> 3, self.at & 7
        self.at += 8 * count
        part = self._data[first : first + count + 1]
        return list((int.from_bytes(part, "little") >> shift).to_bytes(count + 1, "little")[:count])

    def _value(self, encoding: int, value: int) -> int:
        if encoding == _CHAR6:
            return _CHARACTERS[self.fixed(6)]
        if encoding == _VBR:
            return self.vbr(value) if value else 0
        return self.fixed(value) if encoding == _FIXED else value


def text_of(values: list[int]) -> str:
    """The text in the operands of a record, one byte each; bytes that are not UTF-8 are kept as surrogates."""
    return bytes(value & 255 for value in values).decode("utf-8", "surrogateescape")
