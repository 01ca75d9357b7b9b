"""A syntax error in one unit of the text."""

from __future__ import annotations

from ptxtools.diagnostics import Fix, Span


class Fault(Exception):  # noqa: N818 - of the input, not of ours
    """Why and where a unit (a statement, a declaration, a header) cannot be parsed. `span` is in the whole text."""

    def __init__(self, code: str, message: str, span: Span, help: tuple[str, ...] = (), fix: Fix | None = None) -> None:
        super().__init__(message)
        self.code, self.message, self.span, self.help, self.fix = code, message, span, help, fix
