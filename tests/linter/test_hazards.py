"""Rules about asynchronous work, barriers and paths, beyond the examples of their pages."""

import pytest

from ptxtools.linter import lint
from ptxtools.syntax import parse

S90 = ".version 9.0\n.target sm_90a\n.address_size 64\n"
REGISTERS = """.reg .pred %p<4>; .reg .b32 %r<9>; .reg .b64 %d<5>; .reg .f32 %f<9>;
.shared .align 128 .b8 s[1024]; .shared .align 8 .b64 bar; .shared .align 8 .b64 other;
mov.b32 %r1, s; mov.b32 %r2, bar; mov.b32 %r3, other; mov.u32 %r4, %laneid; setp.lt.u32 %p1, %r4, 16;
setp.lt.u32 %p2, %r4, 32; ld.param.b64 %d1, [x]; mbarrier.init.shared.b64 [%r2], 1; bar.sync 0;
"""
WGMMA = "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f1, %f2, %f3, %f4}, %d1, %d1, 1, 1, 1, 0, 0;\n"
FROM_REGISTERS = (
    "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f1, %f2, %f3, %f4}, {%r5, %r6, %r7, %r8}, %d1, 1, 1, 1, 0;\n"
)
FENCE = "wgmma.fence.sync.aligned;\n"
COMMIT = "wgmma.commit_group.sync.aligned;\n"
COPY = "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%d1], {}, [%r{}];\n"
EXPECT = "mbarrier.arrive.expect_tx.shared.b64 _, [%r{}], {};\n"


def found(body, *, head=S90, extra=""):
    """Codes of the hazards in a kernel, but for registers that it never writes."""
    text = f"{head}{extra}.entry k(.param .b64 x)\n{{\n{REGISTERS}{body}\nret;\n}}\n"
    result = parse(text, "a.ptx")
    codes = [d.code for d in [*result.diagnostics, *lint(result.module)]]
    return [code for code in codes if code not in ("PTX520", "PTX563", "PTX562", "PTX582")]


@pytest.mark.parametrize(("body", "codes"), [
    (FENCE + WGMMA + COMMIT + "wgmma.wait_group.sync.aligned 0;\nadd.f32 %f5, %f1, %f2;", []),
    (FENCE + WGMMA + COMMIT + "add.f32 %f5, %f1, %f2;\nwgmma.wait_group.sync.aligned 0;", ["PTX588"]),
    (FENCE + WGMMA + COMMIT + WGMMA + COMMIT + "wgmma.wait_group.sync.aligned 1;\nmov.f32 %f5, %f4;", ["PTX588"]),
    (FENCE + WGMMA + COMMIT + "wgmma.wait_group.sync.aligned 1;\nmov.f32 %f5, %f4;", ["PTX588"]),
    (FENCE + WGMMA + COMMIT + "bra L;\nL: mov.f32 %f5, %f4;", []),  # another path may come to L
    (FENCE + FROM_REGISTERS + COMMIT + "mov.b32 %r5, 0;", ["PTX521", "PTX588"]),
    (FENCE + FROM_REGISTERS + COMMIT + "mov.b32 %r4, %r5;", []),  # reading A does no harm
    (WGMMA + COMMIT, ["PTX580"]),
    (FENCE + WGMMA, ["PTX581"]),
])  # fmt: skip
def test_wgmma(body, codes):
    assert found(body) == codes


@pytest.mark.parametrize(("body", "codes"), [
    (EXPECT.format(2, 64) + COPY.format(64, 2), []),
    (EXPECT.format(2, 128) + COPY.format(64, 2) + COPY.format(64, 2), []),
    (EXPECT.format(2, 64) + COPY.format(64, 2) + COPY.format(64, 2), ["PTX568"]),
    (EXPECT.format(2, 64) + EXPECT.format(3, 32) + COPY.format(64, 2) + COPY.format(16, 3), ["PTX568"]),
    (EXPECT.format(2, 64) + "bra L; L:\n" + COPY.format(16, 2), []),  # in another stretch: others may copy, too
    (EXPECT.format(2, 64) + "@%p1 " + COPY.format(16, 2), []),
    (EXPECT.format(2, 64) + COPY.format("%r5", 2), []),
])  # fmt: skip
def test_expected_bytes(body, codes):
    assert found(body) == codes


@pytest.mark.parametrize(("body", "codes"), [
    ("@%p1 bar.warp.sync 0xffffffff;", ["PTX535"]),
    ("@%p1 bar.warp.sync -1;", ["PTX535"]),
    ("@%p2 bar.warp.sync -1;", []),  # holds in all lanes
    ("@%p1 vote.sync.any.pred %p3, %p2, 0xffff;", []),
    ("@%p1 shfl.sync.idx.b32 %r5, %r4, 0, 31, -1;", ["PTX535"]),
    ("shfl.sync.idx.b32 %r5, %r4, 0, 31, 0;", ["PTX536"]),
    ("bar.warp.sync %r4;", []),
    ("bar.arrive 1, 64; bar.sync 1, 64;", []),
    ("bar.arrive 1, 64; bar.sync 1, 96; bar.sync 2, 32;", ["PTX532"]),
    ("bar.red.popc.u32 %r5, 1, 64, %p1; bar.sync 1, 96;", ["PTX532"]),
    ("bar.sync 1, %r4; bar.sync 1, 96;", []),
])  # fmt: skip
def test_collectives(body, codes):
    assert found(body) == codes


