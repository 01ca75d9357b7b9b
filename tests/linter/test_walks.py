"""Walks of two warps through kernels: what they find on branches, in loops and between CTAs, and what they do not."""

from ptxtools.linter import lint
from ptxtools.linter.facts import ModuleFacts
from ptxtools.linter.walk import computing, walk_of
from ptxtools.syntax import parse
from tests.observe import bugs
from tests.rows import rows
from tests.work import calls

HEAD = ".version 9.0\n.target sm_90\n.address_size 64\n"
REGISTERS = """.reg .pred %p<9>; .reg .b32 %r<32>; .reg .b64 %d<9>; .shared .align 1024 .b8 s[1024];
ld.param.b64 %d1, [a]; ld.param.b32 %r9, [n]; mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x; mov.u32 %r3, s;
shl.b32 %r4, %r1, 2; add.u32 %r4, %r4, %r3; xor.b32 %r5, %r4, 128; shr.u32 %r6, %r1, 5; and.b32 %r7, %r1, 31;
"""
WALKED = {"PTX508", "PTX509", "PTX515", "PTX516", "PTX517", "PTX522", "PTX524", "PTX525", "PTX527", "PTX530", "PTX539",
          "PTX535", "PTX537", "PTX541", "PTX567", "PTX592", "PTX596"}  # fmt: skip


def text(body: str, directives: str = ".reqntid 64") -> str:
    return f"{HEAD}.entry k(.param .b64 a, .param .b32 n) {directives} {{\n{REGISTERS}{body}\nret;\n}}\n"


def found(body: str, directives: str = ".reqntid 64") -> list[str]:
    result = parse(text(body, directives), "k.ptx")
    assert not result.diagnostics
    return [d.code for d in lint(result.module) if d.code in WALKED]


STORE, LOAD = "st.shared.b32 [%r4], %r1;", "ld.shared.b32 %r8, [%r5];"


#: What is read is compared and swapped, until nobody else has come between.
GUESS, SWAP = (
    "ld.shared.b32 %r8, ",
    """L: add.u32 %r10, %r8, 1; atom.{}.cas.b32 %r11, {}, %r8, %r10;
setp.ne.u32 %p1, %r11, %r8; mov.u32 %r8, %r11; @%p1 bra L;""",
)
SWITCH = "T: .branchtargets A, B, C; {} brx.idx %r10, T; A: {} bra M; B: {} bra M; C: {} M:"


@rows(("index", "arms", "behind", "codes"), [
    ("and.b32 %r10, %r2, 1;", ("bar.sync 0;", "bar.sync 0;", ""), "", []),  # alike in a CTA
    ("and.b32 %r10, %r1, 1;", ("bar.sync 0;", "", ""), "", ["PTX530"]),
    ("mov.u32 %r10, %r6;", (STORE, "bar.warp.sync -1;" + LOAD, ""), "", ["PTX515"]),  # one warp for each
    ("mov.u32 %r10, %r9;", ("mov.u32 %r11, 1;", "mov.u32 %r11, 2;", ""), "st.global.b32 [%d1], %r11;", ["PTX522"]),
    ("mov.u32 %r10, %r9;", ("mov.u32 %r11, 1;", "mov.u32 %r11, 2;", "mov.u32 %r11, 3;"), "st.global.b32 [%d1], %r11;",
     []),
    ("mov.u32 %r10, 3;", ("bar.sync 0;", "", ""), "", []),  # beyond the list: nothing is defined
    ("ld.global.u32 %r10, [%d1];", ("bar.sync 0;", "bar.sync 0;", "bar.sync 0;"), "", []),
])  # fmt: skip
def test_lists_of_branch_targets(index, arms, behind, codes):
    assert sorted(set(found(SWITCH.format(index, *arms) + behind))) == codes


