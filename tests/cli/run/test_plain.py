"""Arguments that ptx-run reads without click, beside what click makes of them."""

import os
import subprocess
import sys

import pytest
from click import ClickException

from ptxtools.cli.common import exit_status
from ptxtools.cli.run import command, plain_options
from tests.rows import rows
from tests.work import HANG

READ = [
    [], ["k.ptx"], ["-"], ["", "a b"], ["k.ptx", "--grid", "4,2", "--block", "256", "--cluster", "2"],
    ["--arg", "-5", "k.ptx", "--arg", "", "--arg", "zeros:f32[4]"], ["-k", "a", "--kernel", "b", "k.ptx"],
    ["--launch", "case.toml", "-q", "-v"], ["--expect", "0=a.npy", "--save", "1=b.npy", "--save", "2=c.npy"],
    ["--shared", "0", "--stack", "16", "--cooperative", "--sms", "007", "--threads", "1", "--seed", "3", "--heap", "1"],
    ["--engine", "reference", "--numerics", "ieee", "--tier", "regions", "--memory", "weak", "--device", "sm_90a"],
    ["--check", "all", "--check-stop", "--check-suppressions", "s.toml", "--check-report", "r.json", "--explore", "2"],
    ["--timeout", "10", "--max-instructions", "99", "--color", "never"], ["--arg", "--grid", "é.ptx"],
]  # fmt: skip
LEFT = [
    ["--help"], ["-h", "k.ptx"], ["--", "-x"], ["--grid=4"], ["--grid"], ["-kname"], ["-qv"], ["--color", "blue"],
    ["--engine", "fast"], ["--sms", "0"], ["--sms", "x"], ["--seed", "-1"], ["--timeout", "0"], ["--timeout", "0.5"],
    ["--rtol", "1e-3"], ["--trace", "t"], ["--debug"], ["--list"], ["--litmus", "a"], ["--sweep", "seed=1"],
    ["--format", "github"], ["-o", "x"], ["--unknown"], ["--profile"], ["--shared", "١"], ["--heap", "999999999999"],
]  # fmt: skip


@rows("arguments", READ, ids=" ".join)
def test_options_are_those_of_click(arguments):
    assert plain_options(arguments) == command.make_context("ptx-run", list(arguments)).params


@rows("arguments", LEFT, ids=" ".join)
def test_the_rest_is_left_to_click(arguments):
    assert plain_options(arguments) is None


def test_defaults_are_those_of_click():
    with pytest.raises(ClickException):
        command.make_context("ptx-run", ["--format"])
    assert plain_options([]).keys() == {one.name for one in command.params if one.expose_value}


KERNEL = """.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 out)
{
    .reg .b32 %r<2>;
    .reg .b64 %rd<2>;
    ld.param.u64 %rd1, [out];
    mov.u32 %r1, %tid.x;
    st.global.u32 [%rd1], %r1;
    ret;
}
"""
FILES = {"k.ptx": KERNEL, "bad.ptx": KERNEL.replace("mov.u32", "mov.u33"),
         "l.toml": 'module = "k.ptx"\ngrid = 1\nblock = 1\nargs = [{buffer="o"}]\n[buffers.o]\nzeros = "u32[1]"\n'
         'expect_failure = "trap"\n'}  # fmt: skip
SHAPE = ["--grid", "1", "--block", "1"]


@rows("arguments", [
    ["k.ptx", *SHAPE, "--arg", "zeros:u32[1]"],
    ["k.ptx", *SHAPE, "--arg", "zeros:u32[1]", "--check", "all", "-v", "-q"],
    ["k.ptx", *SHAPE, "--arg", "null"],
    ["k.ptx", *SHAPE], ["k.ptx"], ["k.ptx", "k.ptx"], ["none.ptx", *SHAPE], ["bad.ptx", *SHAPE], [],
    ["k.ptx", *SHAPE, "--arg", "what"], ["k.ptx", *SHAPE, "--arg", "zeros:u32[1]", "--sms", "70000"],
    ["k.ptx", *SHAPE, "--arg", "zeros:u32[1]", "--expect", "0=none.npy"],
    ["--launch", "l.toml"], ["--launch", "l.toml", *SHAPE], ["--launch", "none.toml"],
    ["k.ptx", *SHAPE, "--arg", "zeros:u32[1]", "--check-report", "r.txt"],
], ids=" ".join)  # fmt: skip
def test_the_process_says_what_the_command_says(arguments, tmp_path, monkeypatch, capfdbinary):
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-m", "ptxtools", "run", *arguments], cwd=tmp_path, env=environment,
                          stdin=subprocess.DEVNULL, capture_output=True, timeout=HANG, check=False)  # fmt: skip
    monkeypatch.chdir(tmp_path)
    with open(os.devnull) as nothing:
        monkeypatch.setattr(sys, "stdin", nothing)
        status = exit_status(command, "ptx-run", arguments)
    sys.stdout.flush()
    out, err = capfdbinary.readouterr()
    speed = b"thread-instruction"  # of -v; its time differs
    told, said = ([line for line in text.splitlines() if speed not in line] for text in (done.stderr, err))
    assert (done.returncode, done.stdout, told) == (status, out, said)
    assert done.stderr.count(speed) == err.count(speed)


def test_a_plain_start_loads_no_click(tmp_path):
    (tmp_path / "k.ptx").write_text(KERNEL)
    code = """import sys, ptxtools.cli.run as run
import atexit
unused = ("click", "ptxtools.cli.observing", "ptxtools.cli.tracing")
atexit.register(lambda: sys.stderr.write(str([each for each in unused if each in sys.modules])))
sys.argv = ["ptx-run", "k.ptx", "--grid", "1", "--block", "1", "--arg", "zeros:u32[1]"]
run.main()
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "[]")
