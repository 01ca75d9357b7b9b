"""PTX559 | activemask as the mask of a collective | 9.7.9.7

What: the result of activemask is the member mask of a .sync instruction.
Why: activemask tells which lanes happen to be together, and orders nothing: lanes that belong to the group may be
missing. The mask has to come from what the program knows, or from a vote.
Example:
    activemask.b32 %r4;
    shfl.sync.idx.b32 %r5, %r1, 0, 31, %r4;
Better:
    shfl.sync.idx.b32 %r5, %r1, 0, 31, -1;
"""

from __future__ import annotations

from ptxtools.ir.nodes import Name
from ptxtools.ir.positions import part_span

from ..context import LintContext
from ..facts import FunctionFacts
from ..lanes import only_write
from ..masks import mask_operand
from ..registry import bodies_with

CODE = "PTX559"


@bodies_with("activemask")
def check(context: LintContext, facts: FunctionFacts) -> None:
    for line in facts.lines:
        place = mask_operand(line)
        mask = line.item.operands[place] if place is not None else None
        written = only_write(facts, line, mask.name) if isinstance(mask, Name) else None
        if place is not None and written is not None and written.plan.family == "activemask":
            message = f"the mask of '{line.item.opcode}' is what activemask happens to find"
            context.warn(CODE, message, part_span(line.item, place), section="9.7.9.7")
