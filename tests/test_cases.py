"""Every case of testdata/cases through ptx-run: from text, from a container, and on the reference engine.

Cases that cannot pass yet stand in waiting.toml with what they wait for; a case of the list that passes is an error, so
that the list stays honest.
"""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path

import pytest

import ptxtools
from ptxtools.cli.common import exit_status
from ptxtools.cli.run import command
from tests.work import HANG

CASES = Path(__file__).parents[1] / "testdata" / "cases"
WAITING: dict[str, str] = tomllib.loads((Path(__file__).parent / "waiting.toml").read_text())
NAMES = sorted(str(path.parent.relative_to(CASES)) for path in CASES.rglob("case.toml"))
RUNNING = [name for name in NAMES if name not in WAITING]


def run(name: str, *more: str) -> int:
    """The exit status of a case. One that is to run out of time does so sooner than its file says."""
    seconds = "1" if "timeout" in name else str(HANG)
    return exit_status(command, "ptx-run", ["--launch", str(CASES / name / "case.toml"), "--timeout", seconds, *more])


@pytest.mark.share(2)
@pytest.mark.parametrize("name", NAMES)
def test_from_text(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    status = run(name)
    said = capsys.readouterr().err
    if name in WAITING:
        assert status != 0, f"{name} passes now: take it out of tests/waiting.toml"
        pytest.xfail(WAITING[name])
    assert status == 0, said


@pytest.mark.share(8)
@pytest.mark.parametrize("name", RUNNING)
def test_on_the_reference_engine(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    status = run(name, "--engine", "reference")
    assert status == 0, capsys.readouterr().err


@pytest.mark.share(10)
@pytest.mark.parametrize("name", RUNNING)
def test_from_a_container(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    container = tmp_path / "kernel.ptxo"
    container.write_bytes(ptxtools.assemble([(CASES / name / "kernel.ptx").read_bytes()]))
    status = run(name, str(container))
    assert status == 0, capsys.readouterr().err


def test_the_list_names_cases(capsys: pytest.CaptureFixture[str]) -> None:
    assert set(WAITING) <= set(NAMES)
    with capsys.disabled():
        sys.stdout.write(f"\n{len(NAMES) - len(WAITING)} of {len(NAMES)} cases run; the others wait:\n")
        for name, reason in sorted(WAITING.items()):
            sys.stdout.write(f"    {name:<44} {reason}\n")
