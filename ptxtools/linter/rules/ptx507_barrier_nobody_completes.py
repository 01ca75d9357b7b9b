"""PTX507 | barrier that expects more threads than come | 9.7.14.1

What: bar or barrier has a constant number and a constant count of threads, and fewer threads can come to all
instructions for that barrier together: comparisons of %tid.x with constants send the others elsewhere; or, of threads
that a walk follows, the others have ended. Certain if .reqntid says which threads there are; else possible, as a kernel
that asks for %tid.x only may have CTAs of several dimensions.
Why: the barrier never completes: these threads wait forever.
Example:
    .version 8.0
    .target sm_80
    .address_size 64
    .entry k() .reqntid 64 {
        .reg .pred %p<2>; .reg .b32 %r<2>;
        mov.u32 %r1, %tid.x; setp.lt.u32 %p1, %r1, 32;
        @%p1 bar.sync 3, 64;
        ret;
    }
Better:
    .version 8.0
    .target sm_80
    .address_size 64
    .entry k() .reqntid 64 {
        .reg .pred %p<2>; .reg .b32 %r<2>;
        mov.u32 %r1, %tid.x; setp.lt.u32 %p1, %r1, 32;
        @%p1 bar.sync 3, 32;
        ret;
    }
"""

from __future__ import annotations

from ptxtools.ir.positions import part_span

from ..coming import barriers_of
from ..context import LintContext
from ..facts import FunctionFacts
from ..memory import WARP
from ..registry import bodies_with
from ..walk import tell, told
from ..walk.shapes import declared_shape

CODE = "PTX507"


@bodies_with("bar", "barrier")
def check(context: LintContext, facts: FunctionFacts) -> None:
    for users in barriers_of(facts).values():
        counts = {user.expected for user in users}
        waiting, arriving = 0, 0
        for user in users:
            waiting |= 0 if user.arrives else user.warps
            arriving += user.warps.bit_count() if user.arrives else 0
        threads = (waiting.bit_count() + arriving) * WARP
        count = counts.pop()
        if not counts and 0 < threads < count:
            line = users[0].line
            message = f"this barrier expects {count} threads, and {threads} come"
            place = len(line.item.operands) - 1 - (".red" in line.item.opcode)
            sure = declared_shape(facts.function) is not None
            help = ("certain: other threads never come" if sure else "possible: if CTAs have one dimension",)
            context.warn(CODE, message, part_span(line.item, place), help=help, section="9.7.14.1")
    if not told(context, facts, CODE):
        tell(context, facts, CODE, "barrier without end", "9.7.14.1")
