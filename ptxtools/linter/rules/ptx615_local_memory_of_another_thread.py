"""PTX615 | local memory of another thread | 5.1.5

What: a thread accesses memory at the address of another one's .local variable, which it has loaded from shared memory.
Why: each thread has local memory of its own, and an address means something in that alone: what is accessed is not what
the other thread has there.
Example:
    .version 8.0
    .target sm_80
    .address_size 64
    .entry k() .reqntid 32 {
        .reg .b64 %d<3>; .reg .b32 %r<2>; .reg .pred %p; .shared .align 8 .b64 s; .local .align 4 .b32 v;
        mov.u32 %r0, %tid.x; setp.eq.u32 %p, %r0, 0; mov.b64 %d0, v; cvta.local.u64 %d1, %d0;
        st.local.b32 [v], 7;
        @%p st.shared.b64 [s], %d1;
        bar.warp.sync -1;
        ld.shared.b64 %d2, [s];
        ld.b32 %r1, [%d2];
        ret;
    }
Better:
    .version 8.0
    .target sm_80
    .address_size 64
    .entry k() .reqntid 32 {
        .reg .b32 %r<2>; .reg .pred %p; .shared .align 4 .b32 s;
        mov.u32 %r0, %tid.x; setp.eq.u32 %p, %r0, 0;
        @%p st.shared.b32 [s], 7;
        bar.warp.sync -1;
        ld.shared.b32 %r1, [s];
        ret;
    }
"""

from __future__ import annotations

from ..context import LintContext
from ..facts import FunctionFacts
from ..registry import bodies_with
from ..walk import tell

CODE = "PTX615"


@bodies_with("ld", "st", "atom", "red")
def check(context: LintContext, facts: FunctionFacts) -> None:
    tell(context, facts, CODE, "local of another", "5.1.5")
