"""Traps of operations across CTAs, of tensor memory, and of handles, that no other test meets."""

from __future__ import annotations

import numpy as np
import pytest

import ptxtools
from ptxtools.diagnostics import Trap
from tests.sim.tensor.test_mma import Product

HEAD = """.version 9.0
.target {target}
.address_size 64
.visible .entry k() {{
    .reg .pred %p<8>; .reg .b16 %h<8>; .reg .b32 %r<24>; .reg .b64 %d<24>; .reg .f32 %f<8>; .reg .u32 %rank;
    .shared .align 128 .b8 data[1024]; .shared .align 8 .b64 bar; .shared .align 4 .b32 place;
    .global .align 16 .b8 room[64];
"""
ALLOC = "tcgen05.alloc.cta_group::{0}.sync.aligned.shared::cta.b32 [place], {1};"


def trapped(body: str, *, target: str = "sm_100a", cluster: int = 1, block: int = 32) -> Trap:
    text = HEAD.format(target=target).replace("{{", "{")
    variable = ".global .align 16 .b8 room[64];"
    text = text.replace(f"    {variable}\n", "").replace(".visible", f"{variable}\n.visible")
    rank = "mov.u32 %rank, %cluster_ctarank; setp.eq.u32 %p1, %rank, 0;\n"
    module = ptxtools.loads(f"{text}{rank}{body} }}")
    with pytest.raises(Trap) as failure:
        ptxtools.Device(target=target).launch(module["k"], cluster, block, [], cluster=cluster)
    return failure.value


@pytest.mark.parametrize(
    ("body", "cluster", "reason"),
    [
        ("""mbarrier.init.shared.b64 [bar], 1; mov.b16 %h1, 5;
         cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [data], [room], 16, [bar],
         %h1; ret;""", 2, "multicast to CTAs 0x5 of a cluster of 2"),
        (ALLOC.format(1, 32) + """mbarrier.init.shared.b64 [bar], 1; mov.b16 %h1, 4; mov.u32 %r1, bar;
         tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 [%r1], %h1; ret;""",
         2, "tcgen05.commit: ctaMask 0x4 includes CTAs beyond the 2 of the cluster"),
        (ALLOC.format(1, 32) + """ld.shared.u32 %r1, [place]; add.u32 %r1, %r1, 0x10000; mov.u64 %d1, 0x4000;
         tcgen05.cp.cta_group::1.128x128b [%r1], %d1; ret;""",
         1, "tcgen05.cp to lane 1: .128x128b extends past lane 127 of tensor memory"),
        ("@%p1 bra A;" + ALLOC.format(2, 64) + "ret; A:" + ALLOC.format(2, 32) + "ret;",
         2, "the CTAs of the pair request different numbers of columns: [32, 64]"),
        (ALLOC.format(1, 32) + ALLOC.format(1, 64) + "ret;",
         1, "tcgen05.alloc of 64 columns after one of 32: nCols must not grow"),
        (ALLOC.format(2, 32) + "ret;",
         1, "tcgen05.alloc with .cta_group::2 requires a pair of CTAs; CTA (0,0,0) of the cluster has no peer"),
        ("@!%p1 ret; nanosleep.u32 5000;" + ALLOC.format(2, 32) + "ret;",
         2, "tcgen05.alloc with .cta_group::2 when the peer CTA (1,0,0) has exited"),
        ("mov.u64 %d1, 0x7E58000000000000; suq.width.b32 %r1, [%d1]; ret;",
         1, "0x7e58000000000000 is not a texture or surface"),
        (ALLOC.format(1, 32) + """ld.shared.u32 %r1, [place];
         tcgen05.st.sync.aligned.16x32bx2.x1.b32 [%r1], 0x400000, {%r2}; ret;""",
         1, "the second half begins at lane 64; this warp accesses lanes 0 to 31 of tensor memory"),
    ],
)  # fmt: skip
def test_reasons(body, cluster, reason):
    assert reason in trapped(body, cluster=cluster).reason


@pytest.mark.parametrize(
    ("body", "what"),
    [
        ("@%p1 bra A; bar.sync 1, 64; A:" + ALLOC.format(2, 32) + "ret;", "tcgen05.alloc of the other CTA of the pair"),
        (ALLOC.format(2, 512) + ALLOC.format(2, 32) + "ret;",
         "32 columns of tensor memory that are free in both CTAs of the pair"),
    ],
)  # fmt: skip
def test_waits_of_a_pair(body, what):
    trap = trapped(body, cluster=2)
    assert trap.kind == "deadlock"
    assert any(f"32 threads wait for {what}" in line for line in trap.details)


@pytest.mark.parametrize(
    ("product", "options", "reason"),
    [
        ({"a_tensor": True}, {"lines": "add.u32 %q1, %q1, 0x200000;"}, "A at lane 32 of tensor memory; D is at 0"),
        ({"a_tensor": True, "m": 64}, {"modifiers": ".ashift"}, ".ashift with M = 64; it must be 128 or 256"),
        ({"n": 64, "stationary": True}, {"lines": f"mov.u64 %w2, {63 << 56};", "tail": ", %w2"},
         "column shift 63; at most 32 is allowed"),
    ],
)  # fmt: skip
def test_products(product, options, reason):
    with pytest.raises(Trap) as failure:
        Product("f16", "f16", **product).run(**options)
    assert reason in failure.value.reason


def test_something_else_than_a_sampler():
    text = """.version 9.0
.target sm_90, texmode_independent
.address_size 64
.global .b64 junk = 77;
.visible .entry k(.param .u64 image) {
    .reg .b64 %d<4>; .reg .f32 %f<8>; ld.param.u64 %d1, [image]; mov.u64 %d2, junk;
    tex.2d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [%d1, %d2, {%f5, %f5}]; ret; }"""
    device = ptxtools.Device("sm_90")
    texture = device.texture(device.upload(np.ones((2, 2), np.float32)), type="f32", size=[2, 2])
    with pytest.raises(Trap, match=r"0x[0-9a-f]+ is not a sampler"):
        device.launch(ptxtools.loads(text)["k"], 1, 1, [texture])


def test_warps_of_a_warpgroup_with_different_descriptors():
    body = """
    mov.u64 %d1, 0; mov.u32 %r1, %tid.x; setp.lt.u32 %p2, %r1, 32; @%p2 mov.u64 %d1, 2;
    wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f1, %f2, %f3, %f4}, %d1, %d1, 0, 1, 1, 0, 0;
    wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0; ret;"""
    reason = "the warps of the warpgroup have different descriptors or layouts of B"
    assert trapped(body, target="sm_90a", block=128).reason == reason
