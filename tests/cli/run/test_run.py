"""ptx-run as a command: what it prints, where, and its exit status."""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import click
import numpy as np
import pytest

import ptxtools
from ptxtools.cli.common import exit_status
from ptxtools.cli.run import command
from tests.work import HANG

ROOT = Path(__file__).parents[3]
VECADD = str(ROOT / "testdata" / "bench" / "ptx" / "vecadd.ptx")
LINES = str(ROOT / "testdata" / "lineinfo" / "lines.ptx")
NEGATIVE = ROOT / "testdata" / "cases" / "negative"

HEADER = ".version 7.8\n.target sm_75\n.address_size 64\n"
STORE = (
    HEADER
    + """
.visible .entry store(.param .u64 out, .param .u32 v)
{
    .reg .b32 %r<3>; .reg .b64 %d<4>;
    ld.param.u64 %d1, [out]; ld.param.u32 %r1, [v];
    mov.u32 %r2, %tid.x; mul.wide.u32 %d2, %r2, 4; add.s64 %d3, %d1, %d2;
    st.global.u32 [%d3], %r1;
    ret;
}
"""
)
TWO = (
    STORE
    + """
.visible .entry other(.param .align 4 .b8 s[12]) .reqntid 64, 1, 1
{
    ret;
}
"""
)
ENDLESS = HEADER + ".visible .entry endless()\n{\n .reg .b64 %n;\nagain:\n    add.u64 %n, %n, 1;\n    bra again;\n}\n"


class Ran:
    def __init__(self, status: int, out: str, err: str) -> None:
        self.status, self.out, self.err = status, out, err


@pytest.fixture
def run(capfd: pytest.CaptureFixture[str]):
    def call(*arguments: str) -> Ran:
        status = exit_status(command, "ptx-run", list(arguments))
        out, err = capfd.readouterr()
        assert "Traceback" not in err
        return Ran(status, out, err)

    return call


@pytest.fixture
def store(tmp_path: Path) -> str:
    (tmp_path / "store.ptx").write_text(STORE)
    return str(tmp_path / "store.ptx")


def process(*arguments: str, stdin: bytes = b"", timeout: float = HANG) -> subprocess.CompletedProcess[bytes]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run([sys.executable, "-m", "ptxtools", "run", *arguments], input=stdin, capture_output=True,
                          env=environment, timeout=timeout)  # fmt: skip


# --- results ----------------------------------------------------------------------------------------------------------


def test_what_a_kernel_prints_goes_to_a_stream_of_text_as_well() -> None:
    """Who calls the command from Python may have put a stream without bytes in the place of standard output."""
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        case = str(ROOT / "testdata" / "cases" / "cu_printf_heap_sm90")
        assert exit_status(command, "ptx-run", ["--launch", case + "/case.toml", "--quiet"]) == 0
    assert said.getvalue() == (Path(case) / "printed.txt").read_text()


def test_written_buffers_are_summarised(run, store: str) -> None:
    ran = run(store, "--grid", "1", "--block", "3", "--arg", "zeros:s32[10]", "--arg", "7")
    assert (ran.status, ran.err) == (0, "")
    assert ran.out == "argument 0: s32[10] = 7 7 7 0 0 0 0 0 …\n"


def test_buffers_that_were_not_written_are_not_summarised(run) -> None:
    ran = run(VECADD, "--grid", "1", "--block", "32", "--arg", "arange:f32[8]", "--arg", "fill:f32[8]=1",
              "--arg", "zeros:f32[8]", "--arg", "8")  # fmt: skip
    assert (ran.status, ran.out) == (0, "argument 2: f32[8] = 1 2 3 4 5 6 7 8\n")


def test_quiet_and_verbose(run, store: str) -> None:
    arguments = (store, "--grid", "1", "--block", "3", "--arg", "zeros:s32[3]", "--arg", "7")
    assert run(*arguments, "-q").out == ""
    verbose = run(*arguments, "-v")
    assert re.search(r"\d+ thread-instructions in [\d.]+ s", verbose.err) and "s32[3]" in verbose.out


