"""PTX553 | directive is repeated | 11.4

What: a function has the same directive twice.
Why: one of them is ignored.
Example:
    .entry k() .maxntid 128 .maxntid 64 { ret; }
Better:
    .entry k() .maxntid 64 { ret; }
"""

from __future__ import annotations

from ptxtools.check.edits import removed
from ptxtools.ir.nodes import Directive, Function

from ..context import LintContext
from ..registry import directives

CODE = "PTX553"


@directives
def check(context: LintContext, function: Function) -> None:
    seen: dict[str, Directive] = {}
    for item in function.directives:
        if not isinstance(item, Directive):
            continue
        if item.name in seen:
            message = f"{item.name} is given twice: one of them is ignored"
            same = seen[item.name].args == item.args
            fix = removed(context.source.text, item.span, f"remove the second {item.name}") if same else None
            context.warn(CODE, message, item.span, section="11.4", fix=fix)
        seen.setdefault(item.name, item)
