"""PTX554 | impossible register limit | 11.4.1

What: .maxnreg below 16 or above 256.
Why: it is ignored, or raised to the number that function calls of the ABI need.
Example:
    .entry k() .maxnreg 8 { ret; }
Better:
    .entry k() .maxnreg 32 { ret; }
"""

from __future__ import annotations

from ptxtools.ir.nodes import Directive, Function

from ..context import LintContext
from ..registry import directives

#: 256 is the same as no limit.
_LEAST, _MOST = 16, 256

CODE = "PTX554"


@directives
def check(context: LintContext, function: Function) -> None:
    for item in function.directives:
        if isinstance(item, Directive) and item.name == ".maxnreg":
            count = next((value for value in item.args if isinstance(value, int)), 0)
            if count and not _LEAST <= count <= _MOST:
                message = f".maxnreg {count} is ignored: a thread has {_LEAST} to {_MOST} registers"
                context.warn(CODE, message, item.span, section="11.4.1")
