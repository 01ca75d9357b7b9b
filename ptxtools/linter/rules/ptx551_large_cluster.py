"""PTX551 | large cluster | 11.7.1

What: a cluster of more than 8 CTAs, which not every device allows, or of more than 16, which none does.
Why: the launch fails, or requires a device attribute.
Example:
    .entry k() .reqnctapercluster 17 { ret; }
Better:
    .entry k() .reqnctapercluster 8 { ret; }
"""

from __future__ import annotations

from ptxtools.ir.nodes import Function

from ..context import LintContext
from ..limits import cluster_sizes
from ..registry import directives

_PORTABLE, _MOST = 8, 16

CODE = "PTX551"


@directives
def check(context: LintContext, function: Function) -> None:
    for item, total in cluster_sizes(function):
        if total > _PORTABLE:
            limit = f"at most {_MOST}" if total > _MOST else f"{_PORTABLE} on every device"
            message = f"{item.name} asks for {total} CTAs; a cluster has {limit}"
            context.warn(CODE, message, item.span, section="11.7.1")
