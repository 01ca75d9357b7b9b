"""Kernels as litmus tests: their threads, memory and arithmetic, and what is refused."""

import numpy as np
import pytest

import ptxtools
from ptxtools.cli.common import exit_status
from ptxtools.cli.run import command
from ptxtools.diagnostics import PtxError
from tests.rows import rows

HEAD = """.version 8.0
.target sm_90
.address_size 64
.global .u32 counter = 5;
.visible .entry k(.param .u64 in, .param .u64 out, .param .u32 n)
{
    .reg .pred %p<4>; .reg .b32 %r<9>; .reg .b64 %rd<9>; .reg .f32 %f<3>;
    .shared .u32 buf[4];
    ld.param.u64 %rd1, [in];
    ld.param.u64 %rd2, [out];
    ld.param.u32 %r8, [n];
    cvta.to.global.u64 %rd1, %rd1;
    mov.u32 %r1, %tid.x;
    mov.u32 %r2, %ctaid.x;
"""


def kernel(body):
    return HEAD + "    " + body.replace("; ", ";\n    ") + "\n    ret;\n}\n"


def outcomes(body, condition, grid=1, block=1, n=7, **how):
    args = [np.arange(1, 5, dtype=np.uint32), np.zeros(4, np.uint32), n]
    return ptxtools.litmus_kernel(kernel(body), condition, args=args, grid=grid, block=block, **how)


COMPUTED = [
    # instructions, what the only execution leaves
    ("ld.global.u32 %r3, [%rd1+8];", "P0:%r3 == 3"),
    ("mul.wide.u32 %rd3, %r8, 4; add.s64 %rd3, %rd3, -20; add.s64 %rd3, %rd1, %rd3; ld.global.u32 %r3, [%rd3];",
     "P0:%r3 == 3"),
    ("mad.lo.s32 %r3, %r8, 3, -1; st.global.u32 [%rd2+4], %r3;", "out[1] == 20 /\\ out[0] == 0 /\\ in[3] == 4"),
    ("mov.u32 %r3, -1; cvt.s64.s32 %rd3, %r3; cvt.u64.u32 %rd4, %r3; shr.u64 %rd5, %rd4, 31; cvt.u16.u32 %r4, %r3;",
     "P0:%rd3 == -1 /\\ P0:%rd4 == 4294967295 /\\ P0:%rd5 == 1 /\\ P0:%r4 == 65535"),
    ("mov.u32 %r3, -3; mul.wide.s32 %rd3, %r3, 5;", "P0:%rd3 == -15"),
    ("setp.lt.u32 %p1, %r8, 9; not.pred %p2, %p1; selp.b32 %r3, 1, 2, %p2;", "P0:%r3 == 2 /\\ P0:%p2 == 0"),
    ("setp.eq.u32 %p1, %r8, 7; setp.ne.u32 %p2, %r8, 7; or.pred %p3, %p1, %p2; @!%p3 st.global.u32 [%rd2], 1;",
     "out[0] == 0 /\\ P0:%p3 == 1"),
    ("atom.global.add.u32 %r3, [counter], 2; ld.global.u32 %r4, [counter];", "P0:%r3 == 5 /\\ counter == 7"),
    ("st.shared.u32 [buf+4], 9; mov.u32 %r3, buf; ld.shared.u32 %r4, [buf+4];", "P0:%r4 == 9 /\\ buf[1] == 9"),
    ("st.global.v2.u32 [%rd2+8], {%r8, 6};", "out[2] == 7 /\\ out[3] == 6"),
    ("st.global.u8 [%rd1+13], 1;", "in[3] == 0x104"),
    ("nanosleep.u32 20; bra.uni $L; st.global.u32 [%rd2], 1; $L: ld.volatile.global.u32 %r3, [%rd2];", "P0:%r3 == 0"),
]  # fmt: skip


@rows(("body", "condition"), COMPUTED)
def test_one_thread(body, condition):
    found = outcomes(body, f"forall ({condition})")
    assert found.holds and found.executions == 1 and len(found.states) == 1, found.states


