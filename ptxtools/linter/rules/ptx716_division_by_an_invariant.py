"""PTX716 | division by the same number in each round of a loop | 9.7.1

What: an integer division or remainder in a loop whose divisor nothing in the loop changes.
Why: it takes 20 instructions for 32 bits, and 60 and more for 64. What depends on the divisor alone can be computed
before the loop: a multiplier and a shift, which leave a mul.hi and a shr in it.
Example:
    mov.b32 %r4, 0;
    L:
    rem.u32 %r5, %r4, %r2;
    add.u32 %r4, %r4, 1;
    setp.lt.u32 %p1, %r4, %r5;
    @%p1 bra L;
Better:
    mov.b32 %r4, 0;
    L:
    mul.hi.u32 %r5, %r4, %r2;
    add.u32 %r4, %r4, 1;
    setp.lt.u32 %p1, %r4, %r5;
    @%p1 bra L;
"""

from __future__ import annotations

from ptxtools.ir.nodes import Name
from ptxtools.ir.positions import part_span

from ..accesses import in_register
from ..context import LintContext
from ..facts import FunctionFacts, Line
from ..lanes import only_write
from ..loops import Loop, innermost_loop_of
from ..registry import bodies_with

CODE = "PTX716"


@bodies_with("div", "rem")
def check(context: LintContext, facts: FunctionFacts) -> None:
    lines = [
        line for line in facts.of("div", "rem") if line.plan.op is not None and (line.plan.op.type or "")[0] in "us"
    ]
    loops = innermost_loop_of(facts) if lines else {}
    for line in lines:
        loop = loops.get(id(line.item))
        divisor = line.item.operands[2] if len(line.item.operands) == 3 else None
        if loop is not None and isinstance(divisor, Name) and _steady(facts, loop, line, divisor.name):
            message = f"each round of the loop divides by the same '{divisor.name}'"
            context.warn(CODE, message, part_span(line.item, 2), section="9.7.1")


def _steady(facts: FunctionFacts, loop: Loop, line: Line, name: str) -> bool:
    """Whether a register holds the same in all rounds; each may load it anew from a kernel's parameter."""
    if loop.invariant(line, name):
        return True
    made = only_write(facts, line, name)
    if made is None or facts.function.kind != "entry" or not made.item.opcode.startswith("ld.param."):
        return False
    return made.item.guard is None and not in_register(made, made.item.operands[1])
