"""PTX702 | division by a power of two | 9.7.1

What: an integer division or remainder by a constant power of two, or by a register that certainly holds one.
Why: shr or and is one instruction instead of 15 or more, and ptxas 13.0 does not find it at any level. A signed
division rounds to zero: of numbers that may be negative, the divisor less one is added before the shift (three
instructions).
Example:
    div.u32 %r1, %r2, 8;
Better:
    shr.u32 %r1, %r2, 3;
"""

from __future__ import annotations

from ptxtools.check.edits import rewritten
from ptxtools.ir.positions import part_span

from ..constants import constant
from ..context import LintContext
from ..facts import FunctionFacts, Line
from ..registry import instructions

CODE = "PTX702"


@instructions("div", "rem")
def check(context: LintContext, facts: FunctionFacts, line: Line) -> None:
    op, operands = line.plan.op, line.item.operands
    if op is None or op.type is None or len(operands) < 3 or op.type[0] not in "us":
        return
    divisor = constant(facts, line, operands[2])
    if divisor is None:
        return
    if divisor > 1 and divisor & (divisor - 1) == 0:
        shift = divisor.bit_length() - 1
        opcode, number = f"shr.{op.type}", shift
        if op.family == "rem":
            opcode, number = f"and.b{op.type[1:]}", divisor - 1
        better, fix = f"{opcode} {'by' if op.family == 'div' else 'with'} {number}", None
        if op.type[0] == "u":
            fix = rewritten(context.source.text, line.item, opcode, {2: str(number)})
        else:
            better += f" if the dividend is not negative, else add {divisor - 1} to negative ones before"
        message = f"'{op.text}' by {divisor} is a division by a power of two"
        context.warn(CODE, message, part_span(line.item, 2), help=(f"use {better}",), section=op.section, fix=fix)
