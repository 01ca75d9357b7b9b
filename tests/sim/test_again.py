"""Launches that run with the objects of an earlier one (`sim.again`)."""

from __future__ import annotations

import gc
import os
import threading
import weakref
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import ptxtools
from ptxtools.diagnostics import LaunchError, Trap
from ptxtools.native.loop import pool

from ..work import HANG, calls

pytestmark = pytest.mark.skipif(not pool.known(), reason="no futexes")

HEAD = ".version 8.0\n.target sm_90\n.address_size 64\n"
#: Writes its numbers and the grid's; an `at` that is not 0 is an address to write to.
KERNEL = (
    HEAD
    + """.visible .entry k(.param .u64 out, .param .u32 n, .param .s32 s, .param .f32 f, .param .u64 at) {
    .reg .b64 %o, %w; .reg .b32 %n; .reg .f32 %f; .reg .pred %p;
    ld.param.u64 %o, [out]; ld.param.u64 %w, [at]; setp.ne.u64 %p, %w, 0; @%p st.global.u32 [%w], 1;
    ld.param.u32 %n, [n]; st.global.u32 [%o], %n; ld.param.s32 %n, [s]; st.global.u32 [%o+4], %n;
    ld.param.f32 %f, [f]; st.global.f32 [%o+8], %f;
    mov.u64 %w, %gridid; st.global.u64 [%o+16], %w;
    mov.u32 %n, %dynamic_smem_size; st.global.u32 [%o+12], %n; mov.u32 %n, %nctaid.y; st.global.u32 [%o+24], %n; ret;
}"""
)
PRINTS = (
    HEAD
    + """.extern .func (.param .b32 r) vprintf(.param .b64 f, .param .b64 a);
.global .align 1 .b8 words[4] = {104, 105, 10, 0};
.visible .entry k(.param .u32 n) {
    .reg .b64 %a; .reg .b32 %n; .reg .pred %p; .param .b64 f; .param .b64 g; .param .b32 r;
    ld.param.u32 %n, [n]; setp.eq.u32 %p, %n, 0; @%p ret;
    mov.u64 %a, words; cvta.global.u64 %a, %a; st.param.b64 [f], %a; st.param.b64 [g], 0;
    call (r), vprintf, (f, g); ret;
}"""
)


class Known:
    """A kernel on a device. grids: that have been launched."""

    def __init__(self, text: str = KERNEL, **options: Any) -> None:
        self.device, self.kernel = ptxtools.Device("sm_90", **options), ptxtools.loads(text)["k"]
        self.out = self.device.upload(np.zeros(8, np.uint32))
        self.grids = 0

    def run(self, *args: Any, grid: Any = 2, **options: Any) -> ptxtools.RunResult:
        self.grids += 1
        return self.device.launch(self.kernel, grid, 32, list(args), **options)

    def numbers(self, n: Any, s: Any, f: Any, **options: Any) -> list[Any]:
        """Numbers that come out, and the size of dynamic shared memory."""
        self.run(self.out, n, s, f, 0, **options)
        words = self.out.download()
        assert words[4:].view(np.uint64)[0] == self.grids
        return [words[0], words.view(np.int32)[1], words.view(np.float32)[2], words[3]]


@pytest.fixture(autouse=True)
def _functions() -> Iterator[None]:
    pool.functions()
    yield


@pytest.fixture
def known() -> Known:
    one = Known(threads=1)
    for n in range(3):
        assert one.numbers(n, n, n) == [n, n, n, 0]
    return one


def test_few_calls_are_left(known: Known) -> None:
    count = calls(lambda: known.run(known.out, 1, 2, 3.0, 0))
    fresh = Known(threads=1)
    assert calls(lambda: fresh.run(fresh.out, 1, 2, 3.0, 0)) > 4 * count


