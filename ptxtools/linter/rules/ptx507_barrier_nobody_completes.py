"""PTX507 | barrier that expects more threads than come | 9.7.14.1

What: bar or barrier has a constant number and a constant count of threads, and all instructions for that barrier
together are certainly reached by fewer: all stand before the first label of the kernel.
Why: the barrier never completes: these threads wait forever.
Example:
    .version 8.0
    .target sm_80
    .address_size 64
    .entry k() .reqntid 64 {
        .reg .pred %p<2>; .reg .b32 %r<2>;
        mov.u32 %r1, %tid.x; setp.lt.u32 %p1, %r1, 32;
        @%p1 bar.sync 3, 64;
        ret;
    }
Better:
    .version 8.0
    .target sm_80
    .address_size 64
    .entry k() .reqntid 64 {
        .reg .pred %p<2>; .reg .b32 %r<2>;
        mov.u32 %r1, %tid.x; setp.lt.u32 %p1, %r1, 32;
        @%p1 bar.sync 3, 32;
        ret;
    }
"""

from __future__ import annotations

from math import prod

from ptxtools.ir.nodes import Directive
from ptxtools.ir.positions import part_span

from ..constants import constant
from ..context import LintContext
from ..facts import FunctionFacts
from ..memory import Step
from ..registry import bodies_with
from ..values import THREADS

CODE = "PTX507"


@bodies_with("bar", "barrier")
def check(context: LintContext, facts: FunctionFacts) -> None:
    sizes = [
        prod(number for number in item.args if isinstance(number, int))
        for item in facts.function.directives
        if isinstance(item, Directive) and item.name == ".reqntid"
    ]
    if not sizes or sizes[0] > THREADS or "call" in facts.families:
        return
    users: dict[int, list[tuple[Step, int]]] = {}
    for steps in facts.steps:
        for step in steps:
            if step.family not in ("bar", "barrier") or step.has("warp") or step.has("cluster"):
                continue
            operands = step.line.item.operands
            first = 0 if step.has("sync") or step.has("arrive") else 1
            numbers = [constant(facts, step.line, part) for part in operands[first : first + 2]]
            if not numbers or numbers[0] is None:
                return
            users.setdefault(numbers[0], []).append((step, (numbers[1] or 0) if len(numbers) > 1 else 0))
    for found in users.values():
        come = [sum(step.active) if step.active is not None else None for step, _ in found]
        step, count = found[0]
        total = sum(number for number in come if number is not None)
        if count and None not in come and total < count and all(other == count for _, other in found):
            message = f"this barrier expects {count} threads, and {total} come"
            context.warn(CODE, message, part_span(step.line.item, len(step.line.item.operands) - 1), section="9.7.14.1")
