"""Virtual time: sleeping, clocks, time limits, and polling that can never end."""

from __future__ import annotations

import time

import numpy as np
import pytest

from ptxtools.diagnostics import Trap
from tests.work import HANG

from .harness import Memory, both, go, launch_of, output

HEAD = """.version 9.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 out) {
    .reg .pred %p<8>; .reg .b32 %r<24>; .reg .b64 %d<24>; .reg .u32 %t, %c; .reg .u64 %out, %base, %w;
    .shared .align 8 .b64 bar;
    mov.u32 %t, %tid.x; mov.u32 %c, %ctaid.x; mov.u32 %r20, %ntid.x; mad.lo.u32 %r21, %c, %r20, %t;
    ld.param.u64 %base, [out]; mul.wide.u32 %w, %r21, 8; add.u64 %out, %base, %w;
"""


def times(engine: str, body: str, count: int = 32, **shape) -> list[int]:
    shape = {"grid": (1, 1, 1), "block": (count, 1, 1), **shape}
    return output(engine, HEAD + body + "}", count * shape["grid"][0], dtype=np.uint64, **shape)


@both
@pytest.mark.parametrize("clock", ["%globaltimer", "%clock64"])
def test_sleep_takes_its_time(engine, clock):
    body = f"""
    mov.u64 %d1, {clock}; nanosleep.u32 5000; mov.u64 %d2, {clock}; sub.u64 %d3, %d2, %d1;
    st.global.u64 [%out], %d3; ret;"""
    assert all(5000 <= passed <= 10000 for passed in times(engine, body))


@both
def test_lanes_sleep_for_their_own_time(engine):
    body = """
    mov.u64 %d1, %globaltimer; mad.lo.u32 %r1, %t, 1000, 1000; nanosleep.u32 %r1; mov.u64 %d2, %globaltimer;
    sub.u64 %d3, %d2, %d1; st.global.u64 [%out], %d3; ret;"""
    assert all(1000 * (t + 1) <= passed <= 2000 * (t + 1) for t, passed in enumerate(times(engine, body)))


@pytest.mark.parametrize(("engine", "naps"), [("native", 3_000), ("reference", 300)])
def test_a_long_sleep_is_over_at_once(engine, naps, monkeypatch):
    """Where all sleep, nobody waits: the clock of the device goes on, and Python is not asked to sleep."""
    monkeypatch.setattr(time, "sleep", None)
    body = f"""
    mov.u32 %r1, 0; AGAIN: nanosleep.u32 4000000000; add.u32 %r1, %r1, 1; setp.lt.u32 %p1, %r1, {naps}; @%p1 bra AGAIN;
    mov.u64 %d1, %globaltimer; st.global.u64 [%out], %d1; ret;"""
    passed = times(engine, body, deadline=time.monotonic() + HANG)
    assert min(passed) >= naps * 1_000_000


@both
def test_clocks_advance(engine):
    body = """
    mov.u64 %d1, %clock64; mov.u64 %d2, %clock64; sub.u64 %d3, %d2, %d1;
    mov.u64 %d4, %globaltimer; add.u32 %r1, %t, %t; add.u32 %r1, %r1, %r1; mov.u64 %d5, %globaltimer;
    setp.lt.u64 %p1, %d5, %d4; @%p1 trap; st.global.u64 [%out], %d3; ret;"""
    assert all(passed < 10_000 for passed in times(engine, body))


@both
def test_sleeping_while_another_cta_works(engine):
    """The first CTA sleeps and looks until the second has written."""
    body = """
    setp.ne.u32 %p1, %c, 0; @%p1 bra WRITE;
    LOOK: nanosleep.u32 100; ld.volatile.global.u64 %d1, [%base+256]; setp.eq.u64 %p2, %d1, 0; @%p2 bra LOOK;
    st.global.u64 [%out], %d1; ret;
    WRITE: mov.u32 %r1, 0;
    WORK: add.u32 %r1, %r1, 1; setp.lt.u32 %p3, %r1, 300; @%p3 bra WORK; st.global.u64 [%out], 7; ret;"""
    assert times(engine, body, grid=(2, 1, 1)) == [7] * 64


def test_sleeping_while_another_worker_works():
    """As above, on two worker threads: who sleeps alone on its worker is not dead-locked."""
    body = """
    setp.ne.u32 %p1, %c, 0; @%p1 bra WRITE;
    LOOK: nanosleep.u32 10; ld.volatile.global.u64 %d1, [%base+256]; setp.eq.u64 %p2, %d1, 0; @%p2 bra LOOK;
    st.global.u64 [%out], %d1; ret;
    WRITE: mov.u32 %r1, 0;
    WORK: add.u32 %r1, %r1, 1; setp.lt.u32 %p3, %r1, 3000000; @%p3 bra WORK; st.global.u64 [%out], 7; ret;"""
    assert times("native", body, grid=(2, 1, 1), threads=2, resident=2) == [7] * 64