@rows(("body", "codes"), [
    (STORE + LOAD, ["PTX515"]),
    (STORE + "bar.sync 0;" + LOAD, []),
    ("mov.u64 %d2, s; cvta.shared.u64 %d2, %d2; mul.wide.u32 %d3, %r1, 4; add.u64 %d3, %d3, %d2; st.b32 [%d3], %r1;"
     "xor.b32 %r8, %r1, 32; mul.wide.u32 %d3, %r8, 4; add.u64 %d3, %d3, %d2; ld.b32 %r8, [%d3];", ["PTX515"]),
    ("mov.u64 %d2, s; cvta.shared.u64 %d2, %d2; mul.wide.u32 %d3, %r1, 4; add.u64 %d3, %d3, %d2; st.b32 [%d3], %r1;"
     "bar.sync 0;"
     "xor.b32 %r8, %r1, 32; mul.wide.u32 %d3, %r8, 4; add.u64 %d3, %d3, %d2; ld.b32 %r8, [%d3];", []),
    (STORE + "setp.lt.u32 %p1, %r9, 4; @%p1 bra L; bar.sync 0; L:" + LOAD, ["PTX515"]),  # on the other way
    (STORE + "setp.lt.u32 %p1, %r9, 4; @%p1 bra L; bar.sync 0; bra M; L: bar.sync 0; M:" + LOAD, []),
    (STORE + "setp.ge.u32 %p1, %r1, 32; @%p1 bra L;" + LOAD + "bar.sync 0; bra M; L: bar.sync 0; M:", ["PTX515"]),
    (STORE + "setp.ge.u32 %p1, %r1, 32; @%p1 bra L; bar.sync 0;" + LOAD + "bra M; L: bar.sync 0; M:", []),
    (STORE + "bar.sync 1, 64;" + LOAD, []),
    (STORE + "add.u32 %r10, %r6, 1; bar.sync %r10, 32;" + LOAD, ["PTX515"]),  # each warp at a barrier of its own
    (STORE + "bar.warp.sync -1; xor.b32 %r5, %r4, 64;" + LOAD, []),
    (STORE + "xor.b32 %r5, %r4, 64;" + LOAD, ["PTX515"]),  # lanes of a warp do not run in step
    ("setp.lt.u32 %p1, %r1, 32; @%p1 " + STORE + "@!%p1 ld.shared.b32 %r8, [%r3];", ["PTX515"]),
    ("setp.lt.u32 %p1, %r1, 32; @%p1 " + STORE + "mov.b32 %r8, 0; @!%p1 ld.shared.b32 %r8, [%r4];"
     "add.u32 %r10, %r8, 1;", ["PTX527"]),
    ("setp.lt.u32 %p1, %r1, 32; @%p1 " + STORE + "@!%p1 ld.shared.b32 %r8, [%r4]; selp.u32 %r10, 0, %r8, %p1;", []),
    ("st.shared.b32 [s], 1;", []),  # all store the same
    ("st.shared.b32 [s], 1; ld.shared.b32 %r8, [s];", []),
    ("st.shared.b32 [s], %r6;", ["PTX516"]),
    ("st.shared.b32 [s], %r9;", []),
    ("setp.eq.u32 %p1, %r7, 0; @%p1 st.shared.b32 [s], %r6;", ["PTX516"]),
    ("setp.eq.u32 %p1, %r1, 0; @%p1 st.shared.b32 [s], 0; red.shared.add.u32 [s], 1;", ["PTX517"]),
    ("setp.eq.u32 %p1, %r1, 0; @%p1 st.shared.b32 [s], 0; bar.sync 0; red.shared.add.u32 [s], 1;", []),
    ("st.shared.b32 [s], 0; bar.sync 0;" + GUESS + "[s]; " + SWAP.format("shared", "[s]"), []),
    ("st.shared.b32 [s], 0; bar.sync 0;" + GUESS + "[s]; atom.shared.add.u32 %r8, [s], %r8;", ["PTX517"]),
    (GUESS.replace("shared", "global") + "[%d1]; " + SWAP.format("global", "[%d1]"), []),
    (GUESS.replace("shared", "global") + "[%d1]; red.global.add.u32 [%d1], 1;", ["PTX517"]),
    (STORE + "fence.acq_rel.cta;" + LOAD, ["PTX515"]),  # nobody acquires
    # data decides who stores: only one may
    ("bar.sync 0; ld.global.b32 %r8, [%d1]; setp.eq.u32 %p1, %r8, %r1; @%p1 st.shared.b32 [s], %r1;", []),
])  # fmt: skip
def test_races_of_a_cta(body, codes):
    assert found(body) == codes


