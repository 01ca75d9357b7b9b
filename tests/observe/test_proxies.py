"""asynccheck names a fence that is of another proxy, or for another space."""

from __future__ import annotations

from typing import Any

import pytest

from . import bugs
from .programs import HEAD, run

HEAD_90 = HEAD.replace("8.0", "8.6").replace("sm_80", "sm_90")
BODY = """.reg .b32 %s; mov.u32 %s, sh; shl.b32 %r0, %i, 2; add.u32 %r0, %r0, %s; st.shared.u32 [%r0], %i;
{fence}
bar.sync 0; setp.ne.u32 %p, %i, 0; @%p bra END;
cp.async.bulk.global.shared::cta.bulk_group [%a], [%s], 256; cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;
END:
"""


@pytest.mark.parametrize(
    ("fence", "kind"),
    [
        ("", "no-proxy-fence"),
        ("fence.acq_rel.gpu;", "no-proxy-fence"),
        ("fence.proxy.alias;", "wrong-proxy"),
        ("fence.proxy.async.global;", "wrong-proxy"),
        ("fence.proxy.async.shared::cta;", ""),
        ("fence.proxy.async;", ""),
    ],
)
def test_the_fence_of_the_wrong_proxy(fence: str, kind: str) -> None:
    found = run(BODY.format(fence=fence), "asynccheck", shared=256, head=HEAD_90).reports
    assert [one.kind for one in found] == ([kind] if kind else [])
    if kind:
        assert found[0].help == "fence.proxy.async, or fence.proxy.async.shared::cta, between the two"
        named = [line for line in found[0].details if "a fence of another proxy or space" in line]
        assert [line.partition(": ")[2] for line in named] == ([fence.rstrip(";")] if kind == "wrong-proxy" else [])


#: CTA 0 stores, and CTA 1 (`BACK`) copies over it behind the mbarrier that something of CTA 0 has signalled.
THERE_AND_BACK = """setp.eq.u32 %p0, %i, 0; setp.eq.u32 %p1, %rank, 1; add.u32 %r9, %s, 512;
@%p0 mbarrier.init.shared.b64 [%r9], 1; @%p0 mbarrier.arrive.expect_tx.shared.b64 _, [%r9], 128;
fence.mbarrier_init.release.cluster; barrier.cluster.arrive; barrier.cluster.wait;
mapa.shared::cluster.u32 %r0, %s, 0; add.u32 %r2, %r0, 512; mapa.shared::cluster.u32 %r1, %s, 1; add.u32 %r3, %r1, 512;
shl.b32 %r4, %i, 2; add.u32 %r5, %r4, %s; add.u32 %r6, %r4, %r1; add.u32 %r7, %s, 256; @%p1 bra BACK;
SEND
bra W;
BACK: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p2, [%r9], 0; @!%p2 bra BACK;
@%p0 COPY [%r0], [%s], 128, [%r2];
bra END;
W: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p2, [%r9], 0; @!%p2 bra W;
ld.shared.u32 %r8, [%r5]; mad.wide.u32 %d0, %i, 4, %a; st.global.u32 [%d0], %r8;
END: barrier.cluster.arrive; barrier.cluster.wait;
"""
COPY = "cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes"
MULTICAST = "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster"
SENT = {
    "the buffer": f"@%p0 {COPY} [%r1], [%s], 128, [%r3];",
    "another one": f"@%p0 {COPY} [%r1], [%r7], 128, [%r3];",
    "st.async": "st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%r6], %i, [%r3];",
    "a multicast": f"mov.b16 %h0, 2; @%p0 {MULTICAST} [%s], [%b], 128, [%r9], %h0;",
}


def pair_of_ctas(send: str) -> list[Any]:
    """What the checkers report of it, whatever the schedule."""
    text = THERE_AND_BACK.replace("SEND", send).replace("COPY", COPY)
    lines = [(" ", line) for line in text.splitlines()]
    pair = bugs.Pair("there_and_back", "asynccheck", {"target": "sm_90", "cluster": "2", "block": "32"}, lines)
    others = "asynccheck,memcheck,racecheck,synccheck,leakcheck"  # not all: the copies are of more than was stored
    found = [bugs.run(pair, "+", checks, seed=seed) for checks in ("asynccheck", others) for seed in (None, 3)]
    assert len({tuple((one.kind, one.line) for one in some) for some in found}) == 1, found
    return found[0]


@pytest.mark.parametrize("sent", list(SENT))
def test_a_copy_tells_of_the_fences_before_it(sent: str) -> None:
    """Who waits for the mbarrier that it signals knows of them (8.9.5); of a fence behind the copy it does not."""
    store, fence = "st.shared.u32 [%r5], %i;", "fence.proxy.async.shared::cta; bar.sync 0;"
    assert not pair_of_ctas(f"{store} {fence} {SENT[sent]}")
    for bug in (f"{store} bar.sync 0; {SENT[sent]}", f"{store} bar.sync 0; {SENT[sent]} {fence}",
                f"{store} fence.proxy.async.global; bar.sync 0; {SENT[sent]}"):  # fmt: skip
        found = pair_of_ctas(bug)
        assert {one.kind for one in found} <= {"no-proxy-fence", "wrong-proxy"}
        assert any("CTA rank 0 writes what was written without" in one.message for one in found), found
    assert not pair_of_ctas(f"@%p0 st.shared.u32 [%s], 1; {fence} {SENT[sent]}")


COMMIT = """setp.eq.u32 %p0, %l, 0; add.u32 %r9, %s, 512; shl.b32 %r1, %l, 2; add.u32 %r1, %r1, %s;
setp.ne.u32 %p1, %i, 0;
@!%p1 mbarrier.init.shared.b64 [%r9], 1; @!%p1 mbarrier.init.shared.b64 [%r9+8], 1; fence.mbarrier_init.release.cluster;
bar.sync 0; setp.eq.u32 %p1, %w, 1; @%p1 bra COMMIT; setp.eq.u32 %p1, %w, 2; @%p1 bra FILL;
st.shared.u32 [%r1], %i; {fence} bar.sync 1, 64; bra END;
COMMIT: bar.sync 1, 64; @%p0 tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%r9]; bra END;
FILL: mbarrier.try_wait.parity.shared.b64 %p2, [%r9], 0; @!%p2 bra FILL;
@%p0 mbarrier.arrive.expect_tx.shared.b64 _, [%r9+8], 128; add.u32 %r2, %r9, 8;
@%p0 cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%s], [%b], 128, [%r2];
W: mbarrier.try_wait.parity.shared.b64 %p2, [%r9+8], 0; @!%p2 bra W;
END:
"""


@pytest.mark.parametrize("fence", ["fence.proxy.async.shared::cta;", ""])
def test_a_commit_tells_of_the_fences_before_it(fence: str) -> None:
    """What tcgen05.commit signals tells of what its thread has been told."""
    lines = [(" ", line) for line in COMMIT.format(fence=fence).splitlines()]
    pair = bugs.Pair("commit", "asynccheck", {"target": "sm_100a", "block": "96"}, lines)
    for checks in ("asynccheck", "all"):
        assert [one.kind for one in bugs.run(pair, "+", checks)] == ([] if fence else ["no-proxy-fence"])
