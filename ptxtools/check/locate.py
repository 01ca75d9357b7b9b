"""Locate the parts of a statement in the source text. Only findings need this, so the parser stores nothing."""

from __future__ import annotations

import re
from typing import NamedTuple

from ptxtools.diagnostics import Span

_COMMENT = re.compile(r"//[^\n]*|/\*.*?(?:\*/|\Z)", re.S)
_HEAD = re.compile(r"\s*(?:@\s*!?\s*([\w$%.]+)\s*)?(\w[\w.:]*)?")
_WORD = re.compile(r"[\w$%]+")
_OPEN, _CLOSE = "([{", ")]}"


class Parts(NamedTuple):
    """Spans in the source text; `guard` is None if there is none."""

    guard: Span | None
    opcode: Span
    operands: tuple[Span, ...]


def blanked(text: str) -> str:
    """The text with its comments replaced by blanks of the same length."""
    return _COMMENT.sub(lambda found: " " * len(found[0]), text)


def statement_parts(text: str, span: Span) -> Parts:
    """Guard, opcode and operands of the instruction at `span`."""
    start = span[0]
    statement = blanked(text[start : span[1]])
    head = _HEAD.match(statement)
    guard = opcode = None
    at = 0
    if head:
        guard = (start + head.start(1), start + head.end(1)) if head[1] else None
        opcode = (start + head.start(2), start + head.end(2)) if head[2] else None
        at = head.end()
    return Parts(guard, opcode or span, tuple(_pieces(statement, at, start)))


def operand_pieces(text: str, span: Span) -> tuple[Span, ...]:
    """The comma-separated parts inside the brackets, braces or parentheses of one operand; the operand itself without
    any."""
    operand = blanked(text[span[0] : span[1]])
    if operand[:1] in tuple(_OPEN):
        return tuple(_pieces(operand[: len(operand.rstrip()) - 1], 1, span[0]))
    return (span,)


def _pieces(statement: str, at: int, start: int) -> list[Span]:
    """Spans of the parts between commas outside brackets, up to the semicolon."""
    pieces: list[Span] = []
    depth, first = 0, at
    end = len(statement)
    for index in range(at, end):
        char = statement[index]
        if char in _OPEN:
            depth += 1
        elif char in _CLOSE:
            depth -= 1
        elif char == ";" and depth <= 0:
            end = index
            break
        elif char == "," and depth <= 0:
            pieces.append((first, index))
            first = index + 1
    pieces.append((first, end))
    return [span for piece in pieces if (span := _trimmed(statement, piece, start)) is not None]


def _trimmed(statement: str, piece: Span, start: int) -> Span | None:
    text = statement[piece[0] : piece[1]]
    stripped = text.strip()
    if not stripped:
        return None
    first = start + piece[0] + text.index(stripped[0])
    return first, first + len(stripped)


def word_span(text: str, span: Span, word: str) -> Span:
    """The first occurrence of `word` as a whole name inside the span; the span itself if there is none."""
    statement = blanked(text[span[0] : span[1]])
    if _WORD.fullmatch(word.replace(".", "")):
        found = re.search(rf"(?<![\w$%]){re.escape(word)}(?![\w$])", statement)
        if found:
            return span[0] + found.start(), span[0] + found.end()
    at = statement.find(word)
    return (span[0] + at, span[0] + at + len(word)) if at >= 0 else span
