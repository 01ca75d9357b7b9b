"""Files of known reports: which reports they silence, what is wrong with them, and how they are written."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ptxtools
from ptxtools.cli.common import exit_status
from ptxtools.cli.run import command
from ptxtools.diagnostics.findings import Finding, Site
from ptxtools.diagnostics.origin import Origin
from ptxtools.diagnostics.suppressions import parse_suppressions, written
from tests.rows import rows

from .programs import HEAD

KERNEL = (
    HEAD
    + """.visible .entry k(.param .u64 a) {
  .reg .b64 %a; .reg .b32 %r<4>;
  mov.u32 %r1, %tid.x; ld.param.u64 %a, [a];
  ld.shared.u32 %r2, [sh];
  st.global.u32 [%a+64], %r2;
  st.global.u32 [%a], %r1;
  ret; }
"""
)
#: What KERNEL is reported for, by checker and line.
ALL = [("initcheck", 8), ("memcheck", 9), ("racecheck", 10)]


def reports(device: ptxtools.Device, text: str = KERNEL) -> list[tuple[str, int | None]]:
    result = device.launch(ptxtools.loads(text)["k"], 2, 2, [np.zeros(16, np.uint32)], shared=16)
    assert len(result.reports) + len(result.silenced) == len(ALL)
    return [(finding.checker, finding.line) for finding in result.reports]


def known(text: str) -> Any:
    return parse_suppressions(text, "known.toml")


def run(folder: Path, *options: str, check: str = "all") -> int:
    path = folder / "k.ptx"
    path.write_text(KERNEL)
    arguments = [str(path), "--grid", "2", "--block", "2", "--shared", "16", "--arg", "zeros:u32[16]"]
    return exit_status(command, "ptx-run", [*arguments, "--check", check, *options])


@rows("table, left", [
    ('checker = "memcheck"', [ALL[0], ALL[2]]),
    ('checker = ["memcheck", "racecheck"]', [ALL[0]]),
    ('checker = "all"', []),
    ('checker = "all"\nkernel = "k"', []),
    ('checker = "all"\nkernel = "k?"', ALL),
    ('checker = "memcheck"\nkind = ["bounds", "freed"]', [ALL[0], ALL[2]]),
    ('checker = "memcheck"\nkind = "freed"', ALL),
    ('checker = "all"\ntext = "st.global.*"', [ALL[0]]),
    ('checker = "all"\ntext = "st.global"', ALL),
    ('checker = "all"\nvariable = "argument 0*"', [ALL[0]]),
    ('checker = "racecheck"\nvariable = "argument 1*"', ALL),
    ('checker = "all"\nat = "*:9-10"\nreason = "slots"', [ALL[0]]),
    ('checker = "all"\nat = "*:8"', ALL[1:]),
    ('checker = "all"\nat = "other.ptx"', ALL),
    ('checker = "all"\nat = "*:10"\nwith = "*:10"', ALL[:2]),  # reports of one line have no other side
])  # fmt: skip
def test_what_a_table_silences(table: str, left: list[tuple[str, int]]) -> None:
    device = ptxtools.Device(checks="all", suppressions=known(f"[[suppress]]\n{table}\n"))
    assert reports(device) == left


def finding(**more: Any) -> Finding:
    other = Site("/a/b/c.ptx", 20, "ld.shared.u32 %r1, [x]", source=Origin("c.cu", 5))
    return Finding("racecheck", "a race", "_Z3sumPf", file="/a/b/c.ptx", line=10, others=(other,), kind="order",
                   allocation="variable 'x', byte 4: 64 bytes at shared 0x0", **more)  # fmt: skip


@rows("table, silent", [
    ('kernel = "sum(*"', True),
    ('kernel = "_Z3sumPf"', True),
    ('variable = "x"', True),
    ('variable = "y"', False),
    ('at = "c.ptx:10"', True),
    ('at = "b/c.ptx:20"', True),
    ('at = "/a/*/c.ptx"', True),
    ('at = "ptx:10"', False),
    ('at = "c.cu:5"', True),
    ('at = "c.cu:6-9"', False),
    ('at = "c.ptx:20"\nwith = "c.ptx:10"', True),
    ('at = "c.ptx:10"\nwith = "c.ptx:10"', False),
    ('at = "c.cu:5"\nwith = "c.ptx:10"', True),
    ('text = "ld.shared.*"', True),
    ('kind = "scope"', False),
])  # fmt: skip
def test_both_sides_of_a_race(table: str, silent: bool) -> None:
    assert known(f'[[suppress]]\nchecker = "racecheck"\n{table}\n').silences(finding()) is silent


@rows("text, message", [
    ("[[suppress]\n", "not a TOML file: "),
    ("x = 1\n", "unknown key 'x'; tables are [[suppress]]"),
    ("suppress = 1\n", "suppress must be tables: [[suppress]]"),
    ('# one\n[[suppress]]\nkind = "x"\n', ":2: checker: checker is missing: memcheck, "),
    ('[[suppress]]\nchecker = "all"\n\n[[suppress]]\nchecker = "all"\n x = "y"\n', ":6: x: unknown key 'x' (known: "),
    ('[[suppress]]\nchecker = ["all", "x"]\n', ":2: checker: there is no checker 'x'; there are memcheck, "),
    ('suppress = [{checker = "x"}]\n', ": suppress[0]: checker: there is no checker 'x'"),
    ('[[suppress]]\nchecker = "all"\nkind = []\n', ":3: kind: must be a word or a list of words"),
    ('[[suppress]]\nchecker = "all"\n"at" = 7\n', ":3: at: must be a text"),
    ('[[suppress]]\nchecker = "all"\nat = ""\n', ":3: at: must be a text"),
    ("a = " + "[" * 100_000, "not a TOML file: "),
    ("a = " + "9" * 5_000, "not a TOML file: "),
])  # fmt: skip
def test_what_is_wrong_with_a_file(text: str, message: str) -> None:
    with pytest.raises(ptxtools.LaunchError) as caught:
        known(text)
    assert str(caught.value).startswith("known.toml:") and message in str(caught.value)


def test_a_file_that_cannot_be_read(tmp_path: Path, capsys: Any) -> None:
    with pytest.raises(ptxtools.LaunchError, match=r"none\.toml: cannot be read"):
        ptxtools.Device(suppressions=str(tmp_path / "none.toml"))
    (tmp_path / "bytes.toml").write_bytes(b"\xff\xff")
    for name in ("none.toml", "bytes.toml", "a\0b", "."):
        assert run(tmp_path, "--check-suppressions", str(tmp_path / name)) == 2
        assert "cannot be read" in capsys.readouterr().err


def test_what_is_written_silences(tmp_path: Path, capsys: Any) -> None:
    """A run's reports are added to the file once, and what stood there stays."""
    path = tmp_path / "known.toml"
    path.write_text('# ours\n[[suppress]]\nchecker = "initcheck"\n')
    assert run(tmp_path, "--check-suppressions-write", str(path)) == 1
    text = path.read_text()
    assert text.startswith("# ours\n") and text.count("[[suppress]]") == 3
    assert run(tmp_path, "--check-suppressions-write", str(path)) == 1
    assert path.read_text() == text
    capsys.readouterr()
    assert run(tmp_path, "--check-suppressions", str(path)) == 0
    assert capsys.readouterr().err == f"ptx-run: {path}: 3 reports silenced\n"
    path.write_text("this is no file of ours")
    assert run(tmp_path, "--check-suppressions-write", str(path)) == 2
    assert path.read_text() == "this is no file of ours"


