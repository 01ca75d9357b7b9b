"""PTX533 | shuffle from a lane outside of the mask | 9.7.9.6

What: shfl.sync reads a lane that the mask does not name, where both are constants, or registers that hold one, or, of
.idx, follow from the numbers of the threads.
With .down: none reads one that it names, as some lanes of a sum get what they do not use.
Why: the value of a lane that does not take part is not defined.
Example:
    shfl.sync.idx.b32 %r4, %r1, 9, 31, 0xff;
Better:
    shfl.sync.idx.b32 %r4, %r1, 5, 31, 0xff;
"""

from __future__ import annotations

from ptxtools.ir.positions import part_span

from ..constants import constant
from ..context import LintContext
from ..facts import FunctionFacts, Line
from ..lanes import ALL
from ..masks import source_lane
from ..registry import bodies_with, instructions
from ..values import WARP
from ..walk import tell

CODE = "PTX533"


@instructions("shfl")
def check(context: LintContext, facts: FunctionFacts, line: Line) -> None:
    item, op = line.item, line.plan.op
    operands = item.operands
    if op is None or not op.has("sync") or len(operands) != 5:
        return
    mask = constant(facts, line, operands[4])
    members = ALL if mask is None else mask & ALL
    lane, bound = [constant(facts, line, operand) for operand in operands[2:4]] if members != ALL else (None, None)
    if lane is None or bound is None:
        return
    sums = op.has("down")  # at the end of a sum lanes get what they do not use
    for own in range(WARP):
        if not members >> own & 1:
            continue
        source, inside = source_lane(item.opcode, own, lane, bound)
        if sums and inside and members >> source & 1:
            return
        if inside and not members >> source & 1:
            if sums and members >> own + 1:
                continue
            message = f"lane {own} reads lane {source}, which is not in the mask {members:#x}"
            context.warn(CODE, message, part_span(item, 4), section="9.7.9.6")
            return


@bodies_with("shfl")
def check_walks(context: LintContext, facts: FunctionFacts) -> None:
    tell(context, facts, CODE, "shuffle from outside", "9.7.9.6")
