"""PTX709 | multiplication of 24 bits | 9.7.1.5, 9.7.1.6

What: mul24.lo or mad24.lo.
Why: no target since sm_20 has such a multiplier: it takes several instructions, where mul.lo takes one.
Example:
    mul24.lo.u32 %r4, %r1, %r2;
Better:
    mul.lo.u32 %r4, %r1, %r2;
"""

from __future__ import annotations

from ptxtools.ir.positions import parts_of

from ..context import LintContext
from ..facts import FunctionFacts, Line
from ..registry import instructions

CODE = "PTX709"


@instructions("mul24", "mad24")
def check(context: LintContext, facts: FunctionFacts, line: Line) -> None:
    op = line.plan.op
    if op is not None and op.has("lo"):
        message = f"'{op.text}' is emulated: {op.family.removesuffix('24')}.lo is faster if the operands fit"
        context.warn(CODE, message, parts_of(line.item).opcode, section=op.section)