def test_numbers_are_converted_as_in_the_first(known: Known) -> None:
    for n, s, f, found in [
        (7, -7, 0.5, [7, -7, 0.5]),
        (-1, 2**32 - 2, 3, [2**32 - 1, -2, 3.0]),
        (True, 4.0, False, [1, 4, 0.0]),
        (np.uint32(9), np.int64(-9), np.float64(1.5), [9, -9, 1.5]),
    ]:
        for _ in range(2):
            assert known.numbers(n, s, f) == [*found, 0]


@pytest.mark.parametrize(
    "args, message",
    [
        ((2**32, 0, 0.0), "4294967296 does not fit argument 1"),
        ((0.5, 0, 0.0), "argument 1 .* is an integer, not 0.5"),
        ((0, 0, 1e300), "too large for argument 3"),
        ((None, 0, 0.0), "argument 1 .* is not a pointer"),
        ((0, "x", 0.0), "a str cannot be passed"),
    ],
)
def test_wrong_numbers_are_refused(known: Known, args: Any, message: str) -> None:
    with pytest.raises(LaunchError, match=message):
        known.run(known.out, *args, 0)
    with pytest.raises(LaunchError, match=r"takes 5 arguments .*, 2 given"):
        known.run(known.out, 1)
    known.grids -= 2
    assert known.numbers(5, 6, 7) == [5, 6, 7, 0]


def test_buffers_of_others_and_freed_ones_are_refused(known: Known) -> None:
    other = ptxtools.Device("sm_90").upload(np.zeros(8, np.uint32))
    with pytest.raises(LaunchError, match="belongs to another device"):
        known.run(other, 1, 2, 3.0, 0)
    known.out.free()
    with pytest.raises(LaunchError, match="the buffer was freed"):
        known.run(known.out, 1, 2, 3.0, 0)


def test_shapes_and_sizes_are_told_apart(known: Known) -> None:
    for _ in range(3):
        for grid, y in ((2, 1), ([2], 1), ((2, 1), 1), ((1, 2), 2), ((1, 2, 1), 2), ((np.int32(1), 3), 3)):
            assert known.numbers(1, 2, 3, grid=grid) == [1, 2, 3, 0] and known.out.download()[6] == y
        for shared in (0, 64, 4096):
            assert known.numbers(1, 2, 3, shared=shared) == [1, 2, 3, shared]
    for grid in (0, -1, 1.0, (1, 1, 1, 1), "2"):
        with pytest.raises(LaunchError, match="grid"):
            known.run(known.out, 1, 2, 3.0, 0, grid=grid)
    with pytest.raises(LaunchError, match="shared"):
        known.run(known.out, 1, 2, 3.0, 0, shared=1.0)


def test_options_hold_for_their_launch_alone(known: Known) -> None:
    with pytest.raises(Trap, match="more than 1 instruction in"):
        known.run(known.out, 1, 2, 3.0, 0, max_instructions=1)
    with pytest.raises(LaunchError, match="cluster"):
        known.run(known.out, 1, 2, 3.0, 0, cluster=3)
    known.grids -= 1
    assert known.numbers(1, 2, 3, timeout=60) == known.numbers(1, 2, 3, cooperative=True) == [1, 2, 3, 0]


def test_a_trap_tells_of_its_own_parameters(known: Known) -> None:
    for n in range(2):
        with pytest.raises(Trap) as caught:
            known.run(known.out, 1, 2, 3.0, 8 * n + 8)
        assert caught.value.kind.value == "trap" and f"0x{8 * n + 8:x}" in str(caught.value)
        for _ in range(3):
            assert known.numbers(n, 1, 2) == [n, 1, 2, 0]


def test_writes_where_nothing_is_are_found(known: Known) -> None:
    other = known.device.upload(np.zeros(8, np.uint32))
    for _ in range(2):
        assert known.numbers(1, 2, 3) == [1, 2, 3, 0]
    for _ in range(2):
        with pytest.raises(Trap, match="outside of allocations was overwritten"):
            known.run(known.out, 1, 2, 3.0, known.out.address + 64)
        assert known.numbers(1, 2, 3) == [1, 2, 3, 0]
    known.run(known.out, 1, 2, 3.0, other.address)
    assert other.download()[0] == 1


