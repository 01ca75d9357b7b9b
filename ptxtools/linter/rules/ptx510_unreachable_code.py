"""PTX510 | unreachable code | 9.7.12

What: an instruction after an unconditional jump, without a label to reach it; or behind a label that nothing names.
Why: it never runs. Often a guard or a label was forgotten.
Example:
    bra DONE;
    add.s32 %r1, %r2, %r3;
    DONE: ret;
Better:
    @%p1 bra DONE;
    add.s32 %r1, %r2, %r3;
    DONE: ret;
"""

from __future__ import annotations

from ptxtools.ir.nodes import Label
from ptxtools.ir.positions import parts_of

from ..context import LintContext
from ..facts import ENDING, FunctionFacts, Line
from ..registry import bodies

#: Compilers put these after a call that does not return, or at the end of a body.
_FILLER = frozenset({"trap", "ret", "exit", "brkpt", "bra", "brx"})

CODE = "PTX510"


@bodies
def check(context: LintContext, facts: FunctionFacts) -> None:
    """Once for each stretch of instructions that no label leads to."""
    dead = False
    for item in facts.items:
        if type(item) is Line:
            if dead and item.plan.family not in _FILLER:
                message = "this instruction is unreachable: it follows an unconditional jump and has no label"
                context.warn(CODE, message, parts_of(item.item).opcode, section="9.7.12")
                dead = False
            elif item.plan.family in ENDING and item.item.guard is None:
                dead = True
        elif type(item) is Label and item.name in facts.targets:
            dead = False
