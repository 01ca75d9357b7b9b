"""`ptx-as --reduce COMMAND`."""

import signal
import subprocess
import sys

import pytest

from ptxtools.cli.assemble import command
from ptxtools.cli.common import exit_status

HEAD = ".version 8.0\n.target sm_80\n.address_size 64\n"
KERNEL = (
    HEAD + ".visible .entry k(.param .b64 p) { .reg .b32 %r<9>; mul.lo.u32 %r1, 3, 4; add.u32 %r2, %r1, 1; ret; }\n"
)


@pytest.fixture
def reduce(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)

    def run(*arguments, text=KERNEL):
        (tmp_path / "a.ptx").write_text(text)
        status = exit_status(command, "ptx-as", [*arguments])
        out, err = capfd.readouterr()
        return status, out, err

    return run


def test_a_command_with_a_place_for_the_name(reduce, tmp_path):
    status, out, err = reduce("--reduce", "grep -q mul {} && test -s {}", "a.ptx", "-o", "b.ptx", "-j", "3")
    assert (status, out) == (0, "")
    text = (tmp_path / "b.ptx").read_text()
    assert text.split()[6:] == ".entry f0() { .reg .b32 %r<1>; mul.lo.u32 %r0, 0, 0; }".replace("f0", "k").split()
    assert err.startswith(f"b.ptx: {len(text)} bytes, from ")


def test_the_name_comes_last_and_the_output_beside_the_input(reduce, tmp_path):
    assert reduce("--reduce", "grep -q add.u32", "a.ptx", "-q")[::2] == (0, "")
    assert "add.u32" in (tmp_path / "a.reduced.ptx").read_text()


def test_to_standard_output(reduce, tmp_path):
    status, out, _ = reduce("--reduce", "grep -q add.u32", "a.ptx", "-o", "-")
    assert status == 0
    assert "add.u32" in out
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.ptx"]


def test_bad_uses(reduce, tmp_path):
    status, _, err = reduce("--reduce", "grep -q sub", "a.ptx", "-o", "b.ptx")
    assert status == 2
    assert "does not end with 0 for a.ptx" in err
    assert not (tmp_path / "b.ptx").exists()
    assert reduce("--reduce", "true", "a.ptx", "-o", "a.ptx")[0] == 2
    assert reduce("--reduce", " ", "a.ptx")[0] == 2
    assert reduce("--reduce", "", "a.ptx")[0] == 2
    assert reduce("--reduce", "true", "a.ptx", "b.ptx")[0] == 2
    assert reduce("--reduce", "true", "a.ptx", "--info")[0] == 2
    assert reduce("--reduce", "true", "a.ptx", "-c")[0] == 2
    assert reduce("--reduce", "true", "missing.ptx")[0] == 2
    status, _, err = reduce("--reduce", "true", "a.ptx", text=KERNEL + "}")
    assert status == 1
    assert "a.ptx:5:1" in err


def test_interruption_leaves_the_best_so_far(tmp_path):
    (tmp_path / "a.ptx").write_text(KERNEL)
    line = "echo >> log; test $(wc -l < log) -lt 6 || kill -INT $PPID; grep -q mul {}"
    arguments = [sys.executable, "-m", "ptxtools", "as", "--reduce", line, "a.ptx", "-o", "b.ptx"]
    ended = subprocess.run(arguments, cwd=tmp_path, capture_output=True, text=True)
    assert ended.returncode in (130, -signal.SIGINT)
    assert "Traceback" not in ended.stderr
    text = (tmp_path / "b.ptx").read_text()
    assert "mul.lo.u32" in text
    assert len(text) < len(KERNEL)
