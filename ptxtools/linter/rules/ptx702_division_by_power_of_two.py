"""PTX702 | division by a power of two | 9.7.1

What: an unsigned division or remainder by a constant power of two.
Why: shr or and is one instruction instead of dozens. ptxas does this only at higher optimisation levels.
Example:
    div.u32 %r1, %r2, 8;
Better:
    shr.u32 %r1, %r2, 3;
"""

from __future__ import annotations

from ptxtools.ir.positions import part_span

from ..constants import constant_divisor
from ..context import LintContext
from ..facts import FunctionFacts, Line
from ..registry import instructions

CODE = "PTX702"


@instructions("div", "rem")
def check(context: LintContext, facts: FunctionFacts, line: Line) -> None:
    op, divisor = line.plan.op, constant_divisor(line)
    if op is None or op.type is None or divisor is None or not op.type.startswith("u"):
        return
    if divisor > 1 and divisor & (divisor - 1) == 0:
        shift = divisor.bit_length() - 1
        better = f"shr.{op.type} by {shift}" if op.family == "div" else f"and.b{op.type[1:]} with {divisor - 1}"
        message = f"'{op.text}' by {divisor} is a division by a power of two"
        context.warn(CODE, message, part_span(line.item, 2), help=(f"use {better}",), section=op.section)
