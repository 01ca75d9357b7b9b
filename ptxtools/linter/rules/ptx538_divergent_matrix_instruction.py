"""PTX538 | matrix instruction that part of a warp misses | 9.7.14.5, 9.7.15

What: an .aligned matrix instruction under a guard, or behind a branch or exit, that certainly differs between the
threads of a warp; or a setmaxnreg or wgmma to which other warps of the warpgroup certainly do not come, or a wgmma
to which its threads give different descriptors.
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

from ..coming import alike_in_warps, coming_to, holding
from ..context import LintContext
from ..facts import FunctionFacts, Line
from ..lanes import ALL, places
from ..memory import WARP
from ..registry import bodies_with
from ..walk import tell
from ..walk.shapes import most_threads

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
            return
    if "bra" in facts.families and any(_parts_by_number(facts, line) for line in facts.of("bra")):
        _check_ways(context, facts)


def _check_ways(context: LintContext, facts: FunctionFacts) -> None:
    """Instructions that only some lanes of a warp come to, as comparisons of %tid.x decide, on whatever way."""
    count = most_threads(facts.function)
    if count is None or facts.function.kind != "entry" or {"%tid.y", "%tid.z"} & facts.targets.keys():
        return
    for line, coming in coming_to(facts, tuple(_FAMILIES), count):
        op, everybody = line.plan.op, (1 << count) - 1
        parts = any(0 < coming.threads >> at & ALL < everybody >> at & ALL for at in range(0, count, WARP))
        if coming.exact and parts and op is not None and op.has("aligned"):
            message = f"only some threads of a warp reach this '{op.text}'"
            context.warn(CODE, message, parts_of(line.item).opcode, section=op.section)
            return


def _parts_by_number(facts: FunctionFacts, line: Line) -> bool:
    holds = holding(facts, line, line.item.guard) if line.item.guard is not None else None
    return holds is not None and not alike_in_warps(holds)


@bodies_with("setmaxnreg", "wgmma")
def check_warpgroup(context: LintContext, facts: FunctionFacts) -> None:
    tell(context, facts, CODE, "part of a warpgroup", "9.7.15, 9.7.20.5")
