"""The source text of an intermediate language inside a module: `.nv_intermediate_source_section` (11.5.6).

It is no PTX, so no tokens are looked for in it. The directive's arguments are the name of the language (in quotes), the
number of the file and the text, for each block in turn.
"""

from __future__ import annotations

import re

from ptxtools.ir import Directive
from ptxtools.ir.nodes import SOURCES

from .faults import Fault

_TRIVIA = r"(?:\s|//[^\n]*|/\*(?s:.*?)\*/)*+"
#: The words of a block in their order, and how each is called in messages.
_BLOCK = (
    (r"\.code_block\b", ".code_block or }"),
    (r"\{", "{"),
    (r"\.ir_name:", ".ir_name:"),
    (r'("[^"]*")', "the name of a language in quotes"),
    (r"\.sourceFileName:", ".sourceFileName:"),
    (r"(0[xX][\dA-Fa-f]+|\d+)(?![\w.$])", "the number of a file"),
    (r"\.source_begin\b", ".source_begin"),
)
_WORDS = tuple((re.compile(_TRIVIA + pattern, re.ASCII), name) for pattern, name in _BLOCK)
_OPEN = re.compile(_TRIVIA + r"\{", re.ASCII)
_CLOSE = re.compile(_TRIVIA + r"\}", re.ASCII)
_SPACE = re.compile(_TRIVIA, re.ASCII)
_FOUND = re.compile(r"\w+|[^\s]?", re.ASCII)
#: The text of a block, from the end of `.source_begin`'s line to a line that is `.source_end`.
_TEXT = re.compile(r"[ \t\f\v]*+\n((?:[^\n]*+\n)*?)[ \t\f\v]*+\.source_end[ \t\f\v]*+(?=\n|\Z)", re.ASCII)


def read_sources(text: str, at: int) -> tuple[Directive, int]:
    """The section that begins at `at`, and where it ends; raises `Fault`."""
    start, arguments = at, []
    at = _expect(_OPEN, "{", text, at + len(SOURCES), start)[1]
    while (closed := _CLOSE.match(text, at)) is None:
        given: list[str] = []
        for pattern, name in _WORDS:
            found, at = _expect(pattern, name, text, at, start)
            given += found
        body = _TEXT.match(text, at)
        if body is None:
            word = (at - len(".source_begin"), at)
            message = "the text begins on the line after .source_begin and ends with a line that is .source_end"
            raise Fault("PTX116", message, word)
        arguments += [given[0], int(given[1], 0) if given[1][:2] in ("0x", "0X") else int(given[1]), body[1]]
        at = _expect(_CLOSE, "}", text, body.end(), start)[1]
    return Directive(SOURCES, tuple(arguments), (start, closed.end())), closed.end()


def _expect(pattern: re.Pattern[str], name: str, text: str, at: int, start: int) -> tuple[tuple[str, ...], int]:
    """What the pattern captures at `at`, and where it ends. start: of the section."""
    found = pattern.match(text, at)
    if found is not None:
        return found.groups(), found.end()
    space = _SPACE.match(text, at)
    word = _FOUND.match(text, space.end() if space else at)
    if word is None or not word[0]:
        raise Fault("PTX116", f"missing '}}' at the end of {SOURCES}", (start, start + len(SOURCES)))
    raise Fault("PTX100", f"expected {name}, found '{word[0]}'", word.span())


def sources_text(directive: Directive) -> str:
    """The section as text."""
    lines = [f"{SOURCES} {{"]
    for name, file, text in zip(*[iter(directive.args)] * 3, strict=False):
        lines += [".code_block {", f".ir_name: {name}", f".sourceFileName: {file}", ".source_begin"]
        lines += [*str(text).split("\n")[:-1], ".source_end", "}"]
    return "\n".join([*lines, "}"])
