"""PTX538 | matrix instruction that part of a warp misses | 9.7.14.5, 9.7.15

What: an .aligned matrix instruction under a guard, or behind a branch or exit, that certainly differs between the
threads of a warp; or a setmaxnreg or wgmma to which other warps of the warpgroup certainly do not come.
Why: all threads of the warp must execute it together, or the behaviour is undefined.
Example:
    mov.u32 %r9, %laneid;
    setp.lt.u32 %p7, %r9, 16;
    @%p7 movmatrix.sync.aligned.m8n8.trans.b16 %r10, %r1;
Better:
    movmatrix.sync.aligned.m8n8.trans.b16 %r10, %r1;
"""

from __future__ import annotations

from ptxtools.ir.positions import parts_of

from ..context import LintContext
from ..facts import FunctionFacts
from ..lanes import places
from ..registry import bodies_with
from ..walk import tell

_FAMILIES = frozenset({"ldmatrix", "stmatrix", "movmatrix", "mma", "wmma", "wgmma", "tcgen05", "setmaxnreg"})

CODE = "PTX538"


@bodies_with("ldmatrix", "stmatrix", "movmatrix", "mma", "wmma", "wgmma", "tcgen05", "setmaxnreg")
def check(context: LintContext, facts: FunctionFacts) -> None:
    for line, lanes in places(facts, _FAMILIES):
        op = line.plan.op
        if lanes.some and op is not None and op.has("aligned"):
            where = parts_of(line.item)
            message = f"only some threads of a warp reach this '{op.text}'"
            context.warn(CODE, message, where.guard or where.opcode, section=op.section)


@bodies_with("setmaxnreg", "wgmma")
def check_warpgroup(context: LintContext, facts: FunctionFacts) -> None:
    tell(context, facts, CODE, "part of a warpgroup", "9.7.15, 9.7.20.5")
