"""A text as units with their words and comments, for what rewrites it without the loss that a tree means."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from ptxtools.ir.nodes import SOURCES
from ptxtools.records import NamedTuple

from .lexer import UnitLexer
from .sources import read_sources

_GAP = re.compile(r"(?P<space>\s+)|(?P<comment>//[^\n]*|/\*(?s:.*?)\*/)", re.ASCII)
#: Lines that are no PTX: of a preprocessor, and of old debug information.
_WHOLE_LINE = re.compile(r"#(?:[^\n\\]|\\.)*|@@[Dd][Ww][Aa][Rr][Ff]\b[^\n]*", re.DOTALL)

COMMENT = "COMMENT"
#: The header of a function without comments and strings; what those met before consist of.
_FUNCTION = re.compile(r"\.(?:visible|extern|weak|common|entry|func)\b[^{;/\"#@]*[{;]", re.ASCII)
_headers: dict[str, tuple[Piece, ...]] = {}
_MOST_HEADERS = 1 << 12


class Piece(NamedTuple):
    """A token or a comment. kind: the token's type, or COMMENT; breaks: line ends between it and what precedes it;
    apart: whether anything does."""

    kind: str
    text: str
    breaks: int
    apart: bool

    @property
    def ends_line(self) -> bool:
        return self.kind == COMMENT and self.text.startswith("//")


class Unit(NamedTuple):
    """What the parser reads at once. kind: "statement", "header" (of a function or section), "{", "}", "verbatim",
    "comment" or "run" (of plain rows); span: offsets in the text; breaks: line ends before it."""

    kind: str
    pieces: tuple[Piece, ...]
    span: tuple[int, int]
    breaks: int


def units(text: str, runs: Mapping[int, tuple[int, str]] | None = None) -> Iterator[Unit]:
    """The units of a text without syntax errors, in order; runs of plain rows (`plainrows`) are one each. Raises
    `Fault`."""
    runs = runs or {}
    lexer = UnitLexer()
    at = int(text.startswith("\ufeff"))
    while True:
        gap, at = _gap(text, at)
        breaks = 0
        for piece, begin in gap:
            if piece.kind == COMMENT:
                yield Unit("comment", (piece,), (begin, begin + len(piece.text)), breaks + piece.breaks)
                breaks = 0
            else:
                breaks += piece.breaks
        if at >= len(text):
            return
        run = runs.get(at)
        unit = Unit("run", (), (at, run[0]), breaks) if run else unit_at(text, at, lexer, breaks)
        yield unit
        at = unit.span[1]


def unit_at(text: str, at: int, lexer: UnitLexer, breaks: int) -> Unit:
    """The unit that begins at `at`, line ends before which are `breaks`. Raises `Fault`."""
    first = text[at]
    header = _FUNCTION.match(text, at) if first == "." else None
    known = _headers.get(header[0]) if header is not None else None
    if known is not None and header is not None:
        return Unit("header", known, header.span(), breaks)
    if first in "{}":
        return Unit(first, (Piece(first, first, breaks, True),), (at, at + 1), breaks)
    whole = _WHOLE_LINE.match(text, at) if first in "#@" else None
    if whole is not None or text.startswith(SOURCES, at):
        end = whole.end() if whole is not None else read_sources(text, at)[1]
        return Unit("verbatim", (), (at, end), breaks)
    pieces = tuple(_pieces(text, at, lexer))
    kind = "header" if any(p.kind in ("ENTRY", "FUNC", "SECTION") for p in pieces[:4]) else "statement"
    if header is not None and kind == "header" and header.end() == lexer.lexpos:
        if len(_headers) >= _MOST_HEADERS:
            _headers.clear()
        _headers[header[0]] = pieces
    return Unit(kind, pieces, (at, lexer.lexpos), breaks)


def _pieces(text: str, at: int, lexer: UnitLexer) -> Iterator[Piece]:
    """The tokens of the unit at `at`, and the comments between them."""
    lexer.start(text, at)
    while (token := lexer.token()) is not None:
        breaks, apart = 0, token.lexpos > at
        for piece, _ in _gap(text, at)[0] if apart else ():
            if piece.kind == COMMENT:
                yield piece._replace(breaks=breaks)
                breaks = 0
            else:
                breaks += piece.breaks
        yield Piece(token.type, token.value, breaks, apart)
        at = token.lexpos + len(token.value)


def _gap(text: str, at: int) -> tuple[list[tuple[Piece, int]], int]:
    """Blanks and comments at `at`, each with its place, and where they end."""
    found: list[tuple[Piece, int]] = []
    while (match := _GAP.match(text, at)) is not None:
        kind = COMMENT if match["comment"] else "SPACE"
        shown = match[0].rstrip() if kind == COMMENT else match[0]
        found.append((Piece(kind, shown, 0 if kind == COMMENT else match[0].count("\n"), True), at))
        at = match.end()
    return found, at
