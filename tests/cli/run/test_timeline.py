"""`ptx-run --timeline`: where it goes, and what is refused."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest

from ptxtools.cli.common import exit_status
from ptxtools.cli.run import command

ROOT = Path(__file__).parents[3]
BASE = [
    str(ROOT / "examples" / "vecadd.ptx"), "--grid", "1", "--block", "64", "--arg", "arange:f32[64]",
    "--arg", "fill:f32[64]=2", "--arg", "zeros:f32[64]",
]  # fmt: skip


def test_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "t.json"
    assert exit_status(command, "ptx-run", [*BASE, "--arg", "64", "--timeline", str(out)]) == 0
    events = json.loads(out.read_text())["traceEvents"]
    assert [event["args"]["warp"] for event in events if event["name"] == "vecadd"] == [0, 1]
    assert capsys.readouterr().out == "argument 2: f32[64] = 2 3 4 5 6 7 8 9 …\n"


def test_standard_output_and_a_trap(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = [*BASE[:-1], "null", "--arg", "64", "--timeline", "-"]
    assert exit_status(command, "ptx-run", arguments) == 1
    events = json.loads(capsys.readouterr().out)["traceEvents"]
    assert any(event["name"].startswith("trap: global write") for event in events)


def test_a_file_that_cannot_be_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = [*BASE, "--arg", "64", "--timeline", str(tmp_path / "missing" / "t")]
    assert exit_status(command, "ptx-run", arguments) == 2
    assert "cannot write" in capsys.readouterr().err


def test_the_example_of_the_documentation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = (ROOT / "docs" / "running.md").read_text(encoding="utf-8")
    found = re.search(r"^    ptx-run (.*) --timeline tma\.json$", page, re.MULTILINE)
    assert found is not None
    monkeypatch.chdir(ROOT)
    out = tmp_path / "tma.json"
    assert exit_status(command, "ptx-run", [*shlex.split(found[1]), "--timeline", str(out)]) == 0
    names = {event["name"] for event in json.loads(out.read_text())["traceEvents"]}
    assert "completes" in names and any(name.startswith("wait: mbarrier") for name in names)
