"""PTX532 | thread counts of a barrier differ | 9.7.13.1

What: instructions of one kernel name the same barrier with different constant thread counts. Possible: the barrier
may be used for different groups, one after the other. Or a count that is computed is certainly no multiple of 32.
Why: a barrier completes when the expected number of threads has arrived: those that expect others may wait for ever.
Example:
    bar.arrive 1, 64;
    bar.sync 1, 96;
Better:
    bar.arrive 1, 64;
    bar.sync 1, 64;
"""

from __future__ import annotations

from ptxtools.ir.nodes import Immediate
from ptxtools.ir.positions import part_span

from ..context import LintContext
from ..facts import FunctionFacts
from ..registry import bodies_with
from ..walk import tell

CODE = "PTX532"


@bodies_with("bar", "barrier")
def check(context: LintContext, facts: FunctionFacts) -> None:
    counts: dict[int, int] = {}
    for line in facts.of("bar", "barrier"):
        op, operands = line.plan.op, line.item.operands
        if op is None or op.has("warp") or op.has("cluster"):
            continue
        start = 1 if op.has("red") else 0  # behind the result
        name, count = (*operands[start : start + 2], None, None)[:2]
        if not isinstance(name, Immediate) or not isinstance(count, Immediate):
            continue
        known = counts.setdefault(name.value, count.value)
        if known != count.value:
            message = f"barrier {name.value} is for {count.value} threads here, and for {known} elsewhere"
            context.warn(CODE, message, part_span(line.item, start + 1), section="9.7.13.1")
            counts[name.value] = count.value
    tell(context, facts, CODE, "barrier count", "9.7.13.1")
