"""PTX716 | division by a number that is known before | 9.7.1

What: an integer division or remainder of 32 or 64 bits by a constant that is no power of two, or in a loop by a number
that nothing in the loop changes.
Why: it takes 15 to 25 instructions for 32 bits, and 60 and more for 64; ptxas 13.0 does nothing about a constant, which
the compilers above it turn into a multiplication. What depends on the divisor alone can be computed before: a
multiplier and a shift, which leave a mul.hi and a shr. For u32 and a constant the help names both, where they fit 32
bits.
Example:
    ld.global.u32 %r2, [%rd1];
    mov.b32 %r4, 0;
    L:
    rem.u32 %r5, %r4, %r2;
    add.u32 %r4, %r4, 1;
    setp.lt.u32 %p1, %r4, %r5;
    @%p1 bra L;
Better:
    ld.global.u32 %r2, [%rd1];
    mov.b32 %r4, 0;
    L:
    mul.hi.u32 %r5, %r4, %r2;
    add.u32 %r4, %r4, 1;
    setp.lt.u32 %p1, %r4, %r5;
    @%p1 bra L;
"""

from __future__ import annotations

from ptxtools.ir.nodes import Immediate, Name
from ptxtools.ir.positions import part_span

from ..accesses import in_register
from ..constants import constant
from ..context import LintContext
from ..facts import FunctionFacts, Line
from ..inflight import accessed
from ..lanes import only_write
from ..loops import Loop, innermost_loop_of
from ..registry import bodies_with

CODE = "PTX716"

#: Operations whose results follow from their operands alone, so that they could stand before the loop.
_PURE = frozenset(
    {"mov", "add", "sub", "mul", "mad", "shl", "shr", "and", "or", "xor", "cvt", "min", "max", "not", "neg"}
)
#: Longest chain of them that is followed back.
_DEPTH = 4
_TYPES = frozenset({"u32", "s32", "u64", "s64"})


@bodies_with("div", "rem")
def check(context: LintContext, facts: FunctionFacts) -> None:
    lines = [
        line for line in facts.of("div", "rem")
        if line.plan.op is not None and line.plan.op.type in _TYPES and len(line.item.operands) == 3
    ]  # fmt: skip
    loops = innermost_loop_of(facts) if lines else {}
    for line in lines:
        loop, divisor = loops.get(id(line.item)), line.item.operands[2]
        number = constant(facts, line, divisor)
        if number is None and isinstance(divisor, Immediate):
            number = abs(divisor.value)
        if number is not None:
            if number & (number - 1) and not isinstance(line.item.operands[1], Immediate):
                type_ = line.plan.op.type if line.plan.op is not None else ""
                help = (
                    _multiplier(number) if type_ == "u32" else "",
                    "multiply by a reciprocal of fixed point, and shift",
                )
                message = f"a division by the constant {number}, which ptxas does not turn into a multiplication"
                context.warn(CODE, message, part_span(line.item, 2), help=(help[0] or help[1],), section="9.7.1")
        elif loop is not None and isinstance(divisor, Name) and _steady(facts, loop, line, divisor.name):
            message = f"each round of the loop divides by the same '{divisor.name}'"
            context.warn(CODE, message, part_span(line.item, 2), section="9.7.1")


def _multiplier(number: int) -> str:
    """The instructions that divide any u32 by a constant; "" if the multiplier has more than 32 bits. The product with
    the rounded-up reciprocal is right if its error, times the largest dividend, does not reach the next multiple."""
    for shift in range(32):
        factor = -(-(1 << 32 + shift) // number)
        if factor >> 32:
            return ""
        if factor * number - (1 << 32 + shift) <= 1 << shift:
            return f"use mul.hi.u32 by {factor}" + (f", and shr.u32 by {shift}" if shift else "")
    return ""


def _steady(facts: FunctionFacts, loop: Loop, line: Line, name: str, depth: int = _DEPTH) -> bool:
    """Whether a register holds the same in all rounds; each may load it anew from a kernel's parameter, or compute it
    from what holds the same."""
    if loop.invariant(line, name):
        return True
    made = only_write(facts, line, name)
    if made is None or made.item.guard is not None or not depth:
        return False
    if made.item.opcode.startswith("ld.param."):
        return facts.function.kind == "entry" and not in_register(made, made.item.operands[1])
    return made.plan.family in _PURE and all(
        write or _steady(facts, loop, made, source, depth - 1)
        if made.registers[source] is not None
        else "clock" not in source and "timer" not in source
        for source, write in accessed(made)
    )
