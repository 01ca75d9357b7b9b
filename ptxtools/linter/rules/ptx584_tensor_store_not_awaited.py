"""PTX584 | nothing waits for tcgen05.st | 9.7.16.8.5

What: the module has tcgen05.st, and no tcgen05.wait::st; or between a tcgen05.st and a barrier, tcgen05.ld, or fence
and arrival at an mbarrier there is none, though there is one elsewhere.
Why: a product, or a load, that reads the stored tensor memory may come first.
Example:
    .version 9.0
    .target sm_100a
    .address_size 64
    .entry k() {
        .reg .b32 %r<9>; .reg .b64 %d<3>; .reg .pred %p<3>; .shared .align 8 .b64 bar; .shared .b32 at;
        tcgen05.st.sync.aligned.32x32b.x1.b32 [%r1], {%r2};
        ret;
    }
Better:
    .version 9.0
    .target sm_100a
    .address_size 64
    .entry k() {
        .reg .b32 %r<9>; .reg .b64 %d<3>; .reg .pred %p<3>; .shared .align 8 .b64 bar; .shared .b32 at;
        tcgen05.st.sync.aligned.32x32b.x1.b32 [%r1], {%r2};
        tcgen05.wait::st.sync.aligned;
        ret;
    }
"""

from __future__ import annotations

import re

from ptxtools.ir.positions import parts_of

from ..context import LintContext
from ..facts import FunctionFacts, Line
from ..presence import unmet
from ..registry import bodies_with, modules_with
from ..runs import rounds_of
from ..walk import tell

CODE = "PTX584"

_USES = re.compile(r"tcgen05\.(ld|mma|cp|shift)\b").match


@modules_with("tcgen05")
def check(context: LintContext) -> None:
    line = unmet(context, r"tcgen05\.st\.", r"tcgen05\.wait::st")
    if line is not None:
        message = f"nothing in the module waits for '{line.item.opcode}'"
        context.warn(CODE, message, parts_of(line.item).opcode, section="9.7.16.8.5")


@bodies_with("tcgen05")
def check_order(context: LintContext, facts: FunctionFacts) -> None:
    last = max((line.item.span[0] for line in facts.of("tcgen05") if _USES(line.item.opcode)), default=0)
    for run in rounds_of(facts):
        stored: Line | None = None
        for line in run:
            opcode = line.item.opcode
            if opcode.startswith("tcgen05.st."):
                stored = line
            elif opcode.startswith("tcgen05.wait::st") or line.plan.family == "call":
                stored = None
            elif stored is not None and _tells(stored, line, last):
                number = context.source.line_of(stored.item.span[0])
                message = f"nothing has waited for the tcgen05.st in line {number}"
                context.warn(CODE, message, parts_of(line.item).opcode, section="9.7.16.8.5")
                return


def _tells(stored: Line, line: Line, last: int) -> bool:
    """Whether an instruction loads what was stored, or tells others that it is there, who then use tensor memory."""
    if line.item.opcode.startswith("tcgen05.ld."):
        return line.item.operands[1:2] == stored.item.operands[:1]
    barrier = line.plan.family in ("bar", "barrier") and ".warp" not in line.item.opcode
    return barrier and line.item.guard is None and line.item.span[0] < last


@bodies_with("tcgen05")
def check_walks(context: LintContext, facts: FunctionFacts) -> None:
    tell(context, facts, CODE, "tensor st", "9.7.16.8.5")
