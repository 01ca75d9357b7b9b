"""Positions of the language server protocol: lines from 0, columns in code units of the encoding agreed on."""

from __future__ import annotations

from bisect import bisect_right
from itertools import accumulate

from lsprotocol.types import Position, Range

from ptxtools.diagnostics import Span

#: Bytes of a code unit, and its encoding, by the protocol's name.
_UNITS = {"utf-8": (1, "utf-8"), "utf-16": (2, "utf-16-le"), "utf-32": (4, "utf-32-le")}


class Positions:
    """Between character offsets of one text and positions."""

    def __init__(self, text: str, encoding: str) -> None:
        self.text = text
        self._width, self._codec = _UNITS[encoding]
        self._plain = text.isascii()
        self._starts = [0, *accumulate(len(line) + 1 for line in text.split("\n"))][:-1]

    def position(self, offset: int) -> Position:
        offset = max(0, min(offset, len(self.text)))
        line = bisect_right(self._starts, offset) - 1
        start = self._starts[line]
        if self._plain:
            return Position(line, offset - start)
        return Position(line, len(self._encoded(self.text[start:offset])) // self._width)

    def range(self, span: Span) -> Range:
        start, end = self.position(span[0]), span[1]
        first = self._starts[start.line]
        if self._plain and span[0] <= end <= len(self.text) and self.text.find("\n", first, end) < 0:
            return Range(start, Position(start.line, end - first))
        return Range(start, self.position(end))

    def offset(self, position: Position) -> int:
        """A position beyond the end of its line, or of the text, is that end."""
        if position.line >= len(self._starts):
            return len(self.text)
        start = self._starts[position.line]
        end = self.text.find("\n", start)
        line = self.text[start : end if end >= 0 else len(self.text)]
        if self._plain:
            return start + min(position.character, len(line))
        before = self._encoded(line)[: position.character * self._width]
        return start + len(before.decode(self._codec, "ignore"))

    def span(self, range: Range) -> Span:
        return self.offset(range.start), self.offset(range.end)

    def _encoded(self, text: str) -> bytes:
        return text.encode(self._codec, "surrogatepass")
