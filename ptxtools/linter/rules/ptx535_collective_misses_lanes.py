"""PTX535 | mask names lanes that do not come | 9.7.9.6, 9.7.13.2

What: a .sync instruction whose constant mask names lanes that its guard, or a branch or exit before it, excludes.
Why: it waits for all lanes of its mask to execute it, but some never do: the behaviour is undefined.
Example:
    mov.u32 %r9, %laneid;
    setp.lt.u32 %p7, %r9, 16;
    @%p7 bar.warp.sync 0xffffffff;
Better:
    mov.u32 %r9, %laneid;
    setp.lt.u32 %p7, %r9, 16;
    @%p7 bar.warp.sync 0xffff;
"""

from __future__ import annotations

from ptxtools.ir.nodes import Immediate
from ptxtools.ir.positions import part_span

from ..context import LintContext
from ..facts import FunctionFacts
from ..lanes import ALL, places
from ..masks import MASKED, mask_operand
from ..registry import bodies_with

CODE = "PTX535"


@bodies_with("shfl", "vote", "match", "redux", "elect", "bar", "barrier")
def check(context: LintContext, facts: FunctionFacts) -> None:
    for line, lanes in places(facts, MASKED):
        place = mask_operand(line) if lanes.some else None
        mask = None if place is None else line.item.operands[place]
        if place is None or not isinstance(mask, Immediate):
            continue
        named = mask.value & ALL
        if named & ~lanes.most or (lanes.split and named == ALL):
            message = f"this mask names lanes that do not come to '{line.item.opcode}'"
            context.warn(CODE, message, part_span(line.item, place), section="9.7.9.6")
