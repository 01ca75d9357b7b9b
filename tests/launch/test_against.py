"""Two runs of a launch compared (`ptx-run --against`): equal ones, and where unequal ones part."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from ptxtools.cli.common import exit_status
from ptxtools.cli.run import command
from tests.rows import rows

HEAD = ".version 8.0\n.target sm_90\n.address_size 64\n"
#: Each thread doubles its number, in a register or in shared memory, and stores it twice: the second time as it should.
KERNEL = (
    HEAD
    + """.visible .entry k(.param .u64 out, .param .u64 scratch)
{
    .reg .b64 %d<6>; .reg .b32 %r<8>; .reg .pred %p;
    ld.param.u64 %d1, [out]; ld.param.u64 %d2, [scratch];
    mov.u32 %r1, %tid.x;
    setp.gt.u32 %p, %r1, 3;
    shl.b32 %r2, %r1, 1;
    mul.wide.u32 %d3, %r1, 4;
    add.u64 %d4, %d1, %d3;
    st.global.u32 [%d4], %r1;
    mov.u32 %r3, %r2;
    MORE
    st.global.u32 [%d4], %r3;
    ret;
}
"""
)
SAME = KERNEL.replace("MORE", "")
#: Wrong for threads 4 and up, and shorter by a register.
WRONG = KERNEL.replace("MORE", "@%p add.u32 %r3, %r2, 100;")
PRINTS = """.extern .func (.param .b32 r) vprintf (.param .b64 f, .param .b64 a);
.global .align 1 .b8 text[4] = {104, 105, 10, 0};
"""
CALL = """{ .param .b64 f; .param .b64 a; .param .b32 r;
    mov.u64 %d5, text; cvta.global.u64 %d5, %d5; st.param.b64 [f], %d5; mov.u64 %d5, 0; st.param.b64 [a], %d5;
    call.uni (r), vprintf, (f, a); }"""
#: The result is copied out of shared memory by the bulk engine.
BULK = (
    HEAD
    + """.visible .entry k(.param .u64 out, .param .u64 scratch) .reqntid 1
{
    .reg .b64 %d<4>; .reg .b32 %r<4>; .shared .align 16 .b8 s[32];
    ld.param.u64 %d1, [out]; mov.u32 %r1, s; mov.u32 %r2, VALUE;
    st.shared.v4.u32 [%r1], {%r2, %r2, %r2, %r2}; fence.proxy.async.shared::cta;
    cp.async.bulk.global.shared::cta.bulk_group [%d1], [%r1], 16;
    cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;
    ret;
}
"""
)

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def compared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Compare two texts; gives the status and both outputs."""
    monkeypatch.chdir(tmp_path)

    def run(first: str, second: str = "", *more: str) -> tuple[int, str, str]:
        Path("a.ptx").write_text(first, "utf-8")
        Path("b.ptx").write_text(second, "utf-8")
        shape = ["--grid", "1", "--block", "8", "--arg", "zeros:u32[8]", "--arg", "zeros:u32[1]"]
        other = ["--against", "b.ptx"] if second else []
        return exit_status(command, "ptx-run", ["a.ptx", *shape, *other, *more]), *capsys.readouterr()

    return run


def test_equal_runs(compared: Run) -> None:
    said = "no difference in 2 buffers and what is printed\n"
    assert compared(SAME, SAME.replace("%r3, %r2;", "%r3, %r2; mov.u32 %r4, 1;")) == (0, said, "")
    assert compared(SAME, "", "--against", "engine=reference", "--against", "seed=5") == (0, said, "")


