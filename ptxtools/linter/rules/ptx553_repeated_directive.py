"""PTX553 | directive is repeated | 11.4

What: a function has the same directive twice.
Why: one of them is ignored.
Example:
    .entry k() .maxntid 128 .maxntid 64 { ret; }
Better:
    .entry k() .maxntid 64 { ret; }
"""

from __future__ import annotations

from ptxtools.ir.nodes import Directive, Function

from ..context import LintContext
from ..registry import directives

CODE = "PTX553"


@directives
def check(context: LintContext, function: Function) -> None:
    seen: set[str] = set()
    for item in function.directives:
        if not isinstance(item, Directive):
            continue
        if item.name in seen:
            message = f"{item.name} is given twice: one of them is ignored"
            context.warn(CODE, message, item.span, section="11.4")
        seen.add(item.name)
