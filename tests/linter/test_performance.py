"""Rules about what is slow, and about what ptxas does with it, beyond the examples of their pages."""

from ptxtools.linter import lint
from ptxtools.syntax import parse
from tests.rows import rows

REGISTERS = """.reg .pred %p<4>; .reg .b32 %r<20>; .reg .b64 %rd<9>; .reg .f32 %f<9>; .reg .f64 %d<4>;
ld.param.b64 %rd1, [x]; ld.param.b32 %r1, [n]; ld.param.b32 %r2, [n]; ld.param.f64 %d1, [x]; mov.b32 %r3, 0;
.reg .b16 %h<4>; mov.b16 %h1, 4;
setp.eq.u32 %p1, %r1, 0;
"""
LOOP = "L: {} add.u32 %r3, %r3, 1; setp.lt.u32 %p2, %r3, %r1; @%p2 bra L;"


def found(body, target="sm_80", directives="", extra="", version="9.0"):
    """Codes of what is found in a kernel, but for values that nobody uses."""
    text = f".version {version}\n.target {target}\n.address_size 64\n{extra}\n"
    text += f".entry k(.param .b64 x, .param .b32 n) {directives}\n{{\n{REGISTERS}{body}\nret;\n}}\n"
    result = parse(text, "a.ptx")
    return [d.code for d in [*result.diagnostics, *lint(result.module)] if d.code not in ("PTX520", "PTX512")]


@rows(("body", "codes"), [
    (LOOP.format("div.u32 %r4, %r3, %r2;"), ["PTX716"]),
    (LOOP.format("rem.s64 %rd2, %rd3, %rd1;"), ["PTX716"]),
    (LOOP.format("ld.param.b32 %r5, [n]; div.u32 %r4, %r3, %r5;"), ["PTX716"]),
    (LOOP.format("ld.global.b32 %r5, [%rd1]; div.u32 %r4, %r3, %r5;"), []),
    (LOOP.format("div.u32 %r4, %r2, %r3;"), []),  # by the number of the round
    (LOOP.format("add.u32 %r2, %r2, 1; div.u32 %r4, %r3, %r2;"), []),
    (LOOP.format("div.u32 %r4, %r3, 10;"), ["PTX716"]),  # ptxas does not multiply
    (LOOP.format("div.u32 %r4, %r3, 16;"), ["PTX702"]),
    (LOOP.format("div.u16 %h2, %h1, 10;"), []),  # by a factor
    ("div.u32 %r4, %r1, %r2;", []),
    (LOOP.format("div.full.f32 %f1, %f2, %f3;"), []),
    ("@%p1 bra M; L: add.u32 %r3, %r3, 1; M: div.u32 %r4, %r3, %r2; bra L;", []),  # with two ways in
    ("O: mov.b32 %r2, %r3; " + LOOP.format("div.u32 %r4, %r3, %r2;") + " @%p1 bra O;", ["PTX716"]),
])  # fmt: skip
def test_division_by_an_invariant(body, codes):
    assert found(body) == codes


@rows(("body", "codes"), [
    ("cvt.u64.u32 %rd2, %r1; cvt.u64.u32 %rd3, %r2; div.u64 %rd4, %rd2, %rd3;", ["PTX708"]),
    ("cvt.u64.u32 %rd2, %r1; rem.u64 %rd4, %rd2, 10;", ["PTX708", "PTX716"]),
    ("cvt.u64.u32 %rd2, %r1; rem.u64 %rd4, %rd2, 16;", ["PTX702"]),
    ("cvt.u64.u32 %rd2, %r1; div.u64 %rd4, %rd1, %rd2;", []),
    ("cvt.s64.s32 %rd2, %r1; cvt.s64.s32 %rd3, %r2; div.s64 %rd4, %rd2, %rd3;", []),  # -2^31 / -1
    ("cvt.u64.u32 %rd2, %r1; add.u64 %rd2, %rd2, 1; cvt.u64.u32 %rd3, %r2; div.u64 %rd4, %rd2, %rd3;", []),
])  # fmt: skip
def test_wide_division(body, codes):
    assert found(body) == codes


TABLE = ".local .align 4 .b32 t[8]; mov.u32 %r5, t; "
SUM = LOOP.format("ld.local.b32 %r4, [%r5]; st.local.b32 [%r5+4], %r4;")


