"""What a run says when nobody can move: who waits, where, for what, and how many are missing."""

from __future__ import annotations

import time
from types import SimpleNamespace

import numpy as np
import pytest

from ptxtools.diagnostics import Trap
from ptxtools.machine.deadlock import pending
from tests.work import HANG

from .harness import Memory, both, go, launch_of

HEAD = """.version 9.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 out) {
    .reg .pred %p<8>; .reg .b32 %r<24>; .reg .b64 %d<24>; .reg .u32 %t, %warp; .reg .u64 %out;
    .shared .align 8 .b64 bar; .shared .b32 flag;
    mov.u32 %t, %tid.x; shr.u32 %warp, %t, 5; ld.param.u64 %out, [out];
"""


def stuck(engine: str, body: str, threads: int = 32, *, before: str = "", **shape) -> Trap:
    memory = Memory()
    out = memory.put(np.zeros(1024, np.uint32))
    text = HEAD.replace(".visible", before + ".visible") + body + "}"
    shape = {"block": (threads, 1, 1), "deadline": time.monotonic() + HANG, **shape}
    with pytest.raises(Trap) as failure:
        go(engine, launch_of(text, memory, [out], **shape))
    assert failure.value.kind == "deadlock"
    return failure.value


def waits(trap: Trap) -> list[str]:
    """The lines that name a warp."""
    return [line for line in trap.details if ", warp " in line]


@pytest.mark.parametrize("count", [0, 8, 9, 300])
def test_much_pending_work_is_counted(count):
    """A report stays short: the first pieces of work, and how many more there are."""
    schedule = SimpleNamespace(pending=lambda _: (f"copy {number}" for number in range(count)))
    lines = pending(schedule, object())
    assert lines[:8] == [f"pending: copy {number}" for number in range(min(count, 8))]
    assert lines[8:] == ([f"pending: {count - 8} more"] if count > 8 else [])


@both
def test_groups_of_a_warp_at_several_barriers(engine):
    """A line for each group of lanes, with the instruction that it waits at."""
    body = """
    rem.u32 %r1, %t, 3; setp.eq.u32 %p1, %r1, 0; @%p1 bra A; setp.eq.u32 %p2, %r1, 1; @%p2 bra B;
    barrier.sync 1, 64; bra END;
    A: barrier.sync 2, 64; bra END;
    B: barrier.sync 3, 96;
    END: ret;"""
    trap = stuck(engine, body)
    lines = [
        "CTA (0,0,0), warp 0: 10 threads wait at barrier 1: 10 of 64 threads came, 54 are missing (barrier.sync 1, 64)",
        "CTA (0,0,0), warp 0: 11 threads wait at barrier 2: 11 of 64 threads came, 53 are missing (barrier.sync 2, 64)",
        "CTA (0,0,0), warp 0: 11 threads wait at barrier 3: 11 of 96 threads came, 85 are missing (barrier.sync 3, 96)",
    ]
    assert sorted(waits(trap)) == lines


@both
def test_groups_of_a_warp_at_one_barrier_in_several_places(engine):
    body = """
    setp.lt.u32 %p1, %t, 12; @%p1 bra A; barrier.sync 0, 64; ret;
    A: barrier.sync 0x0, 64; ret;"""
    lines = [
        f"CTA (0,0,0), warp 0: {who} threads wait at barrier 0: 32 of 64 threads came, 32 are missing ({what}, 64)"
        for who, what in ((12, "barrier.sync 0x0"), (20, "barrier.sync 0"))
    ]
    assert sorted(waits(stuck(engine, body))) == lines


@both
def test_groups_at_a_barrier_of_the_warp_of_the_cta_and_of_the_cluster(engine):
    body = """
    setp.lt.u32 %p1, %t, 4; @%p1 bra A; setp.lt.u32 %p2, %t, 9; @%p2 bra B;
    barrier.cluster.arrive; barrier.cluster.wait; ret;
    A: bar.warp.sync 0xffff; ret;
    B: barrier.sync 5, 64; ret;"""
    lines = [
        "CTA (0,0,0), warp 0: 23 threads wait at the cluster barrier: 23 of 32 threads came, 9 are missing"
        " (barrier.cluster.wait)",
        "CTA (0,0,0), warp 0: 4 threads wait for other lanes of the warp (bar.warp.sync 0xffff)",
        "CTA (0,0,0), warp 0: 5 threads wait at barrier 5: 5 of 64 threads came, 59 are missing (barrier.sync 5, 64)",
    ]
    assert sorted(waits(stuck(engine, body))) == lines


@both
def test_groups_in_a_function_and_its_caller(engine):
    before = ".func meet(.reg .b32 m) { bar.warp.sync m; ret; }\n"
    body = """
    setp.lt.u32 %p1, %t, 7; @%p1 bra A; call meet, (-1); ret;
    A: bar.warp.sync 0xffff; ret;"""
    lines = [
        "CTA (0,0,0), warp 0: 25 threads wait for other lanes of the warp (bar.warp.sync m)",
        "CTA (0,0,0), warp 0: 7 threads wait for other lanes of the warp (bar.warp.sync 0xffff)",
    ]
    assert sorted(waits(stuck(engine, body, before=before))) == lines