@both
def test_polling_for_what_never_comes_is_a_deadlock(engine):
    body = "LOOK: nanosleep.u32 100; ld.volatile.global.u64 %d1, [%base]; setp.eq.u64 %p2, %d1, 0; @%p2 bra LOOK; ret;"
    with pytest.raises(Trap) as failure:
        times(engine, body)
    assert failure.value.kind == "deadlock"
    assert "32 threads wait for 100 ns to pass (nanosleep.u32 100)" in "\n".join(failure.value.details)


def test_polling_on_two_workers_is_a_deadlock_too():
    body = "LOOK: nanosleep.u32 100; ld.volatile.global.u64 %d1, [%base]; setp.eq.u64 %p2, %d1, 0; @%p2 bra LOOK; ret;"
    with pytest.raises(Trap) as failure:
        times("native", body, grid=(2, 1, 1), threads=2, resident=2)
    assert failure.value.kind == "deadlock"


@both
def test_counting_while_sleeping_is_no_deadlock(engine):
    body = """
    mov.u32 %r1, 0; LOOK: nanosleep.u32 100; add.u32 %r1, %r1, 1; setp.lt.u32 %p2, %r1, 50; @%p2 bra LOOK;
    st.global.u64 [%out], 5; ret;"""
    assert times(engine, body) == [5] * 32


@both
def test_a_time_limit_ends_a_kernel_that_sleeps_for_ever(engine):
    body = "LOOK: nanosleep.u32 100; add.u32 %r1, %r1, 1; bra LOOK;"
    memory = Memory()
    out = memory.put(np.zeros(32, np.uint64))
    launch = launch_of(HEAD + "mov.u32 %r1, 0;" + body + "}", memory, [out], deadline=time.monotonic() + 0.3)
    with pytest.raises(Trap) as failure:
        go(engine, launch)
    assert failure.value.kind == "timeout"


#: Engine, workers, seed.
RUNS = [
    ("native", 1, None), ("native", 2, None), ("reference", 1, None), ("native", 1, 0), ("native", 1, 1),
    ("reference", 1, 0), ("reference", 1, 1),
]  # fmt: skip
everywhere = pytest.mark.parametrize(("engine", "threads", "seed"), RUNS)


@pytest.mark.share(3)
@pytest.mark.parametrize("block", [32, 256])
@everywhere
def test_looking_without_end_is_a_deadlock(engine, block, threads, seed):
    """Nobody sleeps, nobody writes: the state comes back."""
    body = "LOOK: ld.volatile.global.u64 %d1, [%base]; setp.eq.u64 %p2, %d1, 0; @%p2 bra LOOK; ret;"
    with pytest.raises(Trap) as failure:
        times(
            engine,
            body,
            block,
            grid=(3, 1, 1),
            threads=threads,
            resident=3,
            seed=seed,
            deadline=time.monotonic() + HANG,
        )
    assert failure.value.kind == "deadlock"
    assert failure.value.reason == "no thread can go on: all wait or look again"
    assert "wait in a loop that changes nothing" in failure.value.details[0]


@pytest.mark.share(6)
@everywhere
def test_a_lock_that_is_never_free(engine, threads, seed):
    """A compare-and-swap that fails writes nothing."""
    body = """
    TRY: atom.global.cas.b64 %d1, [%base], 7, 1; setp.ne.u64 %p2, %d1, 7; @%p2 bra TRY; ret;"""
    with pytest.raises(Trap) as failure:
        times(engine, body, grid=(2, 1, 1), threads=threads, resident=2, seed=seed, deadline=time.monotonic() + HANG)
    assert failure.value.kind == "deadlock"


@pytest.mark.share(3)
@everywhere
def test_waiting_for_ctas_that_find_no_room(engine, threads, seed):
    """A barrier of a grid of which only a part is resident."""
    body = """
    setp.ne.u32 %p1, %t, 0; @%p1 bra LOOK; atom.global.add.u64 %d1, [%base], 1;
    LOOK: ld.volatile.global.u64 %d1, [%base]; setp.lt.u64 %p2, %d1, 5; @%p2 bra LOOK; ret;"""
    with pytest.raises(Trap) as failure:
        times(engine, body, grid=(5, 1, 1), threads=threads, resident=4, seed=seed, deadline=time.monotonic() + HANG)
    assert failure.value.kind == "deadlock"