@rows(("body", "target", "codes"), [
    (TABLE + SUM, "sm_80", ["PTX714"]),
    (TABLE + SUM, "sm_80, debug", ["PTX413"]),  # a module without its DWARF sections
    (TABLE + LOOP.format("st.local.b32 [%r5], %r3;"), "sm_80", []),
    (TABLE + SUM.replace("%r3, %r1;", "%r3, 8;"), "sm_80", []),
    (TABLE + SUM.replace("%r3, %r1;", "%r3, 9;"), "sm_80", ["PTX714"]),
    (TABLE + "ld.local.b32 %r4, [%r5];" + LOOP.format(""), "sm_80", []),
    (TABLE + "O: ld.local.b32 %r4, [%r5]; " + LOOP.format("") + " @%p1 bra O;", "sm_80", []),  # in the outer loop only
])  # fmt: skip
def test_local_memory(body, target, codes):
    assert found(body, target) == codes


@rows(("body", "target", "codes"), [
    (LOOP.format("add.rn.f64 %d1, %d1, %d1;"), "sm_86", ["PTX715"]),
    (LOOP.format("add.rn.f64 %d1, %d1, %d1;"), "sm_80", []),
    (LOOP.format("ld.global.f64 %d2, [%rd1];"), "sm_86", []),
    ("add.rn.f64 %d1, %d1, %d1;", "sm_86", []),
])  # fmt: skip
def test_double_precision(body, target, codes):
    assert found(body, target) == codes


@rows(("body", "directives", "codes"), [
    ("bar.sync 0;", ".reqntid 32", ["PTX718"]),
    ("barrier.sync.aligned 1;", ".maxntid 8, 4", ["PTX718"]),
    ("bar.sync 0;", ".reqntid 32, 2", []),
    ("bar.sync 0;", "", []),
    ("bar.warp.sync -1;", ".reqntid 32", []),
    ("bar.red.popc.u32 %r4, 0, %p1;", ".reqntid 32", []),
])  # fmt: skip
def test_barriers_of_one_warp(body, directives, codes):
    assert found(body, directives=directives) == codes


ROUND = "shr.u32 %r4, %r1, 16; and.b32 %r5, %r4, {}; add.u32 %r6, %r5, {}; add.s32 %r7, %r6, %r1; shr.u32 %r8, %r7, 16;"


@rows(("body", "target", "codes"), [
    (ROUND.format(1, 0x7fff), "sm_80", ["PTX719"]),
    (ROUND.format(1, 0x7fff), "sm_75", []),  # no such cvt
    (ROUND.format(1, 0x8000), "sm_80", []),
    (ROUND.format(3, 0x7fff), "sm_80", []),
    ("add.s32 %r6, %r1, 0x7fff; shr.u32 %r4, %r1, 16; and.b32 %r5, %r4, 1; add.u32 %r7, %r5, %r6; "
     "shr.b32 %r8, %r7, 16;", "sm_90", ["PTX719"]),
    ("shl.b32 %r4, %r1, 16; shr.s32 %r5, %r4, 16;", "sm_80", ["PTX719"]),
    ("shl.b32 %r4, %r1, 16; shr.s32 %r4, %r4, 16; mov.b32 %r5, %r4;", "sm_80", ["PTX719"]),
    ("shl.b32 %r4, %r1, 16; mov.b32 %r5, %r4; shr.s32 %r4, %r4, 16; add.u32 %r5, %r5, %r4;", "sm_80", []),
    ("shr.s32 %r4, %r1, 31; xor.b32 %r1, %r1, %r4; sub.s32 %r1, %r1, %r4;", "sm_80", ["PTX719"]),
    ("shr.s32 %r4, %r1, 31; add.s32 %r1, %r1, 1; xor.b32 %r1, %r1, %r4; sub.s32 %r1, %r1, %r4;", "sm_80", []),
    ("shl.b32 %r4, %r1, 24; shr.s32 %r5, %r4, 16;", "sm_80", []),
    ("shl.b32 %r4, %r1, 16; shr.u32 %r5, %r4, 16;", "sm_80", []),
    ("shr.s32 %r4, %r1, 31; xor.b32 %r5, %r1, %r4; sub.s32 %r6, %r5, %r4;", "sm_80", ["PTX719"]),
    ("shr.s32 %r4, %r1, 31; xor.b32 %r5, %r2, %r4; sub.s32 %r6, %r5, %r4;", "sm_80", []),
])  # fmt: skip
def test_conversions_by_hand(body, target, codes):
    assert found(body, target) == codes


