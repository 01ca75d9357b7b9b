"""Parse one unit of the text with PLY: a node, or a `Fault` with error and position."""

from __future__ import annotations

import re
import threading
from typing import Any

from ptxtools.diagnostics import Fix

from .expected import describe, possible
from .faults import Fault
from .grammar import Actions
from .lexer import UnitLexer
from .tables import parser as make_parser
from .words import CLASSES

_TRIVIA = re.compile(r"(?:\s|//[^\n]*|/\*(?s:.*?)\*/)*+", re.ASCII)


class UnitParser:
    """PLY's lexer and parser, set up once; `parse` reads a unit at a time."""

    def __init__(self) -> None:
        self._lexer = UnitLexer()
        actions = Actions()
        actions.ends = self._lexer.ends
        self._parser = make_parser(actions)
        self._parser.errorfunc = self._fail
        self._text = ""

    def parse(self, text: str, begin: int) -> tuple[Any, int]:
        """The node of the unit at `begin`, and the position after it. A declaration of several variables
        is a list of nodes. Raises `Fault`."""
        self._text = text
        self._lexer.start(text, begin)
        node = self._parser.parse(lexer=self._lexer, tracking=True)
        return node, self._lexer.lexpos

    def statements(self, text: str, begin: int, items: list[Any], *, inside: bool = True) -> int:
        """Read statements without the grammar: none."""
        return begin

    def data_lines(self, text: str, begin: int, lines: list[Any]) -> int:
        """Read lines of section data without the grammar: none."""
        return begin

    def close(self) -> None:
        """Nothing to save."""

    def _fail(self, token: Any) -> None:
        """Called by PLY with the unexpected token; None at the end of the unit."""
        wanted = possible(self._parser)
        at = token.lexpos if token is not None else self._next(self._lexer.lexpos)
        before = self._end_before(at)
        unknown = token is not None and token.type == "DOTWORD" and "TUNING" in wanted
        if ";" in wanted and not unknown and (token is None or "\n" in self._text[before:at]):
            semicolon = Fix((before, before), ";", "end the statement")
            raise Fault("PTX100", "missing ';' at the end of this statement", (before - 1, before), fix=semicolon)
        expected = f"expected {describe(wanted)}" if describe(wanted) else "this is not PTX"
        if token is None:
            found = self._text[at : at + 20].split()
            where = f"before '{found[0]}'" if found else "before the end of the text"
            raise Fault("PTX100", f"{expected} {where}", (before - 1, before))
        span = (at, at + len(token.value))
        if self._text.startswith("*/", at):
            raise Fault("PTX100", "this '*/' does not end a comment", (at, at + 2))
        if token.type == "DOTWORD":
            raise Fault("PTX119", f"unknown directive or type '{token.value}'", span, _similar(token.value))
        shown = token.value if len(token.value) <= 40 else token.value[:37] + "..."
        shown = shown if "\n" not in shown else shown.partition("\n")[0] + "..."
        raise Fault("PTX100", f"{expected}, found {_quoted(shown)}", span)

    def _next(self, at: int) -> int:
        match = _TRIVIA.match(self._text, at)
        return match.end() if match else at

    def _end_before(self, at: int) -> int:
        """The end of the unit's last token before `at`."""
        return max((end for end in self._lexer.ends.values() if end <= at), default=at)


_kept = threading.local()


def shared_parser() -> UnitParser:
    """The parser of this thread; PLY parsers are not reentrant."""
    try:
        parser: UnitParser = _kept.parser
    except AttributeError:
        parser = _kept.parser = UnitParser()
    return parser


def _quoted(text: str) -> str:
    return text if text[0] == '"' else f"'{text}'"


def _similar(word: str) -> tuple[str, ...]:
    from difflib import get_close_matches

    close = get_close_matches(word, CLASSES, 1)
    return (f"did you mean {close[0]}?",) if close else ()
