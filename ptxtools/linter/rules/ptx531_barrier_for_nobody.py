"""PTX531 | barrier for no threads | 9.7.13.1

What: a barrier with a thread count of 0.
Why: a barrier waits for whole warps, at least one.
Example:
    bar.sync 0, 0;
Better:
    bar.sync 0;
"""

from __future__ import annotations

from ptxtools.check.edits import rewritten
from ptxtools.ir.nodes import Immediate
from ptxtools.ir.positions import part_span

from ..context import LintContext
from ..facts import FunctionFacts, Line
from ..registry import instructions

CODE = "PTX531"


@instructions("bar", "barrier")
def check(context: LintContext, facts: FunctionFacts, line: Line) -> None:
    op, item = line.plan.op, line.item
    if op is None or op.has("warp") or op.has("cluster"):
        return
    count = item.operands[1] if len(item.operands) > 1 and op.has("sync") else None
    if isinstance(count, Immediate) and count.value == 0:
        message = "this barrier waits for 0 threads"
        fix = rewritten(context.source.text, item, item.opcode, {1: ""})
        help = ("omit the count to wait for the whole CTA",)
        context.warn(CODE, message, part_span(item, 1), help=help, section=op.section, fix=fix)
