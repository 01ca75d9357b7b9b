"""Dependency files of ptx-as: the options and the quoting of compilers."""

import os
import subprocess
from pathlib import Path

import pytest

from ptxtools.cli import assemble
from ptxtools.cli.dependencies import make_name

HEAD = ".version 8.0\n.target sm_80\n.address_size 64\n"
CALLER = HEAD + ".extern .func g();\n.visible .entry k() { call g; ret; }\n"
CALLEE = HEAD + ".visible .func g() { ret; }\n"
FILES = {"a b.ptx": CALLER, "c$d.ptx": CALLEE}


@pytest.fixture
def run(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "out").mkdir()
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)

    def run(*arguments):
        with pytest.raises(SystemExit) as ended:
            assemble.main(list(arguments))
        out, err = capfd.readouterr()
        assert "Traceback" not in err
        return ended.value.code, out

    return run


@pytest.mark.parametrize("option", ["-MD", "-MMD"])
def test_beside_the_output(run, option):
    assert run(option, *FILES, "-o", "out/x.ptxo")[0] == 0
    assert Path("out/x.d").read_text() == "out/x.ptxo: a\\ b.ptx c$$d.ptx\n"


@pytest.mark.parametrize("arguments", [["-MFdeps"], ["-MF", "deps"], ["-MD", "-MF", "deps"]])
def test_named(run, arguments):
    assert run(*arguments, "c$d.ptx", "-o", "y.ptxo")[0] == 0
    assert Path("deps").read_text() == "y.ptxo: c$$d.ptx\n" and not Path("y.d").exists()


def test_on_standard_output(run):
    assert run("-MD", "-MF", "-", "c$d.ptx", "-o", "y") == (0, "y: c$$d.ptx\n")


def test_empty_rules_for_all_but_the_first(run):
    """The first input is the main file: make is to say when that is gone."""
    run("-MD", "-MP", *FILES, "-c")
    assert Path("c$d.d").read_text() == "c$$d.ptxo: c$$d.ptx\n"
    run("-MD", "-MP", *FILES, "-o", "x")
    assert Path("x.d").read_text() == "x: a\\ b.ptx c$$d.ptx\nc$$d.ptx:\n"


@pytest.mark.parametrize(("arguments", "targets"), [
    (["-MT", "x $(y)"], "x $(y)"),
    (["-MQ", "x $(y)"], "x\\ $$(y)"),
    (["-MTx $(y)", "-MQz $(y)", "-MT", "w"], "x $(y) z\\ $$(y) w"),
    (["-MQ", "-MT"], "-MT"),
])  # fmt: skip
def test_targets(run, arguments, targets):
    """Given as they are, or quoted, in the order of the command line (what GCC 12 writes)."""
    assert run("-MD", *arguments, "c$d.ptx", "-o", "x")[0] == 0
    assert Path("x.d").read_text() == f"{targets}: c$$d.ptx\n"


def test_values_of_other_options_and_file_names_are_no_options(run):
    assert run("-MD", "c$d.ptx", "-o", "-MFx")[0] == 0
    assert Path("-MFx").exists() and Path("-MFx.d").exists()
    Path("-MQz.ptx").write_text(CALLEE)
    assert run("-MD", "-o", "x", "--", "-MQz.ptx")[0] == 0
    assert Path("x.d").read_text() == "x: -MQz.ptx\n"


@pytest.mark.parametrize(("name", "quoted"), [
    ("a b", "a\\ b"), ("a\\ b", "a\\\\\\ b"), ("a\\\\ b", "a\\\\\\\\\\ b"), ("a\\b", "a\\b"), ("a#b", "a\\#b"),
    ("a\\#b", "a\\\\#b"), ("a:b", "a:b"), ("a$b", "a$$b"), ("a%b", "a%b"), ("end\\", "end\\"), ("a\tb", "a\\\tb"),
])  # fmt: skip
def test_quoting(name, quoted):
    """Recorded from `gcc -MM -MQ name` (12.2)."""
    assert make_name(name) == quoted


def test_make_reads_it(run, tmp_path):
    run("-MD", "-MP", *FILES, "-o", "x.ptxo")
    (tmp_path / "Makefile").write_text("x.ptxo:\n\t@echo stale\ninclude x.d\n")
    make = ["make", "-s", "-f", "Makefile"]
    try:
        assert b"stale" not in subprocess.run(make, capture_output=True, check=True).stdout
    except FileNotFoundError:
        pytest.skip("make is not installed")
    os.utime("c$d.ptx", (4e9, 4e9))
    assert b"stale" in subprocess.run(make, capture_output=True, check=True).stdout
    os.remove("c$d.ptx")
    assert b"stale" in subprocess.run(make, capture_output=True, check=True).stdout


def test_outputs_through_links_and_modes(run, tmp_path):
    """The output and its dependency file are the files that were there."""
    Path("real").write_text("old")
    Path("real").chmod(0o640)
    Path("x.ptxo").symlink_to("real")
    os.link("real", "second")
    Path("x.d").symlink_to("real.d")
    assert run("-MD", "c$d.ptx", "-o", "x.ptxo")[0] == 0
    assert (
        Path("x.ptxo").is_symlink() and Path("x.d").is_symlink() and Path("real.d").read_text() == "x.ptxo: c$$d.ptx\n"
    )
    assert (
        Path("second").read_bytes() == Path("real").read_bytes() != b"old"
        and Path("real").stat().st_mode & 0o777 == 0o640
    )