@pytest.mark.parametrize("option", ["--save", "--expect"])
def test_an_argument_is_saved_or_compared_once(run, store: str, tmp_path: Path, option: str) -> None:
    launch = [store, "--grid", "1", "--block", "1", "--arg", "zeros:s32[1]", "--arg", "1"]
    ran = run(*launch, option, f"0={tmp_path}/a.npy", option, f"0={tmp_path}/b.npy")
    assert ran.status == 2 and "already" in ran.err


@pytest.mark.parametrize("engine", ["native", "reference"])
def test_few_instructions_are_limited_too(run, store: str, engine: str) -> None:
    launch = [store, "--grid", "1", "--block", "1", "--arg", "zeros:s32[1]", "--arg", "1", "--engine", engine]
    ran = run(*launch, "--max-instructions", "3")
    assert ran.status == 1 and "timeout: more than 3 instructions" in ran.err


def test_save_and_expect(run, store: str, tmp_path: Path) -> None:
    launch = (store, "--grid", "1", "--block", "4", "--arg", "zeros:s32[4]", "--arg", "9")
    saved = run(*launch, "--save", f"0={tmp_path}/got.npy")
    assert (saved.status, saved.out) == (0, "")
    assert np.load(tmp_path / "got.npy").tolist() == [9] * 4
    assert run(*launch, "--expect", f"0={tmp_path}/got.npy").status == 0
    np.save(tmp_path / "wrong.npy", np.array([9, 8, 9, 0], np.int32))
    ran = run(*launch, "--expect", f"0={tmp_path}/wrong.npy")
    assert (ran.status, ran.out) == (1, "")
    lines = ran.err.splitlines()
    assert "argument 0 differs from" in lines[0] and "2 of 4 elements" in lines[0]
    assert "[3]" in lines[1] and "got 9" in lines[1] and "off by 9" in lines[1]
    assert "[1]" in lines[2]
    assert not list(tmp_path.glob("*.tmp"))


def test_tolerances(run, tmp_path: Path) -> None:
    np.save(tmp_path / "e.npy", np.array([1.01], np.float32))
    launch = (VECADD, "--grid", "1", "--block", "1", "--arg", "fill:f32[1]=1", "--arg", "zeros:f32[1]",
              "--arg", "zeros:f32[1]", "--arg", "1", "--expect", f"2={tmp_path}/e.npy")  # fmt: skip
    assert run(*launch).status == 1
    assert run(*launch, "--rtol", "0.02").status == 0
    assert run(*launch, "--atol", "0.02").status == 0
    assert run(*launch, "--atol", "-1").status == 2


def test_containers_and_standard_input(run, store: str, tmp_path: Path) -> None:
    container = tmp_path / "k"
    container.write_bytes(ptxtools.assemble([STORE]))
    launch = ("--grid", "1", "--block", "2", "--arg", "zeros:u32[2]", "--arg", "5")
    assert run(str(container), *launch).out == "argument 0: u32[2] = 5 5\n"
    for data in (STORE.encode(), container.read_bytes()):
        for name in (["-"], []):
            ran = process(*name, *launch, stdin=data)
            assert (ran.returncode, ran.stdout) == (0, b"argument 0: u32[2] = 5 5\n"), ran.stderr


def test_list(run, tmp_path: Path) -> None:
    (tmp_path / "two.ptx").write_text(TWO)
    ran = run(str(tmp_path / "two.ptx"), "--list")
    assert ran.status == 0
    assert ran.out.splitlines() == [
        "store",
        "   0  .u64 out  8 bytes at 0",
        "   1  .u32 v    4 bytes at 8",
        "other  .reqntid 64,1,1",
        "   0  .b8 s[12]  12 bytes at 0",
    ]
    assert run(str(tmp_path / "two.ptx"), "--list", "-k", "other").out.startswith("other")


