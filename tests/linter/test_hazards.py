"""Rules about asynchronous work, barriers and paths, beyond the examples of their pages."""

import pytest

from ptxtools.linter import lint
from ptxtools.syntax import parse
from tests.rows import rows

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
PREPARED = "mov.b32 %r5, 0; mov.b32 %r6, 0; mov.b32 %r7, 0; mov.b32 %r8, 0;"
LEFT, AGAIN = "wgmma.wait_group.sync.aligned {};\n", "L: {} @%p3 bra L; wgmma.wait_group.sync.aligned 0;\n"
COMMIT = "wgmma.commit_group.sync.aligned;\n"
COPY = "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%d1], {}, [%r{}];\n"
EXPECT = "mbarrier.arrive.expect_tx.shared.b64 _, [%r{}], {};\n"
MULTICAST = COPY.replace("bytes [", "bytes.multicast::cluster [").replace("];", "], 3;")


def found(body, *, head=S90, extra=""):
    """Codes of the hazards in a kernel, but for registers that it never writes."""
    text = f"{head}{extra}.entry k(.param .b64 x)\n{{\n{REGISTERS}{body}\nret;\n}}\n"
    result = parse(text, "a.ptx")
    codes = [d.code for d in [*result.diagnostics, *lint(result.module)]]
    return [code for code in codes if code not in ("PTX520", "PTX563", "PTX562", "PTX582")]


SKIP = "setp.eq.u32 %p3, %r3, 0; @%p3 bra L;"


@pytest.mark.parametrize(("body", "codes"), [
    (FENCE + WGMMA + COMMIT + "wgmma.wait_group.sync.aligned 0;\nadd.f32 %f5, %f1, %f2;", []),
    (FENCE + WGMMA + COMMIT + "add.f32 %f5, %f1, %f2;\nwgmma.wait_group.sync.aligned 0;", ["PTX588"]),
    (FENCE + WGMMA + COMMIT + WGMMA + COMMIT + "wgmma.wait_group.sync.aligned 1;\nmov.f32 %f5, %f4;", ["PTX588"]),
    (FENCE + WGMMA + COMMIT + "wgmma.wait_group.sync.aligned 1;\nmov.f32 %f5, %f4;", ["PTX588"]),
    (FENCE + WGMMA + COMMIT + "bra L;\nL: mov.f32 %f5, %f4;", ["PTX588"]),
    (FENCE + WGMMA + COMMIT + SKIP + "wgmma.wait_group.sync.aligned 0; L: mov.f32 %f5, %f4;", ["PTX588"]),
    (FENCE + WGMMA + COMMIT + SKIP + "L: wgmma.wait_group.sync.aligned 0; mov.f32 %f5, %f4;", []),
    (FENCE + FROM_REGISTERS + COMMIT + "mov.b32 %r5, 0;", ["PTX521", "PTX588"]),
    (FENCE + FROM_REGISTERS + COMMIT + "mov.b32 %r4, %r5;", []),  # reading A does no harm
    (WGMMA + COMMIT, ["PTX580"]),
    (FENCE + AGAIN.format(WGMMA + COMMIT + LEFT.format(0) + "mul.f32 %f1, %f2, %f2;"), ["PTX579"]),
    (AGAIN.format(FENCE + WGMMA + COMMIT + LEFT.format(0) + "mul.f32 %f1, %f2, %f2;"), []),
    (PREPARED + AGAIN.format("mov.b32 %r5, %r4;" + FENCE + FROM_REGISTERS + COMMIT + LEFT.format(0)), []),
    (PREPARED + AGAIN.format("mov.b32 %r5, %r4;" + FENCE + FROM_REGISTERS + COMMIT + LEFT.format(1)), ["PTX588"]),
    (PREPARED + AGAIN.format("@%p3 bra M; mov.b32 %r5, %r4; M:" + FENCE + FROM_REGISTERS + COMMIT), ["PTX588"]),
    (PREPARED + AGAIN.format("mov.f32 %f5, %f1;" + FENCE + WGMMA + COMMIT + LEFT.format(1)), ["PTX588"]),
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
    (EXPECT.format(2, 128) + MULTICAST.format(64, 2), ["PTX571"]),  # each CTA of a pair brings one half to both
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
    ("bar.warp.sync %r4;", ["PTX537"]),  # lane 1 names lane 0
    ("bar.warp.sync %r5;", []),
    ("bar.arrive 1, 64; bar.sync 1, 64;", []),
    ("bar.arrive 1, 64; bar.sync 1, 96; bar.sync 2, 32;", ["PTX532"]),
    ("bar.red.popc.u32 %r5, 1, 64, %p1; bar.sync 1, 96;", ["PTX532"]),
    ("bar.sync 1, %r4; bar.sync 1, 96;", []),
])  # fmt: skip
def test_collectives(body, codes):
    assert found(body) == codes


