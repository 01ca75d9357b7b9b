"""Threads that run native shares of launches without Python."""

from __future__ import annotations

import ctypes
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ptxtools
from ptxtools.diagnostics import Trap
from ptxtools.native.code.structures import RUN_FINISHED, RUN_QUANTUM
from ptxtools.native.loop import driver, pool
from ptxtools.native.loop.worker import Worker

from ..work import HANG

pytestmark = pytest.mark.skipif(not pool.possible(), reason="one processor, or no futexes")

ROOT = Path(__file__).resolve().parents[2]
#: Adds 1 to its word n times; n of 2^32 - 1: writes out of bounds instead, 2^32 - 2: waits for threads there are not.
ADD = """.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 out, .param .u32 n) {
    .reg .b32 %i, %n, %t, %v; .reg .b64 %o, %a; .reg .pred %p;
    mov.u32 %i, %ctaid.x; mov.u32 %n, %ntid.x; mov.u32 %t, %tid.x; mad.lo.u32 %i, %i, %n, %t;
    ld.param.u64 %o, [out]; mul.wide.u32 %a, %i, 4; add.u64 %a, %a, %o; ld.param.u32 %n, [n];
    setp.eq.u32 %p, %n, 0xffffffff; @%p bra WRITE; setp.eq.u32 %p, %n, 0xfffffffe; @%p bra WAIT;
AGAIN:
    ld.global.u32 %v, [%a]; add.u32 %v, %v, 1; st.global.u32 [%a], %v;
    sub.u32 %n, %n, 1; setp.ne.u32 %p, %n, 0; @%p bra AGAIN;
    ret;
WRITE:
    mov.u64 %a, 8; st.global.u32 [%a], 1; ret;
WAIT:
    bar.sync 1, 1024; ret;
}"""
CTAS, THREADS = 64, 64
UNBOUNDED, WRITES, WAITS = 0xFFFFFFF0, 0xFFFFFFFF, 0xFFFFFFFE


class Known:
    """A kernel of which one launch has been made, so that others like it are shared at once."""

    def __init__(self) -> None:
        self.device, self.kernel = ptxtools.Device("sm_80", threads=2), ptxtools.loads(ADD)["k"]
        self.out = self.device.upload(np.zeros(CTAS * THREADS, np.uint32))
        self.sum = 0
        self.add(1)

    def run(self, n: int, **options: Any) -> None:
        self.device.launch(self.kernel, CTAS, THREADS, [self.out, n], **options)

    def add(self, n: int) -> None:
        self.run(n)
        self.sum += n
        np.testing.assert_array_equal(self.out.download(), self.sum)


