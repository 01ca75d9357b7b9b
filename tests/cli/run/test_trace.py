"""`ptx-run --trace`: where it goes, and what is refused."""

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
    add.u32 %v, %v, 1;
    st.global.u32 [%a], %v;
    ret;
}
"""


@pytest.fixture
def module(tmp_path: Path) -> str:
    path = tmp_path / "k.ptx"
    path.write_text(KERNEL)
    return str(path)


def run(module: str, *arguments: str) -> int:
    base = [module, "--grid", "1", "--block", "2", "--arg", "zeros:u32[1]"]
    return exit_status(command, "ptx-run", [*base, *arguments])


def test_a_file_of_text(module: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "trace.txt"
    assert run(module, "--trace", str(out)) == 0
    text = out.read_text()
    assert "k.ptx:8: add.u32 %v, %v, 1  lanes 0-1\n        %v = 1  (was 0)\n" in text
    assert capsys.readouterr().out == "argument 0: u32[1] = 1\n"


def test_json_lines_by_the_name(module: str, tmp_path: Path) -> None:
    out = tmp_path / "trace.jsonl"
    assert run(module, "--trace", str(out), "--trace-opcode", "add") == 0
    (line,) = [found for found in map(json.loads, out.read_text().splitlines()) if found["event"] == "instruction"]
    assert (line["line"], line["lanes"], line["before"], line["after"]) == (8, [0, 1], {"%v": [0, 0]}, {"%v": [1, 1]})


def test_standard_output(module: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(module, "--trace", "-", "--trace-line", "8-9", "--trace-lane", "1", "-q") == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(": ", 1)[1] for line in lines if "CTA" in line] == [
        "add.u32 %v, %v, 1  lane 1", "st.global.u32 [%a], %v  lane 1",
    ]  # fmt: skip


def test_a_run_that_traps_leaves_its_trace(module: str, tmp_path: Path) -> None:
    out = tmp_path / "trace.txt"
    status = exit_status(
        command, "ptx-run", [module, "--grid", "1", "--block", "1", "--arg", "64", "--trace", str(out)]
    )
    assert status == 1
    text = out.read_text()
    assert "ld.global.u32 %v, [%a]  lane 0\n        %v = 0\n        %a = 0x40\n" in text
    assert "trap: k CTA (0,0,0): " in text


@pytest.mark.parametrize(("arguments", "message"), [
    (("--trace-line", "3"), "--trace-line requires --trace"),
    (("--trace", "t", "--trace-line", "x"), "'x' is neither N nor N-M"),
    (("--trace", "t", "--trace-line", "9-3"), "9-3: the first is behind the last"),
    (("--trace", "t", "--trace-lane", "32"), "numbers go up to 31"),
    (("--trace", "t", "--trace-cta", "1,2,3,4"), "'1,2,3,4' is no X[,Y[,Z]]"),
    (("--trace", "t", "--trace-from", "never"), "'never' is no moment"),
    (("--trace", "t", "--trace-to", "function:f"), "function:NAME can only begin a trace"),
])  # fmt: skip
def test_wrong_usage(
    module: str, arguments: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str], tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    assert run(module, *arguments) == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "t").exists()


def test_a_file_that_cannot_be_written(module: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(module, "--trace", str(tmp_path / "missing" / "t")) == 2
    assert "cannot write" in capsys.readouterr().err


def test_the_example_of_the_documentation(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    root = Path(__file__).parents[3]
    monkeypatch.chdir(root)
    page = (root / "docs" / "running.md").read_text(encoding="utf-8")
    found = re.search(r"^    ptx-run ((?:.*\\\n)*.*--trace - .*)\n\n((?:    .*\n)+)", page, re.MULTILINE)
    assert found is not None
    arguments = shlex.split(found[1].replace("\\\n", ""))
    assert exit_status(command, "ptx-run", arguments) == 0
    shown = "".join(line[4:] + "\n" for line in found[2].splitlines())
    assert capsys.readouterr().out == shown + "argument 2: f32[64] = 2 3 4 5 6 7 8 9 …\n"