@pytest.mark.parametrize(("body", "codes"), [
    ("add.u32 %r5, %r6, 1; mov.b32 %r6, 1;", ["PTX521"]),
    ("L: add.u32 %r5, %r6, 1; mov.b32 %r6, 1; bra L;", ["PTX521"]),  # not the first time
    ("@%p3 bra M; L: add.u32 %r5, %r6, 1; M: mov.b32 %r6, 1; bra L;", []),
    ("@%p1 bra L; mov.b32 %r6, 1; L: add.u32 %r5, %r6, 1;", ["PTX522"]),  # lanes below 16 have not written it
    ("@%p3 bra L; mov.b32 %r6, 1; L: add.u32 %r5, %r6, 1;", []),  # on one path it is written
    ("@%p1 mov.b32 %r6, 1; add.u32 %r5, %r6, 1;", ["PTX522"]),
    ("@%p1 setp.eq.u32 %p3, %r4, 1; @%p3 exit;", ["PTX522"]),  # without operands
    ("mov.b32 %r5, %r6; mov.b32 %r6, 1;", []),
    ("@%p1 bra L; add.u32 %r5, %r6, 1; ret; L: mov.b32 %r6, 1;", ["PTX521"]),
    ("{ .reg .b32 %r6; add.u32 %r5, %r6, 1; mov.b32 %r6, 1; }", ["PTX521"]),
    ("L: add.u32 %r5, %r6, 1; add.u32 %r6, %r5, 1; @%p3 bra L;", ["PTX521"]),  # in the first round
    ("mov.b32 %r6, 0; L: add.u32 %r5, %r6, 1; add.u32 %r6, %r5, 1; @%p3 bra L;", []),
    ("L: mov.b32 %r5, %r6; add.u32 %r6, %r5, 1; @%p3 bra L;", []),
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
    ("@%p1 exit; bar.sync 0;", ["PTX530"]),
    ("@%p3 exit; bar.sync 0;", []),
    ("@%p2 bra L; bar.sync 0; L:", []),
    ("@%p1 bra L; bar.warp.sync 0xffff0000; L:", []),
    ("@!%p1 bra L; bar.warp.sync 0xffff0000; L:", ["PTX535", "PTX537"]),
    ("@%p1 exit; movmatrix.sync.aligned.m8n8.trans.b16 %r5, %r4;", ["PTX538"]),
    ("@%p1 bra L; mov.b32 %r5, 1; L: movmatrix.sync.aligned.m8n8.trans.b16 %r5, %r4;", []),
    ("@%p1 bra.uni L; mov.b32 %r5, 1; L:", ["PTX539"]),
    ("@%p2 bra.uni L; mov.b32 %r5, 1; L:", []),
    ("@%p1 mov.b32 %r5, 1; vote.sync.any.pred %p3, %p1, 0x7fffffff;", ["PTX537"]),
    ("@%p1 bra L; L: vote.sync.any.pred %p3, %p1, 0x7fffffff;", ["PTX537"]),  # all come to L
    ("elect.sync _|%p3, -1; @%p3 bar.sync 0;", ["PTX530"]),
    ("and.b32 %r5, %r4, 1; setp.eq.u32 %p3, %r5, 1; @%p3 bar.warp.sync 0xaaaaaaaa;", []),
    ("and.b32 %r5, %r4, 1; setp.eq.u32 %p3, %r5, 1; @%p3 bar.warp.sync 0x55555555;", ["PTX535", "PTX537"]),
    ("and.b32 %r5, %r4, 1; setp.eq.u32 %p3, %r5, 1; mov.pred %p1, 0; xor.pred %p3, %p3, %p1;"
     "@%p3 bar.warp.sync 0xaaaaaaaa;", []),
    ("and.b32 %r5, %r4, 1; setp.eq.u32 %p3, %r5, 1; mov.pred %p1, 1; xor.pred %p3, %p3, %p1;"
     "@%p3 bar.warp.sync 0xaaaaaaaa;", ["PTX537"]),
])  # fmt: skip
def test_divergence(body, codes):
    assert found(body) == codes


HEAP = ".extern .func (.param .b64 r) malloc (.param .b64 n);\n.extern .func free (.param .b64 p);\n"
MALLOC = "{ .param .b64 n; .param .b64 r; st.param.b64 [n], 64; call (r), malloc, (n); ld.param.b64 %d2, [r]; }\n"
KEPT = MALLOC + MALLOC.replace("%d2", "%d4") + "st.b64 [%d2+8], %d4; st.b32 [%d4], 1;\n"
FREE = "{{ .param .b64 p; st.param.b64 [p], {0}; call free, (p); }}\n"


