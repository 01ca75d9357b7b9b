"""PTX593 | two arrivals at the cluster barrier without a wait | 9.7.13.3

What: barrier.cluster.arrive behind another one, and no barrier.cluster.wait in between.
Why: each arrival needs its wait before the next one; otherwise the behaviour is undefined.
Example:
    barrier.cluster.arrive;
    barrier.cluster.arrive;
    barrier.cluster.wait;
Better:
    barrier.cluster.arrive;
    barrier.cluster.wait;
"""

from __future__ import annotations

from ptxtools.ir.positions import parts_of

from ..context import LintContext
from ..facts import FunctionFacts
from ..registry import bodies_with
from ..walk import tell

CODE = "PTX593"


@bodies_with("barrier")
def check(context: LintContext, facts: FunctionFacts) -> None:
    for run in facts.runs:
        arrived = False
        for line in run:
            opcode = line.item.opcode
            if opcode.startswith("barrier.cluster.wait") or line.plan.family == "call":
                arrived = False
            elif opcode.startswith("barrier.cluster.arrive") and line.item.guard is None:
                if arrived:
                    message = "this thread has arrived already, and not waited"
                    context.warn(CODE, message, parts_of(line.item).opcode, section="9.7.13.3")
                arrived = True
    tell(context, facts, CODE, "cluster arrival", "9.7.13.3")
