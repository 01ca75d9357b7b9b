"""Warning rules at their edges; the plain cases are the examples of their pages."""

import pytest

from ptxtools.linter import lint
from ptxtools.syntax import parse
from tests.rows import rows

HEAD = ".version 8.0\n.target sm_80\n.address_size 64\n"
REGISTERS = """.reg .pred %p<4>; .reg .b16 %h<4>; .reg .b32 %r<8>; .reg .b64 %rd<4>;
mov.b16 %h1, 0; mov.b32 %r1, 0; mov.b32 %r2, 0; mov.b64 %rd1, 4096;
"""


def reported(body, head=HEAD):
    text = f"{head}.entry k()\n{{\n{REGISTERS}{body}\nret;\n}}\n"
    result = parse(text, "a.ptx")
    return [*result.diagnostics, *lint(result.module)]


def found(body, head=HEAD):
    return [d.code for d in reported(body, head)]


@rows(("body", "codes"), [
    ("add.u16 %h1, %h1, 65535;", []),
    ("add.u16 %h1, %h1, -32768;", []),
    ("add.u16 %h1, %h1, -32769;", ["PTX501"]),
    ("mov.u32 %r1, 0x1ffffffff;", ["PTX501"]),
    ("mov.b32 %r1, -1;", []),
    ("mov.u64 %rd1, 0xffffffffffffffff;", []),
    ("mov.f32 %r1, 0f3f800000;", []),
    ("shl.b32 %r1, %r1, 31;", []),
    ("shl.b32 %r1, %r1, %r2;", []),
    ("shr.s64 %rd1, %rd1, 64;", ["PTX502"]),
    ("rem.u32 %r1, %r1, 0;", ["PTX503"]),
    ("div.s32 %r1, %r1, 8;", ["PTX702"]),
    ("mov.b32 %r3, 0; div.u32 %r4, %r1, %r3;", ["PTX503"]),
    ("mov.b32 %r3, 1; div.u32 %r4, %r1, %r3;", []),
    ("xor.b32 %r3, %r1, %r1; rem.s32 %r4, %r1, %r3;", ["PTX503"]),
    ("mov.b32 %r3, 4; sub.u32 %r3, %r3, 4; div.s32 %r4, %r1, %r3;", ["PTX503"]),
    ("mov.b32 %r3, 4; L: sub.u32 %r3, %r3, 4; div.s32 %r4, %r1, %r3; setp.eq.u32 %p1, %r4, 0; @%p1 bra L;", []),
    ("mov.b32 %r3, 0; @%p1 mov.b32 %r3, 3; div.s32 %r4, %r1, %r3;", []),
    ("mov.b32 %r3, 0; cvt.u64.u32 %rd2, %r3; rem.u64 %rd3, %rd1, %rd2;", ["PTX503"]),
    ("mov.b32 %r3, 40; shl.b32 %r4, %r1, %r3;", ["PTX502"]),
    ("mov.b32 %r3, 31; add.u32 %r3, %r3, 1; shr.u32 %r4, %r1, %r3;", ["PTX502"]),
    ("mov.b32 %r3, 31; shr.u32 %r4, %r1, %r3;", []),
    ("rem.u32 %r1, %r1, 1;", []),
    ("rem.u64 %rd1, %rd1, 4096;", ["PTX702"]),
    ("mov.b32 %r3, 16; div.u32 %r1, %r1, %r3;", ["PTX702"]),
    ("mov.b32 %r3, 17; div.u32 %r1, %r1, %r3;", ["PTX716"]),
    ("div.rn.f32 %r1, %r1, 0f00000000;", []),
    ("setp.eq.s32 %p1|_, %r1, %r2;", []),
    ("setp.eq.s32 _|%p1, %r1, %r2;", []),
])  # fmt: skip
def test_constants(body, codes):
    assert found(body) == codes


@pytest.mark.parametrize(("body", "codes"), [
    ("bra L; L: ret;", []),
    ("@%p1 bra L; add.s32 %r1, %r1, 1; L: mov.pred %p1, 1;", ["PTX521"]),
    ("ret; add.s32 %r1, %r1, 1;", ["PTX510"]),
    ("ret; add.s32 %r1, %r1, 1; add.s32 %r1, %r1, 2;", ["PTX510"]),
    ("ret; trap;", []),
    ("{ exit; } mov.b32 %r1, 1;", ["PTX510"]),
    ("exit; L: mov.b32 %r1, 1;", ["PTX510"]),
    ("setp.eq.u32 %p1, %r1, 1; @%p1 bra L; exit; L: mov.b32 %r1, 1;", []),
    ("T: .branchtargets L, M; brx.idx %r1, T; L: exit; M: mov.b32 %r1, 1;", []),
    ("T: .branchtargets L, L; brx.idx %r1, T; L: exit; M: mov.b32 %r1, 1;", ["PTX510"]),
])  # fmt: skip
def test_unreachable_code(body, codes):
    assert found(body) == codes


