"""The tokens of PTX (4.1 to 4.5), as PLY rules. The value of every token is its text.

An opcode with its modifiers is one WORD, and so is a register with a component (`%tid.x`, `%r1.b0`). Words with a
leading dot get the class that `words.CLASSES` gives them.
"""

# ruff: noqa: N802, N816 - PLY names rules after their tokens

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from typing import Any, TypeVar

from ply import lex
from ply.lex import LexToken

from .faults import Fault
from .limits import MOST_BRACKETS, MOST_WORDS
from .words import CLASSES, OPEN_ENDED

tokens = (
    "WORD", "CALL", "NUMBER", "STRING", "DOTWORD",
    *sorted(set(CLASSES.values())),
    "SHL", "SHR", "LE", "GE", "EQ", "NE", "AND", "OR",
)  # fmt: skip

#: The help for preprocessor lines.
PREPROCESS = ("run the text through a C preprocessor first",)

literals = ",;:{}[]()<>=+-*/%!~&|^?@"

_F = TypeVar("_F", bound=Callable[..., Any])


def token(pattern: str) -> Callable[[_F], _F]:
    """Attach the pattern of a rule. (PLY would take it from the docstring, which `python -OO` drops.)"""

    def attach(function: _F) -> _F:
        function.regex = pattern  # type: ignore[attr-defined]
        return function

    return attach


t_ignore = " \t\r\n\f\v"

t_SHL = r"<<"
t_SHR = r">>"
t_LE = r"<="
t_GE = r">="
t_EQ = r"=="
t_NE = r"!="
t_AND = r"&&"
t_OR = r"\|\|"


@token(r"//[^\n]*|/\*(?s:.*?)\*/")
def t_comment(t: LexToken) -> None:
    pass


@token(r"/\*")
def t_open_comment(t: LexToken) -> None:
    raise Fault("PTX102", "this comment is unterminated", (t.lexpos, t.lexpos + 2), help=("close it with */",))


@token(r'"[^"]*"')
def t_STRING(t: LexToken) -> LexToken:
    return t


@token(r'"[^\n]*')
def t_open_string(t: LexToken) -> None:
    raise Fault(
        "PTX102", "this string is unterminated", (t.lexpos, t.lexpos + len(t.value.rstrip())), help=('close it with "',)
    )


# The last two alternatives match malformed numbers as a whole; `constants.literal` reports the error.
@token(
    r"(?:\d+\.\d*|\.\d+)(?:[eE][+-]?\d+)?(?![\w$.])"
    r"|\d+[eE][+-]?\d+(?![\w$.])"
    r"|\d[\w$.]*"
    r"|\.\d[\w$.]*"
)
def t_NUMBER(t: LexToken) -> LexToken:
    return t


# The bank of `ld.const[2].b32` is part of the opcode (5.1.3.1), and so is the colon of `.sp::2:4`.
@token(r"(?:[A-Za-z][\w$]*|[_$%][\w$]+|_)(?:(?:\.const\[\d+\])?\.\w+(?:::(?:\d+:\d+|\w+))*)*")
def t_WORD(t: LexToken) -> LexToken:
    if t.value == "WARP_SZ":
        t.type = "NUMBER"
    elif t.value == "call" or t.value.startswith("call."):
        t.type = "CALL"  # where an instruction begins; elsewhere `UnitLexer` takes it for a name
    return t


@token(r"\.[A-Za-z_]\w*(?:::\w+)*")
def t_DOTWORD(t: LexToken) -> LexToken:
    t.type = CLASSES.get(t.value, "DOTWORD")
    return t


def t_error(t: LexToken) -> None:
    shown = t.value[0]
    if shown == "#":
        line = t.value.split("\n", 1)[0].rstrip()
        raise Fault("PTX115", "a preprocessor line is not PTX", (t.lexpos, t.lexpos + len(line)), PREPROCESS)
    name = f"'{shown}'" if shown.isprintable() else f"U+{ord(shown):04X}"
    raise Fault("PTX101", f"the character {name} is not allowed here", (t.lexpos, t.lexpos + 1))


#: Tokens that connect two arguments of an open-ended directive.
_LINKS = frozenset({",", "+", "-"})
#: Tokens that may follow an argument of an open-ended directive directly: `.file 1 "a.cu"`, `.loc 1 2 3`.
_JUXTAPOSED = _LINKS | {"NUMBER", "STRING"}
#: Tokens after the word of an open-ended directive, or `function_name`.
_FIRST = frozenset({"WORD", "CALL", "DOTWORD", "NUMBER", "STRING", "-"})
#: The last token of an open-ended directive.
_COMPLETE = frozenset({"WORD", "CALL", "DOTWORD", "NUMBER", "STRING"})
#: Directives that form a unit with the preceding `label:` (11.3).
_LABELLED = re.compile(r"(?:\s|//[^\n]*|/\*(?s:.*?)\*/)*+\.(?:branchtargets|calltargets|callprototype)\b", re.ASCII)


