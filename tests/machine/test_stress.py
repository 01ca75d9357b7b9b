"""Threads that depend on one another in every way that independent thread scheduling allows (3.2), on both engines,
in order and shuffled, on one worker and on two. Expectations follow from the programs alone."""

from __future__ import annotations

import time

import numpy as np
import pytest

from tests.rows import rows
from tests.work import HANG

from .harness import Memory, go, launch_of

HEAD = """.version 9.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 out, .param .u64 data) {
    .reg .pred %p<8>; .reg .b32 %r<24>; .reg .b64 %d<24>; .reg .u32 %t, %n, %warp, %lane; .reg .u64 %out, %data, %w;
    .shared .b32 lock, count, turn, box[64];
    mov.u32 %t, %tid.x; shr.u32 %warp, %t, 5; and.b32 %lane, %t, 31;
    mov.u32 %r20, %ctaid.x; mov.u32 %r21, %ntid.x; mad.lo.u32 %n, %r20, %r21, %t;
    ld.param.u64 %out, [out]; ld.param.u64 %data, [data]; mul.wide.u32 %w, %n, 4; add.u64 %out, %out, %w;
"""
#: Engine, seed, workers.
RUNS = [("reference", None, 1), ("reference", 3, 1), ("native", None, 1), ("native", None, 2)] + [
    ("native", seed, 1) for seed in range(5)
]
everywhere = pytest.mark.parametrize(("engine", "seed", "threads"), RUNS)


def results(engine: str, seed: int | None, threads: int, body: str, count: int, ctas: int = 1) -> list[int]:
    """%n's thread leaves its result at [%out]; [%data] holds 64 zeros."""
    memory = Memory()
    out, data = memory.put(np.zeros(count * ctas, np.uint32)), memory.put(np.zeros(64, np.uint32))
    go(engine, launch_of(
        HEAD + body + "}", memory, [out, data], block=(count, 1, 1), grid=(ctas, 1, 1), resident=ctas, seed=seed,
        threads=threads, deadline=time.monotonic() + HANG,
    ))  # fmt: skip
    return memory.get(out, np.uint32, count * ctas).tolist()


@everywhere
@rows("warps", [2, 17, 32])
def test_all_warps_wait_for_the_last(engine, seed, threads, warps):
    body = f"""
    setp.eq.u32 %p1, %warp, {warps - 1}; @%p1 bra GIVE;
    LOOK: ld.volatile.shared.u32 %r1, [turn]; setp.eq.u32 %p2, %r1, 0; @%p2 bra LOOK; bra END;
    GIVE: mov.u32 %r1, 9; st.volatile.shared.u32 [turn], %r1;
    END: st.global.u32 [%out], %r1; ret;"""
    assert results(engine, seed, threads, body, 32 * warps) == [9] * 32 * warps