def test_the_first_store_that_differs(compared: Run) -> None:
    status, out, err = compared(SAME, WRONG)
    assert (status, err) == (1, "")
    assert out.splitlines()[:4] == [
        "argument 0: 4 of 8 elements are not equal exactly",
        "    [4]  8 (a.ptx)  108 (b.ptx)",
        "    [5]  10 (a.ptx)  110 (b.ptx)",
        "    [6]  12 (a.ptx)  112 (b.ptx)",
    ]
    part = out[out.index("the runs part") :]
    # not the first store of the thread, which is the same in both; the guard and the address are not followed
    lines = [re.sub(r"%d4 = 0x\w+", "%d4 = …", line) for line in part.splitlines()]
    assert lines == [
        "the runs part at element [4] of argument 0",
        "    a.ptx: CTA (0,0,0), thread (4,0,0) stores 0x00000008",
        "        a.ptx:16: st.global.u32 [%d4], %r3   %d4 = …; %r3 = 8",
        "        a.ptx:14: mov.u32 %r3, %r2   %r3 = 8; %r2 = 8",
        "        a.ptx:10: shl.b32 %r2, %r1, 1   %r2 = 8; %r1 = 4",
        "        a.ptx:8: mov.u32 %r1, %tid.x   %r1 = 4",
        "    b.ptx: CTA (0,0,0), thread (4,0,0) stores 0x0000006c",
        "        b.ptx:16: st.global.u32 [%d4], %r3   %d4 = …; %r3 = 108",
        "        b.ptx:15: @%p add.u32 %r3, %r2, 100   %p = 1; %r3 = 108; %r2 = 8",
        "        b.ptx:10: shl.b32 %r2, %r1, 1   %r2 = 8; %r1 = 4",
        "        b.ptx:8: mov.u32 %r1, %tid.x   %r1 = 4",
    ]


def test_a_store_that_is_missing(compared: Run) -> None:
    _, out, _ = compared(SAME, SAME.replace("st.global.u32 [%d4], %r3;", "@%p st.global.u32 [%d4], %r3;"))
    assert "the runs part at element [1] of argument 0" in out
    assert "    b.ptx: nothing is stored there any more" in out


def test_asynchronous_writes(compared: Run) -> None:
    status, out, _ = compared(BULK.replace("VALUE", "1"), BULK.replace("VALUE", "2"), "--block", "1")
    assert status == 1 and "a.ptx: asynchronous work writes 0x00000001" in out


def test_output_and_failures(compared: Run) -> None:
    prints = SAME.replace(".visible", PRINTS + ".visible").replace("    ret;", CALL + "\n    ret;")
    status, out, _ = compared(prints, prints.replace("104, 105", "104, 111"))
    assert status == 1 and out.startswith("the kernels' output differs (a.ptx, b.ptx)\n    from line 1 on:\n    -hi")
    traps = SAME.replace("    ret;", "    trap;")
    status, out, _ = compared(SAME, traps)
    assert (
        status == 1 and "the runs end in different ways\n    a.ptx: runs to its end\n    b.ptx: b.ptx:17: trap:" in out
    )
    assert compared(traps, traps.replace("MORE", ""))[0] == 0


def test_tolerances(compared: Run) -> None:
    text = SAME.replace("st.global.u32 [%d4], %r3;", "cvt.rn.f32.u32 %f1, %r3; st.global.f32 [%d4], %f1;")
    text = text.replace(".reg .pred %p;", ".reg .pred %p; .reg .f32 %f1;")
    other = text.replace("st.global.f32", "mul.f32 %f1, %f1, 0f3F800001; st.global.f32")
    floats = ("--arg", "zeros:f32[8]", "--arg", "null")
    for more, status in ((("--rtol", "1e-5"), 0), ((), 1)):
        Path("c.ptx").write_text(text, "utf-8")
        Path("d.ptx").write_text(other, "utf-8")
        words = ["c.ptx", "--grid", "1", "--block", "8", *floats, "--against", "d.ptx", *more]
        assert exit_status(command, "ptx-run", words) == status


@rows(("arguments", "message"), [
    (("--against", "missing.ptx"), "missing.ptx: cannot be read"),
    (("--against", "engine=fast"), "--against: engine: must be native or reference, not 'fast'"),
    (("--against", "seed=1,2"), "--against: 'seed=1,2' has 2 values"),
    (("--against", "seed=1", "--save", "0=x.npy"), "--against and --save exclude each other"),
    (("--against", "seed=1", "--profile"), "--against and --profile exclude each other"),
])  # fmt: skip
def test_wrong_usage(compared: Run, arguments: tuple[str, ...], message: str) -> None:
    status, out, err = compared(SAME, "", *arguments)
    assert (status, out) == (2, "") and message in err