def test_list_as_json(run, tmp_path: Path) -> None:
    (tmp_path / "two.ptx").write_text(TWO)
    ran = run(str(tmp_path / "two.ptx"), "--list", "--format", "json")
    store, other = json.loads(ran.out)
    assert store["name"] == store["demangled"] == "store" and store["reqntid"] is None
    assert store["params"] == [
        {"name": "out", "type": "u64", "size": 8, "alignment": 8, "offset": 0, "array": False},
        {"name": "v", "type": "u32", "size": 4, "alignment": 4, "offset": 8, "array": False},
    ]
    assert other["params"] == [{"name": "s", "type": "b8", "size": 12, "alignment": 4, "offset": 0, "array": True}]
    assert other["reqntid"] == [64, 1, 1] and other["maxntid"] is None and other["param_bytes"] == 12
    assert len(json.loads(run(str(tmp_path / "two.ptx"), "--list", "--format", "json", "-k", "other").out)) == 1
    (tmp_path / "none.ptx").write_text(HEADER)
    assert run(str(tmp_path / "none.ptx"), "--list", "--format", "json").out == "[]\n"


def test_format_is_that_of_the_list(run, tmp_path: Path) -> None:
    (tmp_path / "two.ptx").write_text(TWO)
    ran = run(str(tmp_path / "two.ptx"), "--format", "json", "--grid", "1")
    assert (ran.status, "--format json requires --litmus or --list" in ran.err) == (2, True)


def test_list_of_mangled_names(run) -> None:
    ran = run(LINES, "--list", "-k", "hang")
    assert ran.out.splitlines()[:2] == ["hang(int*)", "  mangled: _Z4hangPi"]
    found = json.loads(run(LINES, "--list", "-k", "hang(int*)", "--format", "json").out)
    assert [(kernel["name"], kernel["demangled"]) for kernel in found] == [("_Z4hangPi", "hang(int*)")]


@pytest.mark.parametrize(
    ("name", "says"),
    [
        (
            "fill",
            "'fill' matches 2 kernels: void ns::fill<float, 4>(float*, float) [_ZN2ns4fillIfLi4EEEvPT_S1_], void",
        ),
        ("hung", "there is no kernel 'hung'; did you mean 'hang'?"),
    ],
)
@pytest.mark.parametrize("options", [["--list"], ["--grid", "1", "--block", "1"]])
def test_names_that_are_no_kernels(run, name: str, says: str, options: list[str]) -> None:
    ran = run(LINES, "-k", name, *options)
    assert ran.status in (1, 2) and says in ran.err and ran.out == ""


def test_a_demangled_name_runs_and_is_told(run) -> None:
    ran = run(LINES, "-k", "fill<int, 2>", "--grid", "1", "--block", "2", "--arg", "zeros:s32[4]", "--arg", "7")
    assert (ran.status, ran.out) == (0, "argument 0: s32[4] = 7 7 7 0\n")
    ran = run(LINES, "-k", "fill<int", "--grid", "1", "--block", "2")
    assert "kernel void ns::fill<int, 2>(int*, int) takes 2 arguments" in ran.err
    assert "name one with -k: sums(float const*, float*, int) [_Z4sumsPKfPfi], " in run(LINES, "--grid", "1").err


def test_reports_keep_the_chain_of_inlining(run) -> None:
    ran = run(LINES, "-k", "wrong", "--grid", "1", "--block", "64", "--arg", "zeros:s32[4]", "--check", "racecheck")
    lines = ran.err.splitlines()
    assert (ran.status, lines[3]) == (1, "    source: src/lines.cu:43") and "in kernel wrong(int*), CTA" in lines[0]


def test_a_kernel_is_chosen(run, tmp_path: Path) -> None:
    (tmp_path / "two.ptx").write_text(TWO)
    two = str(tmp_path / "two.ptx")
    assert run(two, "-k", "other", "--grid", "1", "--arg", "bytes:" + "00" * 12).status == 0
    ran = run(two, "--grid", "1", "--block", "1")
    assert ran.status == 2 and "2 kernels" in ran.err and "store, other" in ran.err
    ran = run(two, "-k", "stroe", "--grid", "1", "--block", "1")
    assert ran.status == 2 and "did you mean 'store'" in ran.err