@pytest.mark.parametrize(("text", "codes"), [
    (".func f() { }", ["PTX511"]),
    (".func f() { ret; }", []),
    (".func f() { .reg .pred p; mov.pred p, 1; @p ret; }", ["PTX511"]),
    (".func f() { L: bra L; }", []),
    (".func f() { ret; END: }", []),
    (".func f() { .reg .pred p; mov.pred p, 1; @p bra END; ret; END: }", ["PTX511"]),
    (".func g() .noreturn { trap; } .func f() { call g; }", []),
    (".func g() { ret; } .func f() { call g; }", ["PTX511"]),
    (".func f() { { ret; } }", []),
])  # fmt: skip
def test_end_of_body(text, codes):
    assert [d.code for d in lint(parse(HEAD + text, "a.ptx").module)] == codes


@pytest.mark.parametrize(("body", "codes"), [
    ("add.s32 %r1, %r7, 1;", ["PTX520"]),
    ("mov.b32 %r1, %r7;", []),
    ("@%p3 bra L; L:", ["PTX520"]),
    ("@%p1 mov.b32 %r7, 1; add.s32 %r1, %r7, 1; mov.pred %p1, 1;", ["PTX522"]),
    (".reg .v2 .b32 v; mov.b32 v.x, 1; add.s32 %r1, v.x, 1;", []),
    ("{ .reg .b32 x; mov.b32 x, 1; } { .reg .b32 x; add.s32 %r1, x, 1; }", ["PTX520"]),
    ("ld.global.v2.b32 {%r6, %r7}, [%rd1]; add.s32 %r1, %r6, %r7;", []),
    ("st.global.b32 [%rd3], %r1;", ["PTX520"]),
    ("shfl.sync.down.b32 %r1, %r7, 1, 31, -1;", []),  # padding of a structure, perhaps
    ("shfl.sync.down.b32 %r1, %r7, %r7, 31, -1;", ["PTX520"]),
    ("mov.b32 %r3, {%h1, %h2}; st.global.b32 [%rd1], %r3;", ["PTX520"]),
    ("mov.b32 %r3, {%h1, %h2}; add.u32 %r4, %r3, 1;", ["PTX520"]),
    ("mov.b32 %r3, {%h1, %h2}; add.f16x2 %r4, %r3, %r3;", []),  # half by half
    ("mov.b32 %r3, {%h1, %h2}; and.b32 %r4, %r3, 0xffff;", []),
    ("mov.b32 %r3, {%h1, %h1}; st.global.b32 [%rd1], %r3;", []),
])  # fmt: skip
def test_registers_that_nothing_writes(body, codes):
    assert found(body) == codes


@pytest.mark.parametrize(("operands", "codes"), [
    ("%p1, %b1, [%rd1], %rd2", []),
    ("%p1, %b1, [%rd1], %rd9", ["PTX520"]),
    ("%p1, [%rd1], %rd2", ["PTX520"]),
])  # fmt: skip
def test_results_are_those_of_the_operand_list_that_is_written(operands, codes):
    """With a second result every operand has moved by one."""
    text = f"""
.version 9.5
.target sm_100a
.address_size 64
.entry k() {{
    .reg .pred %p1; .reg .b8 %b1; .reg .b16 %h1; .reg .b64 %rd1, %rd2, %rd9;
    mov.b64 %rd1, 4096; mov.b64 %rd2, 0; mbarrier.init.b64 [%rd1], 1; bar.sync 0;
    mbarrier.test_wait.phase_type::primary.b64 {operands};
    cvt.u16.u8 %h1, %b1; @%p1 st.global.b16 [%rd1], %h1;
    ret;
}}
"""
    assert [d.code for d in lint(parse(text, "a.ptx").module) if d.code == "PTX520"] == codes


@pytest.mark.parametrize(("condition", "codes"), [
    ("mov.u32 %r6, %tid.x; setp.eq.u32 %p2, %r6, 0;", ["PTX530"]),
    ("mov.u32 %r6, %laneid; setp.ne.u32 %p2, %r6, 0;", ["PTX530"]),
    ("mov.u32 %r6, %tid.x; setp.lt.u32 %p2, %r6, 64;", []),
    ("mov.u32 %r6, %tid.x; setp.lt.u32 %p2, %r6, 65;", ["PTX530"]),
    ("mov.u32 %r6, %tid.x; setp.gt.u32 %p2, %r6, 31;", []),
    ("mov.u32 %r6, %ctaid.x; setp.eq.u32 %p2, %r6, 0;", []),
    ("mov.u32 %r6, %tid.x; shr.u32 %r6, %r6, 5; setp.eq.u32 %p2, %r6, 0;", []),
    ("ld.global.b32 %r6, [%rd1]; setp.eq.u32 %p2, %r6, 0;", []),
])  # fmt: skip
def test_divergent_barriers(condition, codes):
    assert found(f"{condition} @%p2 bar.sync 0;") == codes