@pytest.mark.share(6)
@everywhere
def test_looking_inside_functions_without_end(engine, threads, seed):
    """Lanes at four depths of a recursion."""
    before = """.func look(.reg .u64 a, .reg .u32 n) { .reg .pred %p; .reg .b64 %x; .reg .b32 %n;
        setp.eq.u32 %p, n, 0; @%p bra L; sub.u32 %n, n, 1; call look, (a, %n); ret;
        L: ld.volatile.global.u64 %x, [a]; setp.eq.u64 %p, %x, 0; @%p bra L; ret; }
    """
    text = HEAD.replace(".visible", before + ".visible") + "and.b32 %r1, %t, 3; call look, (%base, %r1); ret; }"
    memory = Memory()
    launch = launch_of(
        text, memory, [memory.put(np.zeros(32, np.uint64))], threads=threads, seed=seed, block=(64, 1, 1),
        deadline=time.monotonic() + HANG,
    )  # fmt: skip
    with pytest.raises(Trap) as failure:
        go(engine, launch)
    assert failure.value.kind == "deadlock"


@pytest.mark.parametrize("seed", [None, 0])
def test_looking_without_end_on_a_full_device(seed):
    """Eight SMs with 2,048 threads each, shared memory and many registers: the states of all are large."""
    body = "LOOK: ld.volatile.global.u64 %d1, [%base]; setp.eq.u64 %p2, %d1, 0; @%p2 bra LOOK; ret;"
    memory = Memory()
    shape = {"grid": (16, 1, 1), "block": (1024, 1, 1), "resident": 16, "dynamic_shared": 100 << 10, "seed": seed}
    launch = launch_of(HEAD + body + "}", memory, [memory.put(np.zeros(16384, np.uint64))], **shape)
    launch.deadline = time.monotonic() + HANG
    with pytest.raises(Trap) as failure:
        go("native", launch)
    assert failure.value.kind == "deadlock"


def test_a_shuffled_deadlock_is_the_same_each_time():
    def told() -> tuple[str, ...]:
        body = """
        setp.lt.u32 %p1, %t, 40; @%p1 bra LOOK; barrier.sync 1, 64; ret;
        LOOK: ld.volatile.global.u64 %d1, [%base]; setp.eq.u64 %p2, %d1, 0; @%p2 bra LOOK; ret;"""
        with pytest.raises(Trap) as failure:
            times("native", body, 64, seed=3, deadline=time.monotonic() + HANG)
        return failure.value.details

    assert told() == told()


@both
def test_divided_lanes_that_look_without_end(engine):
    """Half of the lanes wait for the other half, which waits for them."""
    body = """
    and.b32 %r1, %t, 1; setp.eq.u32 %p1, %r1, 0; @%p1 bra EVEN;
    ODD: ld.volatile.global.u64 %d1, [%base]; setp.eq.u64 %p2, %d1, 0; @%p2 bra ODD; bra END;
    EVEN: ld.volatile.global.u64 %d1, [%base+8]; setp.eq.u64 %p2, %d1, 0; @%p2 bra EVEN;
    END: st.global.u64 [%out], 1; ret;"""
    with pytest.raises(Trap) as failure:
        times(engine, body, deadline=time.monotonic() + HANG)
    assert failure.value.kind == "deadlock"


@pytest.mark.share(3)
@pytest.mark.parametrize("what", ["add.u32 %r1, %r1, 1;", "red.global.add.u64 [%base+8], 1;"])
@pytest.mark.parametrize("seed", [None, 0])
@both
def test_endless_work_is_no_deadlock(engine, what, seed):
    look = "ld.volatile.global.u64 %d1, [%base]; setp.eq.u64 %p2, %d1, 0; @%p2 bra LOOK; ret;"
    body = f"mov.u32 %r1, 0; LOOK: {what} {look}"
    with pytest.raises(Trap) as failure:
        times(engine, body, seed=seed, deadline=time.monotonic() + 0.5)
    assert failure.value.kind == "timeout"


def test_a_late_answer_from_another_worker():
    """One worker looks for longer than it takes to find out that it only looks; then the other answers."""
    body = """
    setp.ne.u32 %p1, %c, 0; @%p1 bra WRITE;
    LOOK: ld.volatile.global.u64 %d1, [%base+256]; setp.eq.u64 %p2, %d1, 0; @%p2 bra LOOK;
    st.global.u64 [%out], %d1; ret;
    WRITE: mov.u32 %r1, 0;
    WORK: add.u32 %r1, %r1, 1; setp.lt.u32 %p3, %r1, 60000000; @%p3 bra WORK; st.global.u64 [%out], 7; ret;"""
    assert times("native", body, grid=(2, 1, 1), threads=2, resident=2) == [7] * 64
