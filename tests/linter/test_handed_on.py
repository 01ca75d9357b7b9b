"""What threads have from others in shared memory, and arrivals of a whole CTA: of doubtful cases nothing is said."""

from ptxtools.linter import lint
from ptxtools.syntax import parse
from tests.rows import rows

KERNEL = """.version 8.0
.target sm_90
.address_size 64
.extern .func (.param .b64 r) malloc (.param .b64 n);
.extern .func free (.param .b64 p);
.extern .shared .align 8 .b8 x[]; .extern .shared .align 8 .b8 y[];
.entry k(.param .b64 a, .param .b32 c) .reqntid {} {{
.reg .pred %p<9>; .reg .b32 %r<32>; .reg .b64 %d<9>; .shared .align 1024 .b8 s[8192]; .shared .align 8 .b64 bar[2];
.shared .align 4 .b32 t[64]; .local .align 8 .b8 v[16];
ld.param.b64 %d1, [a]; ld.param.b32 %r10, [c]; mov.u32 %r1, %tid.x; mov.u32 %r2, s; shl.b32 %r3, %r1, 3;
add.u32 %r3, %r3, %r2; and.b32 %r4, %r1, 31; shr.u32 %r5, %r1, 5; setp.eq.u32 %p1, %r1, 0; setp.eq.u32 %p2, %r4, 0;
mov.u32 %r6, t; mov.u32 %r7, bar; mov.b64 %d2, 0;
"""
CODES = ("PTX506", "PTX532", "PTX543", "PTX545", "PTX598", "PTX615")


def found(body: str, threads: int) -> list[str]:
    result = parse(f"{KERNEL.format(threads)}{body}\nret;\n}}\n", "k.ptx")
    assert not result.diagnostics, result.diagnostics
    return [f"{d.code} {d.help[0].partition(':')[0]}" for d in lint(result.module) if d.code in CODES]


#: An index to t that each thread has from its neighbour, in elements; where it is loaded, and used.
GIVE = "add.u32 %r8, %r1, {}; st.shared.b32 [%r3], %r8;"
TAKE = "xor.b32 %r9, %r3, 8; ld.shared.b32 %r11, [%r9];"
USE = "mad.lo.u32 %r12, %r11, 4, %r6; st.shared.b32 [%r12], 1;"
BEYOND = GIVE.format(32)  # for 64 threads, of which the second half then is too far
SYNC = "bar.sync 0;"
NULL = "@%p1 st.shared.b64 [s+4096], %d2; bar.sync 0;"
READ = "bar.sync 0; ld.shared.b64 %d3, [s+4096]; st.b32 [%d3], 1;"
LOOP = "mov.u32 %r13, 0; L: {} add.u32 %r13, %r13, 1; setp.lt.u32 %p3, %r13, %r10; @%p3 bra L;"


