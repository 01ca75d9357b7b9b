"""asynccheck names a fence that is of another proxy, or for another space."""

from __future__ import annotations

import pytest

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
