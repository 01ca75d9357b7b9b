"""PTX708 | division of 64 bits for numbers of 32 | 9.7.1.9, 9.7.1.10

What: a 64-bit div or rem of numbers that fit 32 bits: extended, masked, shifted or loaded ones, or small constants.
Why: it takes 60 to 80 instructions, the 32-bit division 20, with the same result.
Example:
    cvt.u64.u32 %rd3, %r1;
    cvt.u64.u32 %rd4, %r2;
    div.u64 %rd5, %rd3, %rd4;
Better:
    div.u32 %r4, %r1, %r2;
    cvt.u64.u32 %rd5, %r4;
"""

from __future__ import annotations

from ptxtools.ir.nodes import Immediate, Name, Operand
from ptxtools.ir.positions import parts_of
from ptxtools.isa.types import TYPES

from ..context import LintContext
from ..facts import FunctionFacts, Line
from ..lanes import only_write
from ..registry import instructions

CODE = "PTX708"

_HALF = 32
_LIMIT, _SIGNED_LIMIT = 1 << _HALF, 1 << _HALF - 1


@instructions("div", "rem")
def check(context: LintContext, facts: FunctionFacts, line: Line) -> None:
    op, operands = line.plan.op, line.item.operands
    if op is None or op.type not in ("u64", "s64") or len(operands) != 3 or isinstance(operands[1], Immediate):
        return
    if isinstance(operands[2], Immediate) and operands[2].value & (operands[2].value - 1) == 0:
        return  # a shift
    if all(_narrow(facts, line, operand) for operand in operands[1:]):
        better = f"{op.family}.u32"
    elif op.type == "s64" and _signed(facts, line, operands[1]) and _positive(operands[2]):
        better = f"{op.family}.s32"
    else:
        return
    message = f"'{op.text}' divides numbers of 32 bits"
    context.warn(
        CODE, message, parts_of(line.item).opcode, help=(f"use {better}, and extend the result",), section=op.section
    )


def _narrow(facts: FunctionFacts, line: Line, operand: Operand) -> bool:
    """Whether an operand is certainly from 0 to 2^32 - 1."""
    if isinstance(operand, Immediate):
        return 0 <= operand.value < _LIMIT
    made = _made(facts, line, operand)
    if made is None:
        return False
    family, words = made.plan.family, made.item.opcode.split(".")
    last = made.item.operands[-1]
    number = last.value if isinstance(last, Immediate) else -1
    if family == "and":
        return 0 <= number < _LIMIT
    if family == "shr":
        return words[-1] in ("u64", "b64") and number >= _HALF
    if family in ("cvt", "ld"):
        return words[-1][0] in "ub" and words[-1] in TYPES and TYPES[words[-1]].bits <= _HALF
    return made.item.opcode == "mul.wide.u16"


def _signed(facts: FunctionFacts, line: Line, operand: Operand) -> bool:
    """Whether an operand is a signed number of 32 bits."""
    made = _made(facts, line, operand)
    return made is not None and made.plan.family in ("cvt", "ld") and made.item.opcode.endswith((".s32", ".s16", ".s8"))


def _positive(operand: Operand) -> bool:
    """Whether a divisor is a positive constant of 32 bits: -2^31 divided by -1 needs 33."""
    return isinstance(operand, Immediate) and 0 < operand.value < _SIGNED_LIMIT


def _made(facts: FunctionFacts, line: Line, operand: Operand) -> Line | None:
    made = only_write(facts, line, operand.name) if isinstance(operand, Name) else None
    fits = made is not None and made.item.guard is None and len(made.item.operands) >= 2
    return made if fits and made is not None and isinstance(made.item.operands[0], Name) else None
