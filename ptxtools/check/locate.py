"""Where a word of a directive or a declaration stands. Instructions know it of their parts (`ir.positions`)."""

from __future__ import annotations

import re

from ptxtools.diagnostics import Span

_COMMENT = re.compile(r"//[^\n]*|/\*.*?(?:\*/|\Z)", re.S)


def word_span(text: str, span: Span, word: str) -> Span:
    """The first occurrence of `word` as a whole word inside the span; the span itself when there is none."""
    code = _COMMENT.sub(lambda found: " " * len(found[0]), text[span[0] : span[1]])
    found = re.search(rf"(?<![\w$%]){re.escape(word)}(?![\w$])", code)
    at = found.start() if found else code.find(word)
    return (span[0] + at, span[0] + at + len(word)) if at >= 0 else span
