"""`ptx-run --coverage`: its files, and what is refused."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest

from ptxtools.cli.common import exit_status
from ptxtools.cli.run import command

KERNEL = """.version 7.0
.target sm_75
.address_size 64
.visible .entry k(.param .u64 x) {
    .reg .u64 %a; .reg .u32 %v;
    ld.param.u64 %a, [x];
    ld.global.u32 %v, [%a];
    ret;
}
"""


@pytest.fixture
def module(tmp_path: Path) -> str:
    path = tmp_path / "k.ptx"
    path.write_text(KERNEL)
    return str(path)


def run(module: str, *arguments: str, argument: str = "zeros:u32[1]") -> int:
    return exit_status(command, "ptx-run", [module, "--grid", "1", "--block", "2", "--arg", argument, *arguments])


def test_three_forms_by_the_name(module: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lcov, text, data = (str(tmp_path / name) for name in ("a.info", "a.txt", "a.json"))
    assert run(module, "--coverage", lcov, "--coverage", text, "--coverage", data) == 0
    assert f"SF:{module}\n" in Path(lcov).read_text() and "DA:7,1\n" in Path(lcov).read_text()
    assert "         1            2      7 |     ld.global.u32 %v, [%a];\n" in Path(text).read_text()
    assert json.loads(Path(data).read_text())["files"][0]["instructions"][1]["threads"] == 2
    captured = capsys.readouterr()
    assert captured.err.count("lines 3 of 3 (100.0 %), branch ways 0 of 0, guards mixed 0 of 0\n") == 3
    assert "coverage" not in captured.out


def test_runs_add_up(module: str, tmp_path: Path) -> None:
    first, both = tmp_path / "a.json", tmp_path / "b.info"
    assert run(module, "--coverage", str(first)) == 0
    assert run(module, "--coverage", str(both), "--coverage-from", str(first)) == 0
    assert "DA:7,2\n" in both.read_text()


def test_a_run_that_traps_leaves_its_coverage(module: str, tmp_path: Path) -> None:
    out = tmp_path / "a.info"
    assert run(module, "--coverage", str(out), argument="64") == 1
    assert "DA:7,1\nDA:8,0\n" in out.read_text()


@pytest.mark.parametrize(("arguments", "message"), [
    (("--coverage-from", "a.json"), "--coverage-from requires --coverage"),
    (("--coverage", "t", "--coverage-from", "missing.json"), "missing.json"),
    (("--coverage", "t", "--coverage-from", "k.ptx"), "k.ptx: this is no coverage written as JSON"),
    (("--coverage", "missing/t"), "cannot write missing/t"),
])  # fmt: skip
def test_wrong_usage(
    module: str, arguments: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str], tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    assert run(module, *arguments) == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "t").exists()


def test_the_example_of_the_documentation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    root = Path(__file__).parents[3]
    (tmp_path / "examples").symlink_to(root / "examples")
    monkeypatch.chdir(tmp_path)  # the example writes a file
    page = (root / "docs" / "running.md").read_text(encoding="utf-8")
    found = re.search(r"^    ptx-run ((?:.*\\\n)*.*--coverage - .*)\n\n((?:    .*\n)+)", page, re.MULTILINE)
    assert found is not None
    assert exit_status(command, "ptx-run", shlex.split(found[1].replace("\\\n", ""))) == 0
    printed = capsys.readouterr().out.splitlines()
    shown = [line[4:] for line in found[2].splitlines()]
    assert [line for line in printed if line in shown] == shown
