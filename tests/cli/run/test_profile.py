"""`ptx-run --profile` and `--profile-compare`: their files, tables, and what is refused."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest

from ptxtools.cli.common import exit_status
from ptxtools.cli.run import command

ROOT = Path(__file__).parents[3]
MODULE = str(ROOT / "examples" / "vecadd.ptx")
ARGUMENTS = [
    "--grid", "1", "--block", "64", "--arg", "arange:f32[64]", "--arg", "fill:f32[64]=2", "--arg", "zeros:f32[64]",
]  # fmt: skip


def run(*arguments: str, n: str = "64") -> int:
    return exit_status(command, "ptx-run", [MODULE, *ARGUMENTS, "--arg", n, *arguments])


def test_a_table_on_standard_output(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--profile") == 0
    out = capsys.readouterr().out
    assert re.search(r"^  sectors of global reads +16$", out, re.MULTILINE)
    assert re.search(r"^ 44 +2 +4\.5 +32\.0 +\d+ +4\.0 +ld\.global\.f32 %f1, \[%rd8\]$", out, re.MULTILINE)
    assert out.endswith("argument 2: f32[64] = 2 3 4 5 6 7 8 9 …\n")


def test_files_by_their_names(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names = [str(tmp_path / f"p.{end}") for end in ("html", "json", "txt")]
    assert run(*(word for name in names for word in ("--profile", name))) == 0
    page, data, text = (Path(name).read_text(encoding="utf-8") for name in names)
    assert page.startswith("<!doctype html>") and json.loads(data)["kernels"][0]["name"] == "vecadd"
    assert text.startswith("vecadd  grid 1,1,1 block 64,1,1")
    assert capsys.readouterr().out == "argument 2: f32[64] = 2 3 4 5 6 7 8 9 …\n"


def test_a_comparison(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first, second = str(tmp_path / "a.json"), str(tmp_path / "b.json")
    assert run("--profile", first) == 0 and run("--profile", second, n="40") == 0
    capsys.readouterr()
    assert exit_status(command, "ptx-run", ["--profile-compare", first, second]) == 0
    assert re.search(r"^ +global read sectors +16 +10 +-37\.5 %$", capsys.readouterr().out, re.MULTILINE)
    assert exit_status(command, "ptx-run", ["--profile-compare", first, first]) == 0
    assert capsys.readouterr().out == "no difference\n"


@pytest.mark.parametrize(("arguments", "status", "message"), [
    (("--profile", MODULE), 2, "FILE ends in .html, .htm, .json or .txt"),
    (("--profile", "missing/p.json"), 2, "cannot write missing/p.json"),
    (("--profile-compare", "missing.json", "missing.json"), 2, "missing.json"),
    (("--profile-compare", MODULE, MODULE), 2, "this is no profile written as JSON"),
])  # fmt: skip
def test_wrong_usage(
    arguments: tuple[str, ...], status: int, message: str, capsys: pytest.CaptureFixture[str], tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    before = Path(MODULE).read_bytes()
    assert run(*arguments) == status
    assert message in capsys.readouterr().err
    assert Path(MODULE).read_bytes() == before


def test_the_example_of_the_documentation(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(ROOT)
    page = (ROOT / "docs" / "running.md").read_text(encoding="utf-8")
    found = re.search(r"^    ptx-run ((?:.*\\\n)*.*--profile -)\n\n((?:    .*\n)+)", page, re.MULTILINE)
    assert found is not None
    assert exit_status(command, "ptx-run", shlex.split(found[1].replace("\\\n", ""))) == 0
    printed = capsys.readouterr().out.splitlines()
    shown = [line[4:] for line in found[2].splitlines()]
    assert [line for line in printed if line in shown] == shown