@pytest.mark.parametrize(("body", "wrong"), [
    (MALLOC + "st.b64 [%d2+56], 1; ld.b32 %r1, [%d2+60];" + FREE.format("%d2"), 0),
    (MALLOC + "st.b64 [%d2+56], 1; ld.b32 %r1, [%d2];" + FREE.format("%d2"), 1),  # nothing is there
    (MALLOC + "st.b64 [%d1], 1; ld.b32 %r1, [%d2];" + FREE.format("%d2"), 0),  # it may be there
    (MALLOC + "st.b64 [%d2+64], 1; ld.b32 %r1, [%d2+-4];" + FREE.format("%d2"), 2),
    (MALLOC + "add.u64 %d3, %d2, 32; st.global.v4.b32 [%d3+32], {%r1, %r1, %r1, %r1};" + FREE.format("%d2"), 1),
    (MALLOC + "add.u64 %d3, %d2, %d1; st.b32 [%d3+99], 1;" + FREE.format("%d2"), 0),  # anywhere
    (MALLOC + FREE.format("%d2") + MALLOC + FREE.format("%d2"), 0),  # another block
    (MALLOC + FREE.format("%d2") + "st.shared.b32 [%d2], 1;", 0),
    (MALLOC + "@%p1 bra L;" + FREE.format("%d2") + "L: ld.b32 %r1, [%d2];", 1),  # by the threads that have not branched
    (MALLOC + "{ .param .b64 p; st.param.b64 [p], %d2; @%p1 call free, (p); }" + FREE.format("%d2"), 1),
    (MALLOC + "{ .param .b64 p; st.param.b64 [p], %d2; @%p1 call free, (p); @!%p1 call free, (p); }", 0),
    (MALLOC + "mov.b64 %d3, %d2;" + FREE.format("%d3") + FREE.format("%d2"), 1),
    (MALLOC + "add.u64 %d3, %d2, 8;" + FREE.format("%d3"), 1),
    (FREE.format("%d1") + "ld.b32 %r1, [%d1+4];", 1),
    ("{ .param .b64 p; st.param.b64 [p], %d1; } add.u64 %d1, %d1, 8;" + FREE.format("%d1"), 0),
    ("{ .param .b64 p; st.param.b64 [p], %d1; } st.b32 [%d1+-8], 0;" + FREE.format("%d1"), 0),  # its begin is not known
    (KEPT + FREE.format("%d4") + "ld.b64 %d3, [%d2+8]; ld.b32 %r1, [%d3];" + FREE.format("%d2"), 1),
    (KEPT + "ld.b64 %d3, [%d2+8]; ld.b32 %r1, [%d3];" + FREE.format("%d4") + FREE.format("%d2"), 0),
    (KEPT + FREE.format("%d4") + "st.b64 [%d2+8], %d1; ld.b64 %d3, [%d2+8]; st.b32 [%d3], 0;" + FREE.format("%d2"), 0),
    (KEPT + FREE.format("%d4") + "st.b32 [%d2+12], 0; ld.b64 %d3, [%d2+8]; st.b32 [%d3], 0;" + FREE.format("%d2"), 0),
    (KEPT + FREE.format("%d4") + "st.b64 [%d1], 0; ld.b64 %d3, [%d2+8]; st.b32 [%d3], 0;" + FREE.format("%d2"), 0),
    (KEPT + FREE.format("%d4") + "bar.sync 0; ld.b64 %d3, [%d2+8]; st.b32 [%d3], 0;" + FREE.format("%d2"), 0),
])  # fmt: skip
def test_heap(body, wrong):
    codes = found(body.replace("%r1", "%r5"), extra=HEAP)
    assert codes.count("PTX598") == wrong and set(codes) <= {"PTX598", "PTX597", "PTX521"}, codes


S100 = S90.replace("9.0", "8.6").replace("sm_90a", "sm_100a")
PRODUCT = "tcgen05.mma.cta_group::1.kind::{} [%r1], %d2, %d3, %r8, %p1;\n"
DESCRIBED = "mov.b32 %r8, {}; or.b64 %d2, %d1, {}; mov.b64 %d3, 0x400000000000;\n"


@rows(("kind", "described", "matrix", "codes"), [  # M = 128, N = 128
    ("f16", 0x8200010, 0x4000400000010000, []),
    ("f16", 0x8210010, 0x4000400000010000, []),  # B transposed
    ("i8", 0x8210020, 0x4000400000010000, []),
    ("i8", 0x8200010, 0x4000400000010000, ["PTX577"]),  # f32 of integers
    ("f16", 0x8200050, 0x4000400000010000, ["PTX577"]),  # bit 6
    ("f16", 0x8200010, 0x4000800000010000, ["PTX577"]),  # bit 47
    ("f16", 0x8200010, 0x6000400000010000, ["PTX577"]),  # the swizzle 3
    ("f16", 0x8200010, 0x2000400000010000, []),
    ("f16", 0x8200010, 0x4020400000010000, ["PTX577"]),  # bit 53
    ("f16", "%r4", 0x4000400000010000, []),
])  # fmt: skip
def test_descriptors(kind, described, matrix, codes):
    body = DESCRIBED.format(described, matrix) + PRODUCT.format(kind)
    body += "tcgen05.commit.cta_group::1.mbarrier::arrive::one.b64 [%d1];"
    assert found(body, head=S100) == codes


