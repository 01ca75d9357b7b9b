"""PTX723 | barrier of warps that share nothing | 9.7.14.1, 9.7.14.2

What: a barrier of the CTA in a kernel whose warps access shared memory of their own only: on no way that a walk takes
does a warp access what another one writes. Possible: rounds of loops that are not walked may do so.
Why: bar.warp.sync orders what the lanes of a warp do, and does not make warps wait for each other.
Example:
    .version 9.0
    .target sm_80
    .address_size 64
    .entry k(.param .b64 x) .reqntid 128 {
        .reg .b32 %r<6>; .reg .b64 %d<3>; .shared .align 4 .b32 s[128];
        ld.param.b64 %d1, [x]; mov.u32 %r1, %tid.x; mov.u32 %r2, s; shl.b32 %r3, %r1, 2; add.u32 %r3, %r3, %r2;
        st.shared.b32 [%r3], %r1;
        bar.sync 0;
        xor.b32 %r4, %r1, 1; shl.b32 %r4, %r4, 2; add.u32 %r4, %r4, %r2; ld.shared.b32 %r5, [%r4];
        mul.wide.u32 %d2, %r1, 4; add.s64 %d2, %d2, %d1; st.global.b32 [%d2], %r5;
        ret;
    }
Better:
    .version 9.0
    .target sm_80
    .address_size 64
    .entry k(.param .b64 x) .reqntid 128 {
        .reg .b32 %r<6>; .reg .b64 %d<3>; .shared .align 4 .b32 s[128];
        ld.param.b64 %d1, [x]; mov.u32 %r1, %tid.x; mov.u32 %r2, s; shl.b32 %r3, %r1, 2; add.u32 %r3, %r3, %r2;
        st.shared.b32 [%r3], %r1;
        bar.warp.sync 0xffffffff;
        xor.b32 %r4, %r1, 1; shl.b32 %r4, %r4, 2; add.u32 %r4, %r4, %r2; ld.shared.b32 %r5, [%r4];
        mul.wide.u32 %d2, %r1, 4; add.s64 %d2, %d2, %d1; st.global.b32 [%d2], %r5;
        ret;
    }
"""

from __future__ import annotations

from ..context import LintContext
from ..facts import FunctionFacts
from ..registry import bodies_with
from ..walk import tell

CODE = "PTX723"


@bodies_with("bar", "barrier")
def check(context: LintContext, facts: FunctionFacts) -> None:
    tell(context, facts, CODE, "narrow barrier", "9.7.14.1")
