"""Kernels in the style of CUTLASS: TMA, mbarrier rings, wgmma and tcgen05 on CTA pairs, against NumPy."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import ptxtools
from ptxtools.cli.common import exit_status
from ptxtools.cli.run import command
from tests.work import HANG

CASES = Path(__file__).parents[3] / "testdata" / "pipelines"
NAMES = sorted(path.parent.name for path in CASES.glob("*/case.toml"))
WAYS = {
    "text": (),
    "seed 0": ("--seed", "0"),
    "seed 1": ("--seed", "1"),
    "seed 2": ("--seed", "2"),
    "ieee": ("--numerics", "ieee"),
    "reference": ("--engine", "reference"),
    "late": ("--check", "asynccheck"),
    "all checkers": ("--check", "all"),
    "all checkers, shuffled": ("--check", "all", "--seed", "5"),
}


def run(name: str, *more: str) -> int:
    launch = CASES / name / "case.toml"
    return exit_status(command, "ptx-run", ["--launch", str(launch), "--timeout", str(HANG), *more])


@pytest.mark.share(4)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", NAMES)
def test_pipeline(name: str, way: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(name, *WAYS[way]) == 0, capsys.readouterr().err


@pytest.mark.parametrize("name", NAMES)
def test_from_a_container(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    container = tmp_path / "kernel.ptxo"
    container.write_bytes(ptxtools.assemble([(CASES / name / "kernel.ptx").read_bytes()]))
    assert run(name, str(container)) == 0, capsys.readouterr().err


@pytest.mark.parametrize("name", NAMES)
def test_expectations_are_products(name: str) -> None:
    """The stored results are those of the stored inputs, and no tolerance hides a wrong product."""
    a, b, c = (np.load(CASES / name / f"{which}.npy").astype(np.float64) for which in ("a", "b", "c.expect"))
    product = a @ (b if b.shape[0] == a.shape[1] else b.T)
    assert (np.abs(product - c) <= np.abs(product) * 2.0**-11 + 2.0**-25).all()
    assert np.median(np.abs(c)) > 5


@pytest.mark.parametrize("name", NAMES)
def test_a_shorter_product_differs(name: str, tmp_path: Path) -> None:
    """The comparison sees what is left out: the last step of k."""
    text = (CASES / name / "case.toml").read_text()
    for path in (CASES / name).glob("*.npy"):
        (tmp_path / path.name).symlink_to(path)
    (tmp_path / "kernel.ptx").symlink_to(CASES / name / "kernel.ptx")
    (tmp_path / "case.toml").write_text(text.replace("{value=208}", "{value=192}"))
    assert exit_status(command, "ptx-run", ["--launch", str(tmp_path / "case.toml")]) == 1


@pytest.mark.share(4)
@pytest.mark.parametrize(("name", "instruction", "instead", "said"), [
    ("wgmma_specialised_sm90", r"wgmma\.wait_group\.sync\.aligned\s+1;", "wgmma.wait_group.sync.aligned 3;",
     "writes memory, but wgmma.mma_async has not completed"),
    ("wgmma_specialised_sm90", r"wgmma\.commit_group\.sync\.aligned;", "",
     "writes memory, but wgmma.mma_async has not completed"),
    ("wgmma_specialised_sm90", r"fence\.proxy\.async\.shared::cta;", "", "without fence.proxy.async"),
    ("tcgen05_pair_sm100", r"tcgen05\.wait::ld\.sync\.aligned;", "", "tcgen05.ld has not completed"),
    ("tcgen05_pair_sm100", r"fence\.proxy\.async\.shared::cta;", "", "without fence.proxy.async"),
])  # fmt: skip
def test_a_missing_wait_is_reported(
    name: str, instruction: str, instead: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = (CASES / name / "kernel.ptx").read_text()
    changed = re.sub(instruction, instead, text)
    assert changed != text
    module = tmp_path / "kernel.ptx"
    module.write_text(changed)
    assert run(name, str(module), "--check", "asynccheck") == 1
    assert said in "".join(capsys.readouterr())


@pytest.mark.parametrize("which", [0, 1])
def test_without_a_commit_nobody_hears_of_the_end(
    which: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The first tcgen05.commit frees a stage of the ring, the second says that D is complete."""
    text = (CASES / "tcgen05_pair_sm100" / "kernel.ptx").read_text()
    found = list(re.finditer(r"tcgen05\.commit[^;]*;", text))
    assert len(found) == 2
    module = tmp_path / "kernel.ptx"
    module.write_text(text[: found[which].start()] + text[found[which].end() :])
    assert run("tcgen05_pair_sm100", str(module), "--check", "asynccheck") == 1
    said = "".join(capsys.readouterr())
    assert "deadlock" in said
    assert "phase 0: 0 of 1 arrivals came" in said
