"""PTX594 | relaxed arrival that nothing makes a release | 9.7.13.3

What: the module has barrier.cluster.arrive.relaxed, and no fence; and behind it something accesses memory.
Why: .relaxed gives no order of memory: what was written before it, the initialisation of mbarriers included, may not be
seen behind the wait.
Example:
    st.global.b32 [%rd2], %r1;
    barrier.cluster.arrive.relaxed;
    barrier.cluster.wait;
    ld.global.b32 %r2, [%rd3];
Better:
    st.global.b32 [%rd2], %r1;
    barrier.cluster.arrive.release;
    barrier.cluster.wait;
    ld.global.b32 %r2, [%rd3];
"""

from __future__ import annotations

import re

from ptxtools.ir.positions import parts_of

from ..context import LintContext
from ..facts import FunctionFacts
from ..presence import first, unmet
from ..registry import modules_with

CODE = "PTX594"

_ACCESSES = ("ld", "st", "atom", "red", "mbarrier", "cp", "call", "multimem", "ldmatrix", "wgmma", "tcgen05")
_RELAXED = re.compile(r"barrier\.cluster\.arrive.*\.relaxed").match


@modules_with("barrier")
def check(context: LintContext) -> None:
    line = unmet(context, r"barrier\.cluster\.arrive.*\.relaxed", r"fence|membar")
    writes = line is not None and first(context, r"(st|atom|red|mbarrier|cp)\b") is not None
    if line is not None and writes and any(_ordered(facts) for facts in context.facts.functions):
        message = "no fence stands before this arrival, which orders nothing"
        context.warn(CODE, message, parts_of(line.item).opcode, section="9.7.13.3")


def _ordered(facts: FunctionFacts) -> bool:
    """Whether memory is accessed behind a relaxed arrival: at the end of a kernel it only keeps a CTA."""
    arrivals = [line for line in facts.of("barrier") if _RELAXED(line.item.opcode)]
    if not arrivals:
        return False
    start = arrivals[0].item.span[0]
    return any(line.item.span[0] > start for line in facts.of(*_ACCESSES)) or bool(facts.loops)
