"""PTX502 | shift by at least the width | 9.7.8.7, 9.7.8.8

What: a shift by a constant, or by a register, that is certainly not smaller than the operand's width.
Why: PTX clamps the amount: the result is zero, or all sign bits. Other languages differ, so it is usually a mistake.
Example:
    shl.b32 %r1, %r2, 32;
Better:
    mov.b32 %r1, 0;
"""

from __future__ import annotations

from ptxtools.ir.positions import part_span
from ptxtools.isa.types import TYPES

from ..constants import bounds, constant
from ..context import LintContext
from ..facts import FunctionFacts, Line
from ..registry import instructions

CODE = "PTX502"


@instructions("shl", "shr")
def check(context: LintContext, facts: FunctionFacts, line: Line) -> None:
    op, operands = line.plan.op, line.item.operands
    if op is None or len(operands) < 3 or op.type is None:
        return
    amount, bits = constant(facts, line, operands[2]), TYPES[op.type].bits
    least = bounds(facts, line, operands[2])[0] if amount is None else amount & 0xFFFFFFFF
    if least >= bits:
        left = "copies of the sign bit" if op.type.startswith("s") and op.family == "shr" else "zero"
        number = f"{least} or more" if amount is None else f"{amount}"
        message = f"a shift of .{op.type} by {number} leaves {left}"
        context.warn(CODE, message, part_span(line.item, 2), section=op.section)
