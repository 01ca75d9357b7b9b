"""PTX715 | double precision in a loop, on a chip that is slow at it | 9.7.3

What: an inner loop computes in f64, and an SM of the module's target has few units for it.
Why: it has 2 to 4 of them, and 64 or 128 for f32, so that such a loop takes up to 64 times as long. An SM of sm_60,
sm_70, sm_80, sm_90 and sm_100 has half as many as for f32.
Example:
    .version 8.0
    .target sm_86
    .address_size 64
    .entry k(.param .f64 x) {
        .reg .f64 %d<3>; .reg .pred %p<2>;
        ld.param.f64 %d1, [x];
        L:
        mul.rn.f64 %d1, %d1, %d1;
        setp.lt.f64 %p1, %d1, 0d4059000000000000;
        @%p1 bra L;
        ret;
    }
Better:
    .version 8.0
    .target sm_86
    .address_size 64
    .entry k(.param .f32 x) {
        .reg .f32 %f<3>; .reg .pred %p<2>;
        ld.param.f32 %f1, [x];
        L:
        mul.rn.f32 %f1, %f1, %f1;
        setp.lt.f32 %p1, %f1, 0f42C80000;
        @%p1 bra L;
        ret;
    }
"""

from __future__ import annotations

from ptxtools.ir.positions import parts_of
from ptxtools.isa.targets import chip_of

from ..context import LintContext
from ..facts import FunctionFacts
from ..registry import bodies_with

CODE = "PTX715"

#: Chips with 2 to 4 units for f64 in an SM (CUDA C++ Programming Guide, throughput of arithmetic instructions).
_SLOW = frozenset({50, 52, 53, 61, 62, 75, 86, 87, 89, 103, 120, 121})
_ARITHMETIC = ("add", "sub", "mul", "fma", "mad", "div", "rcp", "sqrt", "min", "max", "setp")


@bodies_with("add", "sub", "mul", "fma", "mad", "div", "rcp", "sqrt", "min", "max", "setp")
def check(context: LintContext, facts: FunctionFacts) -> None:
    target = context.declared.target
    if not target or chip_of(target).number not in _SLOW:
        return
    doubles = {
        id(line.item)
        for family in _ARITHMETIC
        for line in facts.of(family)
        if line.plan.op is not None and line.plan.op.type == "f64"
    }
    for loop in facts.loops if doubles else ():
        lines = [line for line in loop.lines if id(line.item) in doubles] if loop.innermost else []
        if lines:
            message = f"the loop computes in double precision, for which {target} has few units"
            context.warn(CODE, message, parts_of(lines[0].item).opcode, section="9.7.3")
