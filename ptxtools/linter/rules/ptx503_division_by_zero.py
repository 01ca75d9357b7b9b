"""PTX503 | division by zero | 9.7.1

What: an integer division or remainder by the constant 0, or by a register that certainly holds 0 (certain), at least in
one of the threads that come to it.
Why: the result is machine-specific; nothing traps.
Example:
    div.s32 %r1, %r2, 0;
Better:
    div.s32 %r1, %r2, 3;
"""

from __future__ import annotations

from ptxtools.ir.nodes import Immediate, Name, Operand
from ptxtools.ir.positions import part_span
from ptxtools.isa.types import TYPES

from ..constants import constant, last_write
from ..context import LintContext
from ..facts import FunctionFacts, Line
from ..registry import bodies_with, instructions
from ..walk import tell

CODE = "PTX503"


@instructions("div", "rem")
def check(context: LintContext, facts: FunctionFacts, line: Line) -> None:
    op, operands = line.plan.op, line.item.operands
    if op is None or len(operands) < 3 or op.type is None or TYPES[op.type].kind != "int":
        return
    zero = constant(facts, line, operands[2]) == 0
    if zero or _under_a_guard(facts, line, operands[2]):
        message = f"'{op.text}' by zero{'' if zero else ' in some threads'}: the result is machine-specific"
        context.warn(CODE, message, part_span(line.item, 2), section=op.section)


@bodies_with("div", "rem")
def check_threads(context: LintContext, facts: FunctionFacts) -> None:
    tell(context, facts, CODE, "division by zero", "9.7.1")


def _under_a_guard(facts: FunctionFacts, line: Line, operand: Operand) -> bool:
    """Whether a guarded instruction shortly before makes the divisor zero, and the division is not guarded."""
    made = last_write(facts, line, operand.name) if isinstance(operand, Name) and line.item.guard is None else None
    if made is None or made.plan.family != "mov" or made.item.guard is None or len(made.item.operands) != 2:
        return False
    source = made.item.operands[1]
    return isinstance(source, Immediate) and source.value == 0 and source.type[0] != "f"
