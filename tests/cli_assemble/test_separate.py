"""Separate compilation: what `nvcc -dc -ptx` made apart is assembled apart, linked, and run."""

import os
import subprocess
import sys

import pytest

from tests.container.samples import BINARIES, ROOT

SEPARATE = BINARIES / "separate"


def tool(folder, *arguments):
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PTXTOOLS_CACHE": str(folder)}
    command = [sys.executable, "-m", "ptxtools", *map(str, arguments)]
    return subprocess.run(command, cwd=folder, env=environment, check=True, capture_output=True, text=True).stdout


@pytest.mark.parametrize("options", [[], ["--compress", "--gc"]])
def test_a_call_into_the_other_module_with_printf_in_both(tmp_path, options):
    for name in ("printing_a", "printing_b"):
        tool(tmp_path, "as", "-c", SEPARATE / f"{name}.ptx", "-o", f"{name}.ptxo")
    tool(tmp_path, "as", *options, "printing_a.ptxo", "printing_b.ptxo", "-o", "program.ptxo")
    out = tool(tmp_path, "run", "program.ptxo", "-k", "k", "--grid", 1, "--block", 4, "--arg", "zeros:s32[4]")
    lines = out.splitlines()
    assert sorted(lines[:3]) == ["k 0 0", "k 1 1", "three"] and lines[3:] == ["argument 0: s32[4] = 0 1 4 9"]


def test_variables_and_functions_of_the_same_name_in_both(tmp_path):
    """Both halves have a function `mine` of their own; `table` and `counter` are shared."""
    tool(tmp_path, "as", SEPARATE / "a.ptx", SEPARATE / "b.ptx", "-o", "program.ptxo")
    out = tool(tmp_path, "run", "program.ptxo", "-k", "k1", "--grid", 1, "--block", 1, "--arg", "zeros:s32[1]")
    assert out.splitlines() == ["argument 0: s32[1] = 14"]
