"""Reductions of copies and of multimem are atomic against atomics that other workers run meanwhile (9.7.9.25.4.2,
9.7.9.25.5.3, 9.7.13.7, 9.7.9.14)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import ptxtools
from tests.work import HANG

#: CTAs, half of them of each kind; words that all add to.
CTAS, WORDS = 16, 64

#: Adds 1 to all words, by thread 0, through %s (WORDS of ones in shared memory), %rd1 (target) and %m (map).
WAYS = {
    "bulk": "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.{type} [%rd1], [%s], {bytes};",
    "tensor": "cp.reduce.async.bulk.tensor.1d.global.shared::cta.add.tile.bulk_group [%rd2, {{0}}], [%s];",
    "red.async": """mov.u32 %r5, 0; IN: mul.wide.u32 %rd4, %r5, {size}; add.u64 %rd4, %rd4, %rd1;
        red.async.release.gpu.global.add.{type} [%rd4], {one};
        add.u32 %r5, %r5, 1; setp.lt.u32 %p2, %r5, {words}; @%p2 bra IN;""",
    "multimem": """mov.u32 %r5, 0; IN: mul.wide.u32 %rd4, %r5, {size}; add.u64 %rd4, %rd4, %rd3;
        multimem.red.relaxed.gpu.global.add.{type} [%rd4], {one};
        add.u32 %r5, %r5, 1; setp.lt.u32 %p2, %r5, {words}; @%p2 bra IN;""",
}


def rounds(way: str, type_: str) -> int:
    """Additions of each CTA to a word; f16 counts to 2048. Those that Python serves one by one are fewer."""
    if way in ("bulk", "tensor"):
        return 128 if "16" in type_ else 1024
    return 48


def kernel(way: str, type_: str) -> Any:
    """CTAs with even numbers add `way`, those with odd ones by red."""
    plain = type_.removeprefix("noftz.")
    size = int(plain[1:]) // 8
    one = {"u32": "1", "u64": "1", "f32": "0f3F800000", "f16": "%h1"}[plain]
    words = {"size": size, "bytes": size * WORDS, "type": type_, "one": one, "words": WORDS}
    text = f"""
    .version 8.7
    .target sm_100a
    .address_size 64
    .visible .entry k(.param .u64 y, .param .align 64 .b8 m[128], .param .u64 mc) {{
        .reg .pred %p<4>; .reg .b16 %h<4>; .reg .b32 %s, %r<8>; .reg .b64 %rd<8>; .reg .f32 %f1;
        .shared .align 128 .b8 tile[512];
        ld.param.u64 %rd1, [y]; mov.b64 %rd2, m; cvta.param.u64 %rd2, %rd2; ld.param.u64 %rd3, [mc];
        mov.u32 %s, tile; mov.u32 %r0, %tid.x; mov.b16 %h1, 0x3C00;
        mad.lo.u32 %r1, %r0, {size}, %s;
        st.shared.{plain if plain != "f16" else "b16"} [%r1], {one}; fence.proxy.async; bar.sync 0;
        mov.u32 %r2, %ctaid.x; and.b32 %r2, %r2, 1; setp.eq.u32 %p0, %r2, 1; mov.u32 %r3, 0;
        @%p0 bra PLAIN;
        setp.ne.u32 %p1, %r0, 0; @%p1 bra END;
        L: {WAYS[way].format(**words)}
        add.u32 %r3, %r3, 1; setp.lt.u32 %p1, %r3, {rounds(way, type_)}; @%p1 bra L;
        cp.async.bulk.commit_group; cp.async.bulk.wait_group 0; bra END;
        PLAIN: mul.wide.u32 %rd4, %r0, {size}; add.u64 %rd4, %rd4, %rd1;
        M: red.relaxed.gpu.global.add.{type_} [%rd4], {one};
        add.u32 %r3, %r3, 1; setp.lt.u32 %p1, %r3, {rounds(way, type_)}; @%p1 bra M;
        END: ret;
    }}"""
    return ptxtools.loads(text)["k"]


@pytest.mark.share(8)
@pytest.mark.parametrize(("way", "type_"), [
    ("bulk", "u32"), ("bulk", "u64"), ("bulk", "f32"), ("bulk", "noftz.f16"), ("tensor", "u32"), ("tensor", "f32"),
    ("red.async", "u32"), ("red.async", "u64"), ("multimem", "u32"), ("multimem", "f32"),
])  # fmt: skip
def test_no_addition_is_lost_between_workers(way: str, type_: str) -> None:
    plain = type_.removeprefix("noftz.")
    dtype = np.dtype({"u32": "u4", "u64": "u8", "f32": "f4", "f16": "f2"}[plain])
    device = ptxtools.Device("sm_100a", threads=4, sms=CTAS)
    y = device.upload(np.zeros(WORDS, dtype))
    map_ = device.tensormap(y, type=plain, shape=[WORDS], box=[WORDS])
    device.launch(kernel(way, type_), CTAS, WORDS, [y, map_, device.multicast([y])], timeout=HANG)
    assert set(y.download().tolist()) == {CTAS * rounds(way, type_)}