ROUND = """mov.b32 %r5, 0; mov.b32 %r6, 0;
L: mbarrier.arrive.shared.b64 _, [%r2];
W: mbarrier.try_wait.parity.shared.b64 %p1, [{}], {}; @!%p1 bra W;
{} add.u32 %r5, %r5, 1; setp.lt.u32 %p3, %r5, %r4; @%p3 bra L;
"""


@rows(("barrier", "parity", "more", "codes"), [
    ("%r2", "0", "", ["PTX569"]),
    ("%r2", "%r6", "", ["PTX569"]),
    ("%r2", "%r6", "xor.b32 %r6, %r6, 1;", []),
    ("%r2", "%r5", "", []),  # the number of the round
    ("%r3", "0", "", []),  # whoever arrives at it
    ("%r2+8", "0", "", []),
    ("%r2", "0", "mbarrier.arrive.shared.b64 _, [%r2];", []),  # two phases in a round
    ("%r2", "0", "V: mbarrier.test_wait.parity.shared.b64 %p1, [%r2], 1; @!%p1 bra V;", []),
    ("%r2", "0", "mbarrier.inval.shared.b64 [%r2]; mbarrier.init.shared.b64 [%r2], 1;", []),
    ("%r2", "0", "add.u32 %r2, %r2, 8;", []),
])  # fmt: skip
def test_parities(barrier, parity, more, codes):
    assert [code for code in found(ROUND.format(barrier, parity, more)) if code == "PTX569"] == codes


def test_a_wait_behind_the_loop_is_not_in_it():
    assert "PTX569" not in found("W: mbarrier.try_wait.parity.shared.b64 %p1, [%r2], 0; @!%p1 bra W;")


@rows(("body", "codes"), [
    ("fma.rn.f32 %f1, %f2, %f2, %f1;", ["PTX521"]),
    ("add.u32 %r5, %r5, 1;", ["PTX521"]),
    ("prmt.b32 %r5, %r5, %r1, 0x3214;", []),  # moves bytes
    ("@%p1 add.u32 %r5, %r5, 1; mov.b32 %r5, 0;", []),  # a guard may keep it from being read
    ("mov.b32 %r5, 0; L: add.u32 %r5, %r5, 1; bra L;", []),
    ("L: add.u32 %r5, %r5, 1; bra L;", ["PTX521"]),
])  # fmt: skip
def test_registers_that_only_their_reader_writes(body, codes):
    assert found(body) == codes


def kernel(body, directives=".reqntid 32"):
    """Codes of what is found in a kernel without the registers above."""
    text = f"{S90}.entry k(.param .b64 x) {directives} {{ .reg .b64 %d<4>; .reg .b32 %r<9>; .reg .pred %p<4>;\n"
    text += f".shared .align 8 .b64 bar; ld.param.b64 %d1, [x]; mov.u32 %r1, %tid.x;\n{body}\nret;\n}}\n"
    result = parse(text, "a.ptx")
    return [d.code for d in [*result.diagnostics, *lint(result.module)] if d.code[:4] in ("PTX1", "PTX2", "PTX5")]


INIT, ARRIVE = "mbarrier.init.shared.b64 [bar], {}; bar.warp.sync -1;\n", "mbarrier.arrive.shared.b64 _, [bar];\n"
WAIT = "W: mbarrier.try_wait.parity.shared.b64 %p1, [bar], 0; @!%p1 bra W;\n"


@rows(("body", "codes"), [
    (INIT.format(33) + ARRIVE + WAIT, ["PTX506"]),
    (INIT.format(32) + ARRIVE + WAIT, []),
    (INIT.format(64) + ARRIVE + ARRIVE + WAIT, []),
    (INIT.format(65) + ARRIVE + ARRIVE + WAIT, ["PTX506"]),
    (INIT.format(64) + "mbarrier.arrive.shared.b64 _, [bar], 2;\n" + WAIT, []),
    (INIT.format(64) + "mbarrier.arrive.shared.b64 _, [bar], %r1;\n" + WAIT, []),
    (INIT.format(64) + "L: " + ARRIVE + "add.u32 %r1, %r1, 1; setp.lt.u32 %p2, %r1, 2; @%p2 bra L;\n" + WAIT,
     ["PTX578"]),  # 33 come
    (INIT.format(33) + WAIT, ["PTX578"]),  # no arrival at all
])  # fmt: skip
def test_arrivals(body, codes):
    assert [code for code in kernel(body) if code != "PTX570"] == codes


HALF = "setp.lt.u32 %p2, %r1, 32; @%p2 "


