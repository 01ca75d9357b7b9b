"""PTX594 | relaxed arrival that nothing makes a release | 9.7.13.3

What: the module has barrier.cluster.arrive.relaxed, and no fence.
Why: .relaxed gives no order of memory: what was written before it, the initialisation of mbarriers included, may not be
seen behind the wait.
Example:
    st.global.b32 [%rd2], %r1;
    barrier.cluster.arrive.relaxed;
    barrier.cluster.wait;
Better:
    st.global.b32 [%rd2], %r1;
    barrier.cluster.arrive.release;
    barrier.cluster.wait;
"""

from __future__ import annotations

from ptxtools.ir.positions import parts_of

from ..context import LintContext
from ..presence import first, unmet
from ..registry import modules_with

CODE = "PTX594"


@modules_with("barrier")
def check(context: LintContext) -> None:
    line = unmet(context, r"barrier\.cluster\.arrive.*\.relaxed", r"fence|membar")
    if line is not None and first(context, r"(st|atom|red|mbarrier|cp)\b") is not None:
        message = "no fence stands before this arrival, which orders nothing"
        context.warn(CODE, message, parts_of(line.item).opcode, section="9.7.13.3")