def test_threads_have_their_numbers():
    body = (
        "mad.lo.s32 %r3, %r2, 2, %r1; mul.wide.s32 %rd3, %r3, 4; add.s64 %rd3, %rd2, %rd3; st.global.u32 [%rd3], %r3;"
    )
    assert outcomes(body, "forall (out[1] == 1 /\\ out[2] == 2 /\\ out[3] == 3)", grid=2, block=2).holds
    chosen = outcomes(body, "forall (out[1] == 0 /\\ out[3] == 3 /\\ P0:%r3 == 3)", 2, 2, threads=[(1, 1), (0, 0)])
    assert chosen.holds and [(thread.cta, thread.number) for thread in chosen.test.threads] == [(1, 0), (0, 1)]


MP = ("setp.ne.u32 %p1, {0}, 0; @%p1 bra $R; st.{1}.u32 [{2}], 42; st.{3}.u32 [{2}+4], 1; ret; $R: "
      "ld.{4}.u32 %r3, [{2}+4]; ld.{1}.u32 %r4, [{2}];")  # fmt: skip
STALE = "exists (P1:%r3 == 1 /\\ P1:%r4 == 0)"

PASSING = [
    ("%r2", "global", "%rd2", "release.gpu.global", "acquire.gpu.global", 2, 1, False),
    ("%r2", "global", "%rd2", "release.cta.global", "acquire.cta.global", 2, 1, True),
    ("%r2", "global", "%rd2", "volatile.global", "volatile.global", 2, 1, True),
    ("%r1", "global", "%rd2", "release.cta.global", "acquire.cta.global", 1, 2, False),
    ("%r1", "shared", "buf", "release.cta.shared", "acquire.cta.shared", 1, 2, False),
    ("%r1", "shared", "buf", "shared", "shared", 1, 2, True),
]


@rows("who, space, place, release, acquire, grid, block, allowed", PASSING)
def test_message_passing(who, space, place, release, acquire, grid, block, allowed):
    found = outcomes(MP.format(who, space, place, release, acquire), STALE, grid, block)
    assert found.allowed == allowed, found.states


def test_a_load_without_coherence_may_miss_a_store():
    body = "st.global.u32 [%rd2], 1; ld.global.nc.u32 %r3, [%rd2]; ld.global.nc.u32 %r4, [%rd1+4];"
    found = outcomes(body, "forall (P0:%r4 == 2)")
    assert found.holds and len(found.states) == 1 and outcomes(body, "exists (P0:%r3 == 0)").allowed


def test_each_cta_has_its_shared_memory():
    found = outcomes("st.shared.u32 [buf], %r2; ld.shared.u32 %r3, [buf];", "forall (P0:%r3 == 0 /\\ P1:%r3 == 1)", 2)
    assert found.holds and found.executions == 1


def test_barriers_and_loops():
    body = "mul.wide.u32 %rd3, %r1, 4; add.s64 %rd4, %rd2, %rd3; st.global.u32 [%rd4], 1; bar.sync 0; " \
           "ld.global.u32 %r3, [%rd2]; ld.global.u32 %r4, [%rd2+4];"  # fmt: skip
    assert outcomes(body, "forall (P0:%r4 == 1 /\\ P1:%r3 == 1)", block=2).holds
    spin = "$L: ld.acquire.gpu.global.u32 %r3, [%rd2]; setp.eq.u32 %p1, %r3, 0; @%p1 bra $L; st.global.u32 [%rd2+4], 1;"
    found = outcomes(spin, "exists (out[1] == 1)")
    assert found.cut and not found.executions


def test_an_index_that_was_read():
    body = "ld.global.u32 %r3, [%rd2]; mul.wide.u32 %rd3, %r3, 4; add.s64 %rd4, %rd1, %rd3; " \
           "ld.global.u32 %r4, [%rd4]; st.relaxed.gpu.global.u32 [%rd2], 2;"  # fmt: skip
    found = outcomes(body, "exists (P1:%r3 == 2 /\\ P1:%r4 == 3)", grid=2)
    assert found.allowed and {state[1] for state in found.states if state[0] == 0} == {1}


REFUSED = [
    ("add.f32 %f1, %f1, %f2;", 15, 5, "floating-point arithmetic"),
    ("shfl.sync.idx.b32 %r3, %r1, 0, 31, -1;", 15, 5, "is not modelled"),
    ("mov.u32 %r3, %clock;", 15, 5, "'%clock' is not modelled"),
    ("bar.sync 1, %r1;", 15, 5, "here a number"),
    ("ldu.global.u32 %r3, [%rd1];", 15, 5, "is not modelled (section 9.7.9.10)"),
    ("ld.global.u32 %r3, [%rd1+16];", 15, 5, "no location"),
    ("ld.global.u64 %rd3, [%rd1+12];", 15, 5, "leads out of the location"),
    ("{ .reg .b32 %r<2>; }", 15, 17, "two registers"),
    ("cvt.rn.f32.u32 %f1, %r1;", 15, 5, "is not modelled"),
]


