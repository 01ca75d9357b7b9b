"""Sessions of the debugger, forwards and backwards, on both engines."""

from __future__ import annotations

import os
import re
import shlex
from pathlib import Path

import pytest

from tests.observe.debug.sessions import ROOT, answers, session

ENGINES = pytest.mark.parametrize("engine", ["native", "reference"])
BACK = pytest.mark.skipif(not hasattr(os, "fork"), reason="goes back, which needs fork")
#: out[t] = t < 8 ? f(t) : 100, with f(x) = 3x + 1.
KERNEL = """.version 8.0
.target sm_80
.address_size 64
.func (.reg .u32 %o) f(.reg .u32 %i) {
    mad.lo.u32 %o, %i, 3, 1;
    ret;
}
.visible .entry k(.param .u64 out) {
    .reg .u32 %t, %v; .reg .u64 %a, %w; .reg .pred %p; .shared .align 8 .u64 bar; .shared .u32 s[64];
    ld.param.u64 %a, [out];
    mov.u32 %t, %tid.x;
    mul.wide.u32 %w, %t, 4;
    add.u64 %a, %a, %w;
    mov.u32 %v, 100;
    setp.ge.u32 %p, %t, 8;
    @%p bra DONE;
    call (%v), f, (%t);
DONE:
    bar.sync 0;
    st.global.u32 [%a], %v;
    mul.wide.u32 %w, %t, 4;
    st.shared.u32 [s], %v;
    ret;
}
"""


@pytest.fixture
def module(tmp_path: Path) -> str:
    path = tmp_path / "k.ptx"
    path.write_text(KERNEL)
    return str(path)


def debug(module: str, engine: str, *commands: str, more: tuple[str, ...] = ()) -> list[list[str]]:
    base = [module, "--grid", "1", "--block", "64", "--arg", "zeros:u32[64]", "--debug", "--engine", engine, *more]
    status, output, errors = session(base, list(commands))
    assert status == 0 and not errors, errors
    return answers(output)


def line(answer: list[str]) -> int:
    """The PTX line at which the session has stopped."""
    return int(answer[-1].split("\t")[0])


@BACK
@ENGINES
def test_steps_both_ways(module: str, engine: str) -> None:
    said = debug(module, engine, "break f", "c", "where", "finish", "rs", "rs", "rs", "disable 1", "next", "rn", "rc")
    assert said[0][0].startswith("CTA (0,0,0) warp 0 lanes 0-31, in k at k.ptx:10") and line(said[0]) == 10
    assert said[1] == ["breakpoint 1 at k.ptx:5"]
    assert said[2][0] == "breakpoint 1" and "lanes 0-7, in f" in said[2][1]
    assert said[3] == ["#0  f at k.ptx:5", "#1  k at k.ptx:17"]
    assert [line(one) for one in said[4:8]] == [19, 6, 5, 17]
    assert [line(one) for one in said[9:11]] == [19, 17]
    assert said[11][0] == "the run began here: there is nothing earlier" and line(said[11][:3]) == 10
    assert said[-1][-1].startswith("argument 0: u32[64] = 1 4 7 10 13 16 19 22")


@BACK
@ENGINES
def test_what_is_set_stays_and_what_came_before_does_not_know_it(module: str, engine: str) -> None:
    said = debug(
        module, engine, "break 20 warp 1", "c", "rs 2", "p %v", "c", "set %v = 7", "s", "rs", "p %v",
        "set u32[%a+8] = 9", "x/4w %a", "rc", "p %v", "delete",
    )  # fmt: skip
    assert said[4] == ["%v = 100"] and said[6] == [] and said[9] == ["%v = 7"]
    assert said[11] == ["generic 0x10000080:  0x0  0x0  0x9  0x0"]
    assert said[13] == ["%v = 0"]  # before it was set
    assert said[-1][-1].startswith("argument 0: u32[64] = 1 4 7 10")


@BACK
@ENGINES
def test_watchpoints(module: str, engine: str) -> None:
    said = debug(
        module, engine, "until 20", "watch u32[%a]", "watch u32@shared[s]", "watch %v", "c", "c", "info b", "rc",
        "delete 2", "c", "c",
    )  # fmt: skip
    assert said[5][0].startswith("watchpoint 2: u32[%a]: 0 -> ")
    assert said[5][1].startswith("  after k.ptx:20: st.global.u32 [%a], %v")
    assert said[6][0].startswith("watchpoint 3: u32@shared[s]: 0 -> ") and "k.ptx:22: st.shared" in said[6][1]
    assert said[7][1].split() == ["2", "watch", "yes", "1", "u32[%a]"]
    assert line(said[8]) == line(said[5]) and said[10] == said[6]
    assert said[11][0] == "the grid has ended" or "watchpoint" in said[11][0]