STEP = (
    ".shared .align 256 .b32 s[64]; mov.u32 %r4, %tid.x; shl.b32 %r4, %r4, 2; mov.u32 %r5, s; add.u32 %r5, %r5, %r4; "
)


@rows(("body", "codes"), [
    (STEP + "@%p1 bra M; st.volatile.shared.b32 [%r5], %r1; ld.volatile.shared.b32 %r6, [%r5+4]; M:", ["PTX605"]),
    (STEP + "st.volatile.shared.b32 [%r5], %r1; bar.warp.sync -1; ld.volatile.shared.b32 %r6, [%r5+4];", []),
    (STEP + "st.volatile.shared.b32 [%r5], %r1; ld.volatile.shared.b32 %r6, [%r5];", []),  # its own
    (STEP + "st.volatile.shared.b32 [%r5], %r1; ld.volatile.shared.b32 %r6, [%r5+128];", []),  # another warp's
])  # fmt: skip
def test_lanes_in_step(body, codes):
    assert found(body) == codes


FENCE = "wgmma.fence.sync.aligned;\n"
COMMIT = "wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;\n"
MMA = "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {{{}}}, %rd1, %rd1, 1, 1, 1, 0, 0;\n"
FIRST, SECOND = MMA.format("%f1, %f2, %f3, %f4"), MMA.format("%f5, %f6, %f7, %f8")
CALLED = ".func f() { ret; }"
ONCE_IN_A_WHILE = ".reg .pred p; .reg .b32 r; mov.u32 r, %clock; setp.eq.u32 p, r, 4; @p "
RECURSIVE = f".func f() {{ {ONCE_IN_A_WHILE} call f; ret; }}"
MUTUAL = f".func f(); .func g() {{ {ONCE_IN_A_WHILE} call f; ret; }} .func f() {{ call g; ret; }}"
INDIRECT = "P: .callprototype _ (); mov.b64 %rd5, f; call %rd5, (), P; "


@rows(("body", "extra", "codes"), [  # as ptxas 13.0 reports C7509 to C7511
    (FENCE + FIRST + SECOND + COMMIT, "", []),
    (FENCE + FIRST + COMMIT + FENCE + FIRST + COMMIT, "", []),
    (FENCE + FIRST + COMMIT + FENCE + MMA.format("%f2, %f1, %f3, %f4") + COMMIT, "", ["PTX707"]),
    (FENCE + FIRST + COMMIT + FENCE + MMA.format("%f3, %f4, %f5, %f6") + COMMIT, "", ["PTX707"]),
    (FENCE + FIRST + COMMIT + "call f;", CALLED, []),
    (FENCE + FIRST + COMMIT + "call f;", ".extern .func f();", ["PTX707"]),
    (INDIRECT + FENCE + FIRST + COMMIT, CALLED, ["PTX707"]),
    (INDIRECT, CALLED, []),
    (FENCE + FIRST + COMMIT + "call f;", RECURSIVE, ["PTX707"]),
    (FENCE + FIRST + COMMIT + "call g;", RECURSIVE + ".func g() { call f; ret; }", ["PTX707"]),
    (FENCE + FIRST + COMMIT + "call g;", MUTUAL, ["PTX707"]),
    (FENCE + FIRST + COMMIT + "call g;", ".extern .func f(); .func g() { call f; ret; }", ["PTX707"]),
    (FENCE + FIRST + COMMIT + "call g;", CALLED + ".func g() { call f; ret; }", []),
])  # fmt: skip
def test_serialised_wgmma(body, extra, codes):
    assert found(body, "sm_90a", extra=extra) == codes


DEC = "setmaxnreg.dec.sync.aligned.u32 64;"
ENOUGH = ".reqntid 384 .maxnreg 168"


