"""clusterlaunchcontrol: CTAs take work from CTAs that have not been started (9.7.13.17, 9.7.13.18)."""

from __future__ import annotations

import numpy as np
import pytest

from ptxtools.sim.services import load

from .harness import Memory, both, go, launch_of

#: Each CTA adds 1 at its own place, then at those of clusters that it cancels; rank 0 asks for its cluster.
KERNEL = """.version 9.0
.target sm_100a
.address_size 64
.visible .entry k(.param .u64 out) {{
    .reg .pred %p<8>; .reg .b32 %r<24>; .reg .b64 %d<8>; .reg .b128 %q;
    .shared .align 16 .b8 response[16]; .shared .align 8 .b64 bar;
    ld.param.u64 %d1, [out]; mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ctaid.y; mov.u32 %r10, 0;
    mov.u32 %r20, %cluster_ctaid.x; mov.u32 %r3, response; mov.u32 %r4, bar; mbarrier.init.shared::cta.b64 [%r4], 1;
    barrier.cluster.arrive; barrier.cluster.wait;
    LOOP: mov.u32 %r5, %nctaid.x; mad.lo.u32 %r6, %r2, %r5, %r1; mul.wide.u32 %d2, %r6, 4; add.u64 %d2, %d1, %d2;
    red.global.add.u32 [%d2], 1;
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r4], 16;
    barrier.cluster.arrive; barrier.cluster.wait;
    setp.eq.u32 %p1, %r20, 0;
    @%p1 clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes{multicast}.b128 [%r3], [%r4];
    WAIT: mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r4], %r10; @!%p2 bra WAIT; xor.b32 %r10, %r10, 1;
    ld.shared.v2.b64 {{%d3, %d4}}, [response]; mov.b128 %q, {{%d3, %d4}};
    clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 %p3, %q; @!%p3 bra END;
    clusterlaunchcontrol.query_cancel.get_first_ctaid.v4.b32.b128 {{%r1, %r2, _, _}}, %q;
    clusterlaunchcontrol.query_cancel.get_first_ctaid::y.b32.b128 %r7, %q; setp.ne.u32 %p4, %r7, %r2; @%p4 trap;
    add.u32 %r1, %r1, %r20; bra LOOP;
    END: barrier.cluster.arrive; barrier.cluster.wait; ret;
}}"""


def counts(engine: str, multicast: bool, **shape) -> list[int]:
    memory = Memory()
    count = int(np.prod(shape["grid"]))
    out = memory.put(np.zeros(count, np.uint32))
    text = KERNEL.format(multicast=".multicast::cluster::all" if multicast else "")
    go(engine, launch_of(text, memory, [out], block=(1, 1, 1), services=load, **shape))
    return memory.get(out, np.uint32, count).tolist()


@both
@pytest.mark.parametrize("seed", [None, 1])
def test_every_cta_is_worked_on_once(engine, seed):
    assert counts(engine, False, grid=(7, 3, 1), resident=2, seed=seed) == [1] * 21


@both
@pytest.mark.parametrize("seed", [None, 1])
def test_a_response_for_the_whole_cluster(engine, seed):
    shape = {"grid": (8, 3, 1), "cluster": (2, 1, 1), "resident": 4}
    assert counts(engine, True, seed=seed, **shape) == [1] * 24


def test_two_workers():
    assert counts("native", False, grid=(500, 1, 1), resident=4, threads=2) == [1] * 500
