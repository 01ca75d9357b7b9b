"""PTX704 | floating-point division by a power of two | 9.7.3.8

What: div of f32 or f64 by a constant whose reciprocal is exact.
Why: a multiplication gives the same result in a fraction of the time.
Example:
    div.rn.f32 %f3, %f1, 0f40000000;
Better:
    mul.rn.f32 %f3, %f1, 0f3F000000;
"""

from __future__ import annotations

from ptxtools.check.edits import rewritten
from ptxtools.ir.nodes import Immediate
from ptxtools.ir.positions import part_span
from ptxtools.isa.types import TYPES

from ..context import LintContext
from ..facts import FunctionFacts, Line
from ..registry import instructions

CODE = "PTX704"


#: Bits of the fraction, and exponents of which the reciprocal is a normal number, too.
_FORMATS = {"f32": (23, 2, 252), "f64": (52, 2, 2044)}
#: With these the quotient and the product are the same bits; .approx and .full are a little off.
_ROUNDED = ("rn", "rz", "rm", "rp")


@instructions("div")
def check(context: LintContext, facts: FunctionFacts, line: Line) -> None:
    op, operands = line.plan.op, line.item.operands
    if op is None or op.type not in _FORMATS or len(operands) < 3 or not isinstance(operands[2], Immediate):
        return
    if operands[2].type != op.type:
        return
    fraction, lowest, highest = _FORMATS[op.type]
    bits = operands[2].value
    exponent = bits >> fraction & (highest | 3)
    if bits & ((1 << fraction) - 1) == 0 and lowest <= exponent <= highest:
        message = f"'{op.text}' by a power of two: a multiplication by its reciprocal gives the same"
        fix = None
        if any(op.has(mode) for mode in _ROUNDED):
            digits, mark = TYPES[op.type].bits // 4, {"f32": "0f", "f64": "0d"}[op.type]
            reciprocal = bits & ~(exponent << fraction) | (highest + 2 - exponent) << fraction
            opcode = line.item.opcode.replace("div", "mul", 1)
            fix = rewritten(context.source.text, line.item, opcode, {2: f"{mark}{reciprocal:0{digits}X}"})
        context.warn(CODE, message, part_span(line.item, 2), section=op.section, fix=fix)
