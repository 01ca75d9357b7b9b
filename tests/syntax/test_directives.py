"""Directives, functions, scopes and sections (7, 11)."""

import pytest

from ptxtools.ir import (
    Alias,
    BranchTargets,
    CallPrototype,
    CallTargets,
    DataLine,
    Directive,
    File,
    Function,
    Header,
    Instruction,
    Label,
    Loc,
    Pragma,
    Scope,
    Section,
    Variable,
)

from .syntaxtools import HEAD, body, both, error, item, module, statement


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (".version 8.7", Header(".version", ("8.7",))),
        (".target sm_90a", Header(".target", ("sm_90a",))),
        (".target sm_20, texmode_independent , debug", Header(".target", ("sm_20", "texmode_independent", "debug"))),
        (".address_size 32", Header(".address_size", ("32",))),
        ('.file 1 "example.cu"', File(1, "example.cu")),
        ('.file 1 "C:\\a b.cu", 1339013327, 64118', File(1, "C:\\a b.cu", 1339013327, 64118)),
        (".loc 1 21 3", Loc(1, 21, 3)),
        (
            ".loc 1 9 3, function_name info_string0, inlined_at 1 21 3",
            Loc(1, 9, 3, "info_string0", 0, (1, 21, 3)),
        ),
        (
            ".loc 1 15 3, function_name .debug_str+16, inlined_at 1 10 5",
            Loc(1, 15, 3, ".debug_str", 16, (1, 10, 5)),
        ),
        ('.pragma "nounroll";', Pragma(("nounroll",))),
        ('.pragma "a", "b c" ;', Pragma(("a", "b c"))),
        (".alias bar, foo;", Alias("bar", "foo")),
        (".section .debug_empty { }", Section(".debug_empty")),
        ('@@DWARF .section .debug_x, "", @progbits', Directive("@@DWARF", ('.section .debug_x, "", @progbits',))),
        ("@@DWARF .byte 0x2b, 0x00", Directive("@@DWARF", (".byte 0x2b, 0x00",))),
    ],
)  # fmt: skip
def test_module_directive(text, expected):
    assert item(text) == expected


def test_header_on_one_line():
    found = module(".version 8.7 .target sm_90, debug .address_size 64 .global .b32 x;")
    assert (found.version, found.target, found.target_options, found.address_size) == ((8, 7), "sm_90", ("debug",), 64)
    assert [v.name for v in found.variables] == ["x"]


def test_line_directives_end_where_nothing_links():
    items = body('.loc 1 2 3 add.s32 a, b, c; .loc 1 2 3\nL: .loc 4 5 6 ret; .pragma "x"; .loc 1 1 1')
    assert [type(i) for i in items] == [Loc, Instruction, Loc, Label, Loc, Instruction, Pragma, Loc]


def test_section():
    text = """.section .debug_info
{
    .b32 11430 // length
    .b8 2, 0
    .b32 .debug_abbrev
    .b8 8, 1, 108,
        103, -99
info_label1:
    .b32 info_label1, .debug_loc+0x4
    .b64 -1
    .b32 end-info_label1
    .b16 -5, -65535
end:
}"""
    assert item(text).lines == [
        DataLine("b32", (11430,)),
        DataLine("b8", (2, 0)),
        DataLine("b32", (".debug_abbrev",)),
        DataLine("b8", (8, 1, 108, 103, -99)),
        DataLine("label", ("info_label1",)),
        DataLine("b32", ("info_label1", ".debug_loc+4")),
        DataLine("b64", (-1,)),
        DataLine("b32", ("end-info_label1",)),
        DataLine("b16", (-5, -65535)),
        DataLine("label", ("end",)),
    ]


def header(text):
    return item(text + " { ret; }")


@pytest.mark.parametrize(
    ("text", "kind", "name", "returns", "params"),
    [
        (".entry cta_fft", "entry", "cta_fft", 0, 0),
        (".entry filter ( .param .b32 x, .param .b32 y )", "entry", "filter", 0, 2),
        (".visible .entry k()", "entry", "k", 0, 0),
        (".func foo", "func", "foo", 0, 0),
        (".func (.reg .u32 %res) inc ( .reg .u32 %ptr, .reg .u32 %inc )", "func", "inc", 1, 2),
        (".func (.param .b32 r) foo", "func", "foo", 1, 0),
        (".func () foo ()", "func", "foo", 0, 0),
        (".weak .func (.reg .u32 a, .reg .u32 b) two (.reg .u32 c)", "func", "two", 2, 1),
    ],
)
def test_function_header(text, kind, name, returns, params):
    found = header(text)
    assert (found.kind, found.name, len(found.returns), len(found.params)) == (kind, name, returns, params)
    assert found.body == Scope([Instruction("ret")])


def test_linkage_and_attributes_of_functions():
    assert header(".visible .entry k()").linkage == "visible"
    found = header(".visible .func .attribute(.unified(0xAB, 0xCD)) (.param .b32 r) bar()")
    assert (found.linkage, found.attributes) == ("visible", ((".unified", (0xAB, 0xCD)),))


def test_prototype_of_a_function():
    found = item(".extern .func (.param .b32 r) vprintf (.param .b64 a, .param .b64 b)\n;")
    assert (found.body, found.linkage, found.variadic) == (None, "extern", False)
    assert item(".func foo;").body is None


def test_unsized_last_parameter_takes_any_number_of_arguments():
    assert header(".func bar(.param .u32 N, .param .align 4 .b8 numbers[])").variadic
    assert not header(".func bar(.param .u32 N, .param .align 4 .b8 numbers[4])").variadic


