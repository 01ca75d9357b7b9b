"""The checkers' reports as text, objects, JSON, SARIF and GitHub annotations, and the comments that silence them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ptxtools
from ptxtools.cli.common import exit_status
from ptxtools.cli.run import command
from tests.rows import rows

from . import bugs
from .programs import HEAD, HEAP
from .programs import run as launched

KERNEL = (
    HEAD
    + """.visible .entry k(.param .u64 a) {
  .reg .b64 %a; .reg .b32 %r<4>;
  .loc 1 7 0
  mov.u32 %r1, %tid.x; ld.param.u64 %a, [a];
  ld.shared.u32 %r2, [sh];  // one
  st.global.u32 [%a+64], %r2;  // two
  ret; }
  .file 1 "kernel.cu"
"""
)


def run(folder: Path, text: str, *options: str) -> int:
    path = folder / "k.ptx"
    path.write_text(text)
    arguments = [str(path), "--grid", "2", "--block", "1", "--shared", "16", "--arg", "zeros:u32[16]", "-q"]
    return exit_status(command, "ptx-run", [*arguments, "--check", "memcheck,initcheck", *options])


def reports(text: str) -> list[Any]:
    device = ptxtools.Device(checks="memcheck,initcheck")
    return device.launch(ptxtools.loads(text)["k"], 2, 1, [np.zeros(16, np.uint32)], shared=16).reports


def test_json(tmp_path: Path) -> None:
    assert run(tmp_path, KERNEL, "--check-report", str(tmp_path / "out.json")) == 1
    found = json.loads((tmp_path / "out.json").read_text())["reports"]
    assert [(one["checker"], one["line"], one["count"]) for one in found] == [("initcheck", 9, 2), ("memcheck", 10, 2)]
    first = found[0]
    assert first["file"].endswith("k.ptx") and first["source"] == {"file": "kernel.cu", "line": 7}
    assert (first["kernel"], first["cta"], first["thread"], first["with"]) == ("k", [0, 0, 0], [0, 0, 0], [])
    assert {"kind", "message", "address", "space", "allocation"} <= set(first)


def test_sarif(tmp_path: Path) -> None:
    assert run(tmp_path, KERNEL, "--check-report", str(tmp_path / "out.sarif")) == 1
    (one,) = json.loads((tmp_path / "out.sarif").read_text())["runs"]
    assert one["tool"]["driver"]["name"] == "ptx-run"
    assert [result["ruleId"] for result in one["results"]] == ["initcheck", "memcheck"]
    for result in one["results"]:
        assert one["tool"]["driver"]["rules"][result["ruleIndex"]]["id"] == result["ruleId"]
    (place,) = one["results"][0]["locations"]
    assert place["physicalLocation"]["region"] == {"startLine": 9}
    assert one["results"][0]["relatedLocations"][0]["physicalLocation"]["region"]["startLine"] == 7
    assert one["results"][0]["occurrenceCount"] == 2


def test_github(tmp_path: Path, capsys: Any) -> None:
    assert run(tmp_path, KERNEL, "--format", "github") == 1
    first, second = capsys.readouterr().out.splitlines()
    assert first.startswith(f"::error file={tmp_path / 'k.ptx'},line=9,title=initcheck::")
    assert "%0A" in first and "line=10,title=memcheck::" in second
    assert run(tmp_path, KERNEL, "--format", "github", "--check-stop") == 1
    assert capsys.readouterr().out.splitlines()[-1].startswith("::error ")


def test_a_report_without_findings_and_one_of_a_trap(tmp_path: Path) -> None:
    right = KERNEL.replace("ld.shared.u32 %r2, [sh]", "mov.u32 %r2, 1").replace("+64", "")
    assert run(tmp_path, right, "--check-report", str(tmp_path / "out.json")) == 0
    assert json.loads((tmp_path / "out.json").read_text()) == {"reports": []}
    assert run(tmp_path, KERNEL, "--check-stop", "--check-report", str(tmp_path / "out.json")) == 1
    found = json.loads((tmp_path / "out.json").read_text())["reports"]
    assert [one["checker"] for one in found] == ["initcheck", "memcheck"]


def test_names_of_reports(tmp_path: Path, capsys: Any) -> None:
    assert run(tmp_path, KERNEL, "--check-report", str(tmp_path / "out.txt")) == 2
    assert "the name must end in .json or .sarif" in capsys.readouterr().err
    assert run(tmp_path, KERNEL, "--check-report", str(tmp_path / "none" / "out.json")) != 0
    assert "cannot be written" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "left"),
    [
        (KERNEL, [9, 10]),
        (KERNEL.replace("// one", "// ptx-run: disable=initcheck"), [10]),
        (KERNEL.replace("// one", "// ptx-run: disable=memcheck"), [9, 10]),
        (KERNEL.replace("  ld.shared", "  // ptx-run: disable=all\n  ld.shared"), [11]),
        (KERNEL.replace("// two", "// ptx-run: disable=initcheck, memcheck"), [9]),
        (KERNEL.replace("// two", "// ptx-run: disable-file=initcheck"), [10]),
        (KERNEL.replace("// two", "// ptx-lint: disable=memcheck"), [9, 10]),
    ],
)
def test_comments_silence(text: str, left: list[int]) -> None:
    assert [one.line for one in reports(text)] == left


def test_comments_that_name_no_checker_are_told_of(tmp_path: Path, capsys: Any) -> None:
    text = KERNEL.replace("// one", "// ptx-run: disable=initchek").replace("// two", "// ptx-run: disable=memcheck, x")
    path = tmp_path / "k.ptx"
    path.write_text(text)
    options = ["--grid", "2", "--block", "1", "--shared", "16", "--arg", "zeros:u32[16]"]
    assert exit_status(command, "ptx-run", [str(path), *options, "--check", "memcheck,initcheck"]) == 1
    notes = [line for line in capsys.readouterr().err.splitlines() if "silences nothing" in line]
    assert [line.removeprefix(f"ptx-run: {path}:").partition(": memcheck")[0] for line in notes] == [
        "9:29: this comment silences nothing: no checker is called initchek",
        "10:32: this comment silences nothing: no checker is called x",
    ]
    assert exit_status(command, "ptx-run", [str(path), *options]) != 2
    assert "silences nothing" not in capsys.readouterr().err


def test_a_silenced_leak() -> None:
    body = """.visible .entry k(.param .u64 a) { .reg .b64 %p; .param .b64 n; .param .b64 r; st.param.b64 [n], 8;
  call (r), malloc, (n); // ptx-run: disable=leakcheck
  ret; }"""
    for text, count in ((HEAD + HEAP + body, 0), (HEAD + HEAP + body.replace("ptx-run", "it"), 1)):
        device = ptxtools.Device(checks="leakcheck")
        assert len(device.launch(ptxtools.loads(text)["k"], 1, 1, [None]).reports) == count


def test_the_other_side_is_named() -> None:
    head = HEAD.replace("8.0", "8.7").replace("sm_80", "sm_90").replace(".extern .shared .align 16 .b8 sh[];\n", "")
    text = (
        head
        + """.visible .entry k(.param .u64 a) { .reg .b64 %a; .reg .b32 %r<3>; .reg .b16 %h;
  .shared .align 16 .b8 t[16]; ld.param.u64 %a, [a];
  cp.async.ca.shared.global [t], [%a], 16;
  ld.shared.u32 %r1, [t];
  cp.async.wait_all; ret; }"""
    )
    (one,) = ptxtools.Device(checks="asynccheck").launch(
        ptxtools.loads(text)["k"], 1, 1, [np.zeros(4, np.uint32)]
    ).reports  # fmt: skip
    (other,) = one.others
    assert (one.line, other.line, other.text.split()[0]) == (7, 6, "cp.async.ca.shared.global")
    assert "\n    with: <memory>:6, CTA (0,0,0): cp.async" in str(one)
    assert one.to_json()["with"][0]["line"] == 6


def test_a_launch_file_expects_asynccheck(tmp_path: Path, capsys: Any) -> None:
    head = HEAD.replace(".extern .shared .align 16 .b8 sh[];\n", "")
    (tmp_path / "k.ptx").write_text(
        head
        + """.visible .entry k(.param .u64 a) { .reg .b64 %a; .reg .b32 %r; .shared .align 16 .b8 t[16];
  ld.param.u64 %a, [a]; cp.async.ca.shared.global [t], [%a], 16; ld.shared.u32 %r, [t]; cp.async.wait_all; ret; }"""
    )
    (tmp_path / "case.toml").write_text(
        'module = "k.ptx"\ngrid = 1\nblock = 1\nargs = [{buffer="a"}]\ncheck = "asynccheck"\n'
        'expect_failure = "asynccheck"\n[buffers.a]\nzeros = "u32[4]"\n'
    )
    report = tmp_path / "out.json"
    arguments = ["--launch", str(tmp_path / "case.toml"), "--check-report", str(report)]
    assert exit_status(command, "ptx-run", arguments) == 0
    assert "failed as expected (asynccheck)" in capsys.readouterr().out
    assert [one["checker"] for one in json.loads(report.read_text())["reports"]] == ["asynccheck"]


@rows(("arguments", "said"), [
    ("k.ptx --format svg", "--format svg requires --litmus"),
    ("k.ptx --format json", "--format json requires --litmus or --list or --sweep"),
    ("k.ptx --list --format github", "--list has the formats text, json"),
    ("--litmus a.litmus --format csv", "--litmus has the formats text, json, dot, svg, cat"),
    ("--profile-compare a.json b.json --format json", "--profile-compare has no --format"),
])  # fmt: skip
def test_formats_of_other_things_are_refused(arguments: str, said: str, capsys: Any) -> None:
    assert exit_status(command, "ptx-run", arguments.split()) == 2
    assert said in capsys.readouterr().err


#: By checker: a file of testdata/bugs, and a pair of it.
SEEDED = {
    "memcheck": ("bounds", "one_behind_the_buffer"), "initcheck": ("registers", "stored_value"),
    "synccheck": ("masks", "shfl_after_exit"), "racecheck": ("shared_races", "no_barrier_between_warps"),
    "asynccheck": ("copies", "cp_async_not_waited"), "leakcheck": ("tcgen05", "permit_kept"),
}  # fmt: skip


@pytest.mark.parametrize("checker", SEEDED)
def test_launch_files_expect_each_checker(checker: str, tmp_path: Path) -> None:
    stem, name = SEEDED[checker]
    (pair,) = [pair for pair in bugs.read(bugs.FOLDER / f"{stem}.bugs") if pair.name == name]
    words = f'zeros = "u32[{pair.number("words", 64)}]"'
    (tmp_path / "case.toml").write_text(
        f'''module = "k.ptx"\ngrid = {pair.number("grid", 1)}\nblock = {pair.number("block", 64)}\ncheck = "all"
args = [{{buffer="a"}}, {{buffer="b"}}]\nexpect_failure = "{checker}"\n[buffers.a]\n{words}\n[buffers.b]\n{words}\n'''
    )
    for sign, status in ("-", 0), ("+", 1):
        (tmp_path / "k.ptx").write_text(pair.text(sign))
        assert exit_status(command, "ptx-run", ["-q", "--launch", str(tmp_path / "case.toml")]) == status, sign


#: Threads read through the texture proxy what their neighbours store; and two warps exchange words without a barrier.
TWICE = """shl.b32 %r1, %i, 2; cvt.u64.u32 %b, %r1; add.u64 %b, %a, %b; st.global.u32 [%b], %i;
  xor.b32 %r2, %r1, 128; cvt.u64.u32 %c, %r2; add.u64 %c, %a, %c;
  ld.global.nc.u32 %r3, [%c];
  mov.u32 %r4, sh; add.u32 %r5, %r4, %r1; add.u32 %r6, %r4, %r2;
  st.shared.u32 [%r5], %i;
  ld.shared.u32 %r7, [%r6];"""


@pytest.mark.parametrize(
    ("checks", "expected"),
    [
        ("all", {("racecheck", "memcheck"), ("racecheck",), ("initcheck",)}),
        ("racecheck", {("racecheck",)}),
        ("memcheck", {("memcheck",)}),
    ],
)
def test_memcheck_and_racecheck_share_a_report(checks: str, expected: set[tuple[str, ...]]) -> None:
    found = launched(TWICE, checks, shared=256).reports
    assert {one.checkers for one in found} == expected
    assert checks != "all" or any("racecheck, memcheck: race on global byte" in str(one) for one in found)


def test_a_silenced_race_leaves_what_memcheck_says_of_it() -> None:
    found = launched(TWICE.replace("[%c];", "[%c]; // ptx-run: disable=racecheck"), "all", shared=256).reports
    assert ("memcheck",) in [one.checkers for one in found]


def test_a_launch_file_that_expects_another_checker_says_which_reported(tmp_path: Path, capsys: Any) -> None:
    (tmp_path / "k.ptx").write_text(KERNEL)
    (tmp_path / "case.toml").write_text(
        'module = "k.ptx"\ngrid = [1]\nblock = [1]\nshared = 16\ncheck = "all"\nexpect_failure = "synccheck"\n'
        'args = [{buffer = "a"}]\n[buffers.a]\nzeros = "u32[32]"\n'
    )
    assert exit_status(command, "ptx-run", ["--launch", str(tmp_path / "case.toml"), "-q"]) == 1
    assert "(synccheck), but only initcheck had reports" in capsys.readouterr().err
