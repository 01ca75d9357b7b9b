"""PTX719 | conversion written out by hand | 9.7.9.25, 9.7.1.12

What: several instructions compute what one has: the rounding of f32 to bf16 with integers (sm_80 and later), the sign
of a byte or half word with two shifts, an absolute value with the sign as a mask.
Why: one instruction does the same, and ptxas 13.0 does not find it. The rounding by hand also turns some NaNs into
infinities.
Example:
    shl.b32 %r4, %r1, 24;
    shr.s32 %r5, %r4, 24;
Better:
    cvt.s32.s8 %r5, %r1;
"""

from __future__ import annotations

from ptxtools.ir.nodes import Immediate, Name, Operand
from ptxtools.ir.positions import parts_of
from ptxtools.isa.targets import chip_of

from ..context import LintContext
from ..facts import FunctionFacts, Line
from ..lanes import only_write
from ..registry import instructions

CODE = "PTX719"

_BF16 = 80


@instructions("shr", "sub")
def check(context: LintContext, facts: FunctionFacts, line: Line) -> None:
    better = (_sign(facts, line) or _rounding(context, facts, line)) if line.plan.family == "shr" else _abs(facts, line)
    if better:
        message = f"'{line.item.opcode}' is the end of a conversion by hand"
        context.warn(CODE, message, parts_of(line.item).opcode, help=(f"use {better}",), section="9.7.9.25")


def _made(facts: FunctionFacts, line: Line, operand: Operand, *opcodes: str) -> Line | None:
    """The instruction that makes an operand, if it is one of these, and the operand is used for nothing else."""
    found = only_write(facts, line, operand.name) if isinstance(operand, Name) else None
    fits = found is not None and found.item.guard is None and found.item.opcode in opcodes
    return found if fits and found is not None and len(found.item.operands) == 3 else None


def _number(line: Line, place: int) -> int | None:
    operand = line.item.operands[place] if place < len(line.item.operands) else None
    return operand.value if isinstance(operand, Immediate) else None


def _sign(facts: FunctionFacts, line: Line) -> str | None:
    by = _number(line, 2)
    if line.item.opcode != "shr.s32" or by not in (16, 24):
        return None
    made = _made(facts, line, line.item.operands[1], "shl.b32")
    return f"cvt.s32.s{32 - by}" if made is not None and _number(made, 2) == by else None


def _rounding(context: LintContext, facts: FunctionFacts, line: Line) -> str | None:
    """(x + 0x7fff + (x >> 16 & 1)) >> 16, the three added in any order."""
    if line.item.opcode not in ("shr.u32", "shr.b32") or _number(line, 2) != 16 or not context.declared.target:
        return None
    if chip_of(context.declared.target).number < _BF16:
        return None
    terms = _terms(facts, line, line.item.operands[1])
    if len(terms) != 3 or [t.value for t in terms if isinstance(t, Immediate)] != [0x7FFF]:
        return None
    names = [term for term in terms if isinstance(term, Name)]
    for odd, x in (names, names[::-1]) if len(names) == 2 else ():
        bit = _made(facts, line, odd, "and.b32")
        high = _made(facts, line, bit.item.operands[1], "shr.u32", "shr.b32") if bit and _number(bit, 2) == 1 else None
        if high is not None and _number(high, 2) == 16 and high.item.operands[1] == x:
            return "cvt.rn.bf16.f32"
    return None


def _terms(facts: FunctionFacts, line: Line, operand: Operand, depth: int = 2) -> list[Operand]:
    made = _made(facts, line, operand, "add.u32", "add.s32") if depth else None
    if made is None:
        return [operand]
    return [term for part in made.item.operands[1:] for term in _terms(facts, made, part, depth - 1)]


def _abs(facts: FunctionFacts, line: Line) -> str | None:
    """(x ^ (x >> 31)) - (x >> 31)."""
    if line.item.opcode not in ("sub.s32", "sub.u32") or len(line.item.operands) != 3:
        return None
    _, mixed, mask = line.item.operands
    sign = _made(facts, line, mask, "shr.s32")
    xor = _made(facts, line, mixed, "xor.b32")
    if sign is None or xor is None or _number(sign, 2) != 31:
        return None
    return "abs.s32" if {xor.item.operands[1], xor.item.operands[2]} == {mask, sign.item.operands[1]} else None