@rows(("body", "line", "column", "message"), REFUSED)
def test_refused(body, line, column, message):
    with pytest.raises(PtxError) as caught:
        outcomes(body, "exists true")
    found = caught.value.diagnostics[0]
    assert message in found.message and (found.line, found.column) == (line, column), (found.message, found.line,
                                                                                       found.column)  # fmt: skip


def test_what_is_refused_of_a_launch():
    for how, message in (
        ({"grid": 5, "block": 4}, "20 threads are too many"),
        ({"threads": [(0, 1)]}, "no thread 1 in CTA 0"),
        ({"threads": []}, "1 to 16 different"),
        ({"kernel": "other"}, "no kernel 'other'"),
        ({"condition": "exists (out[4] == 0)"}, "no element 'out[4]'"),
        ({"condition": "exists (nobody == 0)"}, "no location 'nobody'"),
        ({"condition": "out[0] == 0"}, "expected 'exists'"),
        ({"condition": "exists (out[0] == 0) )"}, "end of the condition"),
    ):
        with pytest.raises(PtxError, match=message.replace("[", "\\[").replace("'", ".")):
            outcomes("ret;", how.pop("condition", "exists true"), **how)
    with pytest.raises(PtxError, match="takes 3 arguments, 1 given"):
        ptxtools.litmus_kernel(kernel("ret;"), "exists true", args=[1])


LAUNCH = """module = "k.ptx"
grid = [2, 1, 1]
block = [64, 1, 1]
args = [{buffer="x"}, {buffer="y", offset=4}, {value=3}]
buffers.x.zeros = "u32[4]"
buffers.y.fill = {type="u32[4]", value=9}
[litmus]
threads = [[0, 0], [1, 32]]
condition = "forall (P1:%r1 == 32 /\\\\ y[1] == 3 /\\\\ y[0] == 9)"
"""


def test_launch_files(tmp_path, capsys):
    def litmus(*more):
        status = exit_status(command, "ptx-run", ["--litmus", str(path), *more])
        said = capsys.readouterr()
        return status, said.out, said.err

    (tmp_path / "k.ptx").write_text(kernel("st.relaxed.gpu.global.u32 [%rd2], %r8;"))
    path = tmp_path / "k.toml"
    path.write_text(LAUNCH)
    status, out, _ = litmus()
    assert status == 0 and "k: ok, allowed (always), 2 executions, 1 state" in out, out
    assert litmus("--model", "6.0", "--format", "json")[0] == 0
    path.write_text(LAUNCH.replace("y[0] == 9", "y[0] == 8"))
    assert litmus()[0] == 1
    for old, new, message in (
        ("condition", "conditoin", "condition is missing"),
        ("[[0, 0], [1, 32]]", "[0]", "must be pairs"),
        ("[litmus]", "[other]", "unknown key"),
        ("k.ptx", "none.ptx", "cannot be read"),
        ("{value=3}", "{value=1.5}", "only integers and buffers"),
    ):
        path.write_text(LAUNCH.replace(old, new))
        status, _, error = litmus()
        assert status and message in error and "Traceback" not in error, (status, error)


WARPS = """.version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 o)
{
    .reg .b64 %rd<3>; .reg .b32 %r<3>; .reg .pred %p;
    .shared .u32 buf[1];
    ld.param.u64 %rd1, [o];
    prefetch.global.L2 [%rd1];
    mov.u32 %r1, %tid.x;
    setp.ne.u32 %p, %r1, 0;
    @!%p st.shared.u32 [buf], 7;
    bar.warp.sync 0xffffffff;
    ld.shared.u32 %r2, [buf];
    ret;
}
"""


@rows(("thread", "always"), [(1, True), (31, True), (32, False)])
def test_the_barrier_of_a_warp_is_for_its_threads(thread, always):
    out = np.zeros(1, np.uint32)
    outcomes = ptxtools.litmus_kernel(
        WARPS, "forall (P1:%r2 == 7)", args=[out], grid=1, block=64, threads=[(0, 0), (0, thread)]
    )
    assert outcomes.holds == always
