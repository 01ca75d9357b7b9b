"""PTX539 | bra.uni that is not uniform | 9.7.12.3

What: bra.uni with a guard that certainly differs between the threads of a warp.
Why: .uni promises that all active threads take the branch or none does; otherwise the behaviour is undefined.
Example:
    mov.u32 %r9, %laneid;
    setp.lt.u32 %p7, %r9, 16;
    @%p7 bra.uni DONE;
    mov.b32 %r1, 1;
    DONE: ret;
Better:
    mov.u32 %r9, %laneid;
    setp.lt.u32 %p7, %r9, 16;
    @%p7 bra DONE;
    mov.b32 %r1, 1;
    DONE: ret;
"""

from __future__ import annotations

from ptxtools.ir.positions import parts_of

from ..context import LintContext
from ..facts import FunctionFacts, Line
from ..lanes import lanes_of
from ..registry import bodies_with, instructions
from ..walk import tell

CODE = "PTX539"


@instructions("bra")
def check(context: LintContext, facts: FunctionFacts, line: Line) -> None:
    guard = line.item.guard
    if guard is not None and ".uni" in line.item.opcode and lanes_of(facts, line, guard) is not None:
        message = "the threads of a warp take this bra.uni differently"
        where = parts_of(line.item)
        context.warn(CODE, message, where.guard or where.opcode, section="9.7.12.3")


@bodies_with("bra")
def check_ways(context: LintContext, facts: FunctionFacts) -> None:
    if any(".uni" in line.item.opcode for line in facts.of("bra")):
        tell(context, facts, CODE, "branch of some", "9.7.12.3")
