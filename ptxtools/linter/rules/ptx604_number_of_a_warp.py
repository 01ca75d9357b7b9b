"""PTX604 | register that may change while the thread runs | 10.5, 10.8

What: %warpid, %nwarpid, %smid or %nsmid is read.
Why: a thread can be moved to another place; the manual calls them volatile, for diagnosis only. The number of a warp
in its CTA follows from %tid.
Example:
    mov.u32 %r4, %warpid;
Better:
    mov.u32 %r4, %tid.x;
    shr.u32 %r4, %r4, 5;
"""

from __future__ import annotations

from ptxtools.ir.nodes import Name
from ptxtools.ir.positions import part_span

from ..context import LintContext
from ..facts import FunctionFacts, Line
from ..registry import instructions

CODE = "PTX604"


_VOLATILE = frozenset({"%warpid", "%nwarpid"})


@instructions("mov", "cvt")
def check(context: LintContext, facts: FunctionFacts, line: Line) -> None:
    for place, operand in enumerate(line.item.operands[1:], 1):
        if type(operand) is Name and operand.name in _VOLATILE:
            message = f"'{operand.name}' may change while the thread runs"
            context.warn(CODE, message, part_span(line.item, place), section="10.5")
