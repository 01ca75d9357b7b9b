"""Syntax errors in words: the expected tokens, and the one found."""

from __future__ import annotations

from typing import Any

from .words import CLASSES

#: Groups of tokens with a common name: the tokens that identify the group, those it covers, the name.
_OPERATOR_TOKENS = {
    "+",
    "-",
    "*",
    "/",
    "%",
    "SHL",
    "SHR",
    "<",
    ">",
    "LE",
    "GE",
    "EQ",
    "NE",
    "&",
    "^",
    "|",
    "AND",
    "OR",
    "?",
}
_SPECIFIERS = {"SPACE", "TYPE", "VECTOR", "ALIGN", "PTR", "ATTRIBUTE", "LINKAGE"}
_MODIFIERS = {"DOTWORD", "TYPE", "SPACE", "VECTOR", "LINKAGE", "ALIGN"}
_GROUPS = (
    ({"WORD", "NUMBER", "{", "["}, {"WORD", "NUMBER", "{", "[", "(", "+", "-", "!", "~"}, "an operand"),
    ({"NUMBER", "(", "-", "~"}, {"NUMBER", "(", "+", "-", "!", "~"}, "a constant"),
    ({"+", "*", "SHL"}, _OPERATOR_TOKENS, ""),
    ({"DOTWORD", "TYPE", "SPACE", "VECTOR", "LINKAGE"}, _MODIFIERS, ""),
    ({"SPACE", "TYPE", "VECTOR"}, _SPECIFIERS, "a type or state space"),
)
#: Not mentioned where a list or statement may continue or end.
_MINOR = {"+", "-", "[", "|", "<", "=", ":", "DOTWORD", "?"}

_NAMES = {
    "WORD": "a name",
    "NUMBER": "a number",
    "STRING": "a string",
    "DOTWORD": "a word with a leading dot",
    "TYPE": "a type",
    "SPACE": "a state space",
    "LINKAGE": "a linking directive",
    "TUNING": "a performance directive",
    "VECTOR": "a vector length",
    "CALL": "call",
    "$end": "the end of the line",
}
_OPERATORS = {"SHL": "<<", "SHR": ">>", "LE": "<=", "GE": ">=", "EQ": "==", "NE": "!=", "AND": "&&", "OR": "||"}
_KEYWORDS = {token: word for word, token in CLASSES.items() if token not in _NAMES}


def name_of(token: str) -> str:
    """A token class as shown to a user."""
    if token in _NAMES:
        return _NAMES[token]
    return f"'{_OPERATORS.get(token) or _KEYWORDS.get(token) or token}'"


def possible(parser: Any) -> set[str]:
    """The tokens that a PLY parser accepts in its current state."""
    return {token for token in parser.action[parser.statestack[-1]] if _shifts(parser, token)}


def _shifts(parser: Any, token: str) -> bool:
    """Whether reductions on this token end in a shift: LALR tables may reduce before they detect an error."""
    stack = list(parser.statestack)
    while True:
        state = stack[-1]
        step = parser.defaulted_states.get(state) or parser.action[state].get(token)
        if step is None or step >= 0:
            return step is not None
        made = parser.productions[-step]
        del stack[len(stack) - made.len :]
        stack.append(parser.goto[stack[-1]][made.name])


def describe(tokens: set[str]) -> str:
    """`',' or ';'`, `an operand`, `a name, a number or '['`."""
    left, named = set(tokens), []
    for needed, covered, name in _GROUPS:
        if needed <= left:
            left -= covered
            if name:
                named.append(name)
    if left & {",", ";"} or (named and left <= _MINOR):
        left -= _MINOR
    named += sorted(map(name_of, left), key=lambda name: (name[0] == "'", name))
    if len(named) > 5:
        return ""
    return named[0] if len(named) == 1 else f"{', '.join(named[:-1])} or {named[-1]}" if named else ""
