"""PTX535 | mask names lanes that do not come | 9.7.9.6, 9.7.13.2

What: a .sync instruction whose mask names lanes that its guard, or a branch or exit before it, excludes; the mask is
constant, or computed from lane numbers. Or lanes leave a loop with such an instruction at different times: certain if
its rounds are constants, possible if they depend on an argument, which may be a multiple of the warp.
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

from collections import Counter

from ptxtools.ir.nodes import Immediate, Operand
from ptxtools.ir.positions import part_span

from ..context import LintContext
from ..facts import FunctionFacts, Line
from ..lanes import ALL, places
from ..masks import MASKED, mask_operand
from ..registry import bodies_with
from ..walk import tell

CODE = "PTX535"


def _meeting(line: Line) -> tuple[str, Operand | None]:
    """What is equal of two instructions at which lanes meet."""
    place = mask_operand(line)
    return line.item.opcode, None if place is None else line.item.operands[place]


@bodies_with("shfl", "vote", "match", "redux", "elect", "bar", "barrier")
def check(context: LintContext, facts: FunctionFacts) -> None:
    found = list(places(facts, MASKED))
    alike = Counter(_meeting(line) for line, _ in found)
    for line, lanes in found:
        place = mask_operand(line) if lanes.some else None
        mask = None if place is None else line.item.operands[place]
        if place is None or not isinstance(mask, Immediate) or alike[_meeting(line)] > 1:
            continue  # lanes may meet at two instructions: walks of kernels tell
        named = mask.value & ALL
        if named & ~lanes.most or (lanes.split and named == ALL):
            message = f"this mask names lanes that do not come to '{line.item.opcode}'"
            context.warn(CODE, message, part_span(line.item, place), section="9.7.9.6")
    tell(context, facts, CODE, "lanes do not come", "9.7.9.6")
