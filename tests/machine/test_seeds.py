"""Shuffled runs: other orders, the same for the same seed, and programs that are right stay right."""

from __future__ import annotations

import numpy as np
import pytest

from .harness import Memory, both, go, launch_of

#: Each warp's first thread draws a ticket for its place in the grid, several times.
TICKETS = """.version 9.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 out) {
    .reg .pred %p<8>; .reg .b32 %r<24>; .reg .b64 %d<8>;
    mov.u32 %r1, %laneid; setp.ne.u32 %p1, %r1, 0; @%p1 exit;
    mov.u32 %r2, %ctaid.x; mov.u32 %r3, %warpid; shl.b32 %r2, %r2, 2; add.u32 %r2, %r2, %r3; mov.u32 %r6, 0;
    ld.param.u64 %d1, [out];
    LOOP: atom.global.add.u32 %r4, [%d1], 1; add.u32 %r5, %r4, 1; mul.wide.u32 %d2, %r5, 4; add.u64 %d2, %d1, %d2;
    st.global.u32 [%d2], %r2; add.u32 %r6, %r6, 1; setp.lt.u32 %p2, %r6, 40; @%p2 bra LOOP; ret;
}"""


def order(engine: str, seed: int | None) -> list[int]:
    memory = Memory()
    out = memory.put(np.zeros(4 * 6 * 40 + 1, np.uint32))
    launch = launch_of(TICKETS, memory, [out], grid=(6, 1, 1), block=(128, 1, 1), resident=3, seed=seed)
    go(engine, launch)
    found = memory.get(out, np.uint32, 4 * 6 * 40 + 1).tolist()
    assert found[0] == 4 * 6 * 40
    assert sorted(found[1:]) == sorted(list(range(24)) * 40)
    return found[1:]


@both
def test_a_seed_gives_the_same_order_each_time(engine):
    assert order(engine, 5) == order(engine, 5)


@both
def test_seeds_give_different_orders(engine):
    orders = [tuple(order(engine, seed)) for seed in (None, 0, 1, 2)]
    assert len(set(orders)) == 4


@both
def test_ctas_start_in_any_order(engine):
    firsts = {order(engine, seed)[0] // 4 for seed in range(12)}
    assert len(firsts) > 2


@pytest.mark.parametrize("seed", range(4))
def test_lanes_that_wait_for_each_other_still_meet(seed):
    """Lane 1 waits for lane 0 in a loop: any fair order ends it."""
    text = """.version 9.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 out) {
    .reg .pred %p<4>; .reg .b32 %r<8>; .reg .b64 %d<4>; .shared .b32 flag;
    ld.param.u64 %d1, [out]; mov.u32 %r1, %tid.x; setp.eq.u32 %p1, %r1, 0; @%p1 bra SET;
    WAIT: ld.volatile.shared.u32 %r2, [flag]; setp.eq.u32 %p2, %r2, 0; @%p2 bra WAIT; bra END;
    SET: mov.u32 %r2, 1; st.volatile.shared.u32 [flag], %r2;
    END: mul.wide.u32 %d2, %r1, 4; add.u64 %d1, %d1, %d2; st.global.u32 [%d1], %r2; ret;
}"""
    memory = Memory()
    out = memory.put(np.zeros(64, np.uint32))
    go("native", launch_of(text, memory, [out], block=(64, 1, 1), seed=seed))
    assert memory.get(out, np.uint32, 64).tolist() == [1] * 64