def test_launch_files(run, store: str, tmp_path: Path) -> None:
    np.save(tmp_path / "e.npy", np.array([3, 3], np.int32))
    text = (
        'module = "store.ptx"\ngrid = 1\nblock = 2\nargs = [{buffer="o"}, {value=3}]\n[buffers.o]\nzeros = "s32[2]"\n'
    )
    (tmp_path / "case.toml").write_text(text + 'expect = "e.npy"\n')
    assert run("--launch", str(tmp_path / "case.toml")).status == 0
    (tmp_path / "plain.toml").write_text(text)
    assert run("--launch", str(tmp_path / "plain.toml")).out == "buffer 'o': s32[2] = 3 3\n"
    (tmp_path / "wrong.toml").write_text(text.replace("value=3", "value=4") + 'expect = "e.npy"\nsave = "got.npy"\n')
    ran = run("--launch", str(tmp_path / "wrong.toml"))
    assert ran.status == 1 and "buffer 'o' differs" in ran.err
    assert np.load(tmp_path / "got.npy").tolist() == [4, 4]
    ran = run("--launch", str(tmp_path / "case.toml"), "--grid", "1")
    assert ran.status == 2 and "--grid and --launch exclude each other" in ran.err


def test_several_launches_share_memory(run, store: str, tmp_path: Path) -> None:
    np.save(tmp_path / "e.npy", np.array([2, 2, 1, 1], np.int32))
    (tmp_path / "case.toml").write_text(
        'module = "store.ptx"\ngrid = 1\n[buffers.o]\nzeros = "s32[4]"\nexpect = "e.npy"\n'
        '[[launch]]\nblock = 4\nargs = [{buffer="o"}, {value=1}]\n'
        '[[launch]]\nblock = 2\nargs = [{buffer="o"}, {value=2}]\n'
    )
    assert run("--launch", str(tmp_path / "case.toml")).status == 0


def test_globals(run, tmp_path: Path) -> None:
    (tmp_path / "g.ptx").write_text(
        HEADER + ".global .u32 counter[2];\n.visible .entry bump()\n{\n .reg .b32 %r<3>;\n"
        " ld.global.u32 %r1, [counter+4];\n add.u32 %r2, %r1, 1;\n st.global.u32 [counter+4], %r2;\n ret;\n}\n"
    )
    np.save(tmp_path / "in.npy", np.array([5, 6], np.uint32))
    np.save(tmp_path / "out.npy", np.array([5, 7], np.uint32))
    text = 'module = "g.ptx"\ngrid = 1\nblock = 1\n[globals.counter]\nfile = "in.npy"\nexpect = "%s"\n'
    (tmp_path / "good.toml").write_text(text % "out.npy")
    (tmp_path / "bad.toml").write_text(text % "in.npy")
    (tmp_path / "name.toml").write_text((text % "out.npy").replace("counter", "count"))
    assert run("--launch", str(tmp_path / "good.toml")).status == 0
    ran = run("--launch", str(tmp_path / "bad.toml"))
    assert ran.status == 1 and "variable 'counter' differs" in ran.err and "[1]" in ran.err
    np.save(tmp_path / "long.npy", np.zeros(3, np.uint32))
    (tmp_path / "size.toml").write_text(text % "long.npy")
    ran = run("--launch", str(tmp_path / "size.toml"))
    assert ran.status == 1 and "variable 'counter' differs" in ran.err and "expected 12 bytes" in ran.err
    ran = run("--launch", str(tmp_path / "name.toml"))
    assert ran.status == 2 and "did you mean 'counter'" in ran.err
    np.save(tmp_path / "in.npy", np.array([5], np.uint32))
    assert run("--launch", str(tmp_path / "good.toml")).status == 2


# --- failures ---------------------------------------------------------------------------------------------------------


def launch_file(tmp_path: Path, more: str) -> str:
    (tmp_path / "c.toml").write_text(f'module = "store.ptx"\ngrid = 1\nblock = 1\n{more}\n')
    return str(tmp_path / "c.toml")


