"""PTX509 | CTAs of a cluster exchange data without a barrier of the cluster | 8.5, 9.7.13.3

What: two CTAs of a cluster certainly access one word of shared memory, one of them writes it, and no barrier.cluster,
or other release and acquire (as by an arrival at the peer's mbarrier, and its wait), comes in between; or both store
there asynchronously, or one copies to both of them again before the other one can have told that it has read.
Why: the CTAs run independently: a race. bar.sync orders the threads of one CTA only.
Example:
    .version 8.0
    .target sm_90
    .address_size 64
    .entry k(.param .b64 a) .reqntid 32 {
        .reg .b32 %r<6>; .reg .b64 %d<3>; .shared .align 4 .b32 s;
        ld.param.b64 %d1, [a]; mov.u32 %r1, %cluster_ctarank; mov.u32 %r2, s; xor.b32 %r3, %r1, 1;
        mapa.shared::cluster.u32 %r4, %r2, %r3;
        st.shared.b32 [s], %r1;
        bar.sync 0;
        ld.shared::cluster.b32 %r5, [%r4];
        st.global.b32 [%d1], %r5;
        barrier.cluster.arrive;
        barrier.cluster.wait;
        ret;
    }
Better:
    .version 8.0
    .target sm_90
    .address_size 64
    .entry k(.param .b64 a) .reqntid 32 {
        .reg .b32 %r<6>; .reg .b64 %d<3>; .shared .align 4 .b32 s;
        ld.param.b64 %d1, [a]; mov.u32 %r1, %cluster_ctarank; mov.u32 %r2, s; xor.b32 %r3, %r1, 1;
        mapa.shared::cluster.u32 %r4, %r2, %r3;
        st.shared.b32 [s], %r1;
        barrier.cluster.arrive;
        barrier.cluster.wait;
        ld.shared::cluster.b32 %r5, [%r4];
        st.global.b32 [%d1], %r5;
        barrier.cluster.arrive;
        barrier.cluster.wait;
        ret;
    }
"""

from __future__ import annotations

from ..context import LintContext
from ..facts import FunctionFacts
from ..registry import bodies_with
from ..walk import tell

CODE = "PTX509"


@bodies_with("mapa", "cp", "st")
def check(context: LintContext, facts: FunctionFacts) -> None:
    tell(context, facts, CODE, "race in the cluster", "8.5")