@rows(("body", "threads", "codes"), [
    (BEYOND + SYNC + TAKE + USE, 64, ["PTX545 certain"]),
    (GIVE.format(0) + SYNC + TAKE + USE, 64, []),
    (BEYOND + TAKE + USE, 64, []),  # a race: which one it is nobody knows
    (BEYOND + SYNC + "st.shared.b16 [%r3+2], 0;" + SYNC + TAKE + USE, 64, []),  # half of it is another one
    (BEYOND + SYNC + "st.shared.b64 [%r3], %d2;" + SYNC + TAKE + USE, 64, []),  # all of it
    (BEYOND + SYNC + "ld.global.b64 %d4, [%d1]; st.b32 [%d4], 0;" + SYNC + TAKE + USE, 64, []),  # anywhere
    (BEYOND + SYNC + "st.global.b32 [%d1], 0;" + TAKE + USE, 64, ["PTX545 certain"]),
    (BEYOND + SYNC + "setp.lt.u32 %p4, %r10, 4; @%p4 st.shared.b32 [%r3], 0;" + SYNC + TAKE + USE, 64, []),
    (BEYOND + SYNC + LOOP.format("st.shared.b32 [%r3], %r13;") + SYNC + TAKE + USE, 64, []),
    (BEYOND + SYNC + "red.shared.and.b32 [%r3], 31;" + SYNC + TAKE + USE, 64, []),
    (BEYOND + SYNC + "@%p1 st.shared.v2.b32 [%r2+504], {1, 1};" + SYNC + TAKE + USE, 64, ["PTX545 certain"]),
    (BEYOND + SYNC + TAKE + USE.replace("st", "@%p1 st"), 64, []),  # thread 0 has that of thread 1
    ("st.shared.b8 [%r3], -1;" + SYNC + "ld.shared.s8 %r11, [%r3]; add.s32 %r11, %r11, 1;" + USE, 64, []),
    ("st.shared.b8 [%r3], -1;" + SYNC + "ld.shared.u8 %r11, [%r3];" + USE, 64, ["PTX545 certain"]),
    ("mov.u32 %r14, x; mov.u32 %r15, y; st.shared.b32 [%r14], 99; bar.sync 0; st.shared.b32 [%r15], 1; bar.sync 0;"
     " ld.shared.b32 %r11, [%r14];" + USE, 64, []),  # both are at one place
    (NULL + READ, 64, ["PTX543 certain"]),
    ("setp.ne.u32 %p4, %r10, 0; @%p4 st.global.b32 [%d2], 1;", 64, ["PTX543 possible"]),
    ("setp.lt.u32 %p4, %r1, 40; @%p4 st.global.b32 [%d2], 1;", 64, ["PTX543 certain"]),
    ("setp.eq.u32 %p4, %r10, 0; @%p4 bra L; mov.b64 %d5, 0; setp.ne.u64 %p5, %d5, 0; @%p5 st.b32 [%d5], 1; L:", 64, []),
    (NULL + "setp.eq.u32 %p4, %r1, 33; @%p4 st.shared.b64 [s+4096], %d1;" + READ, 64, []),
    (NULL + "setp.eq.u32 %p4, %r1, 200; @%p4 st.shared.b64 [s+4096], %d1;" + READ, 256, []),  # no walk comes there
    (NULL + "setp.eq.u32 %p4, %r1, 33; @%p4 st.shared.b64 [s+4104], %d1;" + READ, 256, ["PTX543 certain"]),
    (NULL + "bar.sync 0; ld.shared.b64 %d3, [s+4096]; setp.ne.u64 %p4, %d3, 0; @%p4 st.b32 [%d3], 1;", 64, []),
])  # fmt: skip
def test_numbers(body, threads, codes):
    assert found(body, threads) == codes


MALLOC = "{ .param .b64 n; .param .b64 r; st.param.b64 [n], 16; call (r), malloc, (n); ld.param.b64 %d4, [r]; }\n"
FREE = "{{ .param .b64 p; st.param.b64 [p], {0}; call free, (p); }}\n"
TWICE = FREE.format("%d1") + FREE.format("%d1")
HAND = MALLOC + "st.b32 [%d4], 1; st.shared.b64 [%r3], %d4; bar.sync 0; xor.b32 %r9, %r3, 8; ld.shared.b64 %d5, [%r9];"
LOCAL = "mov.b64 %d4, v; cvta.local.u64 %d4, %d4; st.b32 [%d4], 1;"


