"""mbarrier layouts, kinds of phases and reports of PTX 9.3, on both engines (9.7.13.15)."""

from __future__ import annotations

import numpy as np
import pytest

import ptxtools
from ptxtools.diagnostics import PtxError

from .test_copies import ENGINES, POINTERS, kernel, launch

HEADER = ".version 9.4\n.target sm_100a\n.address_size 64\n"


@ENGINES
@pytest.mark.parametrize("action", ["test_wait", "try_wait"])
def test_reports_are_zero(engine: str, action: str) -> None:
    """Primary and conditional phases end together, and nothing was reported."""
    body = f"""mov.u32 %r9, bar; add.u32 %r9, %r9, 8; .reg .b8 %v;
    mbarrier.init.layout::v0.shared::cta.b64 [%r9], 1;
    mbarrier.{action}.parity.phase_type::conditional.shared::cta.b64 %p1, [%r9], 1;
    mbarrier.{action}.parity.phase_type::conditional.shared::cta.b64 %p2, [%r9], 0;
    mbarrier.arrive.shared::cta.b64 %rd1, [%r9];
    setp.eq.u32 %p4, 1, 1;
    mbarrier.{action}.phase_type::primary.shared::cta.b64 %p3|%p4, %v, [%r9], %rd1;
    mbarrier.{action}.parity.phase_type::primary.acquire.cta.shared::cta.b64 %p5|_, [%r9], 0;
    cvt.u32.u8 %r1, %v; shl.b32 %r1, %r1, 5;
    @%p1 or.b32 %r1, %r1, 1; @%p2 or.b32 %r1, %r1, 2; @%p3 or.b32 %r1, %r1, 4; @%p4 or.b32 %r1, %r1, 8;
    @%p5 or.b32 %r1, %r1, 16; st.global.u32 [%b], %r1;
    mbarrier.check_layout.layout::v0.shared::cta.b64 %p1, [%r9];
    mbarrier.check_layout.layout::v1.shared::cta.b64 %p2, [%r9];
    mbarrier.pending_count.layout::v0.b64 %r2, %rd1;
    selp.u32 %r1, 1, 0, %p1; @%p2 or.b32 %r1, %r1, 2; shl.b32 %r2, %r2, 2; or.b32 %r1, %r1, %r2;
    st.global.u32 [%b+4], %r1;
    """
    b = np.zeros(2, np.uint32)
    launch(engine, kernel(POINTERS + body, version=HEADER), [b, b])
    assert b.tolist() == [0b10101, 0b101]


@pytest.mark.parametrize("line", [
    "mbarrier.init.layout::v1.shared::cta.b64 [%mb], 1;", "fabric.submit;", "fabric.wait.sync_restrict::reads;",
    "fence.proxy.fabric::generic.alias.release.sys;",
])  # fmt: skip
def test_what_nobody_has_described_is_refused(line: str) -> None:
    with pytest.raises(PtxError, match="has no simulation"):
        launch("native", kernel(line, version=HEADER), [None, None])


@ENGINES
def test_fences_of_proxies(engine: str) -> None:
    body = """fence.proxy.alias.acquire.sys; fence.proxy.alias.release.sys;
    fence.proxy.async::generic.release.sync_restrict::shared::cluster::read.cluster;"""
    launch(engine, kernel(body, version=HEADER), [None, None])
    with pytest.raises(PtxError, match=r"needs PTX 9\.4"):
        ptxtools.loads(HEADER.replace("9.4", "9.3") + ".entry k() { fence.proxy.alias.acquire.sys; ret; }")
