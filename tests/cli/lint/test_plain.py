"""Arguments that ptx-lint reads without click, beside what click makes of them."""

import os
import subprocess
import sys

import pytest
from click import ClickException

from ptxtools.cli.common import exit_status
from ptxtools.cli.lint import command, plain_options
from tests.rows import rows
from tests.work import HANG

READ = [
    [], ["a.ptx"], ["-"], ["", "a b"], ["a.ptx", "-q", "b.ptx", "--strict"],
    ["--quiet", "--exit-zero", "--no-cache", "x"],
    ["--format", "json", "x"], ["x", "--format", "text", "--format", "json"], ["--color", "always", "é.ptx"],
    ["-j", "2", "x"], ["--jobs", "01", "x"],
]  # fmt: skip
LEFT = [
    ["--help"], ["-h", "x"], ["--", "-x"], ["--format", "sarif", "x"], ["--format=json", "x"], ["--color", "blue"],
    ["--format"], ["-qv", "x"], ["-v", "x"], ["--fix", "x"],
    ["-j", "0", "x"], ["-j2", "x"], ["-j", "x"], ["-j"], ["--unknown", "x"], ["--format", "-q"],
]  # fmt: skip


@rows("arguments", READ, ids=" ".join)
def test_options_are_those_of_click(arguments):
    assert plain_options(arguments) == command.make_context("ptx-lint", list(arguments)).params


@rows("arguments", LEFT, ids=" ".join)
def test_the_rest_is_left_to_click(arguments):
    assert plain_options(arguments) is None


def test_defaults_are_those_of_click():
    with pytest.raises(ClickException):
        command.make_context("ptx-lint", ["--format"])
    assert plain_options([]).keys() == {one.name for one in command.params if one.expose_value}


KERNEL = ".version 8.0\n.target sm_80\n.address_size 64\n.entry k()\n{\n    mov.b32 %r1, 1;\n    ret;\n}\n"
SETTINGS = '[tool.ptx-lint]\ntarget = ["sm_1"]\n'


@rows(("arguments", "files"), [
    (["k.ptx"], {"k.ptx": KERNEL}),
    (["k.ptx", "--format", "json", "none.ptx"], {"k.ptx": KERNEL}),
    (["k.ptx"], {"k.ptx": KERNEL, "pyproject.toml": SETTINGS}),
    (["-", "-"], {}),
    ([], {}),
    (["."], {"k.ptx": KERNEL, "a.ptx": KERNEL}),
], ids=str)  # fmt: skip
def test_the_process_says_what_the_command_says(arguments, files, tmp_path, monkeypatch, capfdbinary):
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-m", "ptxtools", "lint", *arguments], cwd=tmp_path, env=environment,
                          stdin=subprocess.DEVNULL, capture_output=True, timeout=HANG, check=False)  # fmt: skip
    monkeypatch.chdir(tmp_path)
    with open(os.devnull) as nothing:
        monkeypatch.setattr(sys, "stdin", nothing)
        status = exit_status(command, "ptx-lint", arguments)
    sys.stdout.flush()
    out, err = capfdbinary.readouterr()
    assert (done.returncode, done.stdout, done.stderr) == (status, out, err)


def test_a_plain_start_loads_no_click(tmp_path):
    (tmp_path / "k.ptx").write_text(KERNEL)
    code = """import sys, ptxtools.cli.lint as lint
import atexit
atexit.register(lambda: sys.stderr.write(str([each for each in ("click", "inspect") if each in sys.modules])))
sys.argv = ["ptx-lint", "--no-cache", "k.ptx"]
lint.main()
"""
    for _ in range(2):  # PLY, which reads what is new, loads inspect
        done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 1 and done.stderr == "[]"