@ENGINES
def test_looks(module: str, engine: str) -> None:
    said = debug(
        module, engine, "break 20 if %tid.x == 35", "c", "registers %t %v lanes 1-3", "info warps", "focus warp 0",
        "info registers", "p/x %a", "focus thread 40", "p %laneid + 1", "list 4", "why", "info line", "p nothing",
        "break nowhere", "bogus", "p ((1", "x/3w @shared 0x100000", "focus warp 9", "step foo", "delete 77", "run",
    )  # fmt: skip
    assert said[2][0] == "breakpoint 1" and "warp 1" in said[2][1]
    assert said[3] == ["lane  %t   %v", "   1  33  100", "   2  34  100", "   3  35  100"]
    assert said[4][0].startswith("  CTA (0,0,0) warp 0 lanes 0-31 runs, at k.ptx:") and said[4][1].startswith("* CTA")
    assert said[6][0].split() == ["%a", str(0x1000000C)] and said[7] == ["%a = 0x1000000c"]
    assert said[8][0] == "CTA (0,0,0) warp 1 lane 8" and said[9] == ["%laneid + 1 = 9"]
    assert said[10][3].endswith(".func (.reg .u32 %o) f(.reg .u32 %i) {")
    assert said[11][-1] == "it does not wait"
    assert re.fullmatch(r"moment \d+", said[12][0])
    assert said[13] == ["no register nothing is known at this line"]
    assert said[14] == ["the kernel has no line, label or function 'nowhere'"]
    assert said[15] == ["'bogus' is no command; help lists them"]
    assert said[16] == ["')' is missing in '((1', before the end"]
    assert "out of bounds" in said[17][0] and "not resident" in said[18][0]
    assert said[19] == ["step [lane|warp|cta|grid|line|barrier] [N]"] and said[20] == ["there is no breakpoint 77"]


@BACK
@ENGINES
def test_a_trap_is_stopped_at(module: str, engine: str, tmp_path: Path) -> None:
    bad = tmp_path / "bad.ptx"
    bad.write_text(KERNEL.replace("mul.wide.u32 %w, %t, 4;\n    st.shared", "trap;\n    st.shared"))
    base = [str(bad), "--grid", "1", "--block", "64", "--arg", "zeros:u32[64]", "--debug", "--engine", engine]
    status, output, errors = session(base, ["c", "info line", "rs", "c", "c"])
    said = answers(output)
    assert said[1][0] == "trap instruction" and line(said[1]) == 21
    assert line(said[3]) == 20 and line(said[4]) == 21 and said[5] == []
    assert status == 1 and "bad.ptx:21: trap: trap instruction" in errors


@ENGINES
def test_a_report_is_stopped_at(module: str, engine: str, tmp_path: Path) -> None:
    bad = tmp_path / "bad.ptx"
    bad.write_text(KERNEL.replace("add.u64 %a, %a, %w;", "add.u64 %a, %a, 1024;"))
    base = [str(bad), "--grid", "1", "--block", "64", "--arg", "zeros:u32[64]", "--check", "memcheck", "--debug"]
    status, output, _ = session([*base, "--engine", engine], ["c", "p/x %a", "quit"])
    said = answers(output)
    assert said[1][0].startswith("memcheck: global write of 4 bytes") and line(said[1]) == 20
    assert said[2] == ["%a = 0x10000400"] and status == 0


def test_why_a_warp_waits(module: str) -> None:
    said = debug(module, "native", "break 19", "c", "c", "focus warp 0", "why", "info barriers", "quit")
    assert "warp 1" in said[3][1]
    waits = "CTA (0,0,0) warp 0 lanes 0-31 waits at barrier 0: 32 of 64 threads came, 32 are missing"
    assert said[5] == [f"{waits}, at k.ptx:19: bar.sync 0", "not there:",
                       "  CTA (0,0,0) warp 1 lanes 0-31 runs, at k.ptx:19: bar.sync 0"]  # fmt: skip
    assert said[6][0] == "CTA (0,0,0): 32 of 64 threads came to barrier 0"


@pytest.mark.share(2)
@BACK
@pytest.mark.parametrize("case", ["cu_cluster_dsmem_sm90", "tri_attn_sm80"])
def test_a_case_meets_its_expectations_after_going_back(case: str) -> None:
    commands = ["break barrier", "c", "c", "info warps", "rs 3", "step warp 2", "rc", "delete", "step line", "c"]
    status, output, errors = session(["--launch", f"testdata/cases/{case}/case.toml", "--debug"], commands)
    said = answers(output)
    assert status == 0 and not errors
    assert said[2][0] == said[3][0] == "breakpoint 1" and len(said[4]) > 3
    assert said[-1][0] == "the grid has ended"


def _sessions() -> list[str]:
    page = (ROOT / "docs" / "debugging.md").read_text(encoding="utf-8")
    return re.findall(r"^    \$ ptx-run (?:.*\\\n)*.*--debug\n(?:    .*\n)*", page, re.MULTILINE)


@BACK
@pytest.mark.parametrize("number", range(len(_sessions())))
def test_the_sessions_of_the_page(number: int) -> None:
    lines = [row[4:] for row in _sessions()[number].splitlines()]
    first = next(n for n, row in enumerate(lines) if not row.endswith("\\"))
    command = shlex.split(" ".join(row.rstrip("\\") for row in lines[: first + 1]))[2:]
    commands = [row.removeprefix("(ptx) ") for row in lines[first + 1 :] if row.startswith("(ptx) ")]
    _, output, errors = session(command, commands)
    assert (output + errors).splitlines() == lines[first + 1 :]
