"""`ptx-run --estimate`: text and JSON, and what is refused."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest

from ptxtools.cli.common import exit_status
from ptxtools.cli.run import command

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "running.md").read_text()


def run(*more: str, device: str = "sm_80") -> int:
    """The example of docs/running.md, with other options behind."""
    text = PAGE.partition("## Estimate")[2].partition("ptx-run ")[2].partition(" --estimate")[0].replace("\\\n", "")
    options = [device if word == "sm_80" else word for word in shlex.split(text)]
    return exit_status(command, "ptx-run", [*options, "-q", *more])


def test_text(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(ROOT)
    assert run("--estimate", "-") == 0
    text = capsys.readouterr().out
    assert "a model of sm_80 (A100, 1,410 MHz)\n" in text and "  bound by latency, " in text
    assert "  SMs with work: 4; the fullest has 0.0 % more than their average\n" in text


def test_json(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(ROOT)
    path = tmp_path / "e.json"
    assert run("--estimate", str(path)) == 0
    (kernel,) = json.loads(path.read_text())["kernels"]
    assert (kernel["name"], kernel["bound"], kernel["sms"]) == ("vecadd", "latency", 4)


def test_what_is_refused(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(ROOT)
    assert run("--estimate", "e.html") == 2
    assert "FILE ends in .txt or .json" in capsys.readouterr().err
    assert run("--estimate", "-", device="sm_87") == 1
    assert "no published rates of sm_87" in capsys.readouterr().err


def test_a_timeline_says_what_it_leaves_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Two warps begin and end: four events."""
    args = [*["--grid", "1", "--block", "64", "-q"], *["--arg", "zeros:f32[64]"] * 3, "--arg", "64"]
    path = str(tmp_path / "t.json")
    module = str(ROOT / "examples" / "vecadd.ptx")
    assert exit_status(command, "ptx-run", [module, *args, "--timeline", path, "--timeline-events", "3"]) == 0
    assert capsys.readouterr().err == (
        f"ptx-run: {path}: 1 events of vecadd are left out; --timeline-events N keeps up to N of a grid\n"
    )
    assert exit_status(command, "ptx-run", [module, *args, "--timeline-events", "3"]) == 2
