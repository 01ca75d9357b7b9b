"""PTX552 | directive without effect | 11.4.4

What: .minnctapersm without .maxntid or .reqntid.
Why: without the number of threads, registers cannot be divided, and it is ignored.
Example:
    .entry k() .minnctapersm 2 { ret; }
Better:
    .entry k() .maxntid 256 .minnctapersm 2 { ret; }
"""

from __future__ import annotations

from ptxtools.ir.nodes import Directive, Function

from ..context import LintContext
from ..limits import cluster_sizes
from ..registry import directives

CODE = "PTX552"


@directives
def check(context: LintContext, function: Function) -> None:
    for item, total in cluster_sizes(function):
        if not total:
            context.warn(CODE, f"{item.name} 0 has no effect", item.span, section="11.7.1")
    seen = {item.name: item for item in function.directives if isinstance(item, Directive)}
    if ".minnctapersm" in seen and not {".maxntid", ".reqntid"} & seen.keys():
        message = ".minnctapersm is ignored without .maxntid or .reqntid"
        context.warn(CODE, message, seen[".minnctapersm"].span, section="11.4.4")
