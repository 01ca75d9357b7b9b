"""PTX702 | division by a power of two | 9.7.1

What: an unsigned division or remainder by a constant power of two, or by a register that certainly holds one.
Why: shr or and is one instruction instead of dozens. ptxas does this only at higher optimisation levels.
Example:
    div.u32 %r1, %r2, 8;
Better:
    shr.u32 %r1, %r2, 3;
"""

from __future__ import annotations

from ptxtools.ir.positions import part_span

from ..constants import constant
from ..context import LintContext
from ..facts import FunctionFacts, Line
from ..registry import instructions

CODE = "PTX702"


@instructions("div", "rem")
def check(context: LintContext, facts: FunctionFacts, line: Line) -> None:
    op, operands = line.plan.op, line.item.operands
    if op is None or op.type is None or len(operands) < 3 or not op.type.startswith("u"):
        return
    divisor = constant(facts, line, operands[2])
    if divisor is None:
        return
    if divisor > 1 and divisor & (divisor - 1) == 0:
        shift = divisor.bit_length() - 1
        better = f"shr.{op.type} by {shift}" if op.family == "div" else f"and.b{op.type[1:]} with {divisor - 1}"
        message = f"'{op.text}' by {divisor} is a division by a power of two"
        context.warn(CODE, message, part_span(line.item, 2), help=(f"use {better}",), section=op.section)