def test_expected_failures(run, store: str, tmp_path: Path) -> None:
    trap = launch_file(tmp_path, "expect_failure = 'trap'\nargs = [{null=true}, {value=1}]")
    ran = run("--launch", trap)
    assert ran.status == 0 and "failed as expected (trap)" in ran.out and "st.global.u32" in ran.out
    refused = launch_file(tmp_path, "expect_failure = 'launch-error'\nargs = []")
    assert run("--launch", refused).status == 0
    other = launch_file(tmp_path, "expect_failure = 'launch-error'\nargs = [{null=true}, {value=1}]")
    ran = run("--launch", other)
    assert ran.status == 1 and "trap" in ran.err
    fine = launch_file(
        tmp_path, "expect_failure = 'trap'\nargs = [{buffer='o'}, {value=1}]\n[buffers.o]\nzeros='u8[4]'"
    )
    ran = run("--launch", fine)
    assert ran.status == 1 and "expected the run to fail (trap)" in ran.err


@pytest.mark.parametrize(
    "name", ["launch-error_arg_count", "launch-error_cluster_grid", "trap_wild", "timeout_endless"]
)
def test_negative_cases(run, name: str) -> None:
    limit = ("--timeout", "1") if name.startswith("timeout") else ()
    assert run("--launch", str(NEGATIVE / name / "case.toml"), *limit).status == 0


def test_a_trap_names_the_line(run, store: str) -> None:
    ran = run(store, "--grid", "1", "--block", "1", "--arg", "null", "--arg", "1")
    assert (ran.status, ran.out) == (1, "")
    assert re.search(r"store\.ptx:\d+: trap: .* in kernel store, CTA \(0,0,0\), thread \(0,0,0\)", ran.err)
    assert "st.global.u32" in ran.err


@pytest.mark.parametrize("engine", ["native", "reference"])
def test_reads_beyond_the_last_buffer_trap(run, store: str, engine: str) -> None:
    ran = run(store, "--grid", "1", "--block", "1024", "--arg", "zeros:u32[4]", "--arg", "1", "--engine", engine)
    assert ran.status == 1 and "trap" in ran.err


@pytest.mark.parametrize("option", [("--timeout", "0.3"), ("--max-instructions", "100000")])
def test_endless_kernels_end(run, tmp_path: Path, option: tuple[str, str]) -> None:
    (tmp_path / "endless.ptx").write_text(ENDLESS)
    ran = run(str(tmp_path / "endless.ptx"), "--grid", "1", "--block", "32", *option)
    assert ran.status == 1 and "endless" in ran.err


def test_interrupt(tmp_path: Path) -> None:
    """The signal comes once the child reads its argument, so Python and the command are loaded and the kernel is next;
    it ends then, or as soon as the kernel is compiled and runs."""
    text = ENDLESS.replace("endless()", "endless(.param .u64 data)")
    (tmp_path / "endless.ptx").write_text(text)
    os.mkfifo(tmp_path / "data")
    child = subprocess.Popen(
        [sys.executable, "-m", "ptxtools", "run", str(tmp_path / "endless.ptx"), "--grid", "1", "--block", "32",
         "--arg", f"@{tmp_path / 'data'}"],
        env={**os.environ, "PYTHONPATH": str(ROOT)}, stderr=subprocess.PIPE,
    )  # fmt: skip
    while child.poll() is None:
        with contextlib.suppress(OSError):  # until the child reads
            pipe = os.open(tmp_path / "data", os.O_WRONLY | os.O_NONBLOCK)
            os.write(pipe, bytes(8))
            os.close(pipe)
            break
        time.sleep(0.01)
    err = interrupted(child)
    assert b"Traceback" not in err or b"Exception ignored" in err
    assert child.returncode == 130


