"""PTX612 | global memory is read after its discard | 9.7.9.17

What: .reqntid says which threads a CTA has, and one of them reads bytes that have been discarded (discard.L2), and that
none of them has stored to since. Possible: another CTA may have.
Why: discard leaves the bytes undefined.
Example:
    .version 8.0
    .target sm_80
    .address_size 64
    .entry k(.param .b64 a) .reqntid 32 {
        .reg .b64 %d<4>; .reg .b32 %r<4>;
        ld.param.b64 %d1, [a]; mov.u32 %r1, %tid.x; mul.wide.u32 %d2, %r1, 4; add.u64 %d2, %d2, %d1;
        discard.global.L2 [%d1], 128;
        bar.warp.sync -1;
        ld.global.b32 %r2, [%d2];
        st.global.b32 [%d2+128], %r2;
        ret;
    }
Better:
    .version 8.0
    .target sm_80
    .address_size 64
    .entry k(.param .b64 a) .reqntid 32 {
        .reg .b64 %d<4>; .reg .b32 %r<4>;
        ld.param.b64 %d1, [a]; mov.u32 %r1, %tid.x; mul.wide.u32 %d2, %r1, 4; add.u64 %d2, %d2, %d1;
        ld.global.b32 %r2, [%d2];
        bar.warp.sync -1;
        discard.global.L2 [%d1], 128;
        st.global.b32 [%d2+128], %r2;
        ret;
    }
"""

from __future__ import annotations

from ..context import LintContext
from ..facts import FunctionFacts
from ..registry import bodies_with
from ..walk import tell

CODE = "PTX612"


@bodies_with("discard")
def check(context: LintContext, facts: FunctionFacts) -> None:
    tell(context, facts, CODE, "discarded", "9.7.9.17")
