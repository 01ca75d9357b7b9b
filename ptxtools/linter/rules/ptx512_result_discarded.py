"""PTX512 | result is discarded | 9.7.6.2

What: a comparison with _ as its only result.
Why: it has no effect.
Example:
    setp.eq.s32 _, %r1, %r2;
Better:
    setp.eq.s32 %p1, %r1, %r2;
"""

from __future__ import annotations

from ptxtools.ir.nodes import Name, Pair
from ptxtools.ir.positions import part_span

from ..context import LintContext
from ..facts import FunctionFacts, Line
from ..registry import instructions

CODE = "PTX512"


@instructions("setp")
def check(context: LintContext, facts: FunctionFacts, line: Line) -> None:
    first = line.item.operands[0] if line.item.operands else None
    halves = (first.first, first.second) if isinstance(first, Pair) else (first,)
    if all(isinstance(half, Name) and half.name == "_" for half in halves):
        message = f"'{line.item.opcode}' discards its result: it has no effect"
        context.warn(CODE, message, part_span(line.item, 0), section="9.7.6.2")