@rows(("body", "directives", "extra", "codes"), [  # as ptxas 13.0 reports C7504 to C7508
    (DEC, ENOUGH, "", []),
    (DEC, ".reqntid 384", "", ["PTX705"]),
    (DEC, ".reqntid 384 .minnctapersm 1", "", []),
    (DEC + "call f;", ENOUGH, CALLED, []),
    (DEC + "call f;", ENOUGH, RECURSIVE, ["PTX705"]),
    (DEC + "call f;", ENOUGH, ".extern .func f();", ["PTX705"]),
    (DEC + INDIRECT, ENOUGH, CALLED, ["PTX705"]),
    ("call f;", ENOUGH, f".func f() {{ {DEC} ret; }}", []),
    ("call f;", ".reqntid 384", f".func f() {{ {DEC} ret; }}", ["PTX705"]),
    ("call f;", ".reqntid 384", f".func f() {{ ret; }} .func g() {{ {DEC} ret; }}", []),
])  # fmt: skip
def test_setmaxnreg_that_is_ignored(body, directives, extra, codes):
    found_here = found(body, "sm_90a", directives=directives, extra=extra)
    assert [code for code in found_here if code == "PTX705"] == codes


LOADS = (
    "ld.global.b32 %r4, [{0}]; ld.global.b32 %r5, [{0}+4]; ld.global.b32 %r6, [{0}+8]; {1} ld.global.b32 %r7, [{0}+12];"
)
ROW = "mul.wide.u32 %rd2, %r1, {}; mov.u64 %rd3, t; add.u64 %rd3, %rd3, %rd2;"
WIDE = ".global .align 16 .b32 t[64];"


@rows(("body", "extra", "codes"), [
    (LOADS.format("t", ""), WIDE, ["PTX713"]),
    (LOADS.format("t+4", ""), WIDE, []),
    (LOADS.format("t", "").replace("global", "shared"), WIDE.replace("global", "shared"), ["PTX523"]),  # ptxas does it
    (LOADS.format("t", ""), WIDE.replace("16", "8"), []),
    (LOADS.format("t", "st.global.b32 [%rd1], %r3;"), WIDE, []),
    (LOADS.format("t", "bar.sync 0;"), WIDE, []),
    (LOADS.format("t", "add.u32 %r3, %r3, 1;"), WIDE, ["PTX713"]),
    (LOADS.format("t", "@%p1"), WIDE, []),
    (LOADS.format("%rd1", ""), "", []),  # of unknown alignment
    (ROW.format(16) + LOADS.format("%rd3", ""), WIDE, ["PTX713"]),
    (ROW.format(4) + LOADS.format("%rd3", ""), WIDE, []),
    (LOADS.format("t", "").replace("ld.global", "ld.volatile.global"), WIDE, []),
    ("ld.global.f64 %d2, [t+8]; ld.global.f64 %d3, [t];", WIDE, ["PTX713"]),
    ("ld.global.f64 %d2, [t+8]; ld.global.b64 %rd3, [t];", WIDE, []),
])  # fmt: skip
def test_loads_that_could_be_one(body, extra, codes):
    assert found(body, extra=extra) == codes


def _carrying(count, step="fma.rn.f32 {0}, {1}, {2}, {0};", type=".f32"):
    """A loop that carries registers."""
    names = [f"%c{n}" for n in range(count)]
    lines = [
        f".reg {type} %c<{count}>; .reg .f32 %z;",
        *(f"mov{'.b64' if type == '.b64' else '.b32'} {n}, 1;" for n in names),
        "L:",
    ]
    lines += [step.format(n, names[(i + 1) % count], names[(i + 2) % count]) for i, n in enumerate(names)]
    return "\n".join([*lines, "setp.lt.u32 %p1, %r1, %r2;", "@%p1 bra L;"])


@rows(("body", "directives", "codes"), [
    (_carrying(33), ".maxnreg 32", ["PTX720"]),  # what ptxas 13.0 spills
    (_carrying(32), ".maxnreg 32", []),
    (_carrying(33), "", []),
    (_carrying(24), ".maxnreg 8", []),  # ptxas goes no lower than 24
    (_carrying(25), ".maxnreg 8", ["PTX720"]),
    (_carrying(65), ".maxntid 1024", ["PTX720"]),
    (_carrying(64), ".maxntid 1024", []),
    (_carrying(65), ".reqntid 512, 1, 1 .minnctapersm 2", ["PTX720"]),
    (_carrying(65), ".maxntid 512", []),
    (_carrying(33, "mad.lo.u64 {0}, {1}, {2}, {0};", ".b64"), ".maxntid 1024", ["PTX720"]),
    (_carrying(32, "mad.lo.u64 {0}, {1}, {2}, {0};", ".b64"), ".maxntid 1024", []),
    (_carrying(65, "add.u32 {0}, {0}, 4;", ".b32"), ".maxntid 1024", []),  # counters: one is enough
])  # fmt: skip
def test_loops_that_carry_more_than_the_registers_hold(body, directives, codes):
    assert [code for code in found(body, directives=directives) if code == "PTX720"] == codes


