"""PTX550 | more threads than a CTA can have | 11.4.2, 11.4.3

What: .maxntid or .reqntid with a product of more than 1024.
Why: no launch can satisfy it.
Example:
    .entry k() .reqntid 64, 32 { ret; }
Better:
    .entry k() .reqntid 32, 32 { ret; }
"""

from __future__ import annotations

from math import prod

from ptxtools.ir.nodes import Directive, Function

from ..context import LintContext
from ..registry import directives

_MAX_THREADS = 1024

CODE = "PTX550"


@directives
def check(context: LintContext, function: Function) -> None:
    for item in function.directives:
        if not isinstance(item, Directive) or item.name not in (".maxntid", ".reqntid"):
            continue
        total = prod(value for value in item.args if isinstance(value, int))
        if total > _MAX_THREADS:
            message = f"{item.name} allows {total} threads; a CTA has at most {_MAX_THREADS}"
            context.warn(CODE, message, item.span, section="11.4.2")
