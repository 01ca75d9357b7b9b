"""Barriers with a thread count, and warps of which some lanes exit: a warp counts as a whole once all its living lanes
have come (9.7.13.1), whether the others exit before or after that."""

from __future__ import annotations

import time

import numpy as np
import pytest

from ptxtools.diagnostics import Trap
from tests.rows import rows
from tests.work import HANG

from .harness import Memory, both, go, launch_of, output

HEAD = """.version 9.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 out) {
    .reg .pred %p<8>; .reg .b32 %r<24>; .reg .b64 %d<24>; .reg .u32 %t; .reg .u64 %out;
    mov.u32 %t, %tid.x; ld.param.u64 %out, [out]; mul.wide.u32 %d3, %t, 4; add.u64 %out, %out, %d3;
    mov.u32 %r5, 0; mov.u32 %r9, 64;
"""
COME = "st.global.u32 [%out], 1; ret;"
#: What those that exit do before: nothing, or so much that others have come long before.
LATER = "LOOP: add.u32 %r5, %r5, 1; setp.lt.u32 %p5, %r5, 300; @%p5 bra LOOP;"
#: Who comes stands before those that exit, or behind them.
ORDERS = {
    "those that come first": "setp.ge.u32 %p1, %t, {n}; @%p1 bra E; {bar} {come} E: {before} ret; }}",
    "those that exit first": "setp.lt.u32 %p1, %t, {n}; @%p1 bra E; {before} ret; E: {bar} {come} }}",
}


@both
@rows("count", [33, 48, 63], share=3)
@rows("before", ["", LATER], ids=["at once", "later"])
@rows("order", ORDERS)
@rows("bar", ["bar.sync 1, 64;", "barrier.sync 1, %r9;", "bar.sync 1;", "barrier.red.popc.u32 %r7, 1, 64, %p1;"])
def test_lanes_that_exit_are_not_waited_for(engine, bar, order, before, count):
    body = ORDERS[order].format(n=count, bar=bar, come=COME, before=before)
    assert output(engine, HEAD + body, 64, block=(64, 1, 1)) == [1] * count + [0] * (64 - count)


@both
@pytest.mark.parametrize("first", [8, 16, 31])
def test_lanes_arrive_and_the_others_of_their_warp_exit(engine, first):
    """Of warp 1 some arrive and go on, and the rest exit; warp 0 waits for the whole of it, twice."""
    body = f"""setp.lt.u32 %p1, %t, 32; @%p1 bra WAIT; setp.ge.u32 %p2, %t, {32 + first}; @%p2 bra E;
    bar.arrive 1, 64; bar.arrive 2, 64; {COME}
    E: {LATER} ret;
    WAIT: bar.sync 1, 64; bar.sync 2, 64; {COME} }}"""
    assert output(engine, HEAD + body, 64, block=(64, 1, 1)) == [1] * (32 + first) + [0] * (32 - first)


@both
def test_a_warp_is_counted_once_for_each_time_it_comes(engine):
    """Lanes that were counted and exit later, and those that a whole warp stood for, are not counted again."""
    body = """setp.ge.u32 %p1, %t, 32; @%p1 bra B;
    setp.ge.u32 %p2, %t, 24; @%p2 ret; setp.ge.u32 %p2, %t, 12; @%p2 bra A; barrier.sync 1, 96; ret;
    A: barrier.arrive 1, 96; ret;
    B: barrier.sync 1, 96; ret; }"""
    memory = Memory()
    out = memory.put(np.zeros(64, np.uint32))
    with pytest.raises(Trap) as failure:
        go(engine, launch_of(HEAD + body, memory, [out], block=(64, 1, 1), deadline=time.monotonic() + HANG))
    assert failure.value.kind == "deadlock"
    assert "CTA (0,0,0): 64 of 96 threads came to barrier 1" in failure.value.details


@both
def test_a_warp_with_lanes_elsewhere_is_not_whole(engine):
    """16 lanes of warp 1 come and 8 exit, but 8 wait for something else."""
    body = """setp.lt.u32 %p1, %t, 48; @%p1 bra COME; setp.lt.u32 %p1, %t, 56; @%p1 ret; barrier.sync 2, 64; ret;
    COME: barrier.sync 1, 64; ret; }"""
    memory = Memory()
    out = memory.put(np.zeros(64, np.uint32))
    with pytest.raises(Trap) as failure:
        go(engine, launch_of(HEAD + body, memory, [out], block=(64, 1, 1), deadline=time.monotonic() + HANG))
    lines = [line for line in failure.value.details if "came to barrier" in line]
    assert lines == [
        "CTA (0,0,0): 48 of 64 threads came to barrier 1",
        "CTA (0,0,0): 8 of 64 threads came to barrier 2",
    ]
