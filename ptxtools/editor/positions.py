"""Positions of the language server protocol: lines from 0, columns in code units of the encoding agreed on."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate, pairwise

from lsprotocol.types import Position, Range

from ptxtools.diagnostics import Span

#: Bytes of a code unit, and its encoding, by the protocol's name.
_UNITS = {"utf-8": (1, "utf-8"), "utf-16": (2, "utf-16-le"), "utf-32": (4, "utf-32-le")}
#: The ends of lines in the protocol.
_END = re.compile(r"\r\n|\r|\n")


def lines_of(text: str) -> list[str]:
    """The lines of a text with their ends."""
    ends = [0, *(match.end() for match in _END.finditer(text)), len(text)]
    return [text[begin:end] for begin, end in pairwise(ends)]


class Positions:
    """Between character offsets of one text and positions."""

    def __init__(self, text: str, encoding: str) -> None:
        self.text = text
        self._width, self._codec = _UNITS[encoding]
        self._plain = text.isascii()
        if "\r" in text:
            self._starts = [0, *(match.end() for match in _END.finditer(text))]
        else:
            self._starts = list(accumulate(map((1).__add__, map(len, text.split("\n"))), initial=0))
            self._starts.pop()

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
        following = self._starts[start.line + 1] if start.line + 1 < len(self._starts) else len(self.text) + 1
        if self._plain and span[0] <= end < following:
            return Range(start, Position(start.line, end - first))
        return Range(start, self.position(end))

    def messages(self, spans: Sequence[Span]) -> list[dict[str, dict[str, int]]]:
        """Ranges as they stand in messages: there may be thousands."""
        found = []
        for begin, end in spans:
            line = bisect_right(self._starts, begin) - 1
            start = self._starts[line]
            if self._plain and begin <= end < (self._starts[line + 1] if line + 1 < len(self._starts) else end + 1):
                ends = [(line, begin - start), (line, end - start)]
            else:
                ends = [(place.line, place.character) for place in map(self.position, (begin, end))]
            first, last = ({"line": line, "character": column} for line, column in ends)
            found.append({"start": first, "end": last})
        return found

    def offset(self, position: Position) -> int:
        """A position beyond the end of its line, or of the text, is that end."""
        if position.line >= len(self._starts):
            return len(self.text)
        start = self._starts[position.line]
        end = self._starts[position.line + 1] if position.line + 1 < len(self._starts) else None
        line = self.text[start:end].rstrip("\r\n")
        if self._plain:
            return start + min(position.character, len(line))
        before = self._encoded(line)[: position.character * self._width]
        return start + len(before.decode(self._codec, "ignore"))

    def span(self, range: Range) -> Span:
        return self.offset(range.start), self.offset(range.end)

    def _encoded(self, text: str) -> bytes:
        return text.encode(self._codec, "surrogatepass")