@rows(("body", "directives", "codes"), [
    (HALF + "bar.sync 3, 64;", ".reqntid 64", ["PTX507"]),
    (HALF + "bar.sync 3, 32;", ".reqntid 64", []),
    (HALF + "bar.sync 3, 64; @!%p2 bar.arrive 3, 64;", ".reqntid 64", []),
    (HALF + "bar.sync 3, 64; L: bar.arrive 3, 64;", ".reqntid 64", []),  # whoever comes to L
    (HALF + "bar.sync 3, 64; bar.sync %r1, 64;", ".reqntid 64", []),
    (HALF + "bar.sync 3, 64;", ".maxntid 64", ["PTX507"]),
    (HALF + "bar.sync 3, 64;", "", ["PTX507"]),
    (HALF + "bra L; bar.sync 3, 64; bra E; L: bar.sync 3, 64; E:", ".maxntid 64", []),
    (HALF + "bra L; bar.sync 3, 96; bra E; L: bar.sync 3, 96; E:", ".maxntid 64", ["PTX507"]),
    (HALF + "bra L; bar.sync 3, 96; bra E; L: bar.sync 3, 96; E:", ".maxntid 128", []),
    (HALF + "bra L; bar.arrive 3, 96; bra E; L: bar.sync 3, 96; E:", ".maxntid 64", ["PTX507"]),
    (HALF + "bra L; bar.red.popc.u32 %r2, 3, 64, %p2; bra E; L: E:", ".maxntid 64", ["PTX507"]),
    ("shr.u32 %r2, %r1, 5; setp.gt.u32 %p2, %r2, 2; @!%p2 bra E; bar.sync 3, 32; E:", ".maxntid 128", []),
    ("shr.u32 %r2, %r1, 5; setp.gt.u32 %p2, %r2, 2; @!%p2 bra E; bar.sync 3, 64; E:", ".maxntid 128", ["PTX507"]),
    ("shr.u32 %r2, %r1, 5; setp.ge.u32 %p2, %r2, 2; @!%p2 bra E; bar.sync 3, 64; E:", ".maxntid 128", []),
    (HALF + "ret; L: bar.sync 3, 96; setp.ne.u32 %p3, %r2, 0; @%p3 bra L;", ".maxntid 96", ["PTX507"]),
    (HALF + "ret; L: bar.sync 3, 64; setp.ne.u32 %p3, %r2, 0; @%p3 bra L;", ".maxntid 96", []),
])  # fmt: skip
def test_threads_that_come_to_a_barrier(body, directives, codes):
    assert [code for code in kernel(body, directives) if code in ("PTX507", "PTX201")] == codes


LOCK = "L: atom.acquire.gpu.global.cas.b32 %r2, [%d1], 0, 1; setp.ne.u32 %p1, %r2, 0; @%p1 bra L;\n"
FLAG = "setp.eq.u32 %p1, %r1, 0; @%p1 bra R; st.global.b32 [%d1+4], 7; {} ret;\n"
READ = "R: ld.acquire.gpu.global.b32 %r2, [%d1]; setp.eq.u32 %p2, %r2, 0; @%p2 bra R;"


@rows(("body", "codes"), [
    (LOCK + "st.global.b32 [%d1], 0;", ["PTX526"]),
    (LOCK + "st.global.b32 [%d1+4], 0; st.release.gpu.global.b32 [%d1], 0;", []),
    (LOCK + "membar.gl; st.global.b32 [%d1], 0;", []),
    (LOCK + "membar.gl; st.global.b32 [%d1+4], 7; st.global.b32 [%d1], 0;", ["PTX526"]),
    (LOCK + "st.global.b32 [%d1+4], 7; st.relaxed.gpu.global.b32 [%d1], 0;", ["PTX526"]),
    (LOCK + "st.global.b32 [%d1+4], 7; fence.acq_rel.gpu; @%p1 bra M; M: st.relaxed.gpu.global.b32 [%d1], 0;", []),
    (LOCK.replace("acquire", "relaxed") + "st.relaxed.gpu.global.b32 [%d1], 0;", []),  # it may protect nothing
    (LOCK.replace("gpu", "cta") + "st.release.gpu.global.b32 [%d1], 0;", ["PTX518"]),
    ("mul.wide.u32 %d2, %r1, 4; add.u64 %d2, %d1, %d2; ld.acquire.cta.global.b32 %r2, [%d2];", []),
    (FLAG.format("st.relaxed.gpu.global.b32 [%d1], 1;") + READ, ["PTX519"]),
    (FLAG.format("st.release.gpu.global.b32 [%d1], 1;") + READ, []),
    (FLAG.format("membar.gl; st.relaxed.gpu.global.b32 [%d1], 1;") + READ, []),
    (FLAG.format("") + READ, []),  # somebody else writes it
])  # fmt: skip
def test_flags_and_locks(body, codes):
    assert [code for code in kernel(body) if code not in ("PTX513", "PTX516")] == codes