def test_an_unaligned_barrier_may_diverge():
    assert found("mov.u32 %r6, %laneid; setp.eq.u32 %p2, %r6, 0; @%p2 barrier.sync 1, 32;") == []


@pytest.mark.parametrize(("body", "codes"), [
    (".shared .b32 t[4]; ld.shared.b32 %r1, [t+12];", []),
    (".shared .b32 t[4]; ld.shared.b32 %r1, [t+16];", ["PTX540"]),
    (".shared .b32 t[4]; ld.shared.b32 %r1, [t+-4];", ["PTX540"]),
    (".shared .align 16 .b32 t[4]; ld.shared.v4.b32 {%r1,%r2,%r3,%r4}, [t];", []),
    (".shared .align 16 .b32 t[6]; ld.shared.v4.b32 {%r1,%r2,%r3,%r4}, [t+4];", ["PTX541"]),
    (".shared .align 16 .b32 t[6]; ld.shared.v4.b32 {%r1,%r2,%r3,%r4}, [t+16];", ["PTX540"]),
    (".shared .align 8 .b8 t[16]; ld.shared.b8 %r1, [t+15];", []),
    (".shared .align 8 .b8 t[16]; ld.shared.u16 %r1, [t+3];", ["PTX541"]),
    (".shared .b32 t[4]; atom.shared.add.u32 %r1, [t+16], 1;", ["PTX540"]),
    (".shared .b32 t[4]; ld.b32 %r1, [t];", ["PTX701"]),
    (".shared .b32 t[4]; ld.volatile.b32 %r1, [t];", ["PTX701"]),
    ("ld.b32 %r1, [%rd1];", []),
    ("ld.global.b32 %r1, [%r1];", ["PTX242", "PTX543"]),
    ("ld.shared.b32 %r1, [%r1];", []),
])  # fmt: skip
def test_known_addresses(body, codes):
    assert [code for code in found(body) if code not in ("PTX523", "PTX527")] == codes


def test_sizes_of_other_modules_are_not_known():
    text = HEAD + ".extern .shared .b32 t[]; .entry k() { .reg .b32 r; ld.shared.b32 r, [t+400]; ret; }"
    assert lint(parse(text, "a.ptx").module) == []


@pytest.mark.parametrize(("directives", "codes"), [
    (".maxntid 1024", []),
    (".maxntid 1025", ["PTX550"]),
    (".reqntid 32, 8, 8", ["PTX550"]),
    (".reqntid 32, 32", []),
    (".maxnreg 255", []),
    (".maxnreg 300", ["PTX554"]),
    (".reqntid 128 .minnctapersm 4", []),
    (".maxntid 128 .maxntid 128", ["PTX553"]),
    ('.pragma "nounroll";', []),
    ('.pragma "nonsense";', ["PTX555"]),
])  # fmt: skip
def test_directives(directives, codes):
    assert [d.code for d in lint(parse(f"{HEAD}.entry k() {directives} {{ ret; }}", "a.ptx").module)] == codes


@pytest.mark.parametrize(("head", "codes"), [
    (".version 6.3\n.target sm_70\n.address_size 64\n", ["PTX601"]),
    (".version 6.4\n.target sm_62\n.address_size 64\n", ["PTX601"]),
    (".version 6.4\n.target sm_70\n.address_size 64\n", ["PTX307"]),
])  # fmt: skip
def test_deprecation_ends_in_removal(head, codes):
    assert found("shfl.idx.b32 %r1, %r1, 0, 31;", head) == codes


STORES = "st.global.b32 [%rd1], %r1; {} st.{}global.b32 [%rd1+4], %r1;"