def interrupted(child: subprocess.Popen[bytes]) -> bytes:
    """What a process writes when it is interrupted; once more, should Python have dropped it, as in its callbacks."""
    try:
        for _ in range(HANG // 5):
            child.send_signal(signal.SIGINT)
            with contextlib.suppress(subprocess.TimeoutExpired):
                return child.communicate(timeout=5)[1]
    finally:
        child.kill()
    return child.communicate()[1]


def test_an_interrupt_while_a_class_is_made() -> None:
    """Python wraps it there."""

    @click.command()
    def ended() -> None:
        raise RuntimeError("Error calling __set_name__") from KeyboardInterrupt()

    assert exit_status(ended, "ptx-run", []) == 130


def test_a_closed_pipe_is_quiet(tmp_path: Path) -> None:
    text = HEADER + "".join(f".visible .entry k{n}()\n{{\n ret;\n}}\n" for n in range(4000))
    (tmp_path / "many.ptx").write_text(text)
    line = f"'{sys.executable}' -m ptxtools run '{tmp_path}/many.ptx' --list | head -1"
    ran = subprocess.run(
        line, shell=True, capture_output=True, env={**os.environ, "PYTHONPATH": str(ROOT)}, timeout=HANG
    )
    assert (ran.stdout, ran.stderr) == (b"k0\n", b"")


BASE = ("--grid", "1", "--block", "1")
GOOD = ("--arg", "zeros:u32[4]", "--arg", "1")


@pytest.mark.parametrize(
    ("arguments", "status", "says"),
    [
        (GOOD, 2, "--grid is missing"),
        (("--grid", "1", *GOOD), 2, "block"),
        (("--grid", "0", "--block", "1", *GOOD), 1, "grid 0,1,1"),
        (("--grid", "-1", "--block", "1", *GOOD), 1, "grid -1,1,1"),
        (("--grid", "99999999999", "--block", "1", *GOOD), 1, "grid 99999999999"),
        (("--grid", "1", "--block", "0", *GOOD), 1, "block 0,1,1"),
        (("--grid", "1", "--block", "1025", *GOOD), 1, "block 1025"),
        (("--grid", "x", "--block", "1", *GOOD), 2, "not a grid shape"),
        (("--grid", "1,1,1,1", "--block", "1", *GOOD), 2, "not a grid shape"),
        ((*BASE, "--cluster", "2", *GOOD), 1, "no clusters"),
        ((*BASE, "--shared", "999999999", *GOOD), 1, "shared memory"),
        ((*BASE, "--shared", "-1", *GOOD), 2, "--shared"),
        ((*BASE, "--device", "sm_82", *GOOD), 1, "no device 'sm_82'"),
        ((*BASE, "--sms", "0", *GOOD), 2, "--sms"),
        ((*BASE, "--threads", "0", *GOOD), 2, "--threads"),
        ((*BASE, "--timeout", "0", *GOOD), 2, "--timeout"),
        ((*BASE, "--engine", "fast", *GOOD), 2, "--engine"),
        (BASE, 1, "takes 2 arguments"),
        ((*BASE, *GOOD, "--arg", "1"), 1, "takes 2 arguments (.u64 out, .u32 v), 3 given"),
        ((*BASE, "--arg", "1.5", "--arg", "1"), 1, "is an integer"),
        ((*BASE, "--arg", "bytes:00", "--arg", "1"), 1, "has 8 bytes, not 1"),
        ((*BASE, "--arg", "zeros:u32[4]", "--arg", "zeros:u32[4]"), 1, "is not a pointer"),
        ((*BASE, "--arg", "zero:u32[4]", "--arg", "1"), 2, "did you mean 'zeros'"),
        ((*BASE, "--arg", "missing.npy", "--arg", "1"), 2, "cannot be read"),
        ((*BASE, "--arg", "zeros:u8[99999999999]", "--arg", "1"), 1, "memory"),
        ((*BASE, "--arg", "zeros:u8[0]", "--arg", "1", "--expect", "0=missing.npy"), 2, "cannot be read"),
        ((*BASE, *GOOD, "--expect", "0=missing.npy"), 2, "cannot be read"),
        ((*BASE, *GOOD, "--expect", "1=a.npy"), 2, "argument 1 is not a buffer"),
        ((*BASE, *GOOD, "--expect", "2=a.npy"), 2, "no argument 2"),
        ((*BASE, *GOOD, "--save", "a.npy"), 2, "N=FILE.npy"),
        ((*BASE, *GOOD, "--save", "0=missing/a.npy"), 2, "cannot be written"),
        ((*BASE, *GOOD, "--launch", "missing.toml"), 2, "exclude each other"),
        (("--launch", "missing.toml"), 2, "cannot be read"),
        ((*BASE, *GOOD, "--nonsense"), 2, "No such option"),
        ((*BASE, *GOOD, "--timeline"), 2, "requires an argument"),
        ((*BASE, *GOOD, "--check", "mem"), 2, "there is no checker 'mem'"),
        ((*BASE, *GOOD, "--seed", "-1"), 2, "'--seed'"),
    ],
)
def test_what_is_refused(
    run, store: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], status: int, says: str
) -> None:
    monkeypatch.chdir(tmp_path)
    ran = run(store, *arguments)
    assert (ran.status, ran.out) == (status, "")
    assert says in ran.err and ran.err.startswith("ptx-run: error: ")


