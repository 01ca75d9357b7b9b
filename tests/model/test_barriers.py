"""Barriers with reductions (9.7.13.1). The verdicts of tests are those of testdata/litmus: Bar+red, MP+bar.red."""

import numpy as np
import pytest

import ptxtools
from ptxtools.diagnostics import PtxError
from ptxtools.model.executions import run
from tests.model.suite import read
from tests.rows import rows

KERNEL = """.version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 out)
{{
    .reg .pred %p<4>; .reg .b32 %r<9>; .reg .b64 %rd<9>;
    ld.param.u64 %rd1, [out];
    mov.u32 %r1, %tid.x;
    mul.wide.u32 %rd2, %r1, 4;
    add.s64 %rd3, %rd1, %rd2;
    setp.gt.u32 %p1, %r1, 0;
    {}
}}
"""
#: Each thread but the first adds what it has seen; all count, and agree, and the last result is that of all.
COUNTED = "st.global.u32 [%rd3], %r1; bar.red.popc.u32 %r2, 0, %p1; barrier.red.or.pred %p2, 0, !%p1; " \
          "bar.cta.red.and.pred %p3, 1, %p1; selp.u32 %r3, 10, 0, %p2; selp.u32 %r4, 100, 0, %p3; " \
          "add.u32 %r2, %r2, %r3; add.u32 %r2, %r2, %r4; ld.global.u32 %r5, [%rd1+8];"  # fmt: skip


def outcomes(body, condition, **how):
    return ptxtools.litmus_kernel(KERNEL.format(body), condition, args=[np.zeros(4, np.uint32)], **how)


@pytest.mark.parametrize("count", ["0,", "0, 32,"])
def test_a_kernel_counts_its_threads(count):
    """A count of 32 is that of a warp, however many threads it has."""
    counted = COUNTED.replace("%r2, 0,", f"%r2, {count}")
    found = outcomes(counted, "forall (P0:%r2 == 13 /\\ P3:%r2 == 13 /\\ P1:%r5 == 2)", block=4)
    assert found.holds and found.executions == 1 and not found.undefined
    for seed in range(3):  # and so does the simulator
        out = np.zeros(4, np.uint32)
        ptxtools.Device("sm_90", seed=seed).launch(
            ptxtools.loads(KERNEL.format(counted + " st.global.u32 [%rd3], %r2;"))["k"], 1, 4, [out]
        )
        assert out.tolist() == [13] * 4


@rows("body, threads, message", [
    ("bar.red.popc.u32 %r2, 0, 64, %p1;", None, "a barrier with a count of threads needs one thread of each warp"),
    ("bar.red.popc.u32 %r2, 0, %p1;", [(0, 0), (0, 2)], "a reduction of predicates needs all threads of the CTA"),
    ("bar.cta.sync 1, 64;", None, "a barrier with a count of threads needs one thread of each warp"),
])  # fmt: skip
def test_what_kernels_leave_open_is_refused(body, threads, message):
    with pytest.raises(PtxError) as caught:
        outcomes(body, "exists (P0:%r2 == 1)", block=4, threads=threads)
    assert message in caught.value.diagnostics[0].message


@rows("instruction", ["bar.red.popc.pred r0, 0, 1", "bar.red.xor.pred r0, 0, 1", "bar.red r0, 0, 1",
                      "bar.red.and.pred r0, 0", "bar.red.and.pred r0, 0, 1, 1, 1", "bar.red.and.pred r0, 0, !1, 1",
                      "bar.warp.red.and r0, 0, 1"])  # fmt: skip
def test_other_forms_are_refused(instruction):
    with pytest.raises(PtxError):
        read(f"PTX t\n{{ x = 0; }}\nP0@cta 0,gpu 0 ;\n{instruction} ;\n")


@rows("other, undefined", [("bar.sync 0", True), ("bar.arrive 0", True), ("bar.sync 1", False),
                           ("bar.red.or r0, 0, 0", False)])  # fmt: skip
def test_who_mixes_reductions_with_other_forms_is_undefined(other, undefined):
    found = run(
        read(f"PTX t\n{{ x = 0; }}\nP0@cta 0,gpu 0 | P1@cta 0,gpu 0 ;\nbar.red.and.pred r0, 0, 1 | {other} ;\n")
    )
    assert found.executions == 1 and found.undefined == undefined


def test_values_in_files_of_tests():
    """The predicate may be a number, a register or its opposite; any value but 0 is true."""
    text = """PTX t
    { x = 5; P1:r9 = 3; }
    P0@cta 0,gpu 0                | P1@cta 0,gpu 0                 ;
    ld.weak r0, x                 | barrier.cta.red.popc r1, 0, r9 ;
    barrier.red.popc.u32 r1, 0, r0 | bar.red.or.pred p2, 0, !r9     ;
    bar.red.or.pred p2, 0, !r0     |                                ;
    forall (P0:r1 == 2 /\\ P1:r1 == 2 /\\ P0:p2 == 0)"""
    assert run(read(text)).holds
