"""PTX512 | result is discarded | 9.7.6.2

What: a comparison with _ as its only result; or a test_wait or try_wait for an mbarrier whose result nothing reads.
Why: it has no effect. A wait may end before the phase is complete (9.7.13.15.16): who does not look at its result has
not waited.
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
from ..paths import never_read
from ..registry import bodies_with, instructions

CODE = "PTX512"
_WAITS = "mbarrier.test_wait", "mbarrier.try_wait"


@instructions("setp")
def check(context: LintContext, facts: FunctionFacts, line: Line) -> None:
    first = line.item.operands[0] if line.item.operands else None
    halves = (first.first, first.second) if isinstance(first, Pair) else (first,)
    if all(isinstance(half, Name) and half.name == "_" for half in halves):
        message = f"'{line.item.opcode}' discards its result: it has no effect"
        context.warn(CODE, message, part_span(line.item, 0), section="9.7.6.2")


@bodies_with("mbarrier")
def check_waits(context: LintContext, facts: FunctionFacts) -> None:
    results = []
    for line in facts.of("mbarrier"):
        first = line.item.operands[0] if line.item.operands else None
        if line.item.opcode.startswith(_WAITS) and isinstance(first, Name):
            key = line.registers[first.name]
            if key is not None:
                results.append((line, key))
    for line in never_read(facts, results) if results else ():
        message = (
            f"nothing reads the result of '{line.item.opcode}', which may be false: then the phase is not complete"
        )
        context.warn(CODE, message, part_span(line.item, 0), section="9.7.13.15.16")
