"""Divergence, barriers, warp-wide operations, fairness, limits and deadlock on the reference engine."""

from __future__ import annotations

import time

import numpy as np
import pytest

from ptxtools import reference
from ptxtools.diagnostics import Trap
from tests.program.harness import Memory, launch_of, results, run

BOTH = pytest.mark.parametrize("optimise", [True, False])
T = np.arange(32, dtype=np.uint32)


@BOTH
def test_loops_of_different_length_meet_again(optimise: bool) -> None:
    body = """mov.u32 %r1, 0; mov.u32 %r2, %t;
        LOOP: setp.eq.u32 %p1, %r2, 0; @%p1 bra OUT; add.u32 %r1, %r1, %r2; sub.u32 %r2, %r2, 1; bra LOOP;
        OUT: activemask.b32 %r3; popc.b32 %r3, %r3; mad.lo.u32 %r1, %r3, 10000, %r1; st.global.u32 [%out], %r1; ret;"""
    assert np.array_equal(results(body, optimise=optimise), 320000 + T * (T + 1) // 2)


@BOTH
def test_lane_spins_until_another_lane_of_its_warp_acts(optimise: bool) -> None:
    body = """setp.eq.u32 %p1, %t, 0; @%p1 bra WAIT;
        st.volatile.shared.u32 [s], 1; bra DONE;
        WAIT: ld.volatile.shared.u32 %r1, [s]; setp.eq.u32 %p2, %r1, 0; @%p2 bra WAIT;
        DONE: st.global.u32 [%out], %t; ret;"""
    assert np.array_equal(results(body, before=".shared .u32 s;", optimise=optimise), T)


def test_ctas_wait_for_each_other() -> None:
    text = """.visible .entry k(.param .u64 flag) { .reg .u32 %c, %r<4>; .reg .u64 %d1; .reg .pred %p1;
        mov.u32 %c, %ctaid.x; ld.param.u64 %d1, [flag];
        WAIT: ld.volatile.global.u32 %r1, [%d1]; add.u32 %r2, %r1, %c; setp.ne.u32 %p1, %r2, 3; @%p1 bra WAIT;
        atom.global.add.u32 %r3, [%d1], 1; ret; }"""
    memory = Memory()
    flag = memory.put(np.zeros(1, np.uint32))
    run(text, memory, [flag], grid=(4, 1, 1), block=(1, 1, 1), resident=4)
    assert memory.get(flag, np.uint32, 1)[0] == 4


def test_many_more_ctas_than_are_resident() -> None:
    text = """.visible .entry k(.param .u64 out) { .reg .u32 %r<4>; .reg .u64 %d<3>;
        mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ctaid.y; mov.u32 %r3, %nctaid.x; mad.lo.u32 %r1, %r2, %r3, %r1;
        ld.param.u64 %d1, [out]; mul.wide.u32 %d2, %r1, 4; add.u64 %d1, %d1, %d2; red.global.add.u32 [%d1], 1; ret; }"""
    memory = Memory()
    out = memory.put(np.zeros(77, np.uint32))
    outcome = run(text, memory, [out], grid=(7, 11, 1), block=(33, 1, 1), resident=5)
    assert memory.get(out, np.uint32, 77).tolist() == [33] * 77
    assert outcome.instructions > 77 * 33


@BOTH
def test_named_barriers_with_counts(optimise: bool) -> None:
    body = """shr.u32 %r1, %t, 5; setp.eq.u32 %p1, %r1, 0; @%p1 bra FIRST;
        st.shared.u32 [s], 42; bar.arrive 3, 64; mov.u32 %r2, 1; bra END;
        FIRST: bar.sync 3, 64; ld.shared.u32 %r2, [s];
        END: st.global.u32 [%out], %r2; ret;"""
    got = results(body, 64, before=".shared .u32 s;", optimise=optimise)
    assert got.tolist() == [42] * 32 + [1] * 32


@BOTH
def test_barrier_reductions(optimise: bool) -> None:
    body = """setp.lt.u32 %p1, %t, 5; bar.red.popc.u32 %r1, 0, %p1; bar.red.and.pred %p2, 0, !%p1;
        bar.red.or.pred %p3, 1, %p1; selp.u32 %r2, 100, 0, %p2; selp.u32 %r3, 200, 0, %p3;
        add.u32 %r1, %r1, %r2; add.u32 %r1, %r1, %r3; st.global.u32 [%out], %r1; ret;"""
    assert set(results(body, 64, optimise=optimise)) == {205}


def test_barrier_does_not_wait_for_threads_that_left() -> None:
    body = "setp.lt.u32 %p1, %t, 40; @%p1 exit; bar.sync 0; st.global.u32 [%out], 1; ret;"
    assert results(body, 64).tolist() == [0] * 40 + [1] * 24


@BOTH
def test_shuffles(optimise: bool) -> None:
    body = """shfl.sync.up.b32 %r1|%p1, %t, 3, 0, -1; shfl.sync.bfly.b32 %r2, %t, 5, 31, -1;
        shfl.sync.idx.b32 %r3, %t, 2, 0x181f, -1; shfl.sync.down.b32 %r4|%p2, %t, 4, 0x101f, 0xffffffff;
        selp.u32 %r5, 1000, 0, %p1; add.u32 %r5, %r5, %r1; mad.lo.u32 %r5, %r2, 10000, %r5;
        mad.lo.u32 %r5, %r3, 1000000, %r5; mad.lo.u32 %r5, %r4, 32000000, %r5; st.global.u32 [%out], %r5; ret;"""
    up = np.where(T >= 3, 1000 + T - 3, T)
    down = np.where((T % 16) + 4 < 16, T + 4, T)
    expected = up + (T ^ 5) * 10000 + (T // 8 * 8 + 2) * 1000000 + down * np.uint32(32000000)
    assert np.array_equal(results(body, optimise=optimise), expected.astype(np.uint32))


@BOTH
def test_votes_and_matches(optimise: bool) -> None:
    body = """setp.lt.u32 %p1, %t, 9; vote.sync.ballot.b32 %r1, %p1, -1; vote.sync.any.pred %p2, !%p1, -1;
        vote.sync.all.pred %p3, %p1, -1; vote.sync.uni.pred %p4, %p2, -1;
        and.b32 %r2, %t, 1; match.any.sync.b32 %r3, %r2, -1; match.all.sync.b32 %r4|%p5, %r2, -1;
        selp.u32 %r5, 1, 0, %p2; selp.u32 %r6, 2, 0, %p3; selp.u32 %r7, 4, 0, %p4; selp.u32 %r8, 8, 0, %p5;
        add.u32 %r5, %r5, %r6; add.u32 %r5, %r5, %r7; add.u32 %r5, %r5, %r8;
        add.u32 %r1, %r1, %r4; xor.b32 %r1, %r1, %r3; mad.lo.u32 %r1, %r5, 16777216, %r1;
        st.global.u32 [%out], %r1; ret;"""
    match = np.where(T % 2 == 0, np.uint32(0x55555555), np.uint32(0xAAAAAAAA))
    expected = (np.uint32(511) ^ match) + np.uint32(5 << 24)
    assert np.array_equal(results(body, optimise=optimise), expected)


@BOTH
def test_redux_over_part_of_the_warp(optimise: bool) -> None:
    body = """setp.lt.u32 %p1, %t, 8; selp.b32 %r1, 0xff, 0xffffff00, %p1; sub.s32 %r2, 5, %t;
        redux.sync.add.s32 %r3, %t, %r1; redux.sync.min.s32 %r4, %r2, %r1; mad.lo.s32 %r3, %r3, 100, %r4;
        st.global.u32 [%out], %r3; ret;"""
    first, rest = 28 * 100 - 2, (496 - 28) * 100 - 26
    assert results(body, optimise=optimise).tolist() == [first] * 8 + [rest] * 24


@BOTH
def test_sync_operations_gather_lanes_from_both_sides(optimise: bool) -> None:
    """Lanes of a member mask wait for each other, although one of them comes much later."""
    body = """setp.ne.u32 %p1, %t, 0; @%p1 bra MEET; mov.u32 %r1, 0;
        SLOW: add.u32 %r1, %r1, 1; setp.lt.u32 %p2, %r1, 500; @%p2 bra SLOW;
        MEET: shfl.sync.idx.b32 %r2, %r1, 0, 31, -1; vote.sync.ballot.b32 %r3, %p1, -1;
        popc.b32 %r3, %r3; add.u32 %r2, %r2, %r3; st.global.u32 [%out], %r2; ret;"""
    body = "mov.u32 %r1, 7; " + body
    assert set(results(body, optimise=optimise)) == {500 + 31}


@pytest.mark.parametrize("seed", range(6))
def test_a_seed_shuffles_threads_and_changes_no_result(seed: int) -> None:
    body = """mov.u32 %r1, 0; mov.u32 %r2, %t;
        LOOP: setp.eq.u32 %p1, %r2, 0; @%p1 bra OUT; add.u32 %r1, %r1, %r2; sub.u32 %r2, %r2, 1; bra LOOP;
        OUT: atom.shared.add.u32 %r4, [s], 1; bar.sync 0; shfl.sync.bfly.b32 %r3, %r1, 1, 31, -1;
        ld.shared.u32 %r5, [s]; add.u32 %r3, %r3, %r5; st.global.u32 [%out], %r3; ret;"""
    t = np.arange(64) ^ 1
    assert np.array_equal(results(body, 64, before=".shared .u32 s;", seed=seed), t * (t + 1) // 2 + 64)


def test_seeds_give_different_orders() -> None:
    body = """setp.lt.u32 %p1, %t, 16; @%p1 bra A; mov.u32 %r1, 1; bra B; A: mov.u32 %r1, 2; mul.lo.u32 %r1, %r1, 3;
        mul.lo.u32 %r1, %r1, 3; mul.lo.u32 %r1, %r1, 3; mul.lo.u32 %r1, %r1, 3; mul.lo.u32 %r1, %r1, 3; bra B;
        B: atom.global.add.u32 %r2, [%in], 1; st.global.u32 [%out], %r2; ret;"""
    orders = {tuple(results(body, inputs=np.zeros(1, np.uint32), seed=seed, optimise=False)) for seed in range(8)}
    assert len(orders) > 1


def test_elect() -> None:
    body = """setp.gt.u32 %p1, %t, 4; @!%p1 bra END; elect.sync %r1|%p2, 0xffffffe0; selp.u32 %r2, 100, 1, %p2;
        add.u32 %r2, %r2, %r1; st.global.u32 [%out], %r2; END: ret;"""
    assert results(body).tolist() == [0] * 5 + [105] + [6] * 26


def test_endless_kernel_ends_by_time() -> None:
    with pytest.raises(Trap) as caught:
        results("L: add.u32 %r1, %r1, 1; bra L;", deadline=time.monotonic() + 0.2)
    assert caught.value.kind == "timeout"


def test_endless_kernel_ends_by_instructions() -> None:
    with pytest.raises(Trap, match="more than 5000 instructions") as caught:
        results("L: add.u32 %r1, %r1, 1; bra L;", max_instructions=5000)
    assert caught.value.kind == "timeout"


def test_deadlock_is_told() -> None:
    body = "setp.lt.u32 %p1, %t, 32; @%p1 bra OTHER; bar.sync 1, 64; ret; OTHER: bar.sync 2, 64; ret;"
    with pytest.raises(Trap) as caught:
        results(body, 64)
    trap = caught.value
    assert trap.kind == "deadlock"
    assert trap.details[:2] == (
        "CTA (0,0,0): 32 of 64 threads came to barrier 1", "CTA (0,0,0): 32 of 64 threads came to barrier 2",
    )  # fmt: skip


def test_lanes_that_never_come_are_a_deadlock() -> None:
    body = """setp.eq.u32 %p1, %t, 3; @%p1 bra STAY; bar.warp.sync -1; ret;
        STAY: bar.sync 0, 64; ret;"""
    with pytest.raises(Trap, match="no thread can go on") as caught:
        results(body)
    waiting = "CTA (0,0,0), warp 0: 31 threads wait for other lanes of the warp (bar.warp.sync -1)"
    assert waiting in caught.value.details


@pytest.mark.parametrize(
    ("barrier", "reason"),
    [("bar.sync %r1;", "barrier 16 does not exist"), ("bar.sync 0, %r2;", "is not a multiple of 32")],
)
def test_wrong_barriers(barrier: str, reason: str) -> None:
    with pytest.raises(Trap, match=reason):
        results(f"mov.u32 %r1, 16; mov.u32 %r2, 33; {barrier} ret;")


def test_brx_beyond_its_table() -> None:
    with pytest.raises(Trap, match="branch index 9 is beyond the 1 targets"):
        results("mov.u32 %r1, 9; table: .branchtargets A; brx.idx %r1, table; A: ret;")


def test_launch_of_one_thread_in_three_dimensions() -> None:
    text = """.visible .entry k(.param .u64 out) { .reg .u32 %r<9>; .reg .u64 %d<3>;
        mov.u32 %r1, %ctaid.z; mov.u32 %r2, %tid.z; mad.lo.u32 %r3, %r1, 2, %r2;
        ld.param.u64 %d1, [out]; mul.wide.u32 %d2, %r3, 4; add.u64 %d1, %d1, %d2; st.global.u32 [%d1], %r3; ret; }"""
    memory = Memory()
    out = memory.put(np.full(6, 99, np.uint32))
    reference.run(launch_of(text, memory, [out], grid=(1, 1, 3), block=(1, 1, 2)))
    assert memory.get(out, np.uint32, 6).tolist() == list(range(6))
