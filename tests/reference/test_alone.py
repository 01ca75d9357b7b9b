"""The reference engine stands by itself: it runs kernels where there is neither llvmlite nor the native engine."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

DATA = Path(__file__).parents[2] / "testdata"

#: Runs ptx-run in a process that cannot import them.
_RUN = """
import sys

class Refused:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == "llvmlite" or name.startswith("ptxtools.native"):
            raise ImportError(f"{name} is not here")

sys.meta_path.insert(0, Refused())
from ptxtools.cli.run import command
command(sys.argv[1:])
"""


def ptx_run(case: str, *options: str) -> subprocess.CompletedProcess[str]:
    arguments = ["--launch", str(DATA / case / "case.toml"), *options]
    return subprocess.run([sys.executable, "-c", _RUN, *arguments], capture_output=True, text=True)


@pytest.mark.share(5)
@pytest.mark.parametrize(
    "case",
    ["pipelines/wgmma_specialised_sm90", "pipelines/tcgen05_pair_sm100", "cases/cu_tma_bulk_sm90",
     "cases/gluon_tma_reduce_sm90", "cases/tri_mm_f16_sm80"],
)  # fmt: skip
def test_it_needs_no_machine_code(case: str) -> None:
    """Products of warpgroups, of tcgen05 and of warps; reductions of plain and of tensor copies."""
    done = ptx_run(case, "--engine", "reference")
    assert done.returncode == 0, done.stderr


def test_the_native_engine_would_be_missed() -> None:
    assert ptx_run("cases/cu_tma_bulk_sm90", "--engine", "native").returncode != 0