LOOP = "mov.b32 %r10, 0; L: {} add.u32 %r10, %r10, 1; setp.lt.u32 %p1, %r10, {}; @%p1 bra L;"


@rows(("body", "limit", "codes"), [
    (STORE + "bar.sync 0;" + LOAD, "8", ["PTX525"]),
    (STORE + "bar.sync 0;" + LOAD, "%r9", ["PTX525"]),
    (STORE + "bar.sync 0;" + LOAD + "bar.sync 0;", "8", []),
    (STORE + "bar.sync 0;" + LOAD + "bar.sync 0;", "%r9", []),
    (STORE + "bar.sync 0;" + LOAD + "xor.b32 %r4, %r4, 512; xor.b32 %r5, %r5, 512;", "8", []),  # two buffers in turn
    (STORE + "bar.sync 0;" + LOAD, "1", []),
])  # fmt: skip
def test_races_of_rounds(body, limit, codes):
    assert found(LOOP.format(body, limit)) == codes


MINE = "mad.lo.u32 %r10, %r2, 64, %r1; mul.wide.u32 %d2, %r10, 4; add.u64 %d2, %d1, %d2;"


@rows(("body", "codes"), [
    (MINE + "st.global.b32 [%d2], %r1;", []),
    (MINE + "st.global.b32 [%d2], %r1; ld.global.b32 %r8, [%d2+256];", ["PTX508"]),
    (MINE + "st.global.b32 [%d2], %r1; bar.sync 0; ld.global.b32 %r8, [%d2+256];", ["PTX508"]),
    ("setp.eq.u32 %p1, %r1, 0; @%p1 st.global.b32 [%d1], %r2;", ["PTX508"]),
    ("setp.eq.u32 %p1, %r1, 0; setp.eq.and.u32 %p1, %r2, 0, %p1; @%p1 st.global.b32 [%d1], %r2;", []),
    ("setp.eq.u32 %p1, %r1, 0; @%p1 red.global.add.u32 [%d1], %r2;", []),
    ("setp.eq.u32 %p1, %r1, 0; @%p1 st.global.b32 [%d1], 1;", []),  # no number of a CTA: there may be one only
    # the last CTA to come stores the result
    (MINE + """st.global.b32 [%d2+64], %r1; fence.acq_rel.gpu; setp.ne.u32 %p1, %r1, 0; @%p1 bra END;
     atom.global.add.u32 %r8, [%d1], 1; setp.ne.u32 %p2, %r8, %r9; @%p2 bra END; fence.acq_rel.gpu;
     ld.global.b32 %r11, [%d1+1024]; st.global.b32 [%d1+4], %r2; END:""", []),
])  # fmt: skip
def test_races_of_ctas(body, codes):
    assert found(body) == codes


BARRIER = "barrier.cluster.arrive; barrier.cluster.wait;"
PEER = "mov.u32 %r10, %cluster_ctarank; xor.b32 %r11, %r10, 1; mapa.shared::cluster.u32 %r12, %r4, %r11;"


