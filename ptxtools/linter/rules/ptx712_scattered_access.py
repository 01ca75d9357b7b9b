"""PTX712 | each lane accesses a sector of its own | 5.1.4

What: a load or store of global memory at which the addresses of neighbouring threads are 64 bytes or more apart; they
follow from %tid.x.
Why: each lane moves a whole sector of 32 bytes: a warp takes up to 32 times the traffic.
Example:
    mov.u32 %r4, %tid.x;
    mad.wide.u32 %rd3, %r4, 256, %rd2;
    ld.global.b32 %r5, [%rd3];
Better:
    mov.u32 %r4, %tid.x;
    mad.wide.u32 %rd3, %r4, 4, %rd2;
    ld.global.b32 %r5, [%rd3];
"""

from __future__ import annotations

from itertools import pairwise

from ptxtools.ir.positions import part_span

from ..context import LintContext
from ..memory import WARP
from ..registry import modules_with

CODE = "PTX712"


_APART = 64


@modules_with("ld", "st")
def check(context: LintContext) -> None:
    for facts in context.facts.functions:
        for step in facts.accesses:
            access = step.access
            if access is None or step.atomic or access.space != "global" or isinstance(access.address.each, int):
                continue
            if step.line.item.guard is not None and (step.active is None or not all(step.active[:WARP])):
                continue
            numbers = access.address.numbers[:WARP]
            apart = min(abs(b - a) for a, b in pairwise(numbers))
            if apart >= _APART and access.size * 2 <= apart:
                message = f"neighbouring threads are {apart} bytes apart, and each accesses {access.size}"
                context.warn(CODE, message, part_span(step.line.item, access.operand), section="5.1.4")
