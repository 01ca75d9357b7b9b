"""PTX542 | 32-bit register as a 64-bit address | 6.4.1

What: a 32-bit register addresses .global memory or generic space in a module with 64-bit addresses.
Why: the register is zero-extended, and the upper half of the address is lost. From PTX 8.0 and
sm_90 on this is an error (PTX242).
Example:
    .version 7.8
    .target sm_80
    .address_size 64
    .entry k(.param .b32 p) { .reg .b32 %r<3>; ld.param.b32 %r1, [p]; ld.global.b32 %r2, [%r1]; ret; }
Better:
    .version 7.8
    .target sm_80
    .address_size 64
    .entry k(.param .b64 p) { .reg .b32 %r<3>; .reg .b64 %d; ld.param.b64 %d, [p]; ld.global.b32 %r2, [%d]; ret; }
"""

from __future__ import annotations

from ptxtools.check.availability import is_gone
from ptxtools.check.context import NO_NARROW
from ptxtools.ir.positions import part_span
from ptxtools.isa.types import TYPES

from ..accesses import ACCESSING, accesses_of
from ..context import LintContext
from ..facts import FunctionFacts
from ..registry import bodies_with

CODE = "PTX542"

_WIDE = (None, "global")


@bodies_with("ld", "ldu", "st", "atom", "red")
def check(context: LintContext, facts: FunctionFacts) -> None:
    if context.module.address_size != 64 or is_gone(NO_NARROW, *context.declared[:2]):
        return
    for line in facts.of(*ACCESSING):
        for access in accesses_of(line) if line.plan.op is not None and line.plan.op.space in _WIDE else ():
            if access.symbol.space == "reg" and TYPES[access.symbol.type].bits == 32:
                message = f"'{access.name}' has 32 bits: it is zero-extended to a 64-bit address"
                context.warn(CODE, message, part_span(line.item, access.operand), section="6.4.1")
