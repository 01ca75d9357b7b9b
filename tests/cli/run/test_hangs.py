"""Kernels that never end, as a user meets them: what ptx-run says of each, on both engines."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.work import HANG

from . import test_run
from .test_run import ROOT, interrupted

run = test_run.run  # the fixture

HANGS = ROOT / "testdata" / "hangs"
ONE, TWO = ("--arg", "zeros:u32[1]"), ("--arg", "zeros:s32[2]")
both = pytest.mark.parametrize("engine", ["native", "reference"])

LOOPS = "no thread can go on: all wait or look again"
AGAIN = "in a loop that changes nothing"
FLAG = f"{AGAIN} (ld.volatile.global.u32 %r2, [%rd1])"

#: A command, the reason, and the lines that say where warps are.
DEADLOCKS: dict[str, tuple[tuple[str, ...], str, list[str]]] = {
    "a CTA has ended": (
        ("flag.ptx", "--grid", "2", "--block", "32", *ONE, "--threads", "1"),
        LOOPS,
        [f"line 11: CTA (0,0,0), warp 0: 32 threads wait {FLAG}"],
    ),
    "CTAs on other workers have ended": (
        ("flag.ptx", "--grid", "3", "--block", "32", *ONE),
        LOOPS,
        [f"line 11: CTA (0,0,0), warp 0: 32 threads wait {FLAG}"],
    ),
    "four CTAs wait": (
        ("flag2.ptx", "--grid", "4", "--block", "64", *ONE),
        LOOPS,
        [f"line 10: CTAs (0,0,0) to (3,0,0), warps 0, 1: 256 threads wait {FLAG}"],
    ),
    "four CTAs wait for their mbarriers": (
        ("mb.ptx", "--grid", "4", "--block", "32", *ONE),
        "no thread can go on",
        [
            "line 14: CTAs (0,0,0) to (3,0,0), warp 0: 128 threads wait for the mbarrier at shared 0x0 (bar), phase 0: "
            "32 of 33 arrivals came, 1 missing (mbarrier.try_wait.shared.b64 %p2, [bar], %rd1)"
        ],
    ),
    "two locks in two orders": (
        ("dead.ptx", "-k", "abba", "--grid", "2", "--block", "1", *TWO, "--threads", "1"),
        LOOPS,
        [
            f"line 52: CTAs (0,0,0), (1,0,0), warp 0: 2 threads wait {AGAIN} "
            "(atom.global.cas.b32 %r10, [%rd3], %r9, %r8)"
        ],
    ),
    "a lock that its owner wants": (
        ("dead.ptx", "-k", "selflock", "--grid", "2", "--block", "32", *TWO),
        LOOPS,
        [
            f"line 78: CTAs (0,0,0), (1,0,0), warp 0: 63 threads wait {AGAIN} "
            "(atom.global.cas.b32 %r3, [%rd1], %r2, %r1)",
            f"line 85: CTA (0,0,0), warp 0: 1 thread waits {AGAIN} (atom.global.cas.b32 %r6, [%rd1], %r5, %r4)",
        ],
    ),
    "a lock that its owner wants, asleep": (
        ("dead.ptx", "-k", "selflock_ns", "--grid", "2", "--block", "32", *TWO),
        LOOPS,
        [
            f"line 108: CTAs (0,0,0), (1,0,0), warp 0: 63 threads wait {AGAIN} "
            "(atom.global.cas.b32 %r3, [%rd1], %r2, %r1)",
            "line 119: CTA (0,0,0), warp 0: 1 thread waits for 50 ns to pass (nanosleep.u32 %r7)",
        ],
    ),
    "two warps and a lock": (
        ("dead.ptx", "-k", "warplock", "--grid", "1", "--block", "64", *TWO),
        "no thread can go on",
        ["line 160: CTA (0,0,0), warps 0, 1: 64 threads wait for 20 ns to pass (nanosleep.u32 %r6)"],
    ),
    "longer and longer sleep": (
        ("dead.ptx", "-k", "backoff", "--grid", "1", "--block", "32", *TWO),
        "no thread can go on",
        ["line 195: CTA (0,0,0), warp 0: 32 threads wait for 256 ns to pass (nanosleep.u32 %r13)"],
    ),
    "a CTA does not come to the grid's barrier": (
        ("dead.ptx", "-k", "gsync_missing", "--grid", "4", "--block", "32", *TWO, "--cooperative"),
        LOOPS,
        [
            f"line 270: CTAs (1,0,0) to (3,0,0), warp 0: 3 threads wait {AGAIN} (ld.acquire.gpu.u32 %r23,[%rd5])",
            "line 277: CTAs (1,0,0) to (3,0,0), warp 0: 93 threads wait at barrier 0: 31 of 32 threads came, "
            "1 are missing (barrier.sync 0)",
        ],
    ),
    "a flag of C++": (
        ("dead.ptx", "-k", "volatile_flag", "--grid", "3", "--block", "32", *ONE, *ONE),
        LOOPS,
        [f"line 404: CTA (0,0,0), warp 0: 32 threads wait {FLAG}"],
    ),
}


def command(arguments: tuple[str, ...], engine: str) -> list[str]:
    return [str(HANGS / arguments[0]), *arguments[1:], "--engine", engine]


def lines(err: str) -> list[str]:
    """The lines that tell where warps are."""
    return [line.strip() for line in err.splitlines() if ", warp" in line]


@pytest.mark.share(3)
@both
@pytest.mark.parametrize("name", DEADLOCKS)
def test_deadlocks(run, name: str, engine: str) -> None:
    """--timeout only bounds the test: a deadlock is found without it."""
    arguments, reason, wanted = DEADLOCKS[name]
    ran = run(*command(arguments, engine), "--timeout", str(HANG))
    assert ran.status == 1 and f"deadlock: {reason}" in ran.err
    assert lines(ran.err) == wanted


@pytest.mark.share(3)
@both
@pytest.mark.parametrize("limit", [500, 20_000, 1_000_000])
def test_a_loop_with_a_clock_names_its_mbarrier(run, engine: str, limit: int) -> None:
    """`cuda::barrier`, one arrival short: wherever the limit meets the loop, the report tells the barrier's state.

    Nothing but a limit ends it, as the loop could give up at any time that its clock tells."""
    arguments = ("dead.ptx", "-k", "mbar", "--grid", "1", "--block", "32", *TWO)
    ran = run(*command(arguments, engine), "--max-instructions", str(limit))
    assert ran.status == 1 and f"timeout: more than {limit} instructions" in ran.err
    (line,) = lines(ran.err)
    assert line.startswith(("line 319: ", "line 370: ")) and "CTA (0,0,0), warp 0: 32 threads " in line
    state = "the mbarrier at shared 0x0 (mbar::b), phase 0: 32 of 33 arrivals came, 1 missing"
    assert line.endswith(f"{state} (mbarrier.try_wait.shared.b64 p, [%r8], %rd5)")


@both
def test_a_time_limit_names_the_mbarrier(run, engine: str) -> None:
    arguments = ("dead.ptx", "-k", "mbar", "--grid", "1", "--block", "32", *TWO)
    ran = run(*command(arguments, engine), "--timeout", "0.5")
    assert ran.status == 1 and "timeout: the time limit is over" in ran.err
    assert "the mbarrier at shared 0x0 (mbar::b), phase 0: 32 of 33 arrivals came, 1 missing" in ran.err


@both
def test_work_is_no_deadlock(run, engine: str) -> None:
    """A loop that counts, and loops that wait for a clock."""
    counts = ("dead.ptx", "-k", "cnt_spin", "--grid", "2", "--block", "32", *ONE, *ONE)
    ran = run(*command(counts, engine), "--max-instructions", "300000")
    assert ran.status == 1 and "timeout: more than 300000 instructions" in ran.err
    for kernel in ("clockspin", "gtimer"):
        waits = ("dead.ptx", "-k", kernel, "--grid", "2", "--block", "32", "--arg", "1000", *ONE)
        ran = run(*command(waits, engine))
        assert (ran.status, ran.out, ran.err) == (0, "argument 1: u32[1] = 1\n", "")


@both
def test_one_instruction_is_no_plural(run, engine: str) -> None:
    arguments = ("flag2.ptx", "--grid", "1", "--block", "32", *ONE)
    ran = run(*command(arguments, engine), "--max-instructions", "1")
    assert ran.status == 1 and "timeout: more than 1 instruction in kernel k" in ran.err


@both
def test_a_mask_without_its_lanes(run, engine: str) -> None:
    arguments = ("redux.ptx", "--grid", "1", "--block", "32", "--arg", "zeros:u32[32]", "--arg", "0")
    ran = run(*command(arguments, engine))
    assert ran.status == 1 and "redux.ptx:11: trap: lane 0 is not in its own member mask 0x0" in ran.err


PRINTS = """.version 8.0
.target sm_90
.address_size 64
.extern .func (.param .b32 r) vprintf (.param .b64 f, .param .b64 a);
.global .align 1 .b8 text[9] = {114, 117, 110, 110, 105, 110, 103, 10, 0};
.visible .entry k() {
    .reg .b32 %r<4>; .reg .b64 %d<4>; .reg .pred %p<3>; .shared .align 8 .b64 full;
    mbarrier.init.shared.b64 [full], 2; mbarrier.arrive.shared.b64 %d3, [full];
    mov.u64 %d1, text; cvta.global.u64 %d2, %d1;
    { .param .b64 f; .param .b64 a; .param .b32 r; st.param.b64 [f], %d2; st.param.b64 [a], 0;
      call (r), vprintf, (f, a); }
LOOP: mov.u64 %d0, %globaltimer; setp.eq.u64 %p2, %d0, 0; @%p2 bra DONE;
    mbarrier.test_wait.shared.b64 %p1, [full], %d3;
    @!%p1 bra LOOP;
DONE: ret; }
"""


@both
def test_an_interrupt_tells_where_warps_are(tmp_path: Path, engine: str) -> None:
    """The signal comes when the kernel has printed a line, so it runs."""
    file = tmp_path / "prints.ptx"
    file.write_text(PRINTS)
    child = subprocess.Popen(
        [sys.executable, "-m", "ptxtools", "run", str(file), "--grid", "1", "--block", "1", "--engine", engine],
        env={**os.environ, "PYTHONPATH": str(ROOT)}, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )  # fmt: skip
    assert child.stdout is not None and child.stdout.readline() == b"running\n"
    err = interrupted(child).decode()
    assert child.returncode == 130 and "Traceback" not in err
    assert "ptx-run: interrupted\n" in err and "interrupted: stopped in kernel k, CTA (0,0,0), thread (0,0,0)" in err
    (line,) = lines(err)
    assert "CTA (0,0,0), warp 0: 1 thread runs" in line
