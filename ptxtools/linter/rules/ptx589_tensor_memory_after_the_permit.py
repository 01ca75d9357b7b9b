"""PTX589 | allocation after the permit is given up | 9.7.16.7.1

What: tcgen05.alloc behind tcgen05.relinquish_alloc_permit, or in a loop that has it.
Why: after relinquishing, allocation is undefined; what is not released stays taken.
Example:
    .version 9.0
    .target sm_100a
    .address_size 64
    .entry k() {
        .reg .b32 %r<4>; .shared .align 8 .b32 s[2];
        tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;
        tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [s], 32;
        bar.sync 0;
        ld.shared.b32 %r1, [s];
        tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r1, 32;
        ret;
    }
Better:
    .version 9.0
    .target sm_100a
    .address_size 64
    .entry k() {
        .reg .b32 %r<4>; .shared .align 8 .b32 s[2];
        tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [s], 32;
        tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;
        bar.sync 0;
        ld.shared.b32 %r1, [s];
        tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r1, 32;
        ret;
    }
"""

from __future__ import annotations

from ptxtools.ir.positions import parts_of

from ..context import LintContext
from ..facts import FunctionFacts
from ..registry import bodies_with
from ..runs import rounds_of

CODE = "PTX589"


@bodies_with("tcgen05")
def check(context: LintContext, facts: FunctionFacts) -> None:
    told: set[int] = set()
    for run in rounds_of(facts):
        given_up = False
        for line in run:
            given_up = given_up or line.item.opcode.startswith("tcgen05.relinquish")
            if given_up and line.item.opcode.startswith("tcgen05.alloc") and id(line.item) not in told:
                told.add(id(line.item))
                message = "the permit to allocate was given up above"
                context.warn(CODE, message, parts_of(line.item).opcode, section="9.7.16.7.1")
