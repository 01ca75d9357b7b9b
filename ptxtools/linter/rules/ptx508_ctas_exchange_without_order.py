"""PTX508 | CTAs exchange data without order | 8.5, 8.7, 8.10.6 (Causality)

What: two CTAs of a grid certainly access one word of global memory, one of them writes it, and nothing orders the two:
no release by one and acquire by the other. A barrier orders the threads of one CTA only. Certain if the grid has two
CTAs and the way of the threads is known; the finding says so.
Why: CTAs run in any order, or at the same time: a race.
Example:
    .version 8.0
    .target sm_80
    .address_size 64
    .entry k(.param .b64 a) .reqntid 32 {
        .reg .b32 %r<6>; .reg .b64 %d<4>;
        ld.param.b64 %d1, [a]; mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x;
        mad.lo.u32 %r3, %r2, 32, %r1; mad.wide.u32 %d2, %r3, 4, %d1; xor.b32 %r4, %r3, 32;
        mad.wide.u32 %d3, %r4, 4, %d1;
        st.global.b32 [%d2], %r1;
        bar.sync 0;
        ld.global.b32 %r5, [%d3];
        st.global.b32 [%d2+1024], %r5;
        ret;
    }
Better:
    .version 8.0
    .target sm_80
    .address_size 64
    .entry k(.param .b64 a) .reqntid 32 {
        .reg .b32 %r<6>; .reg .b64 %d<4>;
        ld.param.b64 %d1, [a]; mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x;
        mad.lo.u32 %r3, %r2, 32, %r1; mad.wide.u32 %d2, %r3, 4, %d1; xor.b32 %r4, %r3, 31;
        mad.wide.u32 %d3, %r4, 4, %d1;
        st.global.b32 [%d2], %r1;
        bar.sync 0;
        ld.global.b32 %r5, [%d3];
        st.global.b32 [%d2+1024], %r5;
        ret;
    }
"""

from __future__ import annotations

from ..context import LintContext
from ..facts import FunctionFacts
from ..registry import bodies_with
from ..walk import tell

CODE = "PTX508"


@bodies_with("st", "atom", "red")
def check(context: LintContext, facts: FunctionFacts) -> None:
    tell(context, facts, CODE, "race of CTAs", "8.5, 8.10.6 (Causality)")
