"""One mistake, one finding: slips as they are made in real kernels, each with the line and the code that it gives."""

import pytest

from ptxtools import lint
from ptxtools.diagnostics import Severity
from tests.rows import rows

KERNEL = """\
.version 8.0
.target sm_90
.address_size 64
.global .align 4 .b32 table[4] = {1, 2, 3, 4};
.func (.param .b32 out) helper(.param .b32 a) { ret; }
.visible .entry kernel(
    .param .u64 where,
    .param .u32 count
)
.maxntid 256, 1, 1
{
    .reg .pred %p<4>;
    .reg .f32 %f<8>;
    .reg .b32 %r<16>;
    .reg .b64 %rd<12>;
    ld.param.u64 %rd1, [where];
    ld.param.u32 %r1, [count];
    mov.u32 %r2, %tid.x;
    setp.ge.s32 %p1, %r2, %r1;
    @%p1 bra $done;
    mul.wide.s32 %rd3, %r2, 4;
    add.s64 %rd4, %rd1, %rd3;
    ld.global.f32 %f1, [%rd4];
    fma.rn.f32 %f2, %f1, 0f40000000, %f1;
    st.global.f32 [%rd4], %f2;
    mov.u64 %rd5, table;
    bar.sync 0;
$loop:
    add.s32 %r9, %r2, -1;
    setp.ne.s32 %p3, %r9, 0;
    @%p3 bra $loop;
$done:
    ret;
}
"""
#: What is written, what is written instead, code, line of the finding, and what its help names.
SLIPS = [
    (".target sm_90", ".target sm90", "PTX304", 2, "sm_90"),
    (".target sm_90", ".target sm_9O", "PTX304", 2, "sm_90"),
    (".global .align", ".globl .align", "PTX119", 4, ".global"),
    (".align 4 .b32 table", ".align 4 b32 table", "PTX100", 4, ""),
    ("{1, 2, 3, 4};", "{1, 2, 3, 4}", "PTX100", 4, ""),
    ("(.param .b32 out) helper", "(.param .b32 out helper", "PTX100", 5, ""),
    (".visible .entry", ".visable .entry", "PTX119", 6, ".visible"),
    (".visible .entry", ".visible entry", "PTX100", 6, ""),
    (".maxntid 256, 1, 1", ".maxntidx 256", "PTX119", 10, ".maxntid"),
    (".maxntid 256, 1, 1", ".maxntid 256, 1, 1;", "PTX100", 10, ""),
    (".maxntid 256, 1, 1", ".maxntid 256 1 1", "PTX100", 10, ""),
    (".reg .pred %p<4>;", ".reg .pred %p<4>", "PTX100", 12, ""),
    (".reg .f32 %f<8>;", ".reg .bf16 %f<8>;", "PTX422", 13, ".b16"),
    (".reg .pred %p<4>;", ".reg .e4m3 %p<4>;", "PTX422", 12, ""),
    (".reg .pred %p<4>;", ".reg pred %p<4>;", "PTX100", 12, ""),
    (".reg .f32 %f<8>;", ".reg .float %f<8>;", "PTX119", 13, ""),
    (".reg .f32 %f<8>;", ".reg .f32 %f<1>;", "PTX201", 23, "%f<1>"),
    ("[where]", "[wehre]", "PTX201", 16, "where"),
    ("ld.param.u64", "ld.parm.u64", "PTX111", 16, ".param"),
    ("[where];", "[where", "PTX100", 17, ""),
    ("[where];", "[where]", "PTX100", 16, ""),
    ("ld.param.u64 %rd1,", "ld.param.u64 %rd1", "PTX220", 16, "2"),
    ("mov.u32 %r2", "mv.u32 %r2", "PTX110", 18, "mov"),
    ("mov.u32 %r2", "mov %r2", "PTX112", 18, ".u32"),
    ("%tid.x", "%tidx", "PTX201", 18, "%tid"),
    ("%tid.x", "%tid", "PTX226", 18, "%tid.x"),
    ("setp.ge.s32", "setp.gte.s32", "PTX111", 19, ".ge"),
    ("@%p1 bra", "@%r1 bra", "PTX250", 20, ""),
    ("@%p1 bra $done", "@%p1 bra $Done", "PTX201", 20, "$done"),
    ("@%p1 bra $done", "@%p1 br $done", "PTX110", 20, "bra"),
    ("mul.wide.s32 %rd3", "mul.wide.s32 %r3", "PTX222", 21, ""),
    ("mul.wide.s32", "mul.s32", "PTX112", 21, ".lo"),
    ("add.s64 %rd4, %rd1, %rd3", "add.s64 %rd4, %rd1", "PTX220", 22, ""),
    ("[%rd4];", "%rd4;", "PTX240", 23, "[%rd4]"),
    ("ld.global.f32", "ld.gloabl.f32", "PTX111", 23, ".global"),
    ("fma.rn.f32", "fma.f32", "PTX112", 24, ".rn"),
    ("0f40000000", "2", "PTX224", 24, ""),
    ("0f40000000", "2.0f", "PTX103", 24, ""),
    ("mov.u64 %rd5, table", "mov.u64 %rd5, tabel", "PTX201", 26, "table"),
    ("bar.sync 0", "bar.synch 0", "PTX111", 27, ".sync"),
    ("$loop:\n", "$loop\n", "PTX100", 28, "label $loop"),
    ("$done:\n", "$done\n", "PTX100", 32, "label $done"),
    ("ld.global.f32 %f1, [%rd4]", "ld.global.f32 [%rd4], %f1", "PTX223", 23, "operands 1 and 2"),
    ("st.global.f32 [%rd4], %f2", "st.global.f32 %f2, [%rd4]", "PTX240", 25, "operands 1 and 2"),
    ("$done:\n    ret;", "$done\n    st.global.f32 [%rd4], %f2;", "PTX100", 32, "':'"),
    (".entry kernel(", ".entry _(", "PTX203", 6, "'_'"),
    (".param .u32 count", ".param .b8 count[-1]", "PTX423", 8, "negative"),
    (".func (.param .b32 out)", ".section .debug_str {\n.b8 1\n.func (.param .b32 out)", "PTX116", 7, ".debug_str"),
    (
        ".func (.param .b32 out)",
        ".section .debug_str {\n.param .b32 x,\n.b8 1\n}\n.func (.param .b32 out)",
        "PTX117",
        6,
        "",
    ),
    ("$loop:\n", "loop:\n", "PTX201", 31, "loop"),
    ("%r9, %r2, -1", "%r9, %r2, 1.5", "PTX224", 29, ""),
    ("add.s32 %r9", "add..s32 %r9", "PTX101", 29, ""),
    ("%r9, %r2, -1", "%r90, %r2, -1", "PTX201", 29, "%r<16>"),
    (".version 8.0", ".verison 8.0", "PTX119", 1, ".version"),
    (".version 8.0", "=.version 8.0", "PTX100", 1, ""),
    (".target sm_90", ".taret sm_90", "PTX119", 2, ".target"),
    (".target sm_90\n", "", "PTX401", 2, ".target"),
    (".target sm_90", ".target m_90", "PTX306", 2, "m_90"),
    (".target sm_90", ".global .b32 early;\n.target sm_90", "PTX401", 2, ".target"),
    (".visible .entry kernel(\n", "", "PTX100", 7, ".param"),
    (".u64 where,", ".u64 .ptr .global .align where,", "PTX100", 7, ""),
    ("1, 1\n{", "1, 1", "PTX100", 11, "'{'"),
    ("    ret;\n}\n", "    ret;\n", "PTX116", 34, "kernel"),
    ("    ret;\n}\n", '    ret;\n.file 1 "a.cu"\n.section .debug_str {\n.b8 0\n}\n', "PTX116", 34, "kernel"),
    ("$done:", "1$done:", "PTX100", 32, ""),
    ("$done:", "1$done:\n1", "PTX100", 32, ""),
    ("1, 1\n{\n    .reg .pred %p<4>;", "1, 1\n    .reg .pred %p<4>;\n{", "PTX100", 11, ".reg"),
    ("1, 1\n{", "1, 1\n[{", "PTX100", 11, "'['"),
    (".visible .entry kernel(", ".visible .relu .entry kernel(", "PTX119", 6, ".relu"),
    (".visible .entry kernel(", ".visible kernel(", "PTX100", 6, "'('"),
    ("kernel(\n", "kernel(\n.reg .b64 %d<4>;\n", "PTX100", 7, ""),
    ("mov.u32 %r2,", "mov.u32 %r2},", "PTX100", 18, "'}'"),
    ("mov.u32 %r2, %tid.x;", "}", "PTX117", 19, ""),
    ("mov.u32 %r2, %tid.x;", "{", "PTX116", 35, "kernel"),
    ("    .reg .b32 %r<16>;\n", "", "PTX201", 16, "%r1"),
    ("bar.sync 0;", "bar.warp.sync -1,", "PTX100", 28, ""),
    ("bar.sync 0;", "exit\nret;", "PTX220", 27, "line 27"),
    ("%f<8>", "%f<;>", "PTX100", 13, "number"),
    ("%f<8>", "%f<4294967296>", "PTX433", 13, "32 bits"),
    ("add.s64 %rd4,", "add.s64\n%rd4,\n%r1,", "PTX220", 22, "3"),
    ("%rd3, %r2, 4", "%rd3,\n%r2,\n%f1", "PTX221", 21, "%f1"),
]


