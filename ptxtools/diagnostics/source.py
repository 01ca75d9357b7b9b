"""Source text and positions in it."""

from __future__ import annotations

from bisect import bisect_right
from typing import TypeAlias

#: Half-open range of character offsets into a source text.
Span: TypeAlias = tuple[int, int]

NO_SPAN: Span = (0, 0)

#: A span, or only its start, which saves memory: there are many thousands of these.
Place: TypeAlias = "Span | int"
#: Set in the end of a span given only by its start; character offsets are never this large.
WHOLE = (1 << 20) - 1


def span_at(place: Place) -> Span:
    """The span of a place."""
    return (place, place | WHOLE) if isinstance(place, int) else place


class Source:
    """A named text. Offsets count characters; lines and columns count from 1, a tab is one column."""

    __slots__ = ("_starts", "name", "text")

    #: Whether offsets refer to several texts, so that an offset alone is ambiguous.
    joined = False

    def __init__(self, text: str, name: str = "<stdin>") -> None:
        self.name = name
        self.text = text
        self._starts: list[int] | None = None

    def _line_starts(self) -> list[int]:
        if self._starts is None:
            starts, at = [0], self.text.find("\n")
            while at >= 0:
                starts.append(at + 1)
                at = self.text.find("\n", at + 1)
            self._starts = starts
        return self._starts

    def position(self, offset: int) -> tuple[int, int]:
        """Line and column of a character offset."""
        starts = self._line_starts()
        line = bisect_right(starts, offset)
        return line, offset - starts[line - 1] + 1

    def line_of(self, offset: int) -> int:
        return bisect_right(self._line_starts(), offset)

    def excerpt(self, span: Span) -> str:
        """The text of a span; empty if the text would have to be generated first."""
        return self.text[span[0] : span[1]]

    def name_of(self, offset: int) -> str:
        """The name of the text that contains an offset: a linked module has several."""
        return self.name

    def real_span(self, span: Span) -> Span:
        """The offsets in `text` for a span of this source; spans of nodes from a container are not offsets."""
        return span

    def line_span(self, number: int) -> Span:
        """Offsets of line `number` without its line ending; empty beyond the end."""
        starts = self._line_starts()
        if not 1 <= number <= len(starts):
            return len(self.text), len(self.text)
        start, end = starts[number - 1], starts[number] - 1 if number < len(starts) else len(self.text)
        return start, end - 1 if end > start and self.text[end - 1] == "\r" else end

    def line(self, number: int) -> str:
        """Text of line `number` without its line ending; empty beyond the end."""
        start, end = self.line_span(number)
        return self.text[start:end]
