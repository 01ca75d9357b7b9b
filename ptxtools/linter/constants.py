"""Shared by the rules about constants."""

from __future__ import annotations

from ptxtools.ir.nodes import Immediate
from ptxtools.isa.types import TYPES

from .facts import Line


def constant_divisor(line: Line) -> int | None:
    """The divisor of an integer division or remainder by a constant."""
    op, operands = line.plan.op, line.item.operands
    if op is None or len(operands) < 3 or op.type is None or TYPES[op.type].kind != "int":
        return None
    divisor = operands[2]
    return divisor.value if isinstance(divisor, Immediate) else None