ROUNDS = """mov.u32 %r7, s; mad.lo.u32 %r2, %r1, 4, %r7; xor.b32 %r3, %r2, 128; mov.b32 %r4, 0;
{} L: st.shared.b32 [%r2], %r4; bar.sync 0; ld.shared.b32 %r5, [%r3]; {}
add.u32 %r4, %r4, 1; setp.lt.u32 %p1, %r4, {}; @%p1 bra L; st.shared.b32 [%r2], %r5;
"""


@rows(("before", "behind", "limit", "codes"), [
    ("", "", "8", ["PTX525"]),
    ("", "", "%r8", ["PTX525"]),  # a parameter
    ("", "bar.sync 0;", "8", []),
    ("", "", "%r1", ["PTX525"]),  # threads leave the loop at different times
    ("setp.lt.u32 %p2, %r1, 7; @%p2 bra L;", "", "8", ["PTX525"]),  # all threads come to it
    ("", "add.u32 %r3, %r3, 4;", "8", ["PTX525"]),  # what is read in the first round is overwritten in the second
    ("", "add.u32 %r3, %r3, %r8;", "8", ["PTX525"]),  # so it is here
    ("add.u32 %r3, %r3, %r8;", "", "8", []),  # the address is not known
    ("", "call f;", "8", []),
])  # fmt: skip
def test_exchange_across_rounds(before, behind, limit, codes):
    text = f"{S90}.extern .func f();\n.shared .align 1024 .b32 s[64];\n.entry k(.param .b32 n) .reqntid 64 {{\n"
    text += ".reg .b32 %r<9>; .reg .pred %p<4>; mov.u32 %r1, %tid.x; ld.param.b32 %r8, [n];\n"
    result = parse(text + ROUNDS.format(before, behind, limit) + "ret;\n}\n", "a.ptx")
    found = [d.code for d in [*result.diagnostics, *lint(result.module)]]
    assert [code for code in found if code in ("PTX525", "PTX201")] == codes


@rows(("kind", "body", "codes"), [
    (".b64", "cvt.u32.u64 %r2, %d1; st.shared.b32 [%r2], %r1;", ["PTX544"]),
    (".b64", "st.local.b32 [%d1+4], %r1;", ["PTX544"]),
    (".b64", "cvta.to.shared.u64 %d2, %d1; st.shared.b32 [%d2], %r1;", []),  # it was a generic address
    (".b64", "mov.u64 %d2, s; add.u64 %d2, %d2, %d1; st.shared.b32 [%d2], %r1;", []),  # a distance
    (".b64 .ptr .shared", "st.shared.b32 [%d1], %r1;", []),
    (".b64 .ptr .shared", "mad.wide.u32 %d2, %r1, 4, %d1; st.global.b32 [%d2], %r1;", ["PTX544"]),
    (".b64 .ptr .const", "ld.global.b32 %r2, [%d1]; st.shared.b32 [s+4], %r2;", ["PTX544"]),
    (".b64 .ptr .global", "cvt.u32.u64 %r2, %d1; st.shared.b32 [%r2], %r1;", ["PTX544"]),
    (".b64", "st.global.b32 [%d1], %r1;", []),
])  # fmt: skip
def test_pointers_of_kernels(kind, body, codes):
    text = f"{S90}.shared .align 8 .b8 s[64];\n.entry k(.param {kind} x) {{ .reg .b64 %d<4>; .reg .b32 %r<4>;\n"
    text += f"ld.param.b64 %d1, [x]; mov.u32 %r1, %tid.x;\n{body}\nst.shared.b32 [s], %r1;\nret;\n}}\n"
    result = parse(text, "a.ptx")
    found = [d.code for d in [*result.diagnostics, *lint(result.module)]]
    assert [code for code in found if code in ("PTX544", "PTX201")] == codes


TWICE = "mbarrier.init.shared.b64 [other], 1;\n"
JOIN = "bra L; L:\n"


@rows(("body", "codes"), [
    (TWICE + "bar.sync 0;" + JOIN + TWICE, ["PTX575"]),
    ("@%p2 " + TWICE + JOIN + "@%p2 " + TWICE, ["PTX575"]),
    ("@%p1 bra M;\n" + TWICE + "bra L; M: " + TWICE + "L:", []),  # each thread comes to one of them
    ("@%p2 " + TWICE + JOIN + "@!%p2 " + TWICE, []),
    ("@%p2 " + TWICE + JOIN + "mbarrier.inval.shared.b64 [other];" + TWICE, []),
    ("@%p2 " + TWICE + "setp.gt.u32 %p2, %r4, 40;" + JOIN + "@%p2 " + TWICE, []),  # the guard is another one
])  # fmt: skip
def test_mbarrier_initialised_on_all_paths(body, codes):
    assert [code for code in found(body) if code in ("PTX575", "PTX201")] == codes


MOVED = "mov.b32 %r5, s; add.u32 %r5, %r5, {};\n"


