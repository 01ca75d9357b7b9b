"""PTX535 | mask names lanes that the guard excludes | 9.7.9.6, 9.7.13.2

What: a .sync instruction with a mask of all lanes, and a guard that certainly differs between the threads of a warp.
Why: it waits for all lanes of its mask to execute it, but some never do: the behaviour is undefined.
Example:
    mov.u32 %r9, %laneid;
    setp.lt.u32 %p7, %r9, 16;
    @%p7 bar.warp.sync 0xffffffff;
Better:
    mov.u32 %r9, %laneid;
    setp.lt.u32 %p7, %r9, 16;
    @%p7 bar.warp.sync 0xffff;
"""

from __future__ import annotations

from ptxtools.ir.nodes import Immediate
from ptxtools.ir.positions import part_span

from ..context import LintContext
from ..facts import FunctionFacts, Line
from ..lanes import splits_warps
from ..masks import mask_operand
from ..registry import instructions

_ALL = 0xFFFFFFFF

CODE = "PTX535"


@instructions("shfl", "vote", "match", "redux", "elect", "activemask", "bar", "barrier")
def check(context: LintContext, facts: FunctionFacts, line: Line) -> None:
    place, guard = mask_operand(line), line.item.guard
    mask = None if place is None else line.item.operands[place]
    if place is None or guard is None or not isinstance(mask, Immediate) or mask.value & _ALL != _ALL:
        return
    if splits_warps(facts, line, guard.name):
        message = f"this mask names all lanes, of which only some execute '{line.item.opcode}'"
        context.warn(CODE, message, part_span(line.item, place), section="9.7.9.6")