def test_arrays_are_copied_each_time(known: Known) -> None:
    for n in range(4):
        array, at = np.zeros(8, np.uint32), np.zeros(1, np.uint32)
        known.run(array, n, n, float(n), at)
        assert [array[0], at[0], array[4]] == [n, 1, known.grids]


@pytest.mark.parametrize("threads", [1, 2])
def test_what_is_printed_sometimes(threads: int) -> None:
    printed: list[str] = []
    one = Known(PRINTS, on_print=printed.append, threads=threads)
    for n in (0, 0, 0, 1, 0, 1, 0, 0, 1, 1):
        assert one.run(n).printed == 64 * "hi\n" * n
    assert "".join(printed) == 4 * 64 * "hi\n"


def test_grids_are_told_of_each_time() -> None:
    told: list[Any] = []
    one = Known(on_grid=lambda launch: told.append((launch, launch.params[8])), threads=1)
    for n in range(4):
        one.run(one.out, n, 2, 3.0, 0)
    assert [n for _, n in told] == [0, 1, 2, 3] and len({id(launch) for launch, _ in told}) == 4
    assert all(launch.device is one.device for launch, _ in told)


def test_classes_with_a_run_of_their_own_see_each_launch() -> None:
    class Counting(ptxtools.Device):
        count = 0

        def run(self, *args: Any, **named: Any) -> ptxtools.RunResult:
            self.count += 1
            return super().run(*args, **named)

    one = Known(threads=1)
    device = Counting("sm_90", threads=1)
    one.device, one.out = device, device.upload(np.zeros(8, np.uint32))
    for n in range(4):
        assert one.numbers(n, 2, 3) == [n, 2, 3, 0] and device.count == n + 1


def test_memory_that_grows_and_other_modules(known: Known) -> None:
    for n in range(3):
        big = known.device.upload(np.zeros(1 << 20, np.uint32))
        known.out = big + (1 << 21)
        known.run(known.out, n, 2, 3.0, 0)
        assert big.download()[1 << 19] == n
        other = ptxtools.loads(KERNEL.replace("[%o], %n", "[%o+28], %n"))["k"]
        for _ in range(3):
            known.device.launch(other, 2, 32, [big, n + 10, 2, 3.0, 0])
        assert big.download()[7] == n + 10


def test_no_memory_of_a_device_is_kept(known: Known) -> None:
    gc.collect()
    gc.disable()
    try:
        device, memory = weakref.ref(known.device), weakref.ref(known.device.arena)
        known.kernel = known.out = known.device = None  # type: ignore[assignment]
        assert device() is None and memory() is None
    finally:
        gc.enable()


def test_threads_that_launch_at_once(known: Known) -> None:
    failures: list[BaseException] = []

    def work(number: int) -> None:
        try:
            out = known.device.upload(np.zeros(8, np.uint32))
            for n in range(200):
                known.run(out, n, -number, 0.5, 0)
                words = out.download()
                assert [words[0], words.view(np.int32)[1]] == [n, -number]
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=[number]) for number in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(HANG)
    assert failures == [] and not any(thread.is_alive() for thread in threads)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no forks")
@pytest.mark.parametrize("threads", [1, 2])
def test_a_copy_of_the_process_goes_on(threads: int) -> None:
    one = Known(threads=threads)
    for n in range(4):
        one.numbers(n, 1, 2)
    child = os.fork()
    if not child:
        status = 1
        try:
            status = any(one.numbers(n, 1, 2) != [n, 1, 2, 0] for n in range(50))
        finally:
            os._exit(status)
    for n in range(50):
        assert one.numbers(n, 3, 4) == [n, 3, 4, 0]
    assert os.waitpid(child, 0)[1] == 0
