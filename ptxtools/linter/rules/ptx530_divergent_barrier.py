"""PTX530 | barrier that part of a warp misses | 9.7.13.1

What: an aligned barrier with a guard that certainly differs between the threads of a warp.
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
from ..facts import FunctionFacts, Line
from ..lanes import splits_warps
from ..registry import instructions

CODE = "PTX530"


@instructions("bar", "barrier")
def check(context: LintContext, facts: FunctionFacts, line: Line) -> None:
    op, item = line.plan.op, line.item
    if op is None or op.has("warp") or op.has("cluster"):
        return
    aligned = op.family == "bar" or op.has("aligned")
    guard = item.guard
    if aligned and guard is not None and splits_warps(facts, line, guard.name):
        message = f"only some threads of a warp reach this '{op.text}'"
        help = ("all threads of a warp must execute an aligned barrier together",)
        context.warn(CODE, message, parts_of(item).guard or item.span, help=help, section=op.section)
