"""Shared by the warning rules: the module's facts, and the list of findings."""

from __future__ import annotations

from ptxtools.check.availability import Declared
from ptxtools.check.context import MOST_FINDINGS
from ptxtools.diagnostics import Diagnostic, Fix, Severity, Source, Span
from ptxtools.ir.nodes import Module

from .facts import ModuleFacts
from .levels import with_level


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
        help = with_level(code, help)
        self.diagnostics.append(
            Diagnostic(code, message, span, self.source, Severity.WARNING, None, section, help, None, fix)
        )