@rows(("body", "threads", "codes"), [
    (HAND + FREE.format("%d5") + "bar.sync 0; ld.b32 %r8, [%d4];", 64, ["PTX598 certain"]),
    (HAND + "ld.b32 %r8, [%d4]; bar.sync 0;" + FREE.format("%d5"), 64, []),
    (HAND + FREE.format("%d5") + "ld.b32 %r8, [%d4];", 64, []),  # a race, of which it is not certain who is first
    (HAND + "bar.sync 0;" + FREE.format("%d4") + FREE.format("%d5"), 64, ["PTX598 certain"]),
    (HAND + "st.b32 [%d5+12], 1; bar.sync 0;" + FREE.format("%d5"), 64, []),
    (HAND + "st.b32 [%d5+16], 1; bar.sync 0;" + FREE.format("%d5"), 64, ["PTX598 certain"]),
    (HAND + "add.u64 %d5, %d5, 8; bar.sync 0;" + FREE.format("%d5"), 64, ["PTX598 certain"]),
    (HAND + "setp.lt.u32 %p4, %r10, 4; @%p4 bra L;" + FREE.format("%d5") + "L: bar.sync 0; @%p4 ld.b32 %r8, [%d4];", 64,
     []),
    (TWICE, 32, ["PTX598 possible"]),  # free ignores a null pointer
    ("setp.eq.u64 %p4, %d1, 0; @%p4 bra L; bra E; L:" + TWICE + "E:", 32, []),
    ("setp.ne.u64 %p4, %d1, 0; @%p4 bra L; " + TWICE + "L:", 32, []),
    ("setp.ne.u64 %p4, %d1, 0; @%p4 bra L; bra E; L:" + TWICE + "E:", 32, ["PTX598 possible"]),
    ("setp.eq.u64 %p4, %d1, 0; @%p4 bra L; L:" + TWICE, 32, ["PTX598 possible"]),
    (MALLOC + "setp.ne.u64 %p4, %d4, 0; @%p4 bra L;" + 2 * FREE.format("%d4") + "L:", 32, []),
    (MALLOC + "setp.eq.u64 %p4, %d4, 0; @%p4 bra L;" + 2 * FREE.format("%d4") + "L:", 32, ["PTX598 certain"]),
    (LOCAL + "st.shared.b64 [%r3], %d4; bar.sync 0; ld.shared.b64 %d5, [%r3]; ld.b32 %r8, [%d5];", 64, []),
    (LOCAL + "st.shared.b64 [%r3], %d4; bar.sync 0; xor.b32 %r9, %r3, 8; ld.shared.b64 %d5, [%r9]; ld.b32 %r8, [%d5];",
     64, ["PTX615 certain"]),
    (LOCAL + "st.shared.b64 [s], %d4; bar.sync 0; ld.shared.b64 %d5, [s]; ld.b32 %r8, [%d5];", 64, []),  # all have it
])  # fmt: skip
def test_pointers(body, threads, codes):
    assert found(body, threads) == codes


INIT = "@%p1 mbarrier.init.shared.b64 [bar], {}; bar.sync 0;"
WAIT = "{0}: mbarrier.try_wait.parity.shared.b64 %p7, [bar], {1}; @!%p7 bra {0};"
EACH = "mbarrier.arrive.shared.b64 _, [bar];"
ARRIVE = "@%p2 " + EACH
BELOW = "setp.ge.u32 %p3, %r5, {}; @%p3 bra L;"  # warps
STAGES = """@%p1 mbarrier.init.shared.b64 [bar], 1; @%p1 mbarrier.init.shared.b64 [bar+8], {}; bar.sync 0;
mov.u32 %r8, 0; mov.u32 %r9, 0; setp.ne.u32 %p3, %r5, 0; @%p3 bra C;
P: xor.b32 %r11, %r8, 1;
E: mbarrier.try_wait.parity.shared.b64 %p4, [bar+8], %r11; @!%p4 bra E;
bar.warp.sync -1; @%p2 mbarrier.arrive.shared.b64 _, [bar];
xor.b32 %r8, %r8, 1; add.u32 %r9, %r9, 1; setp.lt.u32 %p5, %r9, 4; @%p5 bra P; bra D;
C: mbarrier.try_wait.parity.shared.b64 %p4, [bar], %r8; @!%p4 bra C;
bar.warp.sync -1; @%p2 mbarrier.arrive.shared.b64 _, [bar+8];
xor.b32 %r8, %r8, 1; add.u32 %r9, %r9, 1; setp.lt.u32 %p5, %r9, 4; @%p5 bra C;
D:"""  # a warp fills a buffer and the others empty it
ELECT = "elect.sync %r8|%p4, {};"