def errors(text: str):
    return [d for d in lint(text) if d.severity is Severity.ERROR]


def test_the_kernel_is_valid():
    assert errors(KERNEL) == []


@rows(("right", "wrong", "code", "line", "named"), SLIPS, ids=lambda v: str(v)[:24])
def test_a_slip_gives_one_finding(right, wrong, code, line, named):
    assert KERNEL.count(right) >= 1
    (found,) = errors(KERNEL.replace(right, wrong, 1))
    assert (found.code, found.line) == (code, line), found.message
    assert named in " ".join([found.message, *found.help])


def test_an_undeclared_name_is_reported_once_in_each_function():
    text = ".version 8.0\n.target sm_90\n.address_size 64\n"
    body = "{\n.reg .b32 %r<2>;\nmov.b32 x, 1;\nadd.s32 %r1, x, x;\nmov.b32 y, 1;\n}\n"
    found = errors(f"{text}.entry a()\n{body}.entry b()\n{body}")
    assert [(d.code, d.line) for d in found] == [("PTX201", 7), ("PTX201", 9), ("PTX201", 14), ("PTX201", 16)]


@pytest.mark.parametrize(
    ("call", "code", "message"),
    [
        ("call (r), f, (d, r);", "PTX262", "arguments 1 and 2 of this call are swapped"),
        ("call (r, d), f, (r);", "PTX261", "results and arguments of this call of 'f' are swapped"),
        ("call (r), f, (d, d);", "PTX262", "'d' (.b64) does not match parameter 'a' (.b32)"),
    ],
)
def test_exchanged_parts_of_a_call_are_one_finding(call, code, message):
    head = ".version 8.0\n.target sm_90\n.address_size 64\n.extern .func (.reg .b32 o) f(.reg .b32 a, .reg .b64 b);\n"
    text = f"{head}.entry k() {{ .reg .b32 r; .reg .b64 d; mov.b32 r, 1; mov.b64 d, 1;\n{call}\nret; }}"
    assert [(d.code, d.line, d.message) for d in errors(text)] == [(code, 5 + 1, message)]


def test_two_exchanged_arguments_among_three():
    head = ".version 8.0\n.target sm_90\n.address_size 64\n.extern .func f(.reg .u32 a, .reg .b64 b, .reg .f32 c);\n"
    text = f"{head}.entry k() {{ .reg .u32 r; .reg .b64 d; .reg .f32 e;\ncall f, (e, d, r);\nret; }}"
    assert [d.message for d in errors(text)] == ["arguments 1 and 3 of this call are swapped"]


def test_a_range_that_is_too_short_is_one_mistake():
    """Names past its end are one finding; names that are no range's are one each."""
    body = "mov.b32 r0, r5;\nmov.b32 r1, r6;\ncall r7;\nmov.b32 x5, 1;\nmov.b32 x6, 1;"
    text = f".version 8.0\n.target sm_90\n.address_size 64\n.entry k() {{ .reg .b32 r<4>;\n{body}\nret; }}\n"
    assert [(d.code, d.subject) for d in lint(text)] == [("PTX201", "r5"), ("PTX201", "x5"), ("PTX201", "x6")]