def test_modules_that_cannot_run(run, tmp_path: Path) -> None:
    for name, data, status in (
        ("empty.ptx", b"", 1), ("noise.ptx", bytes(range(256)), 1), ("elf", b"\x7fELF" + bytes(60), 1),
        ("bad.ptx", STORE.replace("[%d3]", "[%d9]").encode(), 1), ("none.ptx", HEADER.encode(), 2),
    ):  # fmt: skip
        (tmp_path / name).write_bytes(data)
        ran = run(str(tmp_path / name), *BASE)
        assert (ran.status, ran.out) == (status, "") and ran.err, name
    assert run(str(tmp_path), *BASE).status == 2
    assert run(str(tmp_path / "missing.ptx"), *BASE).status == 2


def test_another_architecture_is_refused(run, tmp_path: Path) -> None:
    (tmp_path / "k.ptx").write_text(STORE.replace("7.8", "8.0").replace("sm_75", "sm_90a"))
    ran = run(str(tmp_path / "k.ptx"), *BASE, *GOOD, "--device", "sm_80")
    assert ran.status == 1 and "the module is for sm_90a" in ran.err
    assert run(str(tmp_path / "k.ptx"), *BASE, *GOOD).status == 0


def test_help_names_what_is_built(run) -> None:
    text = run("--help").out
    for option in (
        "--grid",
        "--expect",
        "--launch",
        "--engine",
        "--max-instructions",
        "--list",
        "--trace",
        "--coverage",
        "--profile",
        "--estimate",
        "--timeline",
        "Examples:",
    ):
        assert option in text
    assert run("--version").out.startswith("ptx-run ")


# --- wrong usage ----------------------------------------------------------------------------------------------------

STORE_ARGS = ("--grid", "1", "--block", "4", "--arg", "zeros:u32[4]", "--arg", "7")


@pytest.mark.parametrize(("options", "status", "says"), [
    (["--device", "foo"], 2, "there is no device 'foo'"),
    (["--device", "sm_82"], 1, "no device 'sm_82' is simulated"),
    (["--rtol", "nan"], 2, "nan is not a finite number"),
    (["--atol", "inf"], 2, "inf is not a finite number"),
    (["--timeout", "nan"], 2, "nan is not a finite number"),
    (["--stack", "524289"], 1, "a stack of 524,289 bytes: a thread has 0 to 524,288"),
    (["--stack", "99999999999999999999"], 1, "a thread has 0 to 524,288"),
    (["--heap", "99999999999999999999"], 1, "device memory has"),
])  # fmt: skip
def test_impossible_values(run, tmp_path: Path, options: list[str], status: int, says: str) -> None:
    path = tmp_path / "store.ptx"
    path.write_text(STORE)
    ran = run(str(path), *STORE_ARGS, *options)
    assert ran.status == status and says in ran.err and ran.out == ""


LAUNCH = """module = "store.ptx"
grid = 1
block = 4
args = [{buffer = "out"}, {value = 7}]
[buffers.out]
zeros = "u32[4]"
"""