@pytest.mark.parametrize(
    ("text", "args"),
    [
        (".maxnreg 16", (16,)),
        (".maxntid 256", (256,)),
        (".maxntid 16,16,4", (16, 16, 4)),
        (".reqntid 0x10 , 2", (16, 2)),
        (".minnctapersm 4", (4,)),
        (".maxnctapersm 4", (4,)),
        (".noreturn", ()),
        (".abi_preserve 8", (8,)),
        (".abi_preserve_control 2", (2,)),
        (".reqnctapercluster 2, 1, 1", (2, 1, 1)),
        (".explicitcluster", ()),
        (".maxclusterrank 8", (8,)),
        (".blocksareclusters", ()),
        (".minperctamemory 64", (64,)),
        (".language 3", (3,)),
        ('.language "PTX", 0x5 , "Tile IR"', ('"PTX"', 5, '"Tile IR"')),
    ],
)
def test_tuning_directive(text, args):
    assert header(f".entry k() {text}").directives == [Directive(text.split()[0], args)]


def test_several_header_directives():
    found = header('.entry k\n.maxntid 128, 1, 1\n.minnctapersm 2 .pragma "nounroll"; .noreturn\n')
    assert [getattr(d, "name", None) for d in found.directives] == [".maxntid", ".minnctapersm", None, ".noreturn"]
    assert found.directives[2] == Pragma(("nounroll",))


@pytest.mark.parametrize(
    ("text", "marked"),
    [
        (".maxntid", ".maxntid"),
        (".maxntid 1, 2, 3, 4", ".maxntid"),
        (".maxnreg 1, 2", ".maxnreg"),
        (".noreturn 1", ".noreturn"),
    ],
)
def test_wrong_number_of_arguments(text, marked):
    assert error(f".entry k() {text} {{ ret; }}")[:2] == ("PTX108", marked)


def test_scopes_nest():
    (outer,) = body("{ .reg .b32 t; { add.s32 a, b, t; } L: }")
    assert outer == Scope(
        [Variable("t", "reg", "b32"), Scope([statement("add.s32 a, b, t;")]), Label("L")],
    )


def test_targets():
    assert statement("ts: .branchtargets L1, L2;") == BranchTargets("ts", ("L1", "L2"))
    assert statement("ts: // all\n .branchtargets N<3>, M;") == BranchTargets("ts", ("N0", "N1", "N2", "M"))
    assert statement("ct: .calltargets fastsin, fastcos;") == CallTargets("ct", ("fastsin", "fastcos"))


def test_too_many_targets():
    assert error(".entry k() { ts: .branchtargets N<4000000000>; }")[:2] == ("PTX104", "N")


def unnamed(type_, **more):
    return Variable("_", "param", type_, **more)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("P: .callprototype _ ;", CallPrototype("P")),
        ("P: .callprototype _ (.param .f32 _);", CallPrototype("P", [], [unnamed("f32")])),
        ("P: .callprototype (.param .u32 _) _ ;", CallPrototype("P", [unnamed("u32")])),
        (
            "P: .callprototype (.param .u32 _) _ (.param .f32 _, .param .align 4 .b8 _[12]);",
            CallPrototype("P", [unnamed("u32")], [unnamed("f32"), unnamed("b8", align=4, dims=(12,))]),
        ),
        ("P: .callprototype _ () .noreturn;", CallPrototype("P", [], [], [Directive(".noreturn")])),
        (
            "P: .callprototype _ .noreturn .abi_preserve 3;",
            CallPrototype("P", [], [], [Directive(".noreturn"), Directive(".abi_preserve", (3,))]),
        ),
    ],
)
def test_call_prototype(text, expected):
    assert statement(text) == expected


def test_a_prototype_has_no_name():
    assert error(".entry k() { P: .callprototype foo (.param .b32 _); }")[:2] == ("PTX108", "foo")


def test_old_modules():
    """PTX 1.x: parameters in the body, module-scope registers, explicit banks, register parameters (5.1, 7.1.1)."""
    found = module(
        """.version 1.4
.target sm_10, map_f64_to_f32
.reg .u32 %global_register;
.extern .const[2] .b32 constants[];
.func (.reg .u32 %res) foo (.reg .u32 %a) { mov.u32 %res, %a; ret; }
.entry old
{
    .param .u32 count;
    .reg .u16 %rh<4>; .reg .u32 $r1;
$LBB1_old:
    .loc 14 3 0
    cvt.u32.u16 $r1, %tid.x;
    mov.u16 %rh1, %ctaid.x;
    ld.const[2].b32 $r1, [constants+4];
    call (%global_register), foo, ($r1);
    bar.sync 0;
    @$p1 bra $LBB1_old;
    exit;
$LDWend_old:
} // old
@@DWARF .byte 0x00
"""
    )
    assert [type(i) for i in found.items] == [Header, Header, Variable, Variable, Function, Function, Directive]


def test_comments_are_blanks():
    text = HEAD + "// one\n/* two */.global/* three\n*/.b32// four\nx/**/;/***/.entry k(/*none*/){ret/**/;//\n}"
    found = module(text)
    assert [type(i) for i in found.items] == [Header] * 3 + [Variable, Function]


def test_carriage_returns_are_blanks():
    assert [v.name for v in module(".global .b32 x;\r.global .b32 y;\r\n").variables] == ["x", "y"]


def test_line_markers_are_skipped():
    assert both('# 1 "a.ptx"\n' + HEAD + '# 7 "b.h" 1 3\n.entry k() {\n# 9 "a.ptx"\nret;\n}\n').diagnostics == []
