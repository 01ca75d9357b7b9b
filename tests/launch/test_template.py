"""Launch files that are written for a kernel (`ptx-run --new-launch`): they run as they are, and say so if not."""

from __future__ import annotations

import contextlib
import tomllib
from pathlib import Path
from typing import Any

import pytest

from ptxtools.cli.common import exit_status
from ptxtools.cli.run import command

ROOT = Path(__file__).parents[2]
HEAD = ".version 8.0\n.target sm_80\n.address_size 64\n"

#: Scalars of each width, an array by value, a 64-bit length, and a pointer that only a call sees.
MIXED = (
    HEAD
    + """
.func touch(.param .b64 where)
{
    .reg .b64 %d; .reg .b16 %h;
    ld.param.b64 %d, [where]; mov.b16 %h, 1; st.b16 [%d], %h; ret;
}
.visible .entry mixed(.param .u64 in, .param .u64 length, .param .f32 by, .param .b8 pair[8], .param .u64 out,
                      .param .u8 small) .reqntid 64
{
    .reg .b64 %d<9>; .reg .b32 %r<5>; .reg .f32 %f<4>; .reg .pred %p;
    ld.param.u64 %d1, [in]; ld.param.u64 %d2, [length]; ld.param.f32 %f1, [by];
    cvta.to.global.u64 %d3, %d1; mov.u32 %r1, %tid.x; cvt.u64.u32 %d4, %r1;
    setp.ge.u64 %p, %d4, %d2;
    @%p ret;
    shl.b64 %d5, %d4, 2; add.s64 %d6, %d3, %d5;
    ld.global.f32 %f2, [%d6]; mul.f32 %f3, %f2, %f1; st.global.f32 [%d6], %f3;
    ld.param.u64 %d7, [out];
    { .param .b64 a; st.param.b64 [a], %d7; call.uni touch, (a); }
    ret;
}
"""
)
STUCK = HEAD + ".visible .entry stuck(.param .u32 n) { .reg .b32 %r; trap; }\n"
TWICE = HEAD + ".visible .entry a() { ret; }\n.visible .entry b() { ret; }\n"


def written(tmp_path: Path, text: str, *more: str) -> tuple[int, Path]:
    module, file = tmp_path / "k.ptx", tmp_path / "launches" / "k.toml"
    module.write_text(text, "utf-8")
    file.parent.mkdir()
    with contextlib.chdir(tmp_path):
        return exit_status(command, "ptx-run", ["k.ptx", "--new-launch", "-o", "launches/k.toml", *more]), file


def test_the_file_runs_as_it_is(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, file = written(tmp_path, MIXED)
    assert (status, capsys.readouterr()) == (0, ("", ""))
    values: dict[str, Any] = tomllib.loads(file.read_text("utf-8"))
    assert values["module"] == "../k.ptx" and values["kernel"] == "mixed" and values["block"] == [64, 1, 1]
    assert values["args"] == [
        {"buffer": "in"}, {"value": 64}, {"value": 1.0}, {"bytes": "00" * 8}, {"buffer": "out"}, {"value": 64},
    ]  # fmt: skip
    # the first is read and written to its end; the other by a function, of which two bytes
    assert values["buffers"] == {"in": {"random": {"type": "f32[64]", "seed": 0}}, "out": {"zeros": "u8[2]"}}
    assert exit_status(command, "ptx-run", ["--launch", str(file), "--check", "memcheck"]) == 0
    assert capsys.readouterr().out == "buffer 'out': u8[2] = 1 0\n"


def test_cases_of_compilers_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for case in ("cu_dynshared_sm75", "tri_softmax_sm75", "cu_cluster_dsmem_sm90"):
        file = tmp_path / f"{case}.toml"
        module = ROOT / "testdata" / "cases" / case / "kernel.ptx"
        assert exit_status(command, "ptx-run", ["--new-launch", str(module), "-o", str(file)]) == 0
        assert exit_status(command, "ptx-run", ["--launch", str(file), "-q"]) == 0
        assert capsys.readouterr().err == "", case


def test_a_kernel_that_cannot_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, file = written(tmp_path, STUCK)
    assert status == 0 and "the launch does not run as it is: " in capsys.readouterr().err
    text = file.read_text("utf-8")
    assert (
        "# The values are guesses, and with them the run fails:" in text and "trap instruction in kernel stuck" in text
    )
    assert tomllib.loads(text)["args"] == [{"value": 128}]


@pytest.mark.parametrize(("arguments", "message"), [
    (("--new-launch", "-"), "--new-launch needs the name of a module"),
    (("--new-launch", "two.ptx"), "there are 2 kernels; name one with -k: a, b"),
    (("--new-launch", "two.ptx", "-k", "c"), "there is no kernel 'c'"),
    (("--new-launch", "two.ptx", "-k", "a", "-o", "missing/x.toml"), "missing/x.toml: cannot be written"),
    (("two.ptx", "-o", "x.toml"), "-o requires --new-launch"),
])  # fmt: skip
def test_wrong_usage(
    arguments: tuple[str, ...], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    Path("two.ptx").write_text(TWICE, "utf-8")
    assert exit_status(command, "ptx-run", list(arguments)) == 2
    assert message in capsys.readouterr().err
