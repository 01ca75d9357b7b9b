"""The two-module program of examples/: built by make, linked, run; only what changed is built again."""

import os
import shutil
import subprocess
import sys

import pytest

from tests.container.samples import ROOT

pytestmark = pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")


@pytest.fixture
def make(tmp_path):
    folder = tmp_path / "two-modules"
    shutil.copytree(ROOT / "examples" / "two-modules", folder, ignore=shutil.ignore_patterns("*.ptxo", "*.d"))
    python = f"{sys.executable} -m ptxtools"

    def make(*targets):
        command = ["make", f"PTX_AS={python} as", f"PTX_RUN={python} run", *targets]
        return subprocess.run(command, cwd=folder, env={**os.environ, "PYTHONPATH": str(ROOT)}, check=True,
                              capture_output=True, text=True).stdout  # fmt: skip

    make.folder = folder
    return make


def test_it_is_built_and_run(make):
    values = [v * 3 + (0, 10, 20, 30)[v % 4] for v in range(8)]
    assert " ".join(map(str, values)) in make("run")


def test_only_what_changed_is_built_again(make):
    make("program.ptxo")
    assert "up to date" in make("program.ptxo")
    os.utime(make.folder / "scale.ptx", (4e9, 4e9))
    again = make("program.ptxo")
    assert "-c -g -MMD scale.ptx" in again and "main.ptx -o" not in again
