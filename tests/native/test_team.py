"""Workers that stay from launch to launch."""

from __future__ import annotations

import gc
import threading
import weakref
from collections.abc import Iterator
from functools import cache

import numpy as np
import pytest

import ptxtools
from ptxtools.diagnostics import Trap
from ptxtools.native.code import jit, tiers
from ptxtools.native.loop import driver, pool, spare, team, worker

from ..work import HANG

pytestmark = pytest.mark.skipif(not pool.known(), reason="no futexes")

#: Writes what it is given, the number of its CTA and the clock; n of 0 traps, of 1 waits for ever.
KERNEL = """.version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 out, .param .u32 n) {
    .reg .b32 %i, %n, %t; .reg .b64 %o, %a, %c; .reg .pred %p; .shared .b32 room[32];
    mov.u32 %i, %ctaid.x; ld.param.u64 %o, [out]; ld.param.u32 %n, [n];
    setp.eq.u32 %p, %n, 0; @%p bra WRITE; setp.eq.u32 %p, %n, 1; @%p bra WAIT;
    ld.shared.u32 %t, [room]; add.u32 %n, %n, %t; st.shared.u32 [room], 7;
    mul.wide.u32 %a, %i, 16; add.u64 %a, %a, %o; st.global.u32 [%a], %n; add.u32 %i, %i, 100; st.global.u32 [%a+4], %i;
    mov.u64 %c, %globaltimer; st.global.u64 [%a+8], %c; ret;
WRITE:
    mov.u64 %a, 8; st.global.u32 [%a], 1; ret;
WAIT:
    bar.sync 1, 1024; ret;
}"""
#: CTAs, and what the engine counts for each.
CTAS, EACH = 40, 17


class Known:
    """A kernel on a device, and what its launches give."""

    def __init__(self, threads: int = 1, text: str = KERNEL) -> None:
        self.device, self.kernel = ptxtools.Device("sm_90", threads=threads), ptxtools.loads(text)["k"]
        self.out = self.device.upload(np.zeros((CTAS, 2), np.uint64))
        self.time = 0

    def run(self, n: int, ctas: int = CTAS) -> None:
        result = self.device.launch(self.kernel, ctas, 1, [self.out, n])
        found = self.out.download().view(np.uint32)[:ctas]
        np.testing.assert_array_equal(found[:, 0], n)  # shared memory was cleared
        np.testing.assert_array_equal(found[:, 1], np.arange(ctas) + 100)
        times = self.out.download()[:ctas, 1]
        assert times.min() >= self.time
        self.time = int(times.max())
        assert result.instructions == EACH * ctas