@pytest.mark.parametrize(("body", "codes"), [
    ("add.u32 %r5, %r6, 1; mov.b32 %r6, 1;", ["PTX521"]),
    ("L: add.u32 %r5, %r6, 1; mov.b32 %r6, 1; bra L;", []),  # the second time it is written
    ("@%p1 bra L; mov.b32 %r6, 1; L: add.u32 %r5, %r6, 1;", []),  # on one path it is
    ("@%p1 mov.b32 %r6, 1; add.u32 %r5, %r6, 1;", ["PTX522"]),
    ("mov.b32 %r5, %r6; mov.b32 %r6, 1;", []),
    ("@%p1 bra L; add.u32 %r5, %r6, 1; ret; L: mov.b32 %r6, 1;", ["PTX521"]),
    ("{ .reg .b32 %r6; add.u32 %r5, %r6, 1; mov.b32 %r6, 1; }", ["PTX521"]),
])  # fmt: skip
def test_registers_read_too_early(body, codes):
    assert found(body) == codes


@pytest.mark.parametrize(("extra", "codes"), [
    ("", ["PTX560"]),
    (".func wait() { cp.async.wait_all; ret; }\n", ["PTX514"]),  # it is in the module
    (".extern .func wait();\n", []),  # it may be in another
    (".extern .func (.param .b32 r) vprintf(.param .b64 a, .param .b64 b);\n", ["PTX560"]),
])  # fmt: skip
def test_what_is_missing_may_be_elsewhere(extra, codes):
    assert found("cp.async.ca.shared.global [%r1], [%d1], 4;", extra=extra) == codes


@pytest.mark.parametrize(("body", "codes"), [
    ("@%p1 bra L; bar.sync 0; L:", ["PTX530"]),
    ("@%p1 exit; bar.sync 0;", []),  # those that have ended are not waited for
    ("@%p2 bra L; bar.sync 0; L:", []),
    ("@%p1 bra L; bar.warp.sync 0xffff0000; L:", []),
    ("@!%p1 bra L; bar.warp.sync 0xffff0000; L:", ["PTX535", "PTX537"]),
    ("@%p1 exit; movmatrix.sync.aligned.m8n8.trans.b16 %r5, %r4;", ["PTX538"]),
    ("@%p1 bra L; mov.b32 %r5, 1; L: movmatrix.sync.aligned.m8n8.trans.b16 %r5, %r4;", []),
    ("@%p1 bra.uni L; mov.b32 %r5, 1; L:", ["PTX539"]),
    ("@%p2 bra.uni L; mov.b32 %r5, 1; L:", []),
    ("@%p1 mov.b32 %r5, 1; vote.sync.any.pred %p3, %p1, 0x7fffffff;", ["PTX537"]),
    ("@%p1 bra L; L: vote.sync.any.pred %p3, %p1, 0x7fffffff;", []),  # who comes to L is not known
    ("elect.sync _|%p3, -1; @%p3 bar.sync 0;", ["PTX530"]),
    ("and.b32 %r5, %r4, 1; setp.eq.u32 %p3, %r5, 1; @%p3 bar.warp.sync 0xaaaaaaaa;", []),
    ("and.b32 %r5, %r4, 1; setp.eq.u32 %p3, %r5, 1; @%p3 bar.warp.sync 0x55555555;", ["PTX535", "PTX537"]),
])  # fmt: skip
def test_divergence(body, codes):
    assert found(body) == codes


HEAP = ".extern .func (.param .b64 r) malloc (.param .b64 n);\n.extern .func free (.param .b64 p);\n"
MALLOC = "{ .param .b64 n; .param .b64 r; st.param.b64 [n], 64; call (r), malloc, (n); ld.param.b64 %d2, [r]; }\n"
FREE = "{{ .param .b64 p; st.param.b64 [p], {0}; call free, (p); }}\n"


@pytest.mark.parametrize(("body", "wrong"), [
    (MALLOC + "st.b64 [%d2+56], 1; ld.b32 %r1, [%d2];" + FREE.format("%d2"), 0),
    (MALLOC + "st.b64 [%d2+64], 1; ld.b32 %r1, [%d2+-4];" + FREE.format("%d2"), 2),
    (MALLOC + "add.u64 %d3, %d2, 32; st.global.v4.b32 [%d3+32], {%r1, %r1, %r1, %r1};" + FREE.format("%d2"), 1),
    (MALLOC + "add.u64 %d3, %d2, %d1; st.b32 [%d3+99], 1;" + FREE.format("%d2"), 0),  # anywhere
    (MALLOC + FREE.format("%d2") + MALLOC + FREE.format("%d2"), 0),  # another block
    (MALLOC + FREE.format("%d2") + "st.shared.b32 [%d2], 1;", 0),
    (MALLOC + "@%p1 bra L;" + FREE.format("%d2") + "L: ld.b32 %r1, [%d2];", 0),  # another path may come to L
    (MALLOC + "{ .param .b64 p; st.param.b64 [p], %d2; @%p1 call free, (p); }" + FREE.format("%d2"), 0),
    (MALLOC + "mov.b64 %d3, %d2;" + FREE.format("%d3") + FREE.format("%d2"), 1),
    (MALLOC + "add.u64 %d3, %d2, 8;" + FREE.format("%d3"), 1),
    (FREE.format("%d1") + "ld.b32 %r1, [%d1+4];", 1),
    ("{ .param .b64 p; st.param.b64 [p], %d1; } add.u64 %d1, %d1, 8;" + FREE.format("%d1"), 0),
    ("{ .param .b64 p; st.param.b64 [p], %d1; } st.b32 [%d1+-8], 0;" + FREE.format("%d1"), 0),  # its begin is not known
])  # fmt: skip
def test_heap(body, wrong):
    codes = found(body.replace("%r1", "%r5"), extra=HEAP)
    assert codes.count("PTX598") == wrong and set(codes) <= {"PTX598", "PTX597", "PTX521"}, codes
