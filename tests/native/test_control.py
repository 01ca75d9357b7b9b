"""Control flow of the native loop: divergence, calls, waiting for one another, slices and limits."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pytest

from ptxtools.diagnostics import Trap
from ptxtools.native.loop import worker

from .harness import Memory, body_kernel, results, run

BENCH = Path(__file__).parents[2] / "testdata" / "bench" / "ptx"
LANES = np.arange(32, dtype=np.uint32)


def test_both_sides_of_a_branch_and_after_it():
    body = """setp.lt.u32 %p1, %t, 11; mov.u32 %r1, 5; @%p1 bra LOW; add.u32 %r1, %r1, 100; bra END;
        LOW: add.u32 %r1, %r1, %t; END: add.u32 %r1, %r1, 1000; st.global.u32 [%out], %r1; ret;"""
    assert np.array_equal(results(body), np.where(LANES < 11, 1005 + LANES, 1105))


def test_loops_of_different_length():
    body = """mov.u32 %r1, 0; mov.u32 %r2, 0;
        L: add.u32 %r2, %r2, %r1; add.u32 %r1, %r1, 1; setp.le.u32 %p1, %r1, %t; @%p1 bra L;
        st.global.u32 [%out], %r2; ret;"""
    assert np.array_equal(results(body), LANES * (LANES + 1) // 2)


def test_switch_of_one_and_of_many_targets():
    body = """rem.u32 %r1, %t, 3; ts: .branchtargets A, B, C; mov.u32 %r3, 1;
        brx.idx %r3, ts; A: mov.u32 %r2, 10; bra S; B: mov.u32 %r2, 20; bra S; C: mov.u32 %r2, 30;
        S: tt: .branchtargets D, E, F; brx.idx %r1, tt;
        D: add.u32 %r2, %r2, 1; bra X; E: add.u32 %r2, %r2, 2; bra X; F: add.u32 %r2, %r2, 3;
        X: st.global.u32 [%out], %r2; ret;"""
    assert np.array_equal(results(body), 21 + LANES % 3)


def test_lanes_exit_one_after_the_other():
    body = """mov.u32 %r1, 0; L: st.global.u32 [%out], %r1; setp.eq.u32 %p1, %r1, %t; @%p1 exit;
        add.u32 %r1, %r1, 1; bra L;"""
    assert np.array_equal(results(body), LANES)


def test_a_call_under_a_mask_leaves_other_lanes_registers_alone():
    before = """.func (.reg .u32 r) twice(.reg .u32 a) { .reg .u32 %x, %y; add.u32 %x, a, a; mov.u32 %y, 7;
        add.u32 r, %x, %y; ret; }"""
    body = """mov.u32 %r1, 3; setp.gt.u32 %p1, %t, 20; @!%p1 bra END; call (%r1), twice, (%t);
        END: st.global.u32 [%out], %r1; ret;"""
    assert np.array_equal(results(body, before=before), np.where(LANES > 20, 2 * LANES + 7, 3))


def test_recursion_to_different_depths():
    before = """.func (.reg .u32 r) sum(.reg .u32 a) { .reg .pred %p; .reg .u32 %x, %y;
        setp.eq.u32 %p, a, 0; @%p bra Z; sub.u32 %x, a, 1; call (%y), sum, (%x); add.u32 r, %y, a; ret;
        Z: mov.u32 r, 0; ret; }"""
    body = "call (%r1), sum, (%t); st.global.u32 [%out], %r1; ret;"
    assert np.array_equal(results(body, before=before, local_bytes=4096), LANES * (LANES + 1) // 2)


def test_indirect_calls_to_different_functions():
    before = """.func (.reg .u32 r) one(.reg .u32 a) { add.u32 r, a, 1; ret; }
        .func (.reg .u32 r) two(.reg .u32 a) { mul.lo.u32 r, a, 2; ret; }"""
    body = """proto: .callprototype (.reg .u32 _) _ (.reg .u32 _);
        mov.u64 %d1, one; mov.u64 %d2, two; and.b32 %r1, %t, 1; setp.eq.u32 %p1, %r1, 0;
        selp.b64 %d3, %d1, %d2, %p1; call (%r2), %d3, (%t), proto; call (%r2), %d1, (%r2), proto;
        st.global.u32 [%out], %r2; ret;"""
    expected = np.where(LANES % 2 == 0, LANES + 1, 2 * LANES) + 1
    assert np.array_equal(results(body, before=before), expected)


def test_a_lane_spins_until_another_of_its_warp_acts():
    body = """.shared .u32 flag; mov.u32 %r1, 0; setp.eq.u32 %p1, %t, 9; @%p1 bra GIVE;
        WAIT: ld.volatile.shared.u32 %r1, [flag]; setp.eq.u32 %p2, %r1, 0; @%p2 bra WAIT; bra END;
        GIVE: mov.u32 %r1, 5; st.volatile.shared.u32 [flag], %r1;
        END: st.global.u32 [%out], %r1; ret;"""
    assert np.array_equal(results(body), np.full(32, 5))


def test_every_lane_takes_a_lock_that_its_own_warp_contends_for():
    body = """.shared .u32 lock; .shared .u32 count;
        TRY: atom.shared.cas.b32 %r1, [lock], 0, 1; setp.ne.u32 %p1, %r1, 0; @%p1 bra TRY;
        ld.volatile.shared.u32 %r2, [count]; add.u32 %r2, %r2, 1; st.volatile.shared.u32 [count], %r2;
        atom.shared.exch.b32 %r1, [lock], 0; st.global.u32 [%out], %r2; ret;"""
    assert sorted(results(body, 64).tolist()) == list(range(1, 65))


def test_a_spin_inside_a_called_function_does_not_starve_the_caller():
    before = """.func wait(.reg .u32 a) { .reg .pred %p; .reg .u32 %x;
        L: ld.volatile.shared.u32 %x, [a]; setp.eq.u32 %p, %x, 0; @%p bra L; ret; }"""
    body = """.shared .u32 flag; mov.u32 %r1, flag; setp.eq.u32 %p1, %t, 31; @%p1 bra GIVE; call wait, (%r1); bra END;
        GIVE: st.volatile.shared.u32 [flag], 1; END: st.global.u32 [%out], %t; ret;"""
    assert np.array_equal(results(body, before=before), LANES)


def test_warps_of_a_cta_wait_for_each_other_in_memory():
    body = """.shared .u32 turn; shr.u32 %r2, %t, 5;
        WAIT: ld.volatile.shared.u32 %r1, [turn]; setp.ne.u32 %p1, %r1, %r2; @%p1 bra WAIT;
        bar.warp.sync -1; add.u32 %r1, %r2, 1; st.volatile.shared.u32 [turn], %r1; st.global.u32 [%out], %r1; ret;"""
    assert np.array_equal(results(body, 256), np.arange(256) // 32 + 1)


@pytest.mark.parametrize("threads", [1, 2])
def test_ctas_wait_for_all_others_at_a_barrier_of_the_grid(threads):
    body = """atom.global.add.u32 %r1, [%in], 1;
        WAIT: ld.acquire.gpu.global.u32 %r2, [%in]; setp.lt.u32 %p1, %r2, 320; @%p1 bra WAIT;
        st.global.u32 [%out], %r2; ret;"""
    got = results(body, 320, block=(32, 1, 1), grid=(10, 1, 1), resident=10, threads=threads)
    assert np.array_equal(got, np.full(320, 320))


def test_named_barriers_with_counts_make_a_pipeline():
    body = """.shared .u32 box; setp.ge.u32 %p1, %t, 32; @%p1 bra CONSUME;
        mov.u32 %r1, 1;
        P: st.shared.u32 [box], %r1; barrier.cta.arrive 1, 64; barrier.cta.sync 2, 64;
        add.u32 %r1, %r1, 1; setp.le.u32 %p2, %r1, 5; @%p2 bra P; st.global.u32 [%out], %r1; ret;
        CONSUME: mov.u32 %r1, 0; mov.u32 %r3, 0;
        C: barrier.cta.sync 1, 64; ld.shared.u32 %r2, [box]; mad.lo.u32 %r1, %r1, 10, %r2; barrier.cta.arrive 2, 64;
        add.u32 %r3, %r3, 1; setp.lt.u32 %p2, %r3, 5; @%p2 bra C; st.global.u32 [%out], %r1; ret;"""
    assert np.array_equal(results(body, 64), np.repeat([6, 12345], 32))


def test_barriers_count_only_threads_that_remain():
    body = """.shared .u32 s; setp.ge.u32 %p1, %t, 40; @%p1 exit; setp.eq.u32 %p2, %t, 39; @%p2 st.shared.u32 [s], 7;
        bar.sync 0; ld.shared.u32 %r1, [s]; st.global.u32 [%out], %r1; ret;"""
    assert np.array_equal(results(body, 96), np.where(np.arange(96) < 40, 7, 0))


def test_the_last_exit_opens_a_barrier():
    body = """setp.lt.u32 %p1, %t, 32; @%p1 bra WAIT; mov.u32 %r1, 0;
        L: add.u32 %r1, %r1, 1; setp.lt.u32 %p2, %r1, 5000; @%p2 bra L; exit;
        WAIT: bar.sync 3; st.global.u32 [%out], %t; ret;"""
    assert np.array_equal(results(body, 64)[:32], LANES)


@pytest.mark.parametrize(("operation", "expected"), [("popc", 48), ("and", 0), ("or", 1)])
def test_barrier_reductions(operation, expected):
    kind = "u32 %r1" if operation == "popc" else "pred %p2"
    body = f"""setp.ge.u32 %p1, %t, 48; bar.red.{operation}.{kind}, 1, %p1; {
        "" if operation == "popc" else "selp.u32 %r1, 1, 0, %p2;"
    } bar.red.{operation}.{kind}, 1, !%p1; st.global.u32 [%out], %r1; ret;"""
    assert np.array_equal(results(body, 96), np.full(96, expected))


def test_shapes_of_grid_and_block():
    body = """mov.u32 %r1, %tid.y; mov.u32 %r2, %tid.z; mov.u32 %r3, %ctaid.y; mov.u32 %r4, %ctaid.z;
        mov.u32 %r5, %ntid.y; mov.u32 %r6, %nctaid.z; mov.u32 %r7, %ctaid.x; mov.u32 %r8, %nctaid.x;
        mov.u32 %r9, %nctaid.y; mad.lo.u32 %r10, %r4, %r9, %r3; mad.lo.u32 %r10, %r10, %r8, %r7;
        mad.lo.u32 %r11, %r2, 3, %r1; mad.lo.u32 %r11, %r11, 5, %t; mad.lo.u32 %r12, %r10, 30, %r11;
        ld.param.u64 %out, [out]; mul.wide.u32 %w, %r12, 4; add.u64 %out, %out, %w;
        mad.lo.u32 %r12, %r5, 1000000, %r12; mad.lo.u32 %r12, %r6, 10000000, %r12; st.global.u32 [%out], %r12; ret;"""
    got = results(body, 30 * 24, block=(5, 3, 2), grid=(2, 3, 4))
    assert np.array_equal(got, np.arange(720) + 3_000_000 + 40_000_000)


def test_special_registers_of_lanes_and_time():
    body = """mov.u32 %r1, %laneid; mov.u32 %r2, %lanemask_lt; mov.u32 %r3, %lanemask_ge; mov.u32 %r4, %warpid;
        add.u32 %r5, %r2, %r3; popc.b32 %r6, %r2; sub.u32 %r6, %r6, %r1; mov.u64 %d1, %clock64; mov.u64 %d2, %clock64;
        setp.lt.u64 %p1, %d1, %d2; selp.u32 %r7, 0, 1, %p1; add.u32 %r5, %r5, 1; or.b32 %r5, %r5, %r6;
        or.b32 %r5, %r5, %r7; mad.lo.u32 %r5, %r4, 100, %r5; st.global.u32 [%out], %r5; ret;"""
    assert np.array_equal(results(body, 96), np.arange(96) // 32 * 100)


def test_a_million_ctas():
    body = "setp.ne.u32 %p1, %t, 0; @%p1 exit; red.global.add.u32 [%in], 1; exit;"
    memory = Memory()
    counter = memory.put(np.zeros(1, np.uint32))
    run(body_kernel(body, 0), memory, [counter, counter], grid=(1_000_000, 1, 1), block=(32, 1, 1), resident=64)
    assert memory.get(counter, np.uint32, 1)[0] == 1_000_000


#: Ends when a counter wraps, long after any limit here; a loop that changed nothing would be a deadlock.
ENDLESS = body_kernel("L: add.u32 %r1, %r1, 1; setp.eq.u32 %p1, %r1, 0; @%p1 exit; bra L;", 4)


def test_a_deadline_ends_an_endless_kernel():
    with pytest.raises(Trap, match="time limit") as caught:
        run(ENDLESS, Memory(), [0, 0], deadline=time.monotonic() + 0.2, grid=(8, 1, 1), threads=2)
    assert caught.value.kind == "timeout"


def test_an_instruction_limit_ends_an_endless_kernel():
    with pytest.raises(Trap, match="more than 5000 instructions") as caught:
        run(ENDLESS, Memory(), [0, 0], max_instructions=5000)
    assert caught.value.kind == "timeout"


def test_instructions_are_counted_by_lane():
    def count(lanes):
        body = f"setp.lt.u32 %p1, %t, {lanes}; @%p1 bra S; exit; S: st.global.u32 [%out], %t; exit;"
        memory = Memory()
        return run(body_kernel(body, 4), memory, [memory.put(np.zeros(32, np.uint32)), 0]).instructions

    assert count(16) - count(8) == 8  # eight more stores
    assert count(8) % 32 == 8


@pytest.mark.parametrize("slices", [(40, 200), (1, 1)])
def test_results_do_not_depend_on_time_slices(slices, monkeypatch):
    monkeypatch.setattr(worker, "WARP_SLICE", slices[0])
    monkeypatch.setattr(worker, "CTA_SLICE", slices[1])
    memory, n = Memory(), 1000
    data = np.arange(n, dtype=np.float32)
    source, sums = memory.put(data), memory.put(np.zeros(4, np.float32))
    text = (BENCH / "reduce.ptx").read_text()
    run(text, memory, [source, sums, n], grid=(4, 1, 1), block=(256, 1, 1), resident=3)
    assert memory.get(sums, np.float32, 4).tolist() == [data[i * 256 : (i + 1) * 256].sum() for i in range(4)]
    out = memory.put(np.zeros(128, np.uint32))
    run((BENCH / "branchy.ptx").read_text(), memory, [out, 100], grid=(2, 1, 1), block=(64, 1, 1), resident=2)
    assert memory.get(out, np.uint32, 128)[26] == 41 * 2 + 70  # 27 takes 41 odd and 70 even steps
