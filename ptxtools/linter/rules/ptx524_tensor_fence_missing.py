"""PTX524 | tcgen05 work of other threads without a tcgen05.fence | 9.7.16.6.4

What: a thread stores to or loads from tensor memory, or waits for a product; a barrier or that wait synchronises it
with others; and a tcgen05 instruction follows without tcgen05.fence::before_thread_sync before the barrier, or
tcgen05.fence::after_thread_sync behind it. A kernel without any tcgen05.fence is not reported: compilers rely on waits
and barriers alone.
Why: tcgen05 instructions are asynchronous: barriers and mbarriers alone do not order those of different threads.
Example:
    .version 8.6
    .target sm_100a
    .address_size 64
    .entry k() .reqntid 64 {
        .reg .b32 %r<5>; .shared .align 16 .b32 s; .reg .pred %p<2>; .reg .b64 %d<2>; .shared .align 8 .b64 bar;
        mov.u32 %r1, %tid.x; setp.ge.u32 %p1, %r1, 32; mov.b64 %d1, 0; mov.b32 %r2, 0; mov.b32 %r3, 0x8200010;
        @%p1 bra A;
        tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [s], 32;
        tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;
        A: bar.sync 0;
        ld.shared.b32 %r4, [s];
        tcgen05.st.sync.aligned.32x32b.x1.b32 [%r4], {%r2};
        tcgen05.wait::st.sync.aligned;
        bar.sync 0;
        tcgen05.fence::after_thread_sync;
        @%p1 bra B;
        tcgen05.mma.cta_group::1.kind::f16 [%r4], %d1, %d1, %r3, %p1;
        tcgen05.commit.cta_group::1.mbarrier::arrive::one.b64 [%d1];
        tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r4, 32;
        B: ret;
    }
Better:
    .version 8.6
    .target sm_100a
    .address_size 64
    .entry k() .reqntid 64 {
        .reg .b32 %r<5>; .shared .align 16 .b32 s; .reg .pred %p<2>; .reg .b64 %d<2>; .shared .align 8 .b64 bar;
        mov.u32 %r1, %tid.x; setp.ge.u32 %p1, %r1, 32; mov.b64 %d1, 0; mov.b32 %r2, 0; mov.b32 %r3, 0x8200010;
        @%p1 bra A;
        tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [s], 32;
        tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;
        A: bar.sync 0;
        ld.shared.b32 %r4, [s];
        tcgen05.st.sync.aligned.32x32b.x1.b32 [%r4], {%r2};
        tcgen05.wait::st.sync.aligned;
        tcgen05.fence::before_thread_sync;
        bar.sync 0;
        tcgen05.fence::after_thread_sync;
        @%p1 bra B;
        tcgen05.mma.cta_group::1.kind::f16 [%r4], %d1, %d1, %r3, %p1;
        tcgen05.commit.cta_group::1.mbarrier::arrive::one.b64 [%d1];
        tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r4, 32;
        B: ret;
    }
"""

from __future__ import annotations

from ..context import LintContext
from ..facts import FunctionFacts
from ..registry import bodies_with
from ..walk import tell

CODE = "PTX524"


@bodies_with("tcgen05")
def check(context: LintContext, facts: FunctionFacts) -> None:
    tell(context, facts, CODE, "tensor fence", "9.7.16.6.4")
