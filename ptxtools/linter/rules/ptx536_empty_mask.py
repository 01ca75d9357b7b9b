"""PTX536 | mask without lanes | 9.7.9.6, 9.7.13.2

What: a .sync instruction whose member mask is the constant 0.
Why: the behaviour is undefined if the executing lane is not in its mask.
Example:
    bar.warp.sync 0;
Better:
    bar.warp.sync 0xffffffff;
"""

from __future__ import annotations

from ptxtools.ir.nodes import Immediate
from ptxtools.ir.positions import part_span

from ..context import LintContext
from ..facts import FunctionFacts, Line
from ..masks import mask_operand
from ..registry import instructions

CODE = "PTX536"


@instructions("shfl", "vote", "match", "redux", "elect", "bar", "barrier")
def check(context: LintContext, facts: FunctionFacts, line: Line) -> None:
    place = mask_operand(line)
    mask = None if place is None else line.item.operands[place]
    if place is not None and isinstance(mask, Immediate) and mask.value & 0xFFFFFFFF == 0:
        message = "this mask names no lane, not even the one that executes the instruction"
        context.warn(CODE, message, part_span(line.item, place), section="9.7.9.6")
