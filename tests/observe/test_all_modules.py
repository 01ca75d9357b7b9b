"""No checker finds fault with cases that are right, and values stay the same; those that are to fail still do.

These are the shorter runs of testdata/cases: what they have in common is that each uses something of its own.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from ptxtools.cli.common import exit_status
from ptxtools.cli.run import command

CASES = Path(__file__).parents[2] / "testdata" / "cases"
NAMES = [
    "cu_params_sm75",
    "cu_pdl_sm90",
    "cu_texture_sm75",
    "cu_crc32_sm75",
    "cu_mandel_sm75",
    "cu_redux_sm80",
    "cu_ldmatrix_sm75",
    "cu_dynshared_sm75",
    "cu_tables_sm90",
    "cu_st_async_sm90",
    "cu_tma_tensor_sm90",
    "cu_simd_sm75",
    "cu_special_sm75",
    "cu_spmv_sm75",
    "cu_warpops_sm75",
    "cu_nbody_sm90",
    "cu_cluster_dsmem_sm90",
    "tri_layernorm_sm80",
    "negative/racecheck_race",
    "negative/trap_assertion",
    "negative/deadlock_mbar_missing",
    "negative/trap_wild",
    "negative/memcheck_oob_global",
    "negative/memcheck_oob_shared",
    "negative/leakcheck_heap_leak",
]


@pytest.mark.share(4)
@pytest.mark.parametrize("name", NAMES)
def test_all_checkers(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    status = exit_status(command, "ptx-run", ["--launch", str(CASES / name / "case.toml"), "--check", "all"])
    assert status == 0, capsys.readouterr().err