@pytest.fixture(autouse=True)
def _alone(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(pool, "_free", [])
    monkeypatch.setattr(driver, "_LONG", 0)
    pool.functions()  # from the first launch on
    yield


@pytest.fixture
def kept(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Work is not dropped, though the launching thread may have done it all."""
    monkeypatch.setattr(pool.Seat, "drop", lambda seat: None)
    yield


def wait_for(what: Any) -> None:
    for _ in range(HANG * 100):
        if what():
            return
        threading.Event().wait(0.01)
    raise AssertionError


def test_a_share_begins_and_ends_without_python() -> None:
    known = Known()
    known.add(2)
    (seat,) = pool._free
    for _ in range(2000):  # until the other thread is there before all has been done
        known.add(500)
        if seat.ended_natively:
            break
    assert seat.ended_natively and not seat.is_alive()
    for _ in range(200):
        known.add(1)
    assert pool._free == [seat]


def test_python_goes_on_where_it_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    known, answers, work = Known(), list[int](), driver._GridRun.work

    def noted(run: driver._GridRun, worker: Worker, answer: int | None = None) -> None:
        if worker.number and answer is not None:
            answers.append(answer)
        work(run, worker, answer)

    monkeypatch.setattr(driver._GridRun, "work", noted)
    monkeypatch.setattr(driver, "_SHORT", 50)
    monkeypatch.setattr(driver, "_WHOLE", 50)
    for n in (100, 1, 300):
        known.add(n)
    for power in range(24):  # until the other thread is there before all has been done
        if answers:
            break
        known.add(1 << power)
    assert answers and set(answers) == {RUN_QUANTUM}


def test_a_thread_sleeps_and_is_woken(kept: None) -> None:
    known = Known()
    for _ in range(3):
        known.add(1)
        wait_for(lambda: seat_field("state") == pool._ASLEEP)
    pool.rouse(1)
    wait_for(lambda: seat_field("state") == pool._ASLEEP)
    known.add(1)


def seat_field(name: str) -> int:
    return pool.SEAT.at_address(pool._free[0].address, name)


def test_a_thread_ends_when_nobody_needs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "IDLE", 1_000_000)
    seat = pool.take()
    thread = seat._thread
    seat.leave()
    thread.join(HANG)
    assert not thread.is_alive() and pool._free == [] and seat not in pool._all


def test_a_thread_that_is_left_at_work_ends_behind_it() -> None:
    go, seat = threading.Event(), pool.take()
    prototype = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p)
    run = prototype(lambda ctx: RUN_FINISHED if go.wait(HANG) else RUN_QUANTUM)
    seat.post(run, 0, lambda answer: None)
    seat.leave()
    assert seat.is_alive() and pool._free == []
    go.set()
    seat.join()
    seat._thread.join(HANG)
    assert not seat._thread.is_alive() and seat.ended_natively


@pytest.mark.parametrize("answer", [RUN_FINISHED, RUN_QUANTUM])
def test_whoever_waits_is_woken(answer: int) -> None:
    """Much later than a thread would look for."""
    seat, asked = pool.take(), list[int]()
    prototype = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p)
    over = pool.SEAT.offset("over") + seat.address

    def work(ctx: int) -> int:
        wait_for(lambda: ctypes.c_int32.from_address(over).value == pool._AWAITED)
        return answer

    run = prototype(work)
    for _ in range(3):
        seat.post(run, 0, asked.append)
        seat.join()
        assert not seat.is_alive()
    assert asked == ([] if answer == RUN_FINISHED else [answer] * 3)
    seat.leave()


def test_work_that_has_not_begun_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threading.Thread, "start", lambda thread: None)
    seat = pool.Seat()
    pool._all.remove(seat)
    seat.join()  # it has nothing to do
    seat.post(ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p)(0), 0, lambda answer: None)
    assert seat.is_alive()
    seat.drop()
    seat.join()
    assert not seat.is_alive() and not seat.ended_natively
    seat.leave()
    assert pool._free == [seat]


@pytest.mark.parametrize(
    "n, options, kind",
    [
        (WRITES, {}, "trap"),
        (WAITS, {}, "deadlock"),
        (UNBOUNDED, {"timeout": 0.05}, "timeout"),
        (UNBOUNDED, {"max_instructions": 100_000}, "timeout"),
    ],
)
def test_what_ends_a_launch_ends_all_of_it(n: int, options: dict[str, Any], kind: str, kept: None) -> None:
    known = Known()
    for _ in range(2):
        with pytest.raises(Trap) as caught:
            known.run(n, **options)
        assert caught.value.kind.value == kind
        known.out.upload(np.full(CTAS * THREADS, known.sum, np.uint32))
        known.add(3)


def test_a_deadlock_is_told_as_without_the_pool(monkeypatch: pytest.MonkeyPatch) -> None:
    known, texts = Known(), []
    for possible in (True, False):
        monkeypatch.setattr(pool, "possible", lambda possible=possible: possible)
        with pytest.raises(Trap) as caught:
            known.run(WAITS)
        texts.append(str(caught.value))
    # Where the first worker hangs before the other one begins, the CTAs of that one are not told of.
    resident = re.compile(r"CTAs \(0,0,0\) to \(\d+,0,0\)|\d+(?= threads wait)")
    assert resident.sub("", texts[0]) == resident.sub("", texts[1])
    assert all("threads wait at barrier 1" in text for text in texts)


def test_launches_of_several_threads() -> None:
    failures: list[BaseException] = []

    def work() -> None:
        try:
            known = Known()
            for n in range(1, 60):
                known.add(n)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(HANG)
    assert failures == [] and not any(thread.is_alive() for thread in threads)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_a_copy_of_the_process_has_threads_of_its_own() -> None:
    known = Known()
    for _ in range(3):
        known.add(1)
        child = os.fork()
        if child == 0:
            status = 1
            try:
                for _ in range(5):
                    known.add(2)
                status = 7 if len(pool._free) == len(pool._all) == 1 else 2
            finally:
                os._exit(status)
        known.add(1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7


_BEGIN = f"""
import os, signal, sys, threading, time
import numpy as np
import ptxtools
from ptxtools.native.loop import driver, pool, team
driver._LONG = 0
pool.functions()  # from the first launch on
device, kernel = ptxtools.Device("sm_80", threads=2), ptxtools.loads({ADD!r})["k"]
out = device.upload(np.zeros({CTAS * THREADS}, np.uint32))
for _ in range(3):
    device.launch(kernel, {CTAS}, {THREADS}, [out, 1])
"""
_ENDS = {"while its threads look": "", "while they sleep": "time.sleep(0.1)", "by sys.exit": "sys.exit(0)"}
_INTERRUPTED = f"""
start = team.Team.start
def interrupted(*arguments):
    threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGINT)).start()
    return start(*arguments)
team.Team.start = interrupted
for _ in range(3):
    told = None
    while told is None:  # else the signal came before the workers had begun
        try:
            device.launch(kernel, {CTAS}, {THREADS}, [out, {UNBOUNDED}])
        except KeyboardInterrupt as stop:
            told = stop.__cause__
        else:
            raise AssertionError
    assert "interrupted" in str(told), told
team.Team.start = start
before = out.download()
device.launch(kernel, {CTAS}, {THREADS}, [out, 5])
np.testing.assert_array_equal(out.download(), before + np.uint32(5))
"""


def ran(text: str) -> tuple[int, str]:
    done = subprocess.run(
        [sys.executable, "-c", text], cwd=ROOT, capture_output=True, text=True, timeout=HANG, check=False
    )
    return done.returncode, done.stderr


@pytest.mark.parametrize("how", _ENDS)
def test_a_process_ends(how: str) -> None:
    for _ in range(3):
        assert ran(_BEGIN + _ENDS[how]) == (0, "")


def test_an_interrupt_stops_all_workers() -> None:
    assert ran(_BEGIN + _INTERRUPTED) == (0, "")