@rows(("body", "codes"), [
    (MOVED.format(512) + EXPECT.format(5, 32) + COPY.format(64, 5), ["PTX568"]),
    (MOVED.format(512) + EXPECT.format(5, 128) + COPY.format(64, 5) + COPY.format(64, 5), []),
    (MOVED.format(512) + EXPECT.format(5, 64) + MOVED.format(520) + COPY.format(32, 5), []),  # two mbarriers
    (MOVED.format("%r4") + EXPECT.format(5, 32) + COPY.format(64, 5), []),  # which one is not known
])  # fmt: skip
def test_expected_bytes_by_address(body, codes):
    assert [code for code in found(body) if code in ("PTX568", "PTX201")] == codes


CTA = "mov.u32 %r2, %ctaid.x;\n"
STORED = "mul.wide.u32 %d2, %r1, 4; add.u64 %d2, %d1, %d2; setp.eq.u32 %p1, %r1, 0; st.global.b32 [%d2+64], %r1;\n"
COUNT = "@%p1 atom.global.add.u32 %r3, [%d1], 1;"


@rows(("body", "codes"), [
    (CTA + "atom.relaxed.cta.global.add.u32 %r3, [%d1], 1;", ["PTX518"]),
    ("atom.relaxed.cta.global.add.u32 %r3, [%d1], 1;", []),  # for one CTA, as far as it tells
    (CTA + "mul.wide.u32 %d2, %r2, 4; add.u64 %d2, %d1, %d2; red.relaxed.cta.global.add.u32 [%d2], 1;", []),
    (STORED + "@%p1 membar.gl; bar.sync 0;" + COUNT, ["PTX558"]),
    (STORED + "@%p1 fence.acq_rel.gpu; bar.sync 0;" + COUNT, ["PTX558"]),
    (STORED + "membar.gl; bar.sync 0;" + COUNT, []),
    (STORED + "bar.sync 0; @%p1 membar.gl;" + COUNT, []),
    (STORED + "@%p1 membar.gl; bar.sync 0; @%p1 membar.gl;" + COUNT, []),
    (STORED + "@%p1 membar.gl; bar.sync 0;" + COUNT.replace("atom.", "atom.acq_rel.gpu."), []),
    (STORED.replace("st.global", "@%p1 st.global") + "@%p1 membar.gl; bar.sync 0;" + COUNT, []),  # its own store
])  # fmt: skip
def test_other_ctas(body, codes):
    assert [code for code in kernel(body) if code in ("PTX518", "PTX558", "PTX201")] == codes


ROW = (
    "mul.lo.u32 %r2, %r1, {}; mov.u32 %r3, s; add.u32 %r2, %r2, %r3; {}ld.shared.v4.u32 {{%r3, %r4, %r5, %r6}}, [%r2];"
)


@rows(("body", "codes"), [
    (ROW.format(8, ""), ["PTX541"]),  # thread 1 is eight bytes behind a multiple of 16
    (ROW.format(16, ""), []),
    (ROW.format(8, "setp.eq.u32 %p1, %r1, 0; @%p1 "), []),  # thread 0 is aligned
    ("mov.u32 %r4, %nctaid.x; " + ROW.format("%r4", ""), []),
])  # fmt: skip
def test_rows_of_threads_that_are_not_aligned(body, codes):
    body = f".shared .align 16 .b8 s[2048];\n{body}"
    assert [code for code in kernel(body, ".reqntid 64") if code in ("PTX541", "PTX201")] == codes


MAP = "ld.param.b64 %d2, [x]; shl.b32 %r5, %r4, 2; cvt.u64.u32 %d3, %r5; add.u64 %d3, %d2, %d3;\n"
TENSOR = (
    "cp.async.bulk.tensor.1d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%r1], [%d2, {%r6}], [%r2];\n"
)
PUBLISH = "fence.proxy.tensormap::generic.release.gpu; fence.proxy.tensormap::generic.acquire.gpu [%d2], 128;\n"
WAIT = "WAIT: mbarrier.try_wait.parity.shared.b64 %p3, [%r2], 0; @!%p3 bra WAIT;\n"
REPLACE = "tensormap.replace.tile.global_address.global.b1024.b64 [%d2], %d1;\n"


