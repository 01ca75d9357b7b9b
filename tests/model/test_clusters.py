"""Kernels as litmus tests in a cluster: the shared memory of its CTAs, and what is stored there asynchronously."""

import pytest

import ptxtools
from ptxtools.diagnostics import PtxError

KERNEL = """.version 8.1
.target sm_90
.address_size 64
.visible .entry k(.param .u32 n)
{
    .reg .pred %p<3>; .reg .b32 %r<9>;
    .shared .align 8 .u32 data[2];
    .shared .align 8 .u32 flag;
    .shared .align 8 .b64 bar;
    ld.param.u32 %r8, [n];
    mov.u32 %r1, %cluster_ctarank;
    setp.ne.u32 %p1, %r1, 0;
    @%p1 bra READER;
    mov.u32 %r2, data;
    mapa.shared::cluster.u32 %r3, %r2, %r8;
    mapa.shared::cluster.u32 %r4, flag, 1;
    mapa.shared::cluster.u32 %r7, bar, 1;
WRITES
    ret;
READER:
READS
    ret;
}
"""


def outcomes(writes, reads, condition, cluster=2, n=1, **how):
    text = KERNEL.replace("WRITES", writes).replace("READS", reads)
    return ptxtools.litmus_kernel(text, condition, args=[n], grid=2, block=1, cluster=cluster, **how)


WRITES = "st.shared::cluster.u32 [%r3+4], 42; st.release.SCOPE.shared::cluster.u32 [%r4], 1;"
READS = "ld.acquire.SCOPE.shared::cta.u32 %r5, [flag]; ld.shared.u32 %r6, [data+4];"


@pytest.mark.parametrize(("scope", "holds"), [("cluster", True), ("cta", False)])
def test_a_message_into_the_shared_memory_of_another_cta(scope, holds):
    found = outcomes(WRITES.replace("SCOPE", scope), READS.replace("SCOPE", scope),
                     "~exists (P1:%r5 == 1 /\\ P1:%r6 == 0)")  # fmt: skip
    assert found.holds == holds and (1, 42) in found.states


def test_each_cta_has_its_own():
    """`data` is that of the first CTA, `data@1` that of CTA 1; rank 0 is the CTA itself."""
    assert outcomes("st.shared::cluster.u32 [%r3+4], 42;", "", "forall (data@1[1] == 42 /\\ data[1] == 0)").holds
    assert outcomes("st.shared::cluster.u32 [%r3+4], 42;", "", "forall (data@1[1] == 0 /\\ data[1] == 42)", n=0).holds
    with pytest.raises(PtxError, match="no location 'data@2'"):
        outcomes("", "", "exists (data@2 == 0)")


def test_what_is_mapped_nowhere_is_refused():
    with pytest.raises(PtxError, match="address is that of no location"):
        outcomes("st.shared::cluster.u32 [%r3], 42;", "", "exists (data == 0)", n=2)


@pytest.mark.parametrize(("wait", "holds"), [(".acquire.cluster", True), ("", False)])
def test_an_asynchronous_store(wait, holds):
    """The mbarrier and the place are both in the other CTA, which expects the bytes."""
    store = "st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%r3], 42, [%r7];"
    found = outcomes(
        "fence.acq_rel.cluster; ld.relaxed.cluster.shared::cta.u32 %r5, [flag]; setp.ne.u32 %p2, %r5, 1; @%p2 ret;"
        f"fence.acq_rel.cluster; {store}",
        "mbarrier.init.shared.b64 [bar], 1; mbarrier.arrive.expect_tx.shared.b64 _, [bar], 4; fence.acq_rel.cluster;"
        "mapa.shared::cluster.u32 %r4, flag, 0; st.relaxed.cluster.shared::cluster.u32 [%r4], 1;"
        f"mbarrier.test_wait.parity{wait}.shared::cta.b64 %p2, [bar], 0; ld.shared.u32 %r6, [data];",
        "~exists (P1:%p2 == 1 /\\ P1:%r6 == 0)",
    )
    assert found.holds == holds and not found.undefined
    assert any(state[1] == 42 for state in found.states)
