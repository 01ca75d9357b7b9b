"""PTX708 | division of 64 bits for numbers of 32 | 9.7.1.9, 9.7.1.10

What: an unsigned 64-bit div or rem of numbers that are 32-bit ones, extended, or small constants.
Why: it takes about 60 instructions, the 32-bit division 20, with the same result.
Example:
    cvt.u64.u32 %rd3, %r1;
    cvt.u64.u32 %rd4, %r2;
    div.u64 %rd5, %rd3, %rd4;
Better:
    div.u32 %r4, %r1, %r2;
    cvt.u64.u32 %rd5, %r4;
"""

from __future__ import annotations

from ptxtools.ir.nodes import Immediate, Name, Operand
from ptxtools.ir.positions import parts_of

from ..context import LintContext
from ..facts import FunctionFacts, Line
from ..lanes import only_write
from ..registry import instructions

CODE = "PTX708"

_LIMIT = 1 << 32


@instructions("div", "rem")
def check(context: LintContext, facts: FunctionFacts, line: Line) -> None:
    op, operands = line.plan.op, line.item.operands
    if op is None or op.type != "u64" or len(operands) != 3 or isinstance(operands[1], Immediate):
        return
    if isinstance(operands[2], Immediate) and operands[2].value & (operands[2].value - 1) == 0:
        return  # a shift
    if all(_narrow(facts, line, operand) for operand in operands[1:]):
        message = f"'{op.text}' divides numbers of 32 bits"
        help = (f"use {op.family}.u32, and extend the result",)
        context.warn(CODE, message, parts_of(line.item).opcode, help=help, section=op.section)


def _narrow(facts: FunctionFacts, line: Line, operand: Operand) -> bool:
    """Whether an operand is certainly below 2^32."""
    if isinstance(operand, Immediate):
        return 0 <= operand.value < _LIMIT
    made = only_write(facts, line, operand.name) if isinstance(operand, Name) else None
    return made is not None and made.item.guard is None and made.item.opcode in ("cvt.u64.u32", "cvt.u64.u16")
