"""Shared by the warning rules: the module's facts, and the list of findings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ptxtools.check.availability import Declared
from ptxtools.check.context import MOST_FINDINGS
from ptxtools.diagnostics import Diagnostic, Fix, Severity, Source, Span
from ptxtools.ir.nodes import Instruction, Module

from .facts import ModuleFacts

if TYPE_CHECKING:
    from ptxtools.check.locate import Parts


class LintContext:
    """One run of the warning rules over one module."""

    def __init__(self, module: Module, declared: Declared) -> None:
        self.module, self.declared = module, declared
        self.source = module.source or Source("", "<module>")
        self.facts = ModuleFacts(module)
        self.diagnostics: list[Diagnostic] = []

    def warn(
        self,
        code: str,
        message: str,
        span: Span,
        *,
        help: tuple[str, ...] = (),
        section: str | None = None,
        fix: Fix | None = None,
    ) -> None:
        """Add a warning, unless there are too many."""
        if len(self.diagnostics) >= MOST_FINDINGS:
            return
        self.diagnostics.append(
            Diagnostic(code, message, span, self.source, Severity.WARNING, None, section, help, None, fix)
        )

    def parts(self, item: Instruction) -> Parts:
        """The spans of an instruction's parts."""
        from ptxtools.check.locate import statement_parts

        return statement_parts(self.source.text, item.span)

    def operand(self, item: Instruction, index: int) -> Span:
        """The span of an operand; the whole instruction if it is not found."""
        operands = self.parts(item).operands
        return operands[index] if index < len(operands) else item.span

    def word(self, span: Span, word: str) -> Span:
        """The span of a word inside a span."""
        from ptxtools.check.locate import word_span

        return word_span(self.source.text, span, word)