@pytest.fixture(autouse=True)
def _none(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(team, "_idle", [])
    monkeypatch.setattr(spare, "_spare", [])
    monkeypatch.setattr(driver, "_LONG", 0)
    pool.functions()  # from the first launch on
    yield


@pytest.fixture(params=[1, 2])
def known(request: pytest.FixtureRequest) -> Known:
    return Known(request.param, KERNEL + f"// {request.param}")


def made(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Numbers of workers that are made from now on."""
    numbers: list[int] = []
    begin = worker.Worker.__init__

    def noted(self: worker.Worker, launch, encoded, shape, tables, number, slots) -> None:  # type: ignore[no-untyped-def]
        numbers.append(number)
        begin(self, launch, encoded, shape, tables, number, slots)

    monkeypatch.setattr(worker.Worker, "__init__", noted)
    return numbers


def test_launches_alike_have_the_same_workers(known: Known, monkeypatch: pytest.MonkeyPatch) -> None:
    for n in range(2, 6):
        known.run(n)
    numbers = made(monkeypatch)
    for n in (5, 5, 6, 7, 5):
        known.run(n)
    assert numbers == [] and len(team._idle) == 1


def test_registers_are_as_in_the_first_launch() -> None:
    """Those that nobody has written."""
    text = """.version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 out) {
    .reg .b32 %v; .reg .b64 %o, %t;
    ld.param.u64 %o, [out]; cvt.u64.u32 %t, %tid.x; shl.b64 %t, %t, 2; add.u64 %o, %o, %t;
    add.u32 %v, %v, 3; st.global.u32 [%o], %v; ret;
}"""
    device, kernel = ptxtools.Device("sm_90", threads=1), ptxtools.loads(text)["k"]
    out = device.upload(np.zeros(64, np.uint32))
    for _ in range(5):
        device.launch(kernel, 1, 64, [out])
        np.testing.assert_array_equal(out.download(), 3)


def test_an_allocation_between_them_is_seen(known: Known) -> None:
    for n in range(2, 6):
        known.run(n)
    more = known.device.upload(np.zeros((CTAS, 2), np.uint64))
    known.out, before = more, known.out
    known.run(6)
    known.out = before
    known.run(7)


def test_devices_with_one_program_do_not_mix(known: Known) -> None:
    other = Known(text=KERNEL)
    other.kernel = known.kernel
    for n in range(2, 8):
        known.run(n)
        other.run(n + 10, 30)
        other.run(n + 20)


@pytest.mark.parametrize("bad, kind", [(0, "trap"), (1, "deadlock")])
def test_workers_that_have_failed_are_not_used_again(known: Known, bad: int, kind: str) -> None:
    for n in range(2, 6):
        known.run(n)
    for _ in range(2):
        with pytest.raises(Trap) as caught:
            known.run(bad)
        assert caught.value.kind.value == kind and team._idle == []
        known.out.upload(np.zeros((CTAS, 2), np.uint64))
        for n in range(2, 5):
            known.run(n)
        assert len(team._idle) == 1


def test_workers_that_python_has_served_are_not_used_again() -> None:
    text = """.version 8.0
.target sm_90
.address_size 64
.extern .func (.param .b32 r) vprintf(.param .b64 f, .param .b64 a);
.global .align 1 .b8 words[4] = {104, 105, 10, 0};
.visible .entry k(.param .u64 out) {
    .reg .b64 %a; .param .b64 f; .param .b64 g; .param .b32 r;
    mov.u64 %a, words; cvta.global.u64 %a, %a; st.param.b64 [f], %a; st.param.b64 [g], 0;
    call (r), vprintf, (f, g); ret;
}"""
    printed: list[str] = []
    device, kernel = ptxtools.Device("sm_90", on_print=printed.append), ptxtools.loads(text)["k"]
    for _ in range(4):
        device.launch(kernel, 2, 1, [None])
        assert team._idle == []
    assert "".join(printed) == "hi\n" * 8


def test_launches_at_once_have_workers_of_their_own() -> None:
    one = Known(2)
    one.run(2)
    failures: list[BaseException] = []

    def work() -> None:
        try:
            known = Known(2)
            known.kernel = one.kernel
            for n in range(2, 60):
                known.run(n)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(HANG)
    assert failures == [] and not any(thread.is_alive() for thread in threads)


def test_only_some_stay(known: Known, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(team, "_MOST", 2)
    for ctas in (10, 20, 30, 40) * 3:
        known.run(5, ctas)
        assert len(team._idle) <= 2
    monkeypatch.setattr(team, "_BYTES", 0)
    known.run(5, 15)
    known.run(5, 15)
    assert team._idle == []
    known.run(5, 15)


def test_where_addresses_are_short_they_go_first(known: Known) -> None:
    for n in range(2, 6):
        known.run(n)
    assert team._idle and team.forget() and not team._idle and not team.forget()
    known.run(6)


def test_they_keep_no_memory_of_a_device() -> None:
    known = Known(2)
    for n in range(2, 6):
        known.run(n)
    assert team._idle
    device = weakref.ref(known.device)
    gc.disable()
    try:
        del known
        assert device() is None
    finally:
        gc.enable()


def test_no_launch_waits_for_the_functions_that_teams_need(monkeypatch: pytest.MonkeyPatch) -> None:
    """While another thread has LLVM, launches run as the first one does; from then on in teams."""
    monkeypatch.setattr(pool, "functions", cache(pool.functions.__wrapped__))
    monkeypatch.setattr(pool, "_begun", [])
    monkeypatch.setattr(tiers, "AT_ONCE", False)
    known, numbers = Known(1, KERNEL + "// waits for nothing"), made(monkeypatch)
    known.run(2)
    has, gives = threading.Event(), threading.Event()

    def compile_something() -> None:
        with jit._lock:
            has.set()
            gives.wait()

    other = threading.Thread(target=compile_something)
    other.start()
    has.wait()
    try:
        for n in (3, 4):
            known.run(n)
        assert not pool.functions.cache_info().currsize and numbers == [0, 0, 0]
    finally:
        gives.set()
        other.join()
    tiers.settle()
    assert pool.ready()
    for n in (5, 6, 7):
        known.run(n)
    assert numbers == [0] * 4
