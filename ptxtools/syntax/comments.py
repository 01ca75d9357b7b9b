"""An unterminated comment, which hides the rest of the text."""

from __future__ import annotations

import re

from ptxtools.diagnostics import Diagnostic, Source

_CODE = "PTX102"
_OPEN_OR_WHOLE = re.compile(r'//[^\n]*|/\*(?s:.*?)\*/|"[^"]*"|(?P<open>/\*)')


def with_open_comment(diagnostics: list[Diagnostic], source: Source) -> list[Diagnostic]:
    """The findings in a text with mistakes. An unterminated comment is reported where it begins, even if its statement
    is already wrong before it; everything after it is redundant."""
    at = open_comment(source.text)
    if at is None:
        return diagnostics
    kept = [d for d in diagnostics if d.span[0] < at and d.code != "PTX116"]
    message, help = "this comment is unterminated", ("close it with */",)
    return [*kept, Diagnostic(_CODE, message, (at, at + 2), source, help=help)]


def open_comment(text: str) -> int | None:
    """Where a comment begins that does not end."""
    if "/*" not in text:
        return None
    return next((found.start() for found in _OPEN_OR_WHOLE.finditer(text) if found["open"]), None)
