"""PTX537 | lane that is not in its mask | 9.7.9.6, 9.7.13.2

What: a lane executes a .sync instruction whose mask does not name it, if its CTA has that lane; the mask is constant,
or computed from lane numbers, and what branches leave of the lanes is known. Certain but where it says "possible".
Why: the behaviour is undefined if the executing lane is not in its mask.
Example:
    .version 9.0
    .target sm_90
    .address_size 64
    .entry k() {
        .reg .b32 %r<3>;
        mov.u32 %r2, %laneid;
        shfl.sync.idx.b32 %r1, %r2, 0, 31, 0x7fffffff;
        ret;
    }
Better:
    .version 9.0
    .target sm_90
    .address_size 64
    .entry k() {
        .reg .b32 %r<3>;
        mov.u32 %r2, %laneid;
        shfl.sync.idx.b32 %r1, %r2, 0, 31, 0xffffffff;
        ret;
    }
"""

from __future__ import annotations

from ptxtools.ir.nodes import Immediate
from ptxtools.ir.positions import part_span

from ..context import LintContext
from ..facts import FunctionFacts
from ..lanes import ALL, places
from ..masks import MASKED, mask_operand
from ..registry import bodies_with
from ..walk import tell

CODE = "PTX537"


@bodies_with("shfl", "vote", "match", "redux", "elect", "bar", "barrier")
def check(context: LintContext, facts: FunctionFacts) -> None:
    for line, lanes in places(facts, MASKED):
        place = mask_operand(line) if lanes.exact else None
        mask = None if place is None else line.item.operands[place]
        if place is None or not isinstance(mask, Immediate) or not mask.value & ALL:
            continue
        missing = lanes.most & ~mask.value
        if missing:
            lane = (missing & -missing).bit_length() - 1
            message = f"lane {lane} executes '{line.item.opcode}', and is not in its mask"
            context.warn(CODE, message, part_span(line.item, place), section="9.7.9.6")
    tell(context, facts, CODE, "outside of the mask", "9.7.9.6")