#: What follows a name that is a label.
_COLON = re.compile(r"(?:\s|//[^\n]*|/\*(?s:.*?)\*/)*+:(?!:)", re.ASCII)


class UnitLexer:
    """The tokens of one unit, for PLY's parser. The first token determines where the unit ends:

    an open-ended directive or a line of section data at the first token not connected by a comma; a label at its
    colon; a header at `{` or `;`; everything else at `;`. An unmatched `}` ends every unit.
    """

    #: Only PLY uses this.
    lineno = 0

    def __init__(self) -> None:
        # `lextab=False`: write no table file.
        self._lexer: Any = lex.lex(module=sys.modules[__name__], reflags=re.ASCII, optimize=True, lextab=False)
        #: End of each token so far, by its start.
        self.ends: dict[int, int] = {}

    def start(self, text: str, begin: int) -> None:
        """Start reading the unit at `begin`."""
        self._lexer.input(text)
        self._lexer.lexpos = begin
        self.ends.clear()
        self._previous: LexToken | None = None
        self._open_ended = self._header = self._pragma = self._done = False
        self._declaration = False
        self._depth = self._words = 0
        self._at_opcode = True

    @property
    def lexpos(self) -> int:
        """The position at which to look for the next token."""
        return int(self._lexer.lexpos)

    def token(self) -> LexToken | None:
        """The next token; None at the end of the unit."""
        if self._done:
            return None
        before = self._lexer.lexpos
        found = self._read()
        if found is not None:
            self._place(found)
        if found is None or (self._previous is not None and self._ends_before(found)):
            self._done = True
            self._lexer.lexpos = before
            return None
        self.ends[found.lexpos] = found.lexpos + len(found.value)
        if self._previous is None:
            self._begin(found)
        self._done = self._ends_with(found)
        self._previous = found
        return found

    def _place(self, found: LexToken) -> None:
        """`call` is an opcode where an instruction begins, perhaps behind a guard, and everywhere else a name."""
        if found.type == "CALL" and found.value == "call":
            label = self._previous is None and _COLON.match(self._lexer.lexdata, found.lexpos + len("call"))
            if label or not self._at_opcode or (self._previous is not None and self._previous.type in ("@", "!")):
                found.type = "WORD"
        guard = found.type in ("@", "!") or (self._previous is not None and self._previous.type in ("@", "!"))
        self._at_opcode = self._at_opcode and guard

    def _read(self) -> LexToken | None:
        """The next token. An error after a complete open-ended unit belongs to the next unit."""
        try:
            found: LexToken | None = self._lexer.token()
            return found
        except Fault:
            if self._open_ended and self._previous is not None and self._previous.type in _COMPLETE:
                return None
            raise

    def _begin(self, found: LexToken) -> None:
        self._open_ended = found.value in OPEN_ENDED or found.type == "TYPE"
        self._header = found.type in ("ENTRY", "FUNC", "SECTION")
        self._declaration = found.type in ("SPACE", "LINKAGE")

    def _ends_before(self, found: LexToken) -> bool:
        previous: Any = self._previous
        if found.type == "}" and self._depth == 0:
            return True
        if not self._open_ended or previous.type in _LINKS:
            return False
        after_word = previous.value == "function_name" or previous.type not in _COMPLETE
        return found.value == "WARP_SZ" or found.type not in (_FIRST if after_word else _JUXTAPOSED)

    def _ends_with(self, found: LexToken) -> bool:
        kind = found.type
        if not (self._declaration and kind in (",", "NUMBER")):
            self._words += 1
            if self._words > MOST_WORDS:
                raise Fault("PTX118", f"a statement of more than {MOST_WORDS} words", (found.lexpos, found.lexpos + 1))
        if kind == "PRAGMA":
            self._pragma = True
        elif kind in ("ENTRY", "FUNC"):
            self._header = True
        elif kind in ("{", "[", "("):
            self._depth += 1
            if self._depth > MOST_BRACKETS:
                raise Fault("PTX118", "brackets are nested too deeply", (found.lexpos, found.lexpos + 1))
            return kind == "{" and self._header
        elif kind in ("}", "]", ")"):
            self._depth -= 1
        elif kind == ";":
            return not (self._header and self._pragma) or self._end_pragma()
        elif kind == ":":
            return len(self.ends) == 2 and not _LABELLED.match(self._lexer.lexdata, self._lexer.lexpos)
        return False

    def _end_pragma(self) -> bool:
        self._pragma = False
        return False
