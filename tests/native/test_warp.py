"""Operations across the lanes of a warp, against plain Python."""

from __future__ import annotations

import numpy as np
import pytest

from tests.rows import rows

from .harness import results

LANES = np.arange(32, dtype=np.uint32)
RNG = np.random.default_rng(7)


def shuffled(mode: str, values: list[int], b: int, c: int) -> list[tuple[int, bool]]:
    """The manual's pseudo code (9.7.9.6)."""
    found = []
    segment, clamp, b = (c >> 8) & 31, c & 31, b & 31
    for lane in range(32):
        most = (lane & segment) | (clamp & ~segment & 31)
        least = lane & segment
        if mode == "up":
            source = lane - b
            valid = source >= most
        elif mode == "down":
            source = lane + b
            valid = source <= most
        elif mode == "bfly":
            source = lane ^ b
            valid = source <= most
        else:
            source = least | (b & ~segment & 31)
            valid = source <= most
        found.append((values[source if valid else lane], valid))
    return found


@rows("mode", ["up", "down", "bfly", "idx"])
@rows(("b", "c"), [(1, 0x1F), (1, 0), (3, 0x181F), (5, 0x100F), (16, 0x1F), (7, 0x1C03)])
def test_shfl(mode, b, c):
    body = f"""mul.lo.u32 %r1, %t, 17; shfl.sync.{mode}.b32 %r2|%p1, %r1, {b}, {c}, -1;
        selp.u32 %r3, 1000, 0, %p1; add.u32 %r2, %r2, %r3; st.global.u32 [%out], %r2; ret;"""
    expected = [value + 1000 * valid for value, valid in shuffled(mode, [17 * i for i in range(32)], b, c)]
    assert results(body).tolist() == expected


def test_shfl_with_a_source_of_its_own_for_each_lane():
    body = """sub.u32 %r1, 31, %t; shfl.sync.idx.b32 %r2, %t, %r1, 31, -1; st.global.u32 [%out], %r2; ret;"""
    assert np.array_equal(results(body), 31 - LANES)


def test_votes_of_a_part_of_the_warp():
    body = """setp.lt.u32 %p1, %t, 12; setp.lt.u32 %p2, %t, 20; @!%p2 bra END;
        vote.sync.ballot.b32 %r1, %p1, 0xfffff; vote.sync.any.pred %p3, %p1, 0xfffff;
        vote.sync.all.pred %p4, %p1, 0xfffff; vote.sync.uni.pred %p5, %p2, 0xfffff; activemask.b32 %r2;
        selp.u32 %r3, 1, 0, %p3; selp.u32 %r4, 2, 0, %p4; selp.u32 %r5, 4, 0, %p5; add.u32 %r3, %r3, %r4;
        add.u32 %r3, %r3, %r5; xor.b32 %r1, %r1, %r2; mad.lo.u32 %r1, %r3, 0x1000000, %r1;
        END: st.global.u32 [%out], %r1; ret;"""
    assert np.array_equal(results(body)[:20], np.full(20, 0x5000000 + (0xFFFFF ^ 0xFFF)))


@pytest.mark.parametrize("bits", [32, 64])
def test_match(bits):
    wide = "" if bits == 32 else "cvt.u64.u32 %d1, %r1; shl.b64 %d1, %d1, 33;"
    value = "%r1" if bits == 32 else "%d1"
    body = f"""rem.u32 %r1, %t, 5; {wide} match.any.sync.b{bits} %r2, {value}, -1;
        match.all.sync.b{bits} %r3|%p1, {value}, -1; selp.u32 %r4, 1, 0, %p1; add.u32 %r2, %r2, %r3;
        add.u32 %r2, %r2, %r4; st.global.u32 [%out], %r2; ret;"""
    expected = [sum(1 << j for j in range(32) if j % 5 == i % 5) for i in range(32)]
    assert results(body).tolist() == expected
    body = body.replace("rem.u32 %r1, %t, 5", "mov.u32 %r1, 3")
    assert results(body).tolist() == [(0xFFFFFFFF + 0xFFFFFFFF + 1) & 0xFFFFFFFF] * 32


@pytest.mark.parametrize(
    ("operation", "function"),
    [("add.u32", np.sum), ("min.s32", np.min), ("max.s32", np.max), ("max.u32", lambda v: np.max(v.view(np.uint32))),
     ("and.b32", np.bitwise_and.reduce), ("or.b32", np.bitwise_or.reduce), ("xor.b32", np.bitwise_xor.reduce)],
)  # fmt: skip
def test_redux_of_two_halves(operation, function):
    data = RNG.integers(-(1 << 31), 1 << 31, 32, np.int64).astype(np.int32)
    body = f"""mul.wide.u32 %d1, %t, 4; add.u64 %d1, %d1, %in; ld.global.u32 %r1, [%d1]; setp.lt.u32 %p1, %t, 16;
        selp.b32 %r2, 0xffff, 0xffff0000, %p1; redux.sync.{operation} %r3, %r1, %r2; st.global.u32 [%out], %r3; ret;"""
    expected = np.repeat([np.uint32(int(function(half)) & 0xFFFFFFFF) for half in data.reshape(2, 16)], 16)
    assert np.array_equal(results(body, inputs=data), expected)


def test_elect_and_the_lanes_it_leaves_out():
    body = """setp.ge.u32 %p1, %t, 6; @!%p1 bra END; elect.sync %r1|%p2, 0xffffffc0; selp.u32 %r2, 100, 0, %p2;
        add.u32 %r1, %r1, %r2; END: st.global.u32 [%out], %r1; ret;"""
    assert results(body)[6:].tolist() == [106] + [6] * 25


def test_lanes_meet_before_a_shuffle_from_far_apart():
    body = """setp.ne.u32 %p1, %t, 3; @%p1 bra MEET; mov.u32 %r1, 0;
        SLOW: add.u32 %r1, %r1, 1; setp.lt.u32 %p2, %r1, 30000; @%p2 bra SLOW;
        MEET: shfl.sync.idx.b32 %r2, %r1, 3, 31, -1; st.global.u32 [%out], %r2; ret;"""
    assert np.array_equal(results(body), np.full(32, 30000))


def test_a_mask_may_name_lanes_that_have_exited():
    body = """setp.ge.u32 %p1, %t, 8; @%p1 exit; bar.warp.sync -1; vote.sync.ballot.b32 %r1, 1, -1;
        st.global.u32 [%out], %r1; ret;""".replace("vote.sync.ballot.b32 %r1, 1,", "vote.sync.ballot.b32 %r1, !%p1,")
    assert results(body).tolist() == [0xFF] * 8 + [0] * 24
