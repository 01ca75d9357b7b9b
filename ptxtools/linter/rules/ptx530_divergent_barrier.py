"""PTX530 | barrier that part of a warp misses | 9.7.13.1

What: an aligned barrier under a guard, or behind a branch or exit, that certainly differs between the threads of a
warp. Possible if a further condition, which all threads have alike, decides whether any comes to it.
Why: all threads of a warp must execute an aligned barrier together, or the behaviour is undefined.
Example:
    mov.u32 %r9, %tid.x;
    setp.eq.u32 %p7, %r9, 0;
    @%p7 bar.sync 0;
Better:
    bar.sync 0;
"""

from __future__ import annotations

from ptxtools.ir.positions import parts_of

from ..context import LintContext
from ..facts import FunctionFacts
from ..lanes import places
from ..registry import bodies_with
from ..walk import tell

_BARRIERS = frozenset({"bar", "barrier"})

CODE = "PTX530"


@bodies_with("bar", "barrier")
def check(context: LintContext, facts: FunctionFacts) -> None:
    for line, lanes in places(facts, _BARRIERS):
        op, item = line.plan.op, line.item
        if op is None or op.has("warp") or op.has("cluster"):
            continue
        if (op.family == "bar" or op.has("aligned")) and lanes.some and not lanes.exited:
            message = f"only some threads of a warp reach this '{op.text}'"
            help = ("all threads of a warp must execute an aligned barrier together",)
            where = parts_of(item)
            context.warn(CODE, message, where.guard or where.opcode, help=help, section=op.section)
    tell(context, facts, CODE, "divergent barrier", "9.7.13.1")