def test_a_launch_file_on_standard_input(tmp_path: Path) -> None:
    """Its paths are relative to the working directory."""
    (tmp_path / "store.ptx").write_text(STORE)
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-m", "ptxtools", "run", "--launch", "-"], input=LAUNCH, text=True,
                          capture_output=True, cwd=tmp_path, env=environment, check=False)  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "") and "u32[4] = 7 7 7 7" in done.stdout


def test_standard_input_is_read_once(run) -> None:
    ran = run("-", "--launch", "-")
    assert ran.status == 2 and "only once" in ran.err


def test_names_that_no_file_can_have(run, tmp_path: Path) -> None:
    (tmp_path / "store.ptx").write_text(STORE)
    path = tmp_path / "case.toml"
    path.write_text(LAUNCH + 'expect = "\\u0000"\n')
    ran = run("--launch", str(path))
    assert ran.status == 2 and "embedded null" in ran.err


@pytest.mark.parametrize("word", ["swizzle = '12B'", "interleave = 'x'", "fill = 'one'"])
def test_unknown_words_of_a_tensor_map_are_wrong_usage(run, tmp_path: Path, word: str) -> None:
    (tmp_path / "store.ptx").write_text(STORE)
    path = tmp_path / "case.toml"
    path.write_text(LAUNCH + f"[tensormaps.A]\nbuffer = 'out'\ntype = 'u32'\nshape = [4]\nbox = [4]\n{word}\n")
    assert run("--launch", str(path)).status == 2


def numpy_file(shape: bytes) -> bytes:
    """A file of f32 whose header gives that shape, and no data."""
    header = b"{'descr': '<f4', 'fortran_order': False, 'shape': " + shape + b", }"
    return b"\x93NUMPY\x01\x00\x76\x00" + header.ljust(117) + b"\n"


@pytest.mark.parametrize(("content", "says"), [
    (b"", "x.npy: not a .npy file: it is empty"),
    (b"garbage", "x.npy: not a .npy file\n"),
    (b"\x80\x04K\x01.", "x.npy: not a .npy file\n"),
    (b"\x93NUMPY\x01\x00\xff\xff", "x.npy: a damaged .npy file"),
    (numpy_file(b"(1<<60,)"), "x.npy: a damaged .npy file"),
    (numpy_file(b"(999999999999999,)"), "x.npy: "),
    (numpy_file(b"(-1,)"), "x.npy: "),
    (numpy_file(b"(1,) * 9"), "x.npy: a damaged .npy file"),
])  # fmt: skip
def test_damaged_arrays(run, tmp_path: Path, monkeypatch, content: bytes, says: str) -> None:
    """No advice of NumPy's about pickles."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "store.ptx").write_text(STORE)
    (tmp_path / "x.npy").write_bytes(content)
    ran = run("store.ptx", "--grid", "1", "--block", "4", "--arg", "x.npy", "--arg", "7")
    assert ran.status == 2 and says in ran.err and "pickle" not in ran.err


NINES = "9" * 5000


@pytest.mark.parametrize("options", [
    ["--grid", NINES], ["--block", NINES], ["--arg", NINES], ["--arg", f"-{NINES}"], ["--arg", f"0x{NINES}"],
    ["--arg", f"f32:{NINES}"], ["--arg", f"zeros:f32[{NINES}]"], ["--arg", f"random:f32[2]@{NINES}"],
    ["--arg", f"fill:f32[2]={NINES}"], ["--expect", f"{NINES}=x.npy"], ["--sms", NINES], ["--shared", NINES],
])  # fmt: skip
def test_endless_numbers(run, tmp_path: Path, options: list[str]) -> None:
    path = tmp_path / "store.ptx"
    path.write_text(STORE)
    ran = run(str(path), *STORE_ARGS, *options)
    assert ran.status == 2 and "error" in ran.err


@pytest.mark.parametrize("text", [f"grid = {NINES}", f"grid = 0x{NINES}", f"sms = [0x{NINES}]"])
def test_endless_numbers_in_a_launch_file(run, tmp_path: Path, text: str) -> None:
    path = tmp_path / "case.toml"
    path.write_text(f"module = 'store.ptx'\n{text}\n")
    assert run("--launch", str(path)).status == 2