@pytest.mark.share(3)
@everywhere
def test_warps_take_turns_from_the_last_to_the_first(engine, seed, threads):
    body = """
    mov.u32 %r2, 31; sub.u32 %r2, %r2, %warp;
    WAIT: ld.volatile.shared.u32 %r1, [turn]; setp.ne.u32 %p1, %r1, %r2; @%p1 bra WAIT;
    bar.warp.sync -1; add.u32 %r1, %r2, 1; st.volatile.shared.u32 [turn], %r1; st.global.u32 [%out], %r2; ret;"""
    assert results(engine, seed, threads, body, 1024) == [31 - t // 32 for t in range(1024)]


@pytest.mark.share(6)
@everywhere
def test_lanes_of_a_warp_take_a_lock_with_work_inside(engine, seed, threads):
    """Compare and swap, a loop under the lock, exchange; the lock's holder calls a function."""
    body = """
    TRY: atom.acquire.cta.shared.cas.b32 %r1, [lock], 0, 1; setp.ne.u32 %p1, %r1, 0; @%p1 bra TRY;
    mov.u32 %r3, 0; ld.volatile.shared.u32 %r2, [count];
    WORK: add.u32 %r2, %r2, 1; add.u32 %r3, %r3, 1; setp.lt.u32 %p2, %r3, 3; @%p2 bra WORK;
    st.volatile.shared.u32 [count], %r2; atom.release.cta.shared.exch.b32 %r1, [lock], 0;
    st.global.u32 [%out], %r2; ret;"""
    assert sorted(results(engine, seed, threads, body, 48)) == list(range(3, 3 * 49, 3))


@everywhere
def test_lanes_hand_a_token_round_backwards(engine, seed, threads):
    """Lane 31 begins; each waits for the one above it, so the lowest lanes wait longest."""
    body = """
    mov.u32 %r2, 31; sub.u32 %r2, %r2, %lane;
    WAIT: ld.volatile.shared.u32 %r1, [turn]; setp.ne.u32 %p1, %r1, %r2; @%p1 bra WAIT;
    add.u32 %r1, %r1, 1; st.volatile.shared.u32 [turn], %r1; st.global.u32 [%out], %r1; ret;"""
    assert results(engine, seed, threads, body, 32) == [32 - t for t in range(32)]


@everywhere
def test_a_lane_produces_for_another_of_its_warp(engine, seed, threads):
    """One slot, full or empty: 20 items from each even lane to the odd one beside it."""
    body = """
    mov.u32 %r10, box; and.b32 %r11, %lane, 0x1e; mad.lo.u32 %r10, %r11, 4, %r10; mov.u32 %r3, 0; mov.u32 %r4, 0;
    and.b32 %r12, %lane, 1; setp.eq.u32 %p1, %r12, 1; @%p1 bra TAKE;
    GIVE: ld.volatile.shared.u32 %r1, [%r10]; setp.ne.u32 %p2, %r1, 0; @%p2 bra GIVE;
    add.u32 %r3, %r3, 1; st.volatile.shared.u32 [%r10], %r3; setp.lt.u32 %p3, %r3, 20; @%p3 bra GIVE; bra END;
    TAKE: ld.volatile.shared.u32 %r1, [%r10]; setp.eq.u32 %p2, %r1, 0; @%p2 bra TAKE;
    add.u32 %r4, %r4, %r1; st.volatile.shared.u32 [%r10], 0; add.u32 %r3, %r3, 1; setp.lt.u32 %p3, %r3, 20;
    @%p3 bra TAKE;
    END: st.global.u32 [%out], %r4; ret;"""
    assert results(engine, seed, threads, body, 32) == [0, 210] * 16


@everywhere
def test_nested_divergence_with_barriers_inside(engine, seed, threads):
    """Quarters of each warp meet at barriers of their own, inside loops of different length, and all at the end."""
    body = """
    shr.u32 %r1, %lane, 3; add.u32 %r2, %r1, 1; mov.u32 %r3, 0; mov.u32 %r6, 0;
    mov.u32 %r10, box; mad.lo.u32 %r11, %r1, 4, %r10;
    setp.lt.u32 %p1, %r1, 2; @%p1 bra LOW; setp.eq.u32 %p2, %r1, 2; @%p2 bra TWO;
    THREE: atom.shared.add.u32 %r4, [%r11], 1; bar.warp.sync 0xff000000; add.u32 %r3, %r3, 1;
    setp.lt.u32 %p3, %r3, 9; @%p3 bra THREE; bra MEET;
    TWO: atom.shared.add.u32 %r4, [%r11], 1; bar.warp.sync 0x00ff0000; add.u32 %r3, %r3, 1;
    setp.lt.u32 %p3, %r3, 6; @%p3 bra TWO; bra MEET;
    LOW: setp.eq.u32 %p2, %r1, 0; @%p2 bra ZERO;
    ONE: atom.shared.add.u32 %r4, [%r11], 1; bar.warp.sync 0x0000ff00; add.u32 %r3, %r3, 1;
    setp.lt.u32 %p3, %r3, 4; @%p3 bra ONE; bra MEET;
    ZERO: atom.shared.add.u32 %r4, [%r11], 1; bar.warp.sync 0x000000ff; add.u32 %r3, %r3, 1;
    setp.lt.u32 %p3, %r3, 2; @%p3 bra ZERO;
    MEET: barrier.sync 0; ld.shared.u32 %r5, [%r11]; st.global.u32 [%out], %r5; ret;"""
    rounds = (2, 4, 6, 9)
    assert results(engine, seed, threads, body, 64) == [16 * rounds[t % 32 // 8] for t in range(64)]


@everywhere
def test_barriers_of_groups_of_warps_side_by_side(engine, seed, threads):
    """Warps 2i and 2i + 1 exchange through barrier i + 1 for 10 rounds, lanes divided inside."""
    body = """
    shr.u32 %r1, %warp, 1; add.u32 %r2, %r1, 1; mov.u32 %r10, box; mad.lo.u32 %r10, %warp, 4, %r10;
    mov.u32 %r11, box; xor.b32 %r12, %warp, 1; mad.lo.u32 %r11, %r12, 4, %r11; mov.u32 %r3, 0; mov.u32 %r4, 0;
    LOOP: setp.ne.u32 %p1, %lane, 7; @%p1 bra SKIP; add.u32 %r5, %r3, %warp; st.shared.u32 [%r10], %r5;
    SKIP: barrier.sync %r2, 64; ld.shared.u32 %r6, [%r11]; add.u32 %r4, %r4, %r6;
    setp.gt.u32 %p2, %lane, 15; @%p2 bra HIGH; barrier.sync %r2, 64; bra ON; HIGH: barrier.sync %r2, 64;
    ON: add.u32 %r3, %r3, 1; setp.lt.u32 %p3, %r3, 10; @%p3 bra LOOP; st.global.u32 [%out], %r4; ret;"""
    assert results(engine, seed, threads, body, 256) == [45 + 10 * (t // 32 ^ 1) for t in range(256)]


@pytest.mark.share(3)
@everywhere
def test_ctas_wait_for_each_other_again_and_again(engine, seed, threads):
    """A barrier of the grid that counts generations, 8 rounds; each round adds up what all wrote."""
    body = """
    mov.u32 %r3, 0; mov.u32 %r7, 0;
    LOOP: atom.global.add.u32 %r4, [%data], %n; membar.gl; bar.sync 0;
    setp.ne.u32 %p1, %t, 0; @%p1 bra WAIT; atom.release.gpu.global.add.u32 %r5, [%data+4], 1;
    WAIT: add.u32 %r6, %r3, 1; mul.lo.u32 %r6, %r6, 6;
    LOOK: ld.acquire.gpu.global.u32 %r5, [%data+4]; setp.lt.u32 %p2, %r5, %r6; @%p2 bra LOOK;
    bar.sync 0; ld.volatile.global.u32 %r7, [%data];
    setp.ne.u32 %p1, %t, 0; @%p1 bra WAIT2; atom.release.gpu.global.add.u32 %r5, [%data+8], 1;
    WAIT2: nanosleep.u32 20; ld.acquire.gpu.global.u32 %r5, [%data+8]; setp.lt.u32 %p2, %r5, %r6; @%p2 bra WAIT2;
    add.u32 %r3, %r3, 1; setp.lt.u32 %p3, %r3, 8; @%p3 bra LOOP; st.global.u32 [%out], %r7; ret;"""
    total = sum(range(6 * 64))
    assert results(engine, seed, threads, body, 64, 6) == [8 * total] * 6 * 64


@everywhere
def test_short_sleeps_keep_no_other_cta_from_running(engine, seed, threads):
    """In the first CTA one warp sleeps for less than looking costs, another looks; the last CTA answers."""
    body = """
    mov.u32 %r1, %ctaid.x; setp.eq.u32 %p1, %r1, 2; @%p1 bra ANSWER; setp.eq.u32 %p2, %warp, 0; @%p2 bra SLEEP;
    LOOK: ld.volatile.global.u32 %r2, [%data]; setp.eq.u32 %p3, %r2, 0; @%p3 bra LOOK; bra END;
    SLEEP: nanosleep.u32 1; ld.volatile.global.u32 %r2, [%data]; setp.eq.u32 %p3, %r2, 0; @%p3 bra SLEEP; bra END;
    ANSWER: mov.u32 %r2, 5; st.volatile.global.u32 [%data], %r2;
    END: st.global.u32 [%out], %r2; ret;"""
    assert results(engine, seed, threads, body, 64, 3) == [5] * 192


@pytest.mark.share(3)
@everywhere
def test_a_ticket_lock_between_ctas(engine, seed, threads):
    """Every thread of four CTAs draws a ticket and is served in that order; what it protects is no atomic."""
    body = """
    atom.global.add.u32 %r1, [%data], 1;
    LOOK: ld.acquire.gpu.global.u32 %r2, [%data+4]; setp.ne.u32 %p1, %r2, %r1; @%p1 bra LOOK;
    ld.volatile.global.u32 %r3, [%data+8]; add.u32 %r3, %r3, 1; st.volatile.global.u32 [%data+8], %r3;
    add.u32 %r2, %r2, 1; st.release.gpu.global.u32 [%data+4], %r2; st.global.u32 [%out], %r3; ret;"""
    assert sorted(results(engine, seed, threads, body, 32, 4)) == list(range(1, 129))


@everywhere
def test_lanes_leave_one_after_the_other_while_others_wait(engine, seed, threads):
    """Each lane meets the rest at a barrier of the warp once for each lane below it, then exits."""
    body = """
    mov.u32 %r1, 0;
    LOOP: setp.eq.u32 %p1, %r1, %lane; @%p1 bra OUT; bar.warp.sync -1; add.u32 %r1, %r1, 1; bra LOOP;
    OUT: activemask.b32 %r2; st.global.u32 [%out], %r1; exit;"""
    assert results(engine, seed, threads, body, 64) == list(range(32)) * 2
