"""Shared by the rules about constants."""

from __future__ import annotations

from ptxtools.ir.nodes import Immediate, Name, Operand
from ptxtools.isa.types import TYPES

from .facts import FunctionFacts, Line
from .lanes import only_write


def constant_divisor(line: Line) -> int | None:
    """The divisor of an integer division or remainder by a constant."""
    op, operands = line.plan.op, line.item.operands
    if op is None or len(operands) < 3 or op.type is None or TYPES[op.type].kind != "int":
        return None
    divisor = operands[2]
    return divisor.value if isinstance(divisor, Immediate) else None


def constant(facts: FunctionFacts, line: Line, operand: Operand) -> int | None:
    """The number that an operand certainly is: as it is written, or as the only `mov` into its register has it."""
    if isinstance(operand, Immediate):
        return operand.value
    made = only_write(facts, line, operand.name) if isinstance(operand, Name) else None
    if made is None or made.plan.family != "mov" or len(made.item.operands) != 2:
        return None
    source = made.item.operands[1]
    return source.value if isinstance(source, Immediate) and made.item.guard is None else None