@rows(("body", "codes"), [
    (STORES.format("fence.acq_rel.gpu;", ""), ["PTX558"]),
    (STORES.format("fence.sc.gpu;", ""), []),
    (STORES.format("membar.gl;", ""), []),
    (STORES.format("fence.acq_rel.gpu; bar.sync 0;", ""), []),
    (STORES.format("fence.acq_rel.gpu;", "volatile."), []),
    (STORES.format("fence.acq_rel.gpu;", "relaxed.gpu."), []),
    (STORES.format("fence.acq_rel.sys;", "relaxed.gpu."), []),
    (STORES.format("fence.acq_rel.gpu;", "relaxed.sys."), ["PTX558"]),
    (STORES.format("fence.sc.cta;", "relaxed.gpu."), ["PTX558"]),
    (STORES.format("fence.acq_rel.cta;", "release.gpu."), []),
    (STORES.format("fence.acq_rel.cta; fence.acq_rel.gpu;", "relaxed.gpu."), []),
    (STORES.format("fence.acq_rel.cta; red.relaxed.cta.global.add.u32 [%rd1], 1;", "relaxed.gpu."), []),
    ("fence.acq_rel.cta; atom.global.add.u32 %r1, [%rd1], 1;", []),
    ("ld.relaxed.gpu.global.u32 %r1, [%rd1]; fence.acq_rel.cta; ld.global.u32 %r2, [%rd1+4];", ["PTX558"]),
    ("ld.acquire.gpu.global.u32 %r1, [%rd1]; fence.acq_rel.cta; ld.global.u32 %r2, [%rd1+4];", []),
])  # fmt: skip
def test_fences(body, codes):
    """A fence needs a strong access beside it, and no smaller scope than that has."""
    assert found(body) == codes


@rows(("body", "section"), [
    (STORES.format("fence.acq_rel.gpu;", ""), "8.8"),
    (STORES.format("fence.sc.cta;", "relaxed.gpu."), "8.9.4"),
])  # fmt: skip
def test_what_orders_too_little_cites_the_axiom(body, section):
    (warning,) = reported(body)
    assert warning.section == f"{section}, 8.10.6 (Causality)"


#: A kernel whose threads are a number of bytes apart, from %tid.x.
APART = "mov.u32 %r1, %tid.x; mul.wide.u32 %rd2, %r1, {}; add.u64 %rd1, %rd1, %rd2;\n"
LOAD = "ld.global.b32 %r2, [%rd1+{}];\n"


@rows(("body", "codes"), [
    (APART.format(32) + LOAD.format(0), []),
    (APART.format(64) + LOAD.format(0), ["PTX712"]),
    (APART.format(64) + LOAD.format(0) + LOAD.format(32), ["PTX712"] * 2),
    (APART.format(76) + "".join(LOAD.format(4 * n) for n in range(19)), []),  # the thread goes on with the next words
    (APART.format(64) + "".join(LOAD.format(4 * n) for n in range(8)), ["PTX712"] * 8),  # half of them
    (APART.format(64) + "".join(LOAD.format(4 * n) for n in range(9)), []),
])  # fmt: skip
def test_scattered_accesses(body, codes):
    assert [code for code in found(body) if code != "PTX713"] == codes


SETMAXNREG = "{{ setmaxnreg.dec.sync.aligned.u32 64; {} ret; }}"


@rows(("head", "directives", "body", "codes"), [
    ("", ".maxntid 384 .minnctapersm 1", "", []),
    ("", ".reqntid 384 .minnctapersm 1", "", []),
    ("", ".maxntid 384", "", ["PTX705"]),
    (".func f() { ret; }", ".maxnreg 168", "call f;", []),
    (".extern .func f();", ".maxnreg 168", "call f;", ["PTX705"]),
    (".extern .func f(); .func g() { call f; ret; }", ".maxnreg 168", "call g;", ["PTX705"]),
    (".extern .func (.param .b32 r) malloc(.param .b64 n); .func g() { .param .b64 n; .param .b32 r; "
     "st.param.b64 [n], 8; call (r), malloc, (n); ret; }", ".maxnreg 168", "call g;", []),
])  # fmt: skip
def test_setmaxnreg(head, directives, body, codes):
    text = f".version 9.0\n.target sm_90a\n.address_size 64\n{head}\n.entry k() {directives} {SETMAXNREG.format(body)}"
    result = parse(text, "a.ptx")
    assert [d.code for d in [*result.diagnostics, *lint(result.module)] if d.code != "PTX597"] == codes


@rows(("directive", "body", "codes"), [  # as ptxas 13.0 refuses it, C7406
    (".maxnreg 64", "dec 72", ["PTX606"]),
    (".maxnreg 64", "dec 64", []),
    (".maxnreg 64", "inc 240; dec 168", []),
    (".maxnreg 64", "dec 168; inc 240", []),
    (".maxnreg 64", "inc 56", []),
    (".minnctapersm 1", "dec 72", []),
])  # fmt: skip
def test_setmaxnreg_to_more_than_there_are(directive, body, codes):
    for what in ("dec", "inc"):
        body = body.replace(f"{what} ", f"setmaxnreg.{what}.sync.aligned.u32 ")
    text = f".version 9.0\n.target sm_90a\n.address_size 64\n.entry k() .maxntid 384 {directive} {{ {body}; ret; }}"
    result = parse(text, "a.ptx")
    assert [d.code for d in [*result.diagnostics, *lint(result.module)]] == codes
