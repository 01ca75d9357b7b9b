"""PTX501 | constant loses bits | 4.5.1

What: an integer constant does not fit its operand; the instruction gets the lowest bits.
Why: neither ptxas nor the manual forbids it, and the value used differs from the one written.
Example:
    add.u16 %h1, %h2, 65536;
Better:
    add.u16 %h1, %h2, 1;
"""

from __future__ import annotations

from ptxtools.ir.nodes import Immediate
from ptxtools.ir.positions import part_span
from ptxtools.isa.types import TYPES

from ..context import LintContext
from ..facts import FunctionFacts
from ..registry import bodies

CODE = "PTX501"


@bodies
def check(context: LintContext, facts: FunctionFacts) -> None:
    for line, index in facts.oversized:
        operand = line.item.operands[index]
        op = line.plan.op
        assert isinstance(operand, Immediate) and op is not None
        spec = line.plan.specs[index]
        if op.family in ("shl", "shr") and index == 2:
            continue  # PTX502 is more specific
        bits = TYPES[spec.type].bits if spec.type else 32
        result = operand.value & ((1 << bits) - 1)
        message = f"{operand.value} does not fit .{spec.type}: '{op.text}' gets {result}"
        context.warn(CODE, message, part_span(line.item, index), section="4.5.1")