@rows(("body", "threads", "codes"), [
    (INIT.format(2) + ARRIVE + WAIT.format("L", 0), 96, ["PTX506 certain"]),
    (INIT.format(3) + ARRIVE + WAIT.format("L", 0), 96, []),
    (INIT.format("%r10") + ARRIVE + WAIT.format("L", 0), 96, []),  # a parameter
    (INIT.format(1) + ARRIVE + WAIT.format("L", 0) + WAIT.format("M", 1), 32, []),
    (INIT.format(2) + ARRIVE + WAIT.format("L", 0) + WAIT.format("M", 1), 128, []),  # two phases, one for two warps
    (INIT.format(2) + ARRIVE + WAIT.format("L", 0) + WAIT.format("M", 1), 96, ["PTX506 certain"]),
    (INIT.format(2) + ARRIVE + WAIT.format("L", 0), 128, ["PTX506 certain"]),
    (INIT.format(2) + BELOW.format(2) + ARRIVE + WAIT.format("L", 0), 96, []),
    (INIT.format(64) + BELOW.format(2) + EACH + WAIT.format("L", 0), 128, []),
    (INIT.format(64) + BELOW.format(3) + EACH + WAIT.format("L", 0), 128, ["PTX506 certain"]),
    (INIT.format(2) + ELECT.format(-1) + "@%p4 " + EACH + WAIT.format("L", 0), 96, ["PTX506 certain"]),
    (INIT.format(3) + ELECT.format(-1) + "@%p4 " + EACH + WAIT.format("L", 0), 96, []),
    (INIT.format(2) + ELECT.format(-1) + "@!%p4 bra L;" + EACH + WAIT.format("L", 0), 96, ["PTX506 certain"]),
    (INIT.format(2) + BELOW.format(2) + ELECT.format(-1) + "@!%p4 bra L;" + EACH + WAIT.format("L", 0), 96, []),
    (INIT.format(4) + ARRIVE.replace("]", "], 2") + WAIT.format("L", 0), 96, ["PTX506 certain"]),
    (INIT.format(6) + ARRIVE.replace("]", "], 2") + WAIT.format("L", 0), 96, []),
    (INIT.format(2) + ARRIVE.replace("]", "], %r10") + WAIT.format("L", 0), 96, []),
    (INIT.format(2) + ARRIVE.replace("@%p2", "@%p1") + WAIT.format("L", 0) + ARRIVE, 96, []),  # they know of one
    (INIT.format(2) + ARRIVE, 96, []),  # nobody waits
    (INIT.format(2) + BELOW.format(2) + ARRIVE + "L: bar.sync 0; setp.lt.u32 %p3, %r5, 2; @%p3 bra M;" + ARRIVE
     + WAIT.format("M", 0), 96, []),  # they know of the first two
    (STAGES.format(2), 128, ["PTX506 certain"]),
    (STAGES.format(3), 128, []),
    (STAGES.format(1), 64, []),
    (STAGES.format("%r10"), 128, []),
])  # fmt: skip
def test_arrivals(body, threads, codes):
    assert [code for code in found(body, threads) if code.startswith("PTX506")] == codes


@rows(("body", "codes"), [
    ("setp.eq.u32 %p3, %r5, 2; @%p3 bra T; bar.arrive 1, 64; bra E; T: bar.sync 1, 64; E:", ["PTX532 possible"]),
    ("setp.eq.u32 %p3, %r5, 2; @%p3 bra T; bar.arrive 1, 96; bra E; T: bar.sync 1, 96; E:", []),
])  # fmt: skip
def test_barriers(body, codes):
    assert found(body, 96) == codes
