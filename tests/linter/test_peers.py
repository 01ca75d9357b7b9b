"""What CTAs of a cluster do at mbarriers of one another, as walks follow it."""

from __future__ import annotations

import pytest

from ptxtools.linter import lint
from ptxtools.syntax import parse

_FRAME = """.version 9.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 a) .reqntid 32 .reqnctapercluster {ctas} {{
  .reg .b64 %a, %d<8>; .reg .b32 %i, %s, %rank, %r<40>; .reg .b16 %h; .reg .pred %p<8>; .shared .align 128 .b8 sh[1024];
  ld.param.u64 %a, [a]; mov.u32 %i, %tid.x; mov.u32 %s, sh; mov.u32 %rank, %cluster_ctarank;
  setp.eq.u32 %p0, %i, 0; add.u32 %r10, %s, 512; shl.b32 %r2, %i, 2; add.u32 %r3, %r2, %s; {rank}
  @%p0 mbarrier.init.shared.b64 [%r10], 32; @%p0 mbarrier.init.shared.b64 [%r10+8], 1; st.shared.u32 [%r3], 5;
  fence.mbarrier_init.release.cluster; fence.proxy.async.shared::cta; barrier.cluster.arrive; barrier.cluster.wait;
  mapa.shared::cluster.u32 %r4, %s, %r1; add.u32 %r5, %r4, %r2; add.u32 %r6, %r4, 512;
  {body}
  mad.lo.u32 %r8, %rank, 32, %i; mad.wide.u32 %d3, %r8, 4, %a; st.global.u32 [%d3], %r7;
  barrier.cluster.arrive; barrier.cluster.wait;
  ret;
}}
"""
_XOR = "xor.b32 %r1, %rank, 1;"
_RING = "add.u32 %r20, %rank, 1; and.b32 %r1, %r20, 3;"
_ARRIVE = "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r6];"
_TRY = "mbarrier.try_wait.parity"
_WAIT = f"W: {_TRY}.acquire.cluster.shared::cta.b64 %p1, [%r10], 0; @!%p1 bra W;"
_EXCHANGE = f"st.shared::cluster.u32 [%r5], %i; {_ARRIVE} {_WAIT} ld.shared.u32 %r7, [%r3];"
_RELAXED = _EXCHANGE.replace("arrive.release", "arrive.relaxed")


def _found(body: str, rank: str = _XOR, ctas: int = 2) -> list[tuple[str, str]]:
    result = parse(_FRAME.format(body=body, rank=rank, ctas=ctas), "k.ptx")
    assert not result.diagnostics
    return [(d.code, d.message) for d in lint(result.module) if d.code.startswith("PTX5")]


def _codes(body: str, rank: str = _XOR, ctas: int = 2) -> list[str]:
    return [code for code, _ in _found(body, rank, ctas)]


@pytest.mark.parametrize(
    ("rank", "ctas"),
    [
        (_XOR, 2), (_XOR, 4), ("xor.b32 %r1, %rank, 3;", 4), (_RING, 4),
        ("add.u32 %r20, %rank, 7; and.b32 %r1, %r20, 7;", 8),
        ("add.u32 %r1, %rank, 3; and.b32 %r1, %r1, 3;", 4),
        ("mov.u32 %r21, %cluster_nctarank; add.u32 %r20, %rank, 1; rem.u32 %r1, %r20, %r21;", 4),
    ],
)  # fmt: skip
def test_what_a_relaxed_arrival_tells_is_nothing(rank: str, ctas: int) -> None:
    assert _codes(_EXCHANGE, rank, ctas) == []
    assert _codes(_RELAXED, rank, ctas) == ["PTX509"]
    fenced = "fence.acq_rel.cluster; mbarrier.arrive.relaxed"
    assert _codes(_RELAXED.replace("mbarrier.arrive.relaxed", fenced), rank, ctas) == []


@pytest.mark.parametrize(
    "rank",
    [
        "setp.eq.u32 %p2, %rank, 3; add.u32 %r20, %rank, 1; selp.b32 %r1, 0, %r20, %p2;",  # one does something else
        "add.u32 %r20, %rank, 1; and.b32 %r1, %r20, 1;",  # two of four
    ],
)
def test_ranks_that_are_not_alike_are_left_alone(rank: str) -> None:
    for body in (_RELAXED, _EXCHANGE):
        assert _codes(body, rank, 4) == []


def test_a_store_does_not_come_before_a_relaxed_wait() -> None:
    """What a CTA tells of is read before the other one overwrites it; what it stores, a relaxed wait does not tell."""
    relaxed = _WAIT.replace("acquire", "relaxed")
    assert _codes(f"ld.shared.u32 %r7, [%r3]; {_ARRIVE} {relaxed} st.shared::cluster.u32 [%r5], 9;") == []
    assert _codes(f"st.shared::cluster.u32 [%r5], %i; {_ARRIVE} {relaxed} ld.shared.u32 %r7, [%r3];") == ["PTX509"]


def test_each_half_waits_for_itself() -> None:
    """One CTA goes on while the other one still waits, for what the first one does behind its wait."""
    second = _WAIT.replace("W", "V").replace("[%r10]", "[%r10+8]")
    body = f"""setp.eq.u32 %p2, %rank, 1; {_ARRIVE} {_WAIT} @%p2 bra TAKE;
      st.shared::cluster.u32 [%r5+128], %i; bar.warp.sync -1;
      @%p0 mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r6+8]; mov.u32 %r7, 0; bra END;
      TAKE: {second} ld.shared.u32 %r7, [%r3+128]; END:"""
    assert _codes(body) == []
    assert _codes(body.replace("[%r6+8]", "[%r6]").replace("@%p0", "")) == ["PTX578"]


_COPY = """@!%p0 bra W; mbarrier.arrive.expect_tx.shared.b64 _, [%r10+8], 128; add.u32 %r11, %r4, 256;
  add.u32 %r12, %r4, 520;
  cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%r11], [%s], 128, [%r12];
  W: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p1, [%r10+8], 0; @!%p1 bra W;
  ld.shared.u32 %r7, [%r3+256];"""


def test_bytes_come_at_the_mbarrier_of_the_other_cta() -> None:
    assert _found(_COPY) == []
    ((code, message),) = _found(_COPY.replace("_, [%r10+8], 128", "_, [%r10+8], 64"))
    assert code == "PTX568"
    assert message == (
        "64 bytes are expected at the mbarrier of CTA 0 of the cluster, and the copies in this phase bring it 128"
    )
    home = "add.u32 %r12, %s, 520; mapa.shared::cluster.u32 %r12, %r12, 0;"
    assert "PTX568" in _codes(_COPY.replace("add.u32 %r12, %r4, 520;", home))


def test_who_sends_learns_of_it_from_the_other_cta() -> None:
    told = f"{_ARRIVE} V: {_TRY}.acquire.cluster.shared::cta.b64 %p1, [%r10], 0; @!%p1 bra V;"
    assert _codes(f"{_COPY} {told} st.shared.u32 [%r3], 7;") == []
    assert _codes(f"{_COPY} st.shared.u32 [%r3], 7;") == ["PTX567"]
    assert _codes(f"{_ARRIVE} {_COPY} st.shared.u32 [%r3], 7;") == ["PTX567"]
    # The peer knows, and sends back into what the copy has read.
    back = f"{_COPY} @%p0 st.shared::cluster.u32 [%r4], 7; {told}"
    assert _codes(back) == []
