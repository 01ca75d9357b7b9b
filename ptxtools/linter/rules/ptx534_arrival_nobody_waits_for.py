"""PTX534 | arrival at a barrier that nobody waits at | 9.7.13.1

What: bar.arrive or barrier.arrive with a constant barrier that no bar.sync, barrier.sync or .red of the module names.
Why: arrivals order nothing by themselves; as the barrier never completes, a later use of it may be wrong, too.
Example:
    bar.arrive 2, 96;
Better:
    bar.arrive 2, 96;
    bar.sync 2, 96;
"""

from __future__ import annotations

from ptxtools.ir.nodes import Immediate
from ptxtools.ir.positions import part_span

from ..context import LintContext
from ..facts import Line
from ..registry import modules_with

CODE = "PTX534"


@modules_with("bar", "barrier")
def check(context: LintContext) -> None:
    arrivals: list[tuple[int, Line]] = []
    waits: set[int] = set()
    for facts in context.facts.functions:
        for line in facts.of("bar", "barrier"):
            op = line.plan.op
            if op is None or op.has("warp") or op.has("cluster"):
                continue
            number = line.item.operands[1 if op.has("red") else 0] if line.item.operands else None
            if not isinstance(number, Immediate):
                return
            if op.has("arrive"):
                arrivals.append((number.value, line))
            else:
                waits.add(number.value)
    if context.facts.whole:
        for barrier, line in arrivals:
            if barrier not in waits:
                message = f"no instruction waits at barrier {barrier}"
                context.warn(CODE, message, part_span(line.item, 0), section="9.7.13.1")
