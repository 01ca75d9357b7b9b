"""Instructions that need others: which of them a module lacks altogether."""

from __future__ import annotations

import re

from .context import LintContext
from .facts import Line


def first(context: LintContext, pattern: str) -> Line | None:
    """The first instruction of the module whose opcode begins as a regular expression says."""
    matches = re.compile(pattern).match
    return next((line for opcode, line in context.facts.opcodes.items() if matches(opcode)), None)


def unmet(context: LintContext, uses: str, needs: str) -> Line | None:
    """The first instruction that needs another one, when the module has no such one; patterns as for `first`.

    None if it has, or if code of other modules, which may have it, runs in its kernels.
    """
    line = first(context, uses)
    return line if line is not None and context.facts.whole and first(context, needs) is None else None
