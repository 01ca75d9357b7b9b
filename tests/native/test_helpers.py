"""Threads that run shares of launches."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator

import numpy as np
import pytest

import ptxtools
from ptxtools.native.loop import driver, helpers
from ptxtools.native.loop.worker import Worker

from ..work import HANG

MARK = """.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 out) {
    .reg .b32 %i, %n; .reg .b64 %o, %a;
    mov.u32 %i, %ctaid.x; mov.u32 %n, %ntid.x; mad.lo.u32 %i, %i, %n, 0; mov.u32 %n, %tid.x; add.u32 %i, %i, %n;
    ld.param.u64 %o, [out]; mul.wide.u32 %a, %i, 4; add.u64 %a, %a, %o;
    ld.global.u32 %n, [%a]; add.u32 %n, %n, 1; st.global.u32 [%a], %n; ret;
}"""


@pytest.fixture(autouse=True)
def _alone(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(helpers, "_idle", [])
    yield


def test_a_thread_is_used_again() -> None:
    seen: list[int] = []
    for _ in range(3):
        done = threading.Event()

        def work(done: threading.Event = done) -> None:
            seen.append(threading.get_ident())
            done.set()

        job = helpers.begin(work)
        assert done.wait(HANG)
        job.join()
        assert not job.is_alive()
        for _ in range(1000):  # it waits for more a moment after it is done
            if helpers._idle:
                break
            threading.Event().wait(HANG / 1000)
    assert len(seen) == 3 and len(set(seen)) == 1


def test_two_jobs_have_two_threads() -> None:
    meet = threading.Barrier(2)
    jobs = [helpers.begin(lambda: bool(meet.wait(HANG))) for _ in range(2)]
    for job in jobs:
        job.join()
    assert not meet.broken


def test_work_that_has_not_begun_is_dropped() -> None:
    done: list[int] = []
    job = helpers.Job(lambda: done.append(1))
    assert job.is_alive()
    job.drop()
    job.join()
    job.run()
    assert not job.is_alive() and done == []
    job.drop()


def test_a_thread_ends_when_nobody_needs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(helpers, "IDLE", 0.01)
    threads: list[threading.Thread] = []
    job = helpers.begin(lambda: threads.append(threading.current_thread()))
    job.join()
    threads[0].join(HANG)
    assert not threads[0].is_alive() and helpers._idle == []


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_a_copy_of_the_process_has_threads_of_its_own() -> None:
    helpers.begin(lambda: None).join()
    child = os.fork()
    if child == 0:
        os._exit(7 if not helpers._idle else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7


def test_a_known_launch_has_all_workers_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first launch of a shape begins alone where it may be short; later ones know."""
    ways: list[str] = []
    begin = driver._GridRun._begin

    def alone(self: driver._GridRun, first: Worker, answer: int | None = None) -> bool:
        ways.append("alone")
        return begin(self, first, answer)

    monkeypatch.setattr(driver._GridRun, "_begin", alone)
    monkeypatch.setattr(driver, "_LONG", 1 << 40)
    device, kernel = ptxtools.Device("sm_80", threads=2), ptxtools.loads(MARK)["k"]
    out = device.upload(np.zeros(64 * 256, np.uint32))
    device.launch(kernel, 64, 256, [out])
    assert ways == ["alone"]
    monkeypatch.setattr(driver, "_LONG", 64 * 8 * 4)
    device.launch(kernel, 64, 256, [out])
    assert ways == ["alone"]
    np.testing.assert_array_equal(out.download(), 2)


@pytest.mark.parametrize("ctas", [1, 7, 64, 1000])
def test_each_cta_runs_once(ctas: int) -> None:
    device, kernel = ptxtools.Device("sm_80", threads=2), ptxtools.loads(MARK)["k"]
    out = device.upload(np.zeros(ctas * 64, np.uint32))
    for time in range(1, 5):
        device.launch(kernel, ctas, 64, [out])
        np.testing.assert_array_equal(out.download(), time)
