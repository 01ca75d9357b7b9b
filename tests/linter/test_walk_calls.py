"""What functions are given and give back, and memory of the stack: values that nobody has set."""

from ptxtools.linter import lint
from ptxtools.syntax import parse
from tests.rows import rows

HEAD = ".version 9.0\n.target sm_90\n.address_size 64\n"
KERNEL = """.entry k(.param .b64 a) .reqntid 32 {
.reg .pred %p<9>; .reg .b32 %r<9>; .reg .b64 %d<9>; ld.param.b64 %d1, [a]; mov.u32 %r1, %tid.x;
mul.wide.u32 %d2, %r1, 4; add.u64 %d2, %d1, %d2; setp.gt.u32 %p1, %r1, 20;
"""


def found(body: str, outer: str = "") -> list[tuple[str, str]]:
    result = parse(f"{HEAD}{outer}{KERNEL}{body}\nret;\n}}\n", "k.ptx")
    assert not result.diagnostics
    warnings = [d for d in lint(result.module) if d.code in ("PTX520", "PTX522", "PTX535", "PTX539", "PTX598")]
    return [(d.code, d.source.text[slice(*d.span)] if d.source is not None else "") for d in warnings]


PICK = """.func (.param .b32 r) pick(.param .b32 v) { .reg .pred %q; .reg .b32 %x; ld.param.b32 %x, [v];
setp.gt.u32 %q, %x, 20; @%q bra OUT; st.param.b32 [r], 4; OUT: ret; }
"""
SUM = """.func (.param .b32 r) sum(.param .align 8 .b8 v[8]) { .reg .b32 %x, %y;
ld.param.b32 %x, [v]; ld.param.b32 %y, [v+4]; add.u32 %x, %x, %y; st.param.b32 [r], %x; ret; }
"""
CALL = "{ .param .b32 v; .param .b32 r; st.param.b32 [v], %r1; call (r), pick, (v); ld.param.b32 %r2, [r]; }"
GIVE = "{{ .param .align 8 .b8 v[8]; .param .b32 r; {} call (r), sum, (v); ld.param.b32 %r2, [r]; }}"


@rows(("outer", "body", "codes"), [
    (PICK, CALL + "st.global.b32 [%d2], %r2;", [("PTX522", "%r2")]),
    (PICK, CALL + "@!%p1 st.global.b32 [%d2], %r2;", []),
    (PICK, CALL + "@%p1 mov.b32 %r2, 0; st.global.b32 [%d2], %r2;", []),
    (PICK, CALL, []),
    (PICK.replace("st.param.b32 [r], 4; OUT:", "OUT: st.param.b32 [r], 4;"), CALL + "st.global.b32 [%d2], %r2;", []),
    (PICK, "mov.b32 %r1, 3;" + CALL + "st.global.b32 [%d2], %r2;", []),  # all of them take the way that sets it
    (SUM, GIVE.format("st.param.b32 [v], %r1;"), [("PTX522", "%y")]),
    (SUM, GIVE.format("st.param.b64 [v], %d1;"), []),
    (SUM, GIVE.format("st.param.v2.b32 [v], {%r1, %r1};"), []),
    (SUM, GIVE.format("st.param.b32 [v], 0; st.param.b32 [v+4], 0;"), []),
    (SUM, GIVE.format("st.param.b32 [v], 0; @%p1 st.param.b32 [v+4], 0;"), [("PTX522", "%y")]),
    (".func (.reg .b32 r) reg(.reg .b32 v) { .reg .pred %q; setp.gt.u32 %q, v, 9; @%q ret; mov.b32 r, v; ret; }\n",
     "call (%r2), reg, (%r1); st.global.b32 [%d2], %r2;", [("PTX522", "%r2")]),
    (".func (.reg .b32 r) reg(.reg .b32 v) { .reg .pred %q; setp.gt.u32 %q, v, 9; mov.b32 r, v; @%q ret; ret; }\n",
     "call (%r2), reg, (%r1); st.global.b32 [%d2], %r2;", []),
    (".extern .func (.param .b32 r) pick(.param .b32 v);\n", CALL + "st.global.b32 [%d2], %r2;", []),
])  # fmt: skip
def test_what_a_call_leaves_open(outer, body, codes):
    assert found(body, outer) == codes


TABLE = """.func (.param .b32 r) fa(.param .b32 v) { st.param.b32 [r], 1; ret; }
.func (.param .b32 r) fb(.param .b32 v) { .reg .b32 %x; ld.param.b32 %x, [v]; shfl.sync.bfly.b32 %x, %x, 1, 31, -1;
st.param.b32 [r], %x; ret; }
.func (.param .b32 r) fc(.param .b32 v) { ret; }
.global .u64 fns[3] = {fa, fb, fc};
"""
THROUGH = """mov.u64 %d3, fns; mad.wide.u32 %d3, %r3, 8, %d3; ld.global.u64 %d4, [%d3];
{ .param .b32 v; .param .b32 r; st.param.b32 [v], %r1; P: .callprototype (.param .b32 _) _ (.param .b32 _);
call (r), %d4, (v), P; ld.param.b32 %r2, [r]; } st.global.b32 [%d2], %r2;
"""


