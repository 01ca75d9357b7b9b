"""PTX548 | store to constant memory | 5.1.3

What: a store or atomic operation at the generic address of a .const variable.
Why: constant memory is read-only: the store traps.
Example:
    .version 9.0
    .target sm_90
    .address_size 64
    .const .align 4 .b32 table[4];
    .entry k() {
        .reg .b64 %rd<3>;
        mov.b64 %rd1, table; cvta.const.u64 %rd2, %rd1;
        st.b32 [%rd2], 9;
        ret;
    }
Better:
    .version 9.0
    .target sm_90
    .address_size 64
    .global .align 4 .b32 table[4];
    .entry k() {
        .reg .b64 %rd<3>;
        mov.b64 %rd1, table; cvta.global.u64 %rd2, %rd1;
        st.b32 [%rd2], 9;
        ret;
    }
"""

from __future__ import annotations

from ptxtools.ir.positions import part_span

from ..context import LintContext
from ..facts import FunctionFacts
from ..registry import bodies_with

CODE = "PTX548"


@bodies_with("st", "atom", "red")
def check(context: LintContext, facts: FunctionFacts) -> None:
    for step in facts.accesses:
        access = step.access if step.writes else None
        if access is not None and access.space == "" and ("cvta.const", 1) in access.address.terms:
            message = "this address lies in constant memory, which is read-only"
            context.warn(CODE, message, part_span(step.line.item, access.operand), section="5.1.3")
