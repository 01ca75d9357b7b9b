"""PTX533 | shuffle from a lane outside of the mask | 9.7.9.6

What: shfl.sync reads a lane that the mask does not name, where both are constants, or registers that hold one.
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
from ..registry import instructions

CODE = "PTX533"


_LAST = 31


@instructions("shfl")
def check(context: LintContext, facts: FunctionFacts, line: Line) -> None:
    operands, op = line.item.operands, line.plan.op
    if op is None or not op.has("sync") or len(operands) != 5:
        return
    mask = constant(facts, line, operands[4])
    members = ALL if mask is None else mask & ALL
    lane, bound = [constant(facts, line, operand) for operand in operands[2:4]] if members != ALL else (None, None)
    if lane is None or bound is None:
        return
    clamp, segments, step = bound & _LAST, bound >> 8 & _LAST, lane & _LAST
    sums = op.has("down")  # at the end of a sum lanes get what they do not use
    for own in range(_LAST + 1):
        if not members >> own & 1:
            continue
        highest, lowest = (own & segments) | (clamp & ~segments), own & segments
        if op.has("up"):
            source, inside = own - step, own - step >= highest
        elif op.has("down"):
            source, inside = own + step, own + step <= highest
        elif op.has("bfly"):
            source, inside = own ^ step, (own ^ step) <= highest
        else:
            source = lowest | (step & ~segments)
            inside = source <= highest
        if sums and inside and members >> source & 1:
            return
        if inside and not members >> source & 1:
            if sums and members >> own + 1:
                continue
            message = f"lane {own} reads lane {source}, which is not in the mask {members:#x}"
            context.warn(CODE, message, part_span(line.item, 4), section="9.7.9.6")
            return