@rows(("body", "codes"), [
    (PEER + STORE + BARRIER + "ld.shared::cluster.b32 %r8, [%r12];" + BARRIER, []),
    (PEER + STORE + BARRIER + "ld.shared::cluster.b32 %r8, [%r12];", ["PTX592"]),
    (PEER + STORE + "ld.shared::cluster.b32 %r8, [%r12];" + BARRIER, ["PTX509", "PTX592"]),
    (PEER + STORE + "bar.sync 0; ld.shared::cluster.b32 %r8, [%r12];" + BARRIER, ["PTX509", "PTX592"]),
    (PEER + BARRIER + "st.shared::cluster.b32 [%r12], %r1;" + BARRIER + LOAD, []),
    (PEER + "st.shared::cluster.b32 [%r12], %r1;" + BARRIER + LOAD, ["PTX592"]),  # it may not have begun
    (PEER + STORE + "barrier.cluster.arrive.relaxed; barrier.cluster.wait; ld.shared::cluster.b32 %r8, [%r12];"
     + BARRIER, ["PTX509"]),
    (PEER + STORE + "fence.mbarrier_init.release.cluster; barrier.cluster.arrive.relaxed; barrier.cluster.wait;"
     "ld.shared::cluster.b32 %r8, [%r12];" + BARRIER, ["PTX509"]),
    (PEER + STORE + "fence.acq_rel.cluster; barrier.cluster.arrive.relaxed; barrier.cluster.wait;"
     "ld.shared::cluster.b32 %r8, [%r12]; barrier.cluster.arrive.relaxed; barrier.cluster.wait;", []),
    (PEER + BARRIER + "st.shared::cluster.b32 [%r12], %r1; ld.shared.b32 %r8, [%r4];" + BARRIER, ["PTX509"]),
])  # fmt: skip
def test_clusters(body, codes):
    assert found(body, ".reqntid 32") == codes


@rows(("body", "codes"), [
    ("@%p1 bra L; mov.b32 %r10, 1; L: add.u32 %r11, %r10, 1;", []),  # %p1 is not known
    ("setp.eq.u32 %p1, %r1, 5; @%p1 bra L; mov.b32 %r10, 1; L: add.u32 %r11, %r10, 1;", ["PTX522"]),
    ("setp.eq.u32 %p1, %r1, 5; @%p1 bra L; mov.b32 %r10, 1; L: @!%p1 add.u32 %r11, %r10, 1;", []),
    ("setp.eq.u32 %p1, %r1, 70; @%p1 bra L; mov.b32 %r10, 1; L: add.u32 %r11, %r10, 1;", []),  # no such thread
    ("setp.ge.u32 %p1, %r1, 40; @%p1 exit; bar.sync 0;", ["PTX530"]),
    ("setp.ge.u32 %p1, %r1, 32; @%p1 exit; bar.sync 0;", []),
    ("setp.lt.u32 %p1, %r7, 3; @%p1 bra L; bar.sync 0; bra M; L: bar.sync 0; M:", ["PTX530", "PTX530"]),
    ("mov.b32 %r10, 0; L: add.u32 %r10, %r10, 1; setp.lt.u32 %p1, %r10, %r7; @%p1 bra.uni L;", ["PTX539"]),
    ("mov.b32 %r10, 0; L: add.u32 %r10, %r10, 1; setp.lt.u32 %p1, %r10, 7; @%p1 bra.uni L;", []),
    ("st.global.v2.b32 [%d1+8], {%r1, %r1};", []),
    ("st.global.v2.b32 [%d1+4], {%r1, %r1};", ["PTX541"]),
    ("mul.wide.u32 %d2, %r1, 16; add.u64 %d2, %d1, %d2; ld.global.v2.b64 {%d3, %d4}, [%d2+8];", ["PTX541"]),
    ("mul.wide.u32 %d2, %r1, 8; add.u64 %d2, %d1, %d2; ld.global.v2.b64 {%d3, %d4}, [%d2+8];", ["PTX541"]),
    ("mul.wide.u32 %d2, %r1, 16; add.u64 %d2, %d1, %d2; ld.global.v2.b64 {%d3, %d4}, [%d2+16];", []),
    ("griddepcontrol.wait; ld.global.b32 %r10, [%d1]; st.global.b32 [%d1], %r10;", []),
    ("ld.global.b32 %r10, [%d1]; griddepcontrol.wait; st.global.b32 [%d1], %r10;", ["PTX596"]),
    ("setp.gt.u32 %p1, %r9, 4; @%p1 bra L; griddepcontrol.wait; L: ld.global.b32 %r10, [%d1];"
     "st.global.b32 [%d1], %r10;", ["PTX596"]),
])  # fmt: skip
def test_threads_that_part(body, codes):
    assert [code for code in found(body) if code not in ("PTX516", "PTX515")] == codes