@pytest.mark.parametrize(("body", "codes"), [
    (MAP + "mov.b32 %r6, 0; st.global.b32 [%d3], %r4;" + PUBLISH + TENSOR + WAIT, []),
    (MAP + "mov.b32 %r6, 0; st.global.b32 [%d3], %r4;" + TENSOR + WAIT, ["PTX528"]),
    (MAP + "mov.b32 %r6, 0; st.global.b32 [%d3+128], %r4;" + TENSOR + WAIT, []),  # behind the map
    (MAP + "mov.b32 %r6, 0;" + TENSOR + "st.global.b32 [%d3], %r4;" + WAIT, ["PTX567"]),
    (MAP + "mov.b32 %r6, 0;" + TENSOR + WAIT + "st.global.b32 [%d3], %r4;", []),
    (MAP + "mov.b32 %r6, 0;" + TENSOR + REPLACE + WAIT + PUBLISH, ["PTX567"]),
    (MAP + "mov.b32 %r6, 0;" + TENSOR + WAIT + REPLACE + PUBLISH, []),
    (MAP + "mov.b32 %r6, 0;" + TENSOR + "ld.global.b32 %r5, [%d3]; mov.b32 %r4, %r5;" + WAIT, []),  # only read
])  # fmt: skip
def test_tensor_maps(body, codes):
    assert found(body) == codes


GIVES = ".visible .func (.reg .b64 o) f() {{ .local .align 8 .b8 v[32]; .reg .b64 %d<3>; {} ret; }}\n"


@pytest.mark.parametrize(("body", "codes"), [
    ("mov.b64 %d1, v; cvta.local.u64 o, %d1;", ["PTX500"]),
    ("mov.b64 %d1, v; cvta.local.u64 %d2, %d1; add.u64 o, %d2, 8;", ["PTX500"]),
    ("mov.b64 %d1, v; cvta.local.u64 %d2, %d1; ld.b64 o, [%d2];", []),
])  # fmt: skip
def test_addresses_of_dead_memory(body, codes):
    assert found("", extra=GIVES.format(body)) == codes


def test_addresses_of_dead_memory_in_parameters():
    give = "mov.b64 %d1, v; cvta.local.u64 %d2, %d1; st.param.b64 [o], %d2;"
    assert found("", extra=GIVES.format(give).replace(".reg .b64 o", ".param .b64 o")) == ["PTX500"]


RELAXED = "barrier.cluster.arrive.relaxed; barrier.cluster.wait;\n"


@pytest.mark.parametrize(("body", "codes"), [
    ("st.shared.b32 [%r1], 1;" + RELAXED + "ld.shared.b32 %r5, [%r1+4];", ["PTX594"]),
    ("st.shared.b32 [%r1], 1; ld.shared.b32 %r5, [%r1+4];" + RELAXED, []),  # it only keeps the CTA
    ("st.shared.b32 [%r1], 1; fence.acq_rel.cluster;" + RELAXED + "ld.shared.b32 %r5, [%r1+4];", []),
])  # fmt: skip
def test_relaxed_arrivals(body, codes):
    assert [code for code in found(body) if code == "PTX594"] == codes


@pytest.mark.parametrize(("body", "codes"), [
    ("cvta.shared.u64 %d2, %d1; cvta.to.shared.u64 %d3, %d2;", []),
    ("cvta.shared.u64 %d2, %d1; cvta.to.local.u64 %d3, %d2;", ["PTX544"]),
    ("mov.b64 %d2, %d1; cvta.shared.u64 %d2, %d2; cvta.to.global.u64 %d2, %d2;", ["PTX544"]),
    ("cvta.to.global.u64 %d2, %d1;", []),
])  # fmt: skip
def test_conversions_to_another_space(body, codes):
    assert [code for code in found(body) if code == "PTX544"] == codes


@pytest.mark.parametrize(("body", "wrong"), [
    ("setp.ge.u32 %p3, %r5, 96; @%p3 bra END;" + FENCE + WGMMA + COMMIT + LEFT.format(0) + "END:", 1),
    ("setp.ge.u32 %p3, %r5, 128; @%p3 bra END;" + FENCE + WGMMA + COMMIT + LEFT.format(0) + "END:", 0),
    ("setp.ge.u32 %p3, %r4, 128; @%p3 bra END;" + FENCE + WGMMA + COMMIT + LEFT.format(0) + "END:", 0),
])  # fmt: skip
def test_part_of_a_warpgroup(body, wrong):
    text = f"{S90}.entry k(.param .b64 x) .reqntid 128 {{\n{REGISTERS} mov.u32 %r5, %tid.x;{body}\nret;\n}}\n"
    assert [d.code for d in lint(parse(text, "a.ptx").module)].count("PTX538") == wrong


def test_results_that_nothing_reads_are_reported_to_those_who_ask():
    body = "mul.lo.u32 %r5, %r4, 7; setp.eq.u32 %p3|%p0, %r4, 3; @%p0 st.global.b32 [%d1], %r4; @%p1 exit; @%p2 exit;"
    uses = "st.shared.b32 [%r1], 1; mbarrier.inval.shared.b64 [%r3];"
    text = f"{S90}.entry k(.param .b64 x) {{\n{REGISTERS} {uses} {body} ret;\n}}\n"
    module = parse(text, "a.ptx").module
    assert not [d for d in lint(module) if d.code == "PTX717"]
    assert [d.message for d in lint(module, select=["PTX717"])] == [
        "nothing reads the '%r5' that 'mul.lo.u32' computes"
    ]