def test_unusual_names_are_written(tmp_path: Path) -> None:
    odd = 'a[1]*"\\\x7f\u20ac\U0001f600\n\udcff.ptx'
    one = Finding("memcheck", "a\nb\x07", "k", file=odd, line=3, kind="bounds")
    text = written([one, Finding("leakcheck", "no line")])
    text.encode()
    found = known(text)
    assert len(found.entries) == 2 and found.entries[0].silences(one)
    assert not found.entries[0].silences(Finding("memcheck", "", "k", file="a1.ptx", line=3, kind="bounds"))


def test_a_table_that_silences_nothing_is_named(tmp_path: Path, capsys: Any) -> None:
    """Where its checkers have run."""
    path = tmp_path / "known.toml"
    path.write_text('[[suppress]]\nchecker = "all"\n[[suppress]]\nchecker = "racecheck"\nat = "*:1"\n')
    assert run(tmp_path, "--check-suppressions", str(path)) == 0
    assert capsys.readouterr().err.splitlines() == [
        f"ptx-run: {path}: 3 reports silenced", f"ptx-run: {path}:3: no report is like this one",
    ]  # fmt: skip
    assert run(tmp_path, "--check-suppressions", str(path), check="memcheck") == 0
    assert capsys.readouterr().err == f"ptx-run: {path}: 1 report silenced\n"