def test_what_a_round_writes_before_it_reads_is_not_carried():
    lines = _carrying(65).split("\n")
    place = lines.index("L:") + 1
    lines[place:place] = ["mov.b32 %c9, 0;"]
    body = "\n".join(lines)
    assert "PTX720" not in found(body, directives=".maxntid 1024")


TYPES = "mov.f32 %f1, 0f3f800000;"


@rows(("body", "count"), [
    ("cvt.u64.u32 %rd2, %r1; cvt.u32.u64 %r5, %rd2;", 1),
    ("cvt.s64.s32 %rd2, %r1; cvt.s32.s64 %r5, %rd2;", 1),
    ("cvt.u64.u32 %rd2, %r1; cvt.u32.u64 %r5, %rd2; add.u64 %rd3, %rd2, %rd1;", 0),  # the low half is for nothing
    ("cvt.u32.u64 %r5, %rd1; cvt.u64.u32 %rd2, %r5;", 0),
    ("cvt.u32.s32 %r5, %r1;", 1), ("cvt.sat.u32.s32 %r5, %r1;", 0), ("cvt.rni.f32.f32 %f2, %f1;", 0),
    ("cvt.u32.u16 %r5, %h1; cvt.u64.u32 %rd2, %r5;", 1),
    ("cvt.u32.u16 %r5, %h1; cvt.u64.u32 %rd2, %r5; add.u32 %r6, %r5, 1;", 0),
    ("cvt.s32.s16 %r5, %h1; cvt.u64.u32 %rd2, %r5;", 0),  # the sign goes half of the way
    ("cvt.u32.u16 %r5, %h1; cvt.s64.s32 %rd2, %r5;", 1),
    ("cvt.u32.u64 %r5, %rd1; cvt.u16.u32 %h2, %r5;", 1),
    ("cvt.u16.u32 %h2, %r1; cvt.u32.u16 %r5, %h2;", 0),
    ("cvt.f64.f32 %d2, %f1; cvt.rn.f32.f64 %f2, %d2; add.f64 %d3, %d2, %d1;", 1),
    ("cvt.rn.f32.f64 %f2, %d1; cvt.f64.f32 %d2, %f2;", 0),
    ("cvta.to.global.u64 %rd2, %rd1; cvta.to.global.u64 %rd3, %rd1;", 1),
    ("cvta.to.global.u64 %rd2, %rd1; cvta.global.u64 %rd3, %rd2;", 1),
    ("cvta.shared.u64 %rd2, %rd1; cvta.to.global.u64 %rd3, %rd2;", 0),
    ("cvta.to.global.u64 %rd2, %rd1; @%p1 bra L; cvta.to.global.u64 %rd3, %rd1; L:", 1),
    ("@%p1 bra L; cvta.to.global.u64 %rd3, %rd1; L: cvta.to.global.u64 %rd2, %rd1;", 0),
    ("cvta.to.global.u64 %rd2, %rd1; bra M; M: cvta.to.global.u64 %rd3, %rd1;", 1),
])  # fmt: skip
def test_needless_conversions(body, count):
    assert found(TYPES + body).count("PTX710") == count


@rows(("body", "codes"), [
    ("mov.u32 %r4, %tid.x; shl.b32 %r4, %r4, 7; red.shared.add.u32 [%r4], 1;", ["PTX711"]),
    ("mov.u32 %r4, %tid.x; shl.b32 %r4, %r4, 2; red.shared.add.u32 [%r4], 1;", []),
])  # fmt: skip
def test_bank_conflicts_of_atomic_operations(body, codes):
    assert [code for code in found(body, directives=".reqntid 32") if code == "PTX711"] == codes