SHUFFLE, VOTE = "shfl.sync.bfly.b32 %r8, %r1, 1, 31, {};", "vote.sync.any.pred %p2, %p3, -1;"
EIGHT, SIXTEEN = "setp.ge.u32 %p1, %r7, 8; @%p1 bra L;", "setp.ge.u32 %p1, %r1, 16; @%p1 bra L;"
ROUND = "mov.u32 %r10, %r7; L: {} add.u32 %r10, %r10, 32; setp.lt.u32 %p1, %r10, {}; @%p1 bra L;"


@rows(("body", "codes"), [
    (SIXTEEN + SHUFFLE.format("0xff") + "L:", ["PTX537"]),
    (SIXTEEN + SHUFFLE.format("0xffff") + "L:", []),
    (EIGHT + SHUFFLE.format("0xffff") + "L:", ["PTX535"]),
    (EIGHT + SHUFFLE.format("0xff") + "L:", []),
    (EIGHT + SHUFFLE.format("-1") + "bra M; L:" + SHUFFLE.format("-1") + "M:", []),  # lanes meet at two instructions
    (EIGHT + SHUFFLE.format("-1") + "bra M; L: shfl.sync.up.b32 %r8, %r1, 1, 0, -1; M:", ["PTX535", "PTX535"]),
    (EIGHT + SHUFFLE.format("-1") + "L:" + SHUFFLE.format("-1"), ["PTX535"]),  # the first eight come twice
    (EIGHT + SHUFFLE.format("0xff") + "bra M; L:" + SHUFFLE.format("0xff") + "M:", ["PTX537"]),
    ("mov.b32 %r10, 0xff;" + EIGHT + "match.any.sync.b32 %r8, %r1, %r10; L:", []),
    ("mov.b32 %r10, 0xffff;" + EIGHT + "match.any.sync.b32 %r8, %r1, %r10; L:", ["PTX535"]),
    ("mov.b32 %r11, 255; and.b32 %r10, %r7, 24; shl.b32 %r10, %r11, %r10;" + SHUFFLE.format("%r10"), []),
    ("mov.b32 %r11, 255; and.b32 %r10, %r7, 28; shl.b32 %r10, %r11, %r10;" + SHUFFLE.format("%r10"),
     ["PTX535"]),  # they overlap
    ("mov.b32 %r11, 255; and.b32 %r10, %r7, 24; shl.b32 %r10, %r11, %r10; setp.eq.u32 %p1, %r7, 3; @%p1 bra L;"
     + SHUFFLE.format("%r10") + "L:", ["PTX535"]),
    ("setp.lt.u32 %p1, %r7, 8; vote.sync.ballot.b32 %r10, %p1, -1; @!%p1 bra L;" + SHUFFLE.format("%r10") + "L:", []),
    ("setp.lt.u32 %p1, %r7, 9; vote.sync.ballot.b32 %r10, %p1, -1;" + EIGHT + SHUFFLE.format("%r10") + "L:",
     ["PTX535"]),
    ("setp.eq.u32 %p1, %r7, 0; @%p1 bra L; bar.warp.sync 0xfffffffe; L: bar.warp.sync -1;", []),
    # lanes leave a loop at different times
    (ROUND.format(VOTE, 100), ["PTX535"]), (ROUND.format(VOTE, 128), []), (ROUND.format(VOTE, "%r9"), ["PTX535"]),
    (ROUND.format("", "%r9") + VOTE, []), (ROUND.format("vote.sync.any.pred %p2, %p3, %r9;", "%r9"), []),
    ("mov.u32 %r10, %r7; L: setp.ge.u32 %p1, %r10, 100; @%p1 bra E;" + VOTE + "add.u32 %r10, %r10, 32; bra L; E:",
     ["PTX535"]),
    ("mov.u32 %r10, %r7; L: setp.ge.u32 %p1, %r10, %r9; @%p1 bra E;" + VOTE + "add.u32 %r10, %r10, 32; bra L; E:",
     ["PTX535"]),
    ("mov.u32 %r10, 0; L: setp.ge.u32 %p1, %r10, %r9; @%p1 bra E;" + VOTE + "add.u32 %r10, %r10, 32; bra L; E:", []),
    ("setp.ge.u32 %p1, %r1, %r9; @%p1 bra L;" + SHUFFLE.format("-1") + "L:", []),  # all come, or none
])  # fmt: skip
def test_member_masks(body, codes):
    assert found(body) == codes


