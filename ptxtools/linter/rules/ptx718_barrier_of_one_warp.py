"""PTX718 | barrier of a CTA with one warp | 9.7.14.1, 9.7.14.2

What: bar.sync for all threads, or for 32, in a kernel whose CTAs have at most 32.
Why: bar.warp.sync orders the same threads and their memory, and is faster: it needs no barrier of the SM.
Example:
    .version 8.0
    .target sm_80
    .address_size 64
    .entry k() .reqntid 32 { bar.sync 0; ret; }
Better:
    .version 8.0
    .target sm_80
    .address_size 64
    .entry k() .reqntid 32 { bar.warp.sync 0xffffffff; ret; }
"""

from __future__ import annotations

from math import prod

from ptxtools.check.edits import rewritten
from ptxtools.ir.nodes import Directive, Function, Immediate
from ptxtools.ir.positions import parts_of
from ptxtools.isa.targets import chip_of

from ..context import LintContext
from ..facts import FunctionFacts, Line
from ..memory import WARP
from ..registry import bodies_with

CODE = "PTX718"

#: bar.warp.sync needs it.
_FIRST = 70
_EVERYBODY = "0xffffffff"


@bodies_with("bar", "barrier")
def check(context: LintContext, facts: FunctionFacts) -> None:
    target = context.declared.target
    if most_threads(facts.function) > WARP or not target or chip_of(target).number < _FIRST:
        return
    barriers = facts.of("bar", "barrier")
    met = any(line.plan.op is not None and not line.plan.op.has("sync") for line in barriers)
    for line in barriers:
        op = line.plan.op
        if op is not None and op.has("sync") and not op.has("warp") and _all_threads(line):
            message = f"'{op.text}' orders the threads of one warp, since a CTA has no more"
            help = ("use bar.warp.sync",)
            fix = None
            if not met:
                operands = {0: _EVERYBODY, **({1: ""} if len(line.item.operands) == 2 else {})}
                fix = rewritten(context.source.text, line.item, "bar.warp.sync", operands)
            context.warn(CODE, message, parts_of(line.item).opcode, help=help, section=op.section, fix=fix)


def _all_threads(line: Line) -> bool:
    """Whether a barrier names no number of threads, or those of a warp."""
    operands = line.item.operands
    count = operands[1] if len(operands) == 2 else None
    return len(operands) == 1 or (isinstance(count, Immediate) and count.value == WARP)


def most_threads(function: Function) -> int:
    """How many threads a CTA of a kernel has at most, as far as it is declared."""
    for item in function.directives:
        if isinstance(item, Directive) and item.name in (".reqntid", ".maxntid"):
            return prod(number for number in item.args if isinstance(number, int))
    return 1024
