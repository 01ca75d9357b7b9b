"""PTX597 | malloc without free | 10.1

What: the module calls malloc, and neither calls free nor stores a pointer anywhere.
Why: the memory is lost when the thread ends; the device's heap is small, and lives as long as the context.
Example:
    .version 9.0
    .target sm_90
    .address_size 64
    .extern .func (.param .b64 r) malloc (.param .b64 n);
    .entry k() {
        .param .b64 n; .param .b64 r;
        st.param.b64 [n], 64;
        call (r), malloc, (n);
        ret;
    }
Better:
    .version 9.0
    .target sm_90
    .address_size 64
    .extern .func (.param .b64 r) malloc (.param .b64 n);
    .extern .func free (.param .b64 p);
    .entry k() {
        .reg .b64 %d; .param .b64 n; .param .b64 r; .param .b64 p;
        st.param.b64 [n], 64;
        call (r), malloc, (n);
        ld.param.b64 %d, [r];
        st.param.b64 [p], %d;
        call free, (p);
        ret;
    }
"""

from __future__ import annotations

from ptxtools.ir.positions import parts_of

from ..context import LintContext
from ..facts import operand_names
from ..presence import first
from ..registry import modules_with

CODE = "PTX597"


@modules_with("call")
def check(context: LintContext) -> None:
    if not context.facts.whole or first(context, r"(st|atom)\.(?!param|shared|local)\S*64") is not None:
        return
    calls = {name: line for facts in context.facts.functions for line in facts.lines if line.plan.family == "call"
             for operand in line.item.operands for name, _ in operand_names(operand)}  # fmt: skip
    if "malloc" in calls and "free" not in calls:
        message = "nothing frees what malloc gives"
        context.warn(CODE, message, parts_of(calls["malloc"].item).opcode, section="10.1")
