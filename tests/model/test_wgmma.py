"""Products of warpgroups: what files of tests may say. The verdicts are those of testdata/litmus: Wgmma+."""

import re
from dataclasses import replace

import pytest

import ptxtools
from ptxtools.diagnostics import PtxError
from ptxtools.model.executions import run
from tests.model.features import OUT
from tests.model.launches import FEATURES
from tests.model.suite import read
from tests.rows import rows

TEST = "PTX t\n{{ .shared a = 2; .shared b = 3; P0:d = 1; P0:e = 1; }}\nP0@cta 0,gpu 0 ;\n{} ;\n{}"
MMA = "wgmma.mma_async.sync.aligned.m64n8k32.s32.s8.s8 {}, a, b"
COMMIT, WAIT = "wgmma.commit_group.sync.aligned", "wgmma.wait_group.sync.aligned {}"


def outcomes(*instructions, end=""):
    return run(read(TEST.format(" ;\n".join(instructions), end)))


@rows("instructions, message", [
    ((MMA.format("d"), "st.weak x, d"), "'d' is used before wgmma.wait_group"),
    ((MMA.format("d"), COMMIT, "add r1, d, 1"), "'d' is used before wgmma.wait_group"),
    ((MMA.format("d"), WAIT.format(0), "mov r1, d"), "'d' is used before wgmma.wait_group"),
    ((MMA.format("d"), COMMIT, MMA.format("e"), COMMIT, WAIT.format(1), "add r1, d, e"), "'e' is used before"),
    ((MMA.format("d").replace("m64n8k32.s32.s8.s8", "m64n8k16.f32.f16.bf16"),), "is not modelled (section 9.7.15"),
    ((MMA.format("d") + ", 1, 2, 1",), "expected 1 or -1 for the sign of a factor"),
    ((MMA.format("d") + ", 1, 1, 1, 0, 0, 0",), "has other operands"),
    ((MMA.format("d").replace(".aligned", ""),), "is not modelled (section 9.7.15"),
    ((WAIT.format(-1),), "expected a number of groups"),
    ((MMA.format("d").replace("a, b", "a"),), "expected ','"),
])  # fmt: skip
def test_refused(instructions, message):
    with pytest.raises(PtxError) as caught:
        outcomes(*instructions)
    assert message in caught.value.diagnostics[0].message


def test_results_may_be_used_behind_the_wait():
    found = outcomes(MMA.format("d"), COMMIT, MMA.format("e"), COMMIT, WAIT.format(1), "mov r1, d", WAIT.format(0),
                     "add r1, r1, e", end="forall (P0:r1 == 14)")  # fmt: skip
    assert found.holds and found.executions == 1


def test_results_wrap():
    """Accumulators have 32 bits."""
    text = TEST.format(" ;\n".join([MMA.format("d"), COMMIT, WAIT.format(0)]), "forall (P0:d == -2147483648)")
    assert run(read(text.replace("a = 2", "a = 0x7fffffff").replace("b = 3", "b = 1"))).holds


def _threads(tmp_path, *lanes):
    feature = replace(FEATURES["wgmma of bytes"], litmus=f"threads = {[[0, lane] for lane in lanes]}\n")
    return ptxtools.litmus_launch(str(feature.write(tmp_path)))


def test_a_factor_in_registers_needs_all_threads_of_a_row(tmp_path):
    for lanes in ((100, 101, 102), (101, 102, 103, 104)):
        with pytest.raises(PtxError, match="needs all threads of a row: lanes 4 to 7 of the warp"):
            _threads(tmp_path, *lanes)


FLAG = """    .shared .align 1024 .u32 flag[256];
    ld.param.u64 %rd1, [out];
    mov.u32 %r1, %tid.x;
    mov.u32 %r3, flag;
    shr.u32 %r3, %r3, 4;
    cvt.u64.u32 %rd4, %r3;
    setp.ne.u32 %p1, %r1, 0;
    setp.ne.u32 %p3, %r1, %r1;
    @%p1 bra READ;
    st.global.b32 [%rd1], 7;
READ:
    wgmma.fence.sync.aligned;
    wgmma.mma_async.sync.aligned.m64n8k32.s32.s8.s8 {%f0, %f1, %f2, %f3}, {%r1, %r1, %r1, %r1}, %rd4, %p3;
    wgmma.commit_group.sync.aligned;
    wgmma.wait_group.sync.aligned 0;
    ld.global.b32 %r4, [%rd1];
"""


def test_threads_of_a_row_exchange_registers_and_nothing_else(tmp_path):
    """What one of them has stored in front of a product, another one may miss behind it: it is no barrier."""
    feature = replace(
        FEATURES["wgmma of bytes"], body=FLAG, parameters=OUT, litmus="threads = [[0, 0], [0, 1], [0, 2], [0, 3]]\n",
        launch="grid = 1\nblock = 128\nargs = [{buffer='out'}]\nbuffers.out.zeros = 'u32[4]'\n",
    )  # fmt: skip
    path = feature.write(tmp_path)
    condition = 'condition = "exists (P1:%r4 == 0 /\\\\\\\\ P0:%r4 == 7)"'
    path.write_text(re.sub("condition = .*", condition, path.read_text()))
    assert ptxtools.litmus_launch(str(path)).holds
