"""PTX518 | scope of the CTA for what all CTAs reach | 8.5, 8.10.3 (Atomicity), 8.10.6 (Causality)

What: an acquire or release of the scope .cta at an address of global memory that is the same in all CTAs, or such an
atomic operation in a kernel that asks for the number of its CTA. Possible: the kernel may be meant for a single CTA.
Why: it orders threads of one CTA only, and is atomic for them only. Threads of others that come to the same flag, lock
or counter race with it.
Example:
    .version 8.0
    .target sm_80
    .address_size 64
    .entry k(.param .b64 flag) {
        .reg .b64 %d<2>;
        ld.param.b64 %d1, [flag];
        st.release.cta.global.b32 [%d1], 1;
        ret;
    }
Better:
    .version 8.0
    .target sm_80
    .address_size 64
    .entry k(.param .b64 flag) {
        .reg .b64 %d<2>;
        ld.param.b64 %d1, [flag];
        st.release.gpu.global.b32 [%d1], 1;
        ret;
    }
"""

from __future__ import annotations

from ptxtools.ir.positions import parts_of

from ..context import LintContext
from ..facts import FunctionFacts
from ..registry import bodies_with

CODE = "PTX518"


@bodies_with("ld", "st", "atom", "red")
def check(context: LintContext, facts: FunctionFacts) -> None:
    if not any(".cta" in line.item.opcode for family in ("ld", "st", "atom", "red") for line in facts.of(family)):
        return
    for step in facts.accesses:
        access = step.access
        if access is None or access.space != "global" or not step.has("cta"):
            continue
        orders = step.has("acquire", "release", "acq_rel")
        if not orders and not (step.atomic and "%ctaid.x" in facts.targets):
            continue
        if isinstance(access.address.each, int) and all(term[0] not in "%#" for term, _ in access.address.terms):
            lacks = "orders nothing" if orders else "is not atomic"
            message = f"'{step.line.item.opcode}' {lacks} for other CTAs, which reach the same address"
            section = f"8.5, {'8.10.6 (Causality)' if orders else '8.10.3 (Atomicity)'}"
            context.warn(CODE, message, parts_of(step.line.item).opcode, help=("use .gpu",), section=section)
            return
