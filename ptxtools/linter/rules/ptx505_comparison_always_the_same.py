"""PTX505 | comparison with one possible result | 9.7.6.2

What: an unsigned number is compared with 0 by `lt` or `ge`, or a register with itself.
Why: the result is the same for every value: a signed type, another bound or another register was meant.
Example:
    setp.lt.u32 %p3, %r1, 0;
Better:
    setp.lt.s32 %p3, %r1, 0;
"""

from __future__ import annotations

from ptxtools.ir.nodes import Immediate, Name
from ptxtools.ir.positions import part_span
from ptxtools.isa.types import TYPES

from ..context import LintContext
from ..facts import FunctionFacts, Line
from ..registry import instructions

CODE = "PTX505"


@instructions("setp", "set")
def check(context: LintContext, facts: FunctionFacts, line: Line) -> None:
    op, operands = line.plan.op, line.item.operands
    if op is None or len(operands) < 3 or op.type is None or TYPES[op.type].kind not in ("int", "bits"):
        return
    a, b = operands[1], operands[2]
    zero = isinstance(b, Immediate) and b.value == 0
    below = op.has("lo") or op.has("lt")
    if zero and op.type[0] == "u" and (below or op.has("hs") or op.has("ge")):
        result = "never" if below else "always"
        context.warn(CODE, f"a .{op.type} is {result} {'less than 0' if below else '0 or more'}",
                     part_span(line.item, 2), section=op.section)  # fmt: skip
    elif isinstance(a, Name) and a == b:
        context.warn(CODE, f"'{a.name}' is compared with itself", part_span(line.item, 2), section=op.section)
