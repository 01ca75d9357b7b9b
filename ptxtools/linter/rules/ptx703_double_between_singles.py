"""PTX703 | double precision between single-precision values | 9.7.3

What: an f64 operation whose operands are converted from f32, or constants, and whose result is only converted to f32.
Why: double precision is 2 to 64 times slower. In most programs this is a constant without an `f`.
Example:
    cvt.f64.f32 %rd3, %f1;
    mul.rn.f64 %rd4, %rd3, 0d4000000000000000;
    cvt.rn.f32.f64 %f3, %rd4;
Better:
    mul.rn.f32 %f3, %f1, 0f40000000;
"""

from __future__ import annotations

from ptxtools.ir.nodes import Name
from ptxtools.ir.positions import parts_of

from ..context import LintContext
from ..facts import FunctionFacts, Line
from ..lanes import only_write
from ..registry import instructions

CODE = "PTX703"


@instructions("cvt")
def check(context: LintContext, facts: FunctionFacts, line: Line) -> None:
    if not line.item.opcode.endswith(".f32.f64") or len(line.item.operands) < 2:
        return
    source = line.item.operands[1]
    made = only_write(facts, line, source.name) if isinstance(source, Name) else None
    if made is None or made.plan.family not in ("add", "sub", "mul", "div", "fma"):
        return
    for operand in made.item.operands[1:]:
        if isinstance(operand, Name):
            origin = only_write(facts, made, operand.name)
            if origin is None or not origin.item.opcode.endswith(".f64.f32"):
                return
    message = f"'{made.item.opcode}' computes in double precision what comes from and goes to single precision"
    context.warn(CODE, message, parts_of(made.item).opcode, section=made.plan.op.section if made.plan.op else "9.7.3")