@rows(("index", "codes"), [
    ("mov.b32 %r3, 1;", []),
    ("and.b32 %r3, %r1, 1;", [("PTX535", "-1")]),
    ("shr.u32 %r3, %r1, 5;", []),
    ("mov.u32 %r3, %ctaid.x;", []),  # any of them
    ("and.b32 %r3, %r1, 3;", []),  # not all are known
    ("ld.global.b32 %r3, [%d1];", []),
])  # fmt: skip
def test_functions_of_a_table(index, codes):
    assert found(index + THROUGH, TABLE) == codes


def test_a_table_that_is_changed_or_unknown():
    for table in ("fns[3];", "fns[3] = {0, 0, 0};"):
        assert found("and.b32 %r3, %r1, 1;" + THROUGH, TABLE.replace("fns[3] = {fa, fb, fc};", table)) == []


STACK = "stacksave.u64 %d5; mov.u64 %d6, 64; alloca.u64 %d3, %d6, 16;"
INDEX = "and.b32 %r3, %r1, {}; cvt.u64.u32 %d7, %r3; shl.b64 %d7, %d7, 2; add.u64 %d8, %d3, %d7;"


@rows(("body", "codes"), [
    (STACK + "st.local.b32 [%d3], %r1; ld.local.b32 %r2, [%d3];", []),
    (STACK + "st.local.b32 [%d3], %r1; ld.local.b32 %r2, [%d3+4];", [("PTX598", "[%d3+4]")]),
    (STACK + INDEX.format(7) + "st.local.b32 [%d8], %r1; ld.local.b32 %r2, [%d3+28];", []),  # a thread may have
    (STACK + INDEX.format(7) + "st.local.b32 [%d8], %r1; ld.local.b32 %r2, [%d3+32];", [("PTX598", "[%d3+32]")]),
    (STACK + "st.local.b32 [%d3], %r1; st.local.b32 [%d1], 4; ld.local.b32 %r2, [%d3+4];", []),  # %d1 may be its
    (STACK + "st.local.b32 [%d3+64], %r1;", [("PTX598", "[%d3+64]")]),
    (STACK + "st.local.b32 [%d3], %r1; stackrestore.u64 %d5; ld.local.b32 %r2, [%d3];", [("PTX598", "[%d3]")]),
    (STACK + "stacksave.u64 %d5; st.local.b32 [%d3], %r1; stackrestore.u64 %d5; ld.local.b32 %r2, [%d3];", []),
    (STACK + "cvta.local.u64 %d4, %d3; st.b32 [%d4], %r1; stackrestore.u64 %d5; ld.b32 %r2, [%d4];",
     [("PTX598", "[%d4]")]),
])  # fmt: skip
def test_memory_of_the_stack(body, codes):
    assert found(body) == codes


@rows(("body", "codes"), [
    ("@%p1 call.uni f;", [("PTX539", "%p1")]),
    ("@%p1 call f;", []),
    ("setp.gt.u32 %p2, %r1, 63; @%p2 call.uni f;", []),
    ("and.b32 %r2, %r1, 1; T: .branchtargets A, A; brx.idx.uni %r2, T; A:", [("PTX539", "brx.idx.uni")]),
    ("shr.u32 %r2, %r1, 5; T: .branchtargets A, A; brx.idx.uni %r2, T; A:", []),
    ("shr.u32 %r2, %r1, 5; setp.eq.u32 %p2, %r2, 0; @%p2 bra.uni A; mov.b32 %r3, 1; A:", []),
    ("setp.lt.u32 %p2, %r1, 8; @%p2 setp.eq.u32 %p3, %r1, 1; selp.b32 %r2, 1, 2, %p3;", [("PTX522", "%p3")]),
    ("setp.lt.u32 %p2, %r1, 8; @%p2 mov.b32 %r3, 1; selp.b32 %r2, %r3, 2, %p2;", []),  # it is not chosen
    ("mov.b64 {%r2, %r3}, %d1; mov.b64 %d3, {%r2, %r4}; ld.global.b32 %r5, [%d3];", [("PTX520", "%r4")]),
    ("mov.b64 {%r2, %r3}, %d1; mov.b64 %d3, {%r2, %r4}; mov.b64 {%r5, %r6}, %d3;", []),
])  # fmt: skip
def test_uniform_ways_and_parts(body, codes):
    assert found(body, ".func f() { ret; }\n") == codes


def test_a_branch_that_warps_take_differently_is_uniform():
    body = "shr.u32 %r2, %r1, 5; setp.eq.u32 %p2, %r2, 0; @GUARD bra.uni A; bar.sync 0; A: ret; }"
    for guard, codes in (("%p2", []), ("%p1", ["PTX539"])):
        text = HEAD + KERNEL.replace("32 {", "64 {") + body.replace("GUARD", guard)
        result = parse(text, "k.ptx")
        assert not result.diagnostics
        assert [d.code for d in lint(result.module) if d.code == "PTX539"] == codes