ALLOC = """setp.lt.u32 %p1, %r1, 32; @!%p1 bra A; tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [s], 64;
tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned; A: setp.eq.u32 %p2, %r1, 0;
@%p2 mbarrier.init.shared.b64 [s+8], 1; fence.mbarrier_init.release.cluster; mov.b32 %r12, s; add.u32 %r12, %r12, 8;
tcgen05.fence::before_thread_sync; bar.sync 0; tcgen05.fence::after_thread_sync; ld.shared.u32 %r10, [s];
shl.b32 %r11, %r6, 21; add.u32 %r11, %r11, %r10; mov.b64 %d4, 0x4000404000010040; mov.b32 %r13, 0x08100490;
"""
FREE = """tcgen05.fence::before_thread_sync; bar.sync 0; @!%p1 bra Z;
tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r10, 64; Z:"""
PUT = "tcgen05.st.sync.aligned.32x32b.x2.b32 [%r11], {%r1, %r1};"
GET = "tcgen05.ld.sync.aligned.32x32b.x2.b32 {%r14, %r15}, [%r11];"
PUT_DONE, GET_DONE = "tcgen05.wait::st.sync.aligned;", "tcgen05.wait::ld.sync.aligned;"
ADD = "add.u32 %r16, %r14, %r15;"
PRODUCT = "@%p2 tcgen05.mma.cta_group::1.kind::f16 [%r10], %d4, %d4, %r13, %p3;"
COMMIT = "@%p2 tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%r12];"
DONE = "{0}: mbarrier.try_wait.parity.shared.b64 %p4, [%r12], {1}; @!%p4 bra {0}; tcgen05.fence::after_thread_sync;"


@rows(("body", "codes"), [
    (PUT + PUT_DONE + GET + GET_DONE + ADD + FREE, []),
    (PUT + GET + GET_DONE + ADD + PUT_DONE + FREE, ["PTX584"]),
    (PUT + FREE.replace("bar.sync 0;", "bar.sync 0;" + GET + GET_DONE) + PUT_DONE, ["PTX584"]),
    (PUT + PUT_DONE + GET + GET_DONE + ADD + GET + ADD + FREE, ["PTX583"]),
    (PUT + PUT_DONE + GET + ADD + GET_DONE + FREE, []),  # chips wait for registers by themselves
    ("setp.gt.u32 %p5, %r9, 5; @%p5 ret;" + FREE, ["PTX586"]),  # on one way nothing is freed
    ("setp.gt.u32 %p5, %r9, 5; @%p5 bra Z;" + FREE, ["PTX586"]),
    (FREE.replace("%r10, 64", "%r10, 32"), ["PTX595"]),
    (PRODUCT + COMMIT + DONE.format("W", 0) + GET + GET_DONE + ADD + FREE, []),
    (PRODUCT + COMMIT + GET + GET_DONE + ADD + DONE.format("W", 0) + FREE, ["PTX567"]),
    (PRODUCT + COMMIT + DONE.format("W", 0) + PRODUCT + COMMIT + DONE.format("V", 1) + GET + GET_DONE + FREE, []),
    (PRODUCT + COMMIT + DONE.format("W", 0) + PRODUCT + COMMIT + DONE.format("V", 0) + GET + GET_DONE + FREE,
     ["PTX567"]),  # the second wait is for the phase before
    (PRODUCT + COMMIT + FREE + DONE.format("W", 0), ["PTX567"]),
    ("@%p2 tcgen05.cp.cta_group::1.128x256b [%r10], %d4;" + GET + GET_DONE + COMMIT + DONE.format("W", 0) + FREE,
     ["PTX567"]),
])  # fmt: skip
def test_tensor_memory(body, codes):
    result = parse(text(ALLOC + body, ".reqntid 128").replace("sm_90", "sm_100a"), "k.ptx")
    assert not result.diagnostics
    wanted = ("PTX567", "PTX583", "PTX584", "PTX586", "PTX595")
    assert [d.code for d in lint(result.module) if d.code in wanted] == codes


