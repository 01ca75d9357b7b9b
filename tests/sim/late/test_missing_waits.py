"""Asynchronous work that completes late: kernels that wait for it stay right, and each missing wait is found."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ptxtools.cli.common import exit_status
from ptxtools.cli.run import command
from tests.work import HANG

CASES = Path(__file__).parents[3] / "testdata" / "cases"

#: A case, the instruction that is taken out of it, and what asynccheck says then.
MISSING = [
    ("cu_cpasync_pipe_sm80", "cp.async.wait_group", "shared read of 4 bytes.*but a cp.async of 16 bytes"),
    ("cu_tma_bulk_sm90", "cp.async.bulk.wait_group", "shared write.*but a bulk copy of 1024 bytes to global"),
    ("cu_tma_bulk_sm90", "fence.proxy.async", "reads what was written without fence.proxy.async"),
    ("cu_tma_tensor_sm90", "fence.proxy.async", "reads what was written without fence.proxy.async"),
    ("cu_tma_tensor_sm90", "mbarrier.try_wait", "shared read of.*but a tensor copy of"),
    ("gluon_tmem_a_m128_sm100", "tcgen05.wait::st", "tcgen05.mma reads memory, but tcgen05.st has not completed"),
    ("gluon_tmem_a_m128_sm100", "mbarrier.try_wait", "shared read of 16 bytes.*but a tensor copy of 16384 bytes"),
    ("gluon_tmem_32x32b_16x64b_m128n64_sm100", "tcgen05.wait::st", "tcgen05.ld reads memory, but tcgen05.st has not"),
    ("gluon_tmem_32x32b_16x64b_m128n64_sm100", "tcgen05.wait::ld", "ends without a tcgen05.wait::ld"),
]  # fmt: skip

#: What results show, too, because the work comes too late.
WRONG = [
    ("cu_cpasync_pipe_sm80", "cp.async.wait_group"),
    ("cu_tma_tensor_sm90", "mbarrier.try_wait"),
    ("gluon_wgmma_f16_n64_sm90", "wgmma.wait_group"),
    ("gluon_tmem_32x32b_16x64b_m128n64_sm100", "tcgen05.wait::st"),
]

RIGHT = sorted({case for case, *_ in MISSING} | {case for case, _ in WRONG} | {"cu_st_async_sm90", "gluon_ring_sm90"})


def run(case: str, *more: str) -> int:
    return exit_status(command, "ptx-run", ["--launch", str(CASES / case / "case.toml"), "--timeout", str(HANG), *more])


def without(case: str, word: str, folder: Path) -> str:
    """The case's kernel without an instruction; one that tests a barrier says yes at once."""
    lines = []
    for line in (CASES / case / "kernel.ptx").read_text().splitlines():
        if word in line and word.startswith("mbarrier"):
            line = re.sub(r"mbarrier\.\S+\s+(%?\w+),.*?;", r"setp.eq.u32 \1, 0, 0;", line)
        lines.append(f"// {line}" if word in line else line)
    path = folder / "kernel.ptx"
    path.write_text("\n".join(lines))
    return str(path)


@pytest.mark.share(3)
@pytest.mark.parametrize("case", RIGHT)
def test_kernels_that_wait_pass(case, capsys):
    status = run(case, "--check", "asynccheck")
    assert status == 0, capsys.readouterr().err


@pytest.mark.parametrize("case", ["cu_cpasync_pipe_sm80", "cu_tma_bulk_sm90", "gluon_tmem_a_m128_sm100"])
def test_kernels_that_wait_pass_on_the_reference_engine(case, capsys):
    status = run(case, "--check", "asynccheck", "--engine", "reference")
    assert status == 0, capsys.readouterr().err


@pytest.mark.share(3)
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("case", ["cu_cpasync_pipe_sm80", "cu_tma_bulk_sm90", "gluon_wgmma_f16_n64_sm90"])
def test_seeds_complete_some_work_late(case, seed, capsys):
    status = run(case, "--seed", str(seed))
    assert status == 0, capsys.readouterr().err


@pytest.mark.share(3)
@pytest.mark.parametrize(("case", "word", "said"), MISSING)
def test_a_missing_wait_is_reported(case, word, said, tmp_path, capsys):
    status = run(case, without(case, word, tmp_path), "--check", "asynccheck")
    found = capsys.readouterr().err
    assert status == 1
    assert re.search(rf"kernel\.ptx:\d+: asynccheck: .*({said})", found), found


@pytest.mark.share(2)
@pytest.mark.parametrize(("case", "word"), WRONG)
def test_a_missing_wait_gives_wrong_results(case, word, tmp_path, capsys):
    path = without(case, word, tmp_path)
    run(case, path)
    early = capsys.readouterr().err
    run(case, path, "--check", "asynccheck")
    late = capsys.readouterr().err
    assert "differs from" in late
    assert "differs from" not in early or word == "mbarrier.try_wait"
