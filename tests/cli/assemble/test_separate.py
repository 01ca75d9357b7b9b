"""Separate compilation: what `nvcc -dc -ptx` made apart is assembled apart, linked, and run."""

from types import SimpleNamespace

import pytest

from ptxtools.cli import assemble, run
from ptxtools.cli.common import exit_status
from tests.container.samples import BINARIES

SEPARATE = BINARIES / "separate"
COMMANDS = {"as": assemble.command, "run": run.command}


@pytest.fixture
def started(tmp_path, monkeypatch, capfd):
    """Run a command in an empty folder: its status and what it prints."""
    monkeypatch.chdir(tmp_path)

    def started(name, *arguments):
        status = exit_status(COMMANDS[name], f"ptx-{name}", list(map(str, arguments)))
        out, err = capfd.readouterr()
        return SimpleNamespace(status=status, out=out, err=err)

    return started


@pytest.fixture
def tool(started):
    """What a command prints that must not fail."""

    def tool(name, *arguments):
        done = started(name, *arguments)
        assert done.status == 0, done.err
        return done.out

    return tool


@pytest.mark.parametrize("options", [[], ["--compress", "--gc"]])
def test_a_call_into_the_other_module_with_printf_in_both(tool, options):
    for name in ("printing_a", "printing_b"):
        tool("as", "-c", SEPARATE / f"{name}.ptx", "-o", f"{name}.ptxo")
    tool("as", *options, "printing_a.ptxo", "printing_b.ptxo", "-o", "program.ptxo")
    out = tool("run", "program.ptxo", "-k", "k", "--grid", 1, "--block", 4, "--arg", "zeros:s32[4]")
    lines = out.splitlines()
    assert sorted(lines[:3]) == ["k 0 0", "k 1 1", "three"] and lines[3:] == ["argument 0: s32[4] = 0 1 4 9"]


def test_variables_and_functions_of_the_same_name_in_both(tool):
    """Both halves have a function `mine` of their own; `table` and `counter` are shared."""
    tool("as", SEPARATE / "a.ptx", SEPARATE / "b.ptx", "-o", "program.ptxo")
    out = tool("run", "program.ptxo", "-k", "k1", "--grid", 1, "--block", 1, "--arg", "zeros:s32[1]")
    assert out.splitlines() == ["argument 0: s32[1] = 14"]


@pytest.mark.parametrize(("declaration", "statement", "status"), [
    (".extern .global .u32 other;", "", 1),
    (".extern .global .u32 other;", "ld.global.u32 %r, [other];", 1),
    (".extern .func other (.param .b32 x);", "", 0),
    (".extern .func other ();", "call other;", 1),
    (".extern .shared .b8 other[];", "", 0),
])  # fmt: skip
def test_what_is_missing_is_missed_in_a_text_and_in_a_container(
    tmp_path, tool, started, declaration, statement, status
):
    """A variable though unused, a function only if it is called: as nvlink says."""
    head = ".version 8.0\n.target sm_80\n.address_size 64\n"
    text = f"{head}{declaration}\n.entry k() {{ .reg .b32 %r; {statement} ret; }}\n"
    (tmp_path / "k.ptx").write_text(text)
    tool("as", "-c", "k.ptx", "-o", "k.ptxo")
    for name in ("k.ptx", "k.ptxo"):
        done = started("run", name, "--grid", 1, "--block", 1)
        assert done.status == status and ("other" in done.err) == bool(status), done.err
    assert started("as", "k.ptx").status == status