ASYNC = "cp.async.ca.shared.global [%r4], [%d1], 4; cp.async.commit_group;"


@rows(("body", "codes"), [
    (ASYNC + "cp.async.wait_group 0; ld.shared.b32 %r8, [%r4];", []),
    (ASYNC + "bra L; L: ld.shared.b32 %r8, [%r4]; cp.async.wait_group 0;", ["PTX567"]),  # by the thread itself
    (ASYNC + "mov.b32 %r10, 0; L:" + ASYNC.replace("%r4]", "%r4+512]") + "cp.async.wait_group 2;"
     "ld.shared.b32 %r8, [%r4];"
     "bar.sync 0; add.u32 %r10, %r10, 1; setp.lt.u32 %p1, %r10, 2; @%p1 bra L;", ["PTX567"]),
])  # fmt: skip
def test_copies_of_a_thread(body, codes):
    assert found(body) == codes


MALLOC = """{{ .param .b64 size; .param .b64 given; st.param.b64 [size], 64; call (given), malloc, (size);
ld.param.b64 %d2, [given]; }} {} {{ .param .b64 old; st.param.b64 [old], %d2; call free, (old); }}
"""


@rows(("body", "codes"), [
    ("st.b32 [%d2], %r1;", []),  # each thread has a block of its own
    ("st.b32 [%d2], %r1; ld.b32 %r8, [%d2+4];", []),
])  # fmt: skip
def test_what_calls_give_is_not_known(body, codes):
    outer = ".extern .func (.param .b64 r) malloc (.param .b64 n);\n.extern .func free (.param .b64 p);\n"
    result = parse(text(MALLOC.format(body)).replace(HEAD, HEAD + outer), "k.ptx")
    assert not result.diagnostics
    assert [d.code for d in lint(result.module) if d.code in WALKED] == codes


@rows("threads", [1, 20, 32, 40, 63])
def test_comparisons_with_threads_that_there_are_not(threads):
    for number in (32, 64, 128, 1024):
        body = f"setp.ge.u32 %p1, %r1, {number}; @%p1 bra L; st.shared.b32 [%r4], %r1; L: bar.warp.sync -1;"
        assert found(body, f".reqntid {threads}") == []


def test_what_is_sure_says_so():
    def helps(body: str) -> list[str]:
        return [d.help[0].partition(":")[0] for d in lint(parse(text(body), "k.ptx").module) if d.code == "PTX515"]

    assert helps(STORE + LOAD) == ["certain"]
    assert helps("setp.lt.u32 %p1, %r9, 4; @%p1 bra L;" + STORE + LOAD + "L:") == ["possible"]


def test_work_is_bounded():
    """A loop that never ends, and branches that part threads again and again."""
    parts = "".join(
        f"setp.lt.u32 %p1, %r1, {i % 64}; @%p1 bra L{i}; add.u32 %r4, %r4, 4; L{i}: {STORE}\n" for i in range(300)
    )
    (facts,) = ModuleFacts(parse(text(f"AGAIN: {parts} bra AGAIN;"), "k.ptx").module).functions
    assert calls(lambda: walk_of(facts)) < 3_000_000


@rows("most", [0, 1, 2, 5, 1 << 16])
def test_how_many_names_are_kept_does_not_matter(most, monkeypatch):
    """Those of unknown values, from walk to walk: in a walk none is forgotten, and none is given to another value."""
    monkeypatch.setattr(computing, "_MOST_NAMES", most)
    pairs = {pair.name: pair for pair in bugs.read(bugs.FOLDER / "handed_on.bugs")}
    pair = pairs["blocks_handed_on_as_pairs_of_pointers"]
    for sign, codes in (("-", ["PTX598"]), ("+", [])):
        module = parse(pair.text(sign).replace("b) {", f"b) .reqntid 64 {{ // {most}\n"), "k.ptx").module
        assert [d.code for d in lint(module) if d.code == "PTX598"] == codes
    first = computing.unknown(True, "first")
    computing.begin_program()
    assert first not in (computing.unknown(True, "second"), computing.unknown(False, "third"))
