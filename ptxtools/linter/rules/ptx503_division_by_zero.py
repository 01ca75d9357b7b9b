"""PTX503 | division by zero | 9.7.1

What: an integer division or remainder by the constant 0, or by a register that certainly holds 0. Certain.
Why: the result is machine-specific; nothing traps.
Example:
    div.s32 %r1, %r2, 0;
Better:
    div.s32 %r1, %r2, 3;
"""

from __future__ import annotations

from ptxtools.ir.positions import part_span
from ptxtools.isa.types import TYPES

from ..constants import constant
from ..context import LintContext
from ..facts import FunctionFacts, Line
from ..registry import instructions

CODE = "PTX503"


@instructions("div", "rem")
def check(context: LintContext, facts: FunctionFacts, line: Line) -> None:
    op, operands = line.plan.op, line.item.operands
    if op is None or len(operands) < 3 or op.type is None or TYPES[op.type].kind != "int":
        return
    if constant(facts, line, operands[2]) == 0:
        message = f"'{op.text}' by zero: the result is machine-specific"
        context.warn(CODE, message, part_span(line.item, 2), section=op.section)
