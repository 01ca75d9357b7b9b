"""One unit of the text through PLY: a node, or a `Fault` that says what is wrong and where."""

from __future__ import annotations

import difflib
from functools import cache
from typing import Any

from .expected import describe, possible
from .faults import Fault
from .grammar import Actions
from .lexer import UnitLexer
from .tables import parser as make_parser
from .words import CLASSES


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
        """The node of the unit that begins at `begin`, and where the text goes on. A declaration of several variables
        is a list of nodes. Raises `Fault`."""
        self._text = text
        self._lexer.start(text, begin)
        node = self._parser.parse(lexer=self._lexer, tracking=True)
        return node, self._lexer.lexpos

    def statements(self, text: str, begin: int, items: list[Any]) -> int:
        """Read statements without the grammar: none."""
        return begin

    def data_lines(self, text: str, begin: int, lines: list[Any]) -> int:
        """Read lines of section data without the grammar: none."""
        return begin

    def close(self) -> None:
        """Nothing to keep."""

    def _fail(self, token: Any) -> None:
        wanted = describe(possible(self._parser))
        expected = f"expected {wanted}" if wanted else "syntax error"
        if token is None:
            at = self._lexer.lexpos
            last = max(self._lexer.ends.values(), default=at)
            following = self._text[at:].lstrip()[:1] if at < len(self._text) else ""
            where = f"before '{following}'" if following else "before the end of the file"
            raise Fault("PTX100", f"{expected} {where}", (max(last - 1, 0), last))
        span = (token.lexpos, token.lexpos + len(token.value))
        if token.type == "DOTWORD":
            raise Fault("PTX119", f"unknown directive or type '{token.value}'", span, _similar(token.value))
        shown = token.value if len(token.value) <= 40 else token.value[:37] + "..."
        raise Fault("PTX100", f"{expected}, found {_quoted(shown)}", span)


@cache
def shared_parser() -> UnitParser:
    """One parser for the whole process."""
    return UnitParser()


def _quoted(text: str) -> str:
    return text if text[0] == '"' else f"'{text}'"


def _similar(word: str) -> tuple[str, ...]:
    close = difflib.get_close_matches(word, CLASSES, 1)
    return (f"did you mean {close[0]}?",) if close else ()
