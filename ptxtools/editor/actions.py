"""What an editor offers to do about findings, besides their fixes one by one."""

from __future__ import annotations

from collections.abc import Iterable

from ptxtools.diagnostics import Diagnostic, Severity
from ptxtools.diagnostics.comments import comments_for
from ptxtools.linter.fixes import apply_fixes

from .document import Document

_TOOL = "ptx-lint"


def all_fixed(text: str, findings: Iterable[Diagnostic]) -> str:
    """The text with the fixes of all findings."""
    return apply_fixes(text, findings)[0]


def silencing(document: Document, d: Diagnostic) -> tuple[int, str] | None:
    """Where to write what, so that a comment silences a warning on its line; None for an error, and where that is no
    place for a comment."""
    source = document.module.source
    if source is None or d.severity is Severity.ERROR or source.text != document.text:
        return None
    number = source.line_of(d.span[0])
    for comment in comments_for(source, _TOOL) if f"{_TOOL}:" in source.text else ():
        if comment.lines is not None and number in comment.lines:
            return comment.span[1], f",{d.code}"
    start, end = source.line_span(number)
    end = start + len(source.text[start:end].rstrip())
    if document.is_quiet(end):
        return None  # inside a comment of several lines
    return end, f" // {_TOOL}: disable={d.code}"