def test_the_first_error_that_is_not_known_stops() -> None:
    second = KERNEL.replace("ret;", "st.global.u32 [%a+128], %r1; ret;")
    device = ptxtools.Device(checks="memcheck", check_stop=True,
                             suppressions=known('[[suppress]]\nchecker = "memcheck"\nat = "*:9"\n'))  # fmt: skip
    with pytest.raises(ptxtools.Trap) as caught:
        device.launch(ptxtools.loads(second)["k"], 2, 2, [np.zeros(16, np.uint32)], shared=16)
    assert (caught.value.kind, caught.value.line, caught.value.findings) == ("memcheck", 11, ())
    commented = KERNEL.replace("%r2;\n  st", "%r2;  // ptx-run: disable=memcheck\n  st")
    ptxtools.Device(checks="memcheck", check_stop=True).launch(
        ptxtools.loads(commented)["k"], 2, 2, [np.zeros(16, np.uint32)], shared=16
    )


def test_launch_files_name_them_beside_themselves(tmp_path: Path, capsys: Any) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "k.ptx").write_text(KERNEL)
    (tmp_path / "in" / "known.toml").write_text('[[suppress]]\nchecker = ["initcheck", "memcheck"]\n')
    launch = tmp_path / "in" / "case.toml"
    launch.write_text(
        'module = "k.ptx"\ngrid = 2\nblock = 2\nshared = 16\ncheck = "all"\ncheck_suppressions = "known.toml"\n'
        'args = [{buffer = "a"}]\nbuffers.a.zeros = "u32[16]"\n'
    )
    report = tmp_path / "out.json"
    assert exit_status(command, "ptx-run", ["--launch", str(launch), "--check-report", str(report)]) == 1
    assert [one["checker"] for one in json.loads(report.read_text())["reports"]] == ["racecheck"]
    assert "2 reports silenced" in capsys.readouterr().err


def test_a_silenced_race_is_no_race_free_launch() -> None:
    """There is no verdict, and what it decides is explored."""
    text = (
        HEAD
        + """.visible .entry k(.param .u64 a) {
  .reg .b64 %a; .reg .b32 %r<4>;
  mov.u32 %r1, %ctaid.x; ld.param.u64 %a, [a];
  st.global.u32 [%a], %r1;  // ptx-run: disable=racecheck
  ret; }
"""
    )
    device = ptxtools.Device(checks="racecheck")
    result = device.launch(ptxtools.loads(text)["k"], 2, 1, [np.zeros(16, np.uint32)], explore=8)
    assert (result.reports, result.verdict, len(result.silenced)) == ([], None, 1)
    assert result.explored is not None and result.explored.orders == 2 and result.explored.differs
