"""Variables, initialisers, parameters (5)."""

import pytest

from ptxtools.ir import Immediate, Member, SymbolValue, Variable
from ptxtools.syntax import parse
from tests.rows import rows

from .syntaxtools import body, error, item, module, statement


def number(value):
    return Immediate(value, "s64")


@rows(
    ("text", "expected"),
    [
        (".global .u32 loc;", Variable("loc", "global", "u32")),
        (".const .f32 bias[2];", Variable("bias", "const", "f32", dims=(2,))),
        (".global .v4 .f32 V;", Variable("V", "global", "f32", vector=4)),
        (".shared .v2.u16 uv;", Variable("uv", "shared", "u16", vector=2)),
        (".local.u16 kernel[19][19];", Variable("kernel", "local", "u16", dims=(19, 19))),
        (".global .b8 x[2*8][WARP_SZ];", Variable("x", "global", "b8", dims=(16, 32))),
        (
            ".extern .shared .align 16 .b8 smem[];",
            Variable("smem", "shared", "b8", align=16, dims=(None,), linkage="extern"),
        ),
        (".visible .global .b32 foo;", Variable("foo", "global", "b32", linkage="visible")),
        (".weak .const .b32 foo;", Variable("foo", "const", "b32", linkage="weak")),
        (".common .global .u32 gbl;", Variable("gbl", "global", "u32", linkage="common")),
        (".global .attribute(.managed) .s32 g;", Variable("g", "global", "s32", attributes=((".managed", ()),))),
        (
            ".global .attribute(.managed, .unified(19, 0x5f)) .f32 f;",
            Variable("f", "global", "f32", attributes=((".managed", ()), (".unified", (19, 95)))),
        ),
        (
            ".global .align 8 .attribute(.managed) .s32 g;",
            Variable("g", "global", "s32", align=8, attributes=((".managed", ()),)),
        ),
        (
            ".extern .const[2] .b32 buffer[];",
            Variable("buffer", "const", "b32", dims=(None,), linkage="extern", bank=2),
        ),
        (".tex .u32 tex_a;", Variable("tex_a", "tex", "u32")),
        (".global .texref t;", Variable("t", "global", "texref")),
        (".global .surfref s;", Variable("s", "global", "surfref")),
        (".global .b32 %x<1>;", Variable("%x0", "global", "b32")),
        (".global .align 0x10 .b8 $a_1;", Variable("$a_1", "global", "b8", align=16)),
    ],
)  # fmt: skip
def test_variable(text, expected):
    assert item(text) == expected


def test_a_range_of_variables_stands_for_each_of_them():
    """5.4.6: any type and space but no arrays and no initialisers; a range of registers stays one node."""
    items = module(".visible .global .align 8 .b32 x<2>, y, z<3>;").items
    assert [v.name for v in items] == ["x0", "x1", "y", "z0", "z1", "z2"]
    assert all((v.linkage, v.align, v.count) == ("visible", 8, None) for v in items)
    inner = body(".shared .b16 s<2>; .reg .b32 %r<4>;")
    assert [(v.name, v.space, v.count) for v in inner] == [
        ("s0", "shared", None),
        ("s1", "shared", None),
        ("%r", "reg", 4),
    ]


@pytest.mark.parametrize(
    ("text", "code"),
    [(".global .b32 x<2> = 1;", "PTX108"), (".global .b32 x<2>[3];", "PTX100"),
     (".global .b32 x<99999999>;", "PTX104")],
)  # fmt: skip
def test_what_a_range_of_variables_cannot_have(text, code):
    assert [d.code for d in parse(text).diagnostics] == [code]


@pytest.mark.parametrize(
    "text",
    [".visible .align 8 .global .attribute(.managed) .b32 x;", ".visible .attribute(.managed) .align 8 .global .b32 x;",
     ".visible .global .attribute(.managed) .align 8 .b32 x;"],
)  # fmt: skip
def test_space_alignment_and_attributes_go_in_any_order(text):
    result = parse(text)
    assert not result.diagnostics
    variable = result.module.variables[0]
    assert (variable.linkage, variable.space, variable.align, variable.type) == ("visible", "global", 8, "b32")
    assert variable.attributes == ((".managed", ()),)


@pytest.mark.parametrize(
    "text", [".align 8 .visible .global .b32 x;", ".global .b32 .align 8 x;", ".global .v2 .align 8 .b32 x;",
             ".global .attribute(.managed) .attribute(.managed) .b32 x;"]
)  # fmt: skip
def test_other_orders_of_a_declaration(text):
    assert [d.code for d in parse(text).diagnostics] == ["PTX108"]


def test_several_variables_of_one_declaration():
    items = module(".global .b32 x, y[3], z = 4;").items
    assert items == [
        Variable("x", "global", "b32"),
        Variable("y", "global", "b32", dims=(3,)),
        Variable("z", "global", "b32", init=number(4)),
    ]
    assert len({variable.span for variable in items}) == 1
    assert len({variable.name_span for variable in items}) == 3


@rows(
    ("text", "value"),
    [
        ("= 10", number(10)),
        ("= -1", number(-1)),
        ("= (1 ? 2 : 3) + 4", number(6)),
        ("= 0f3f800000", Immediate(0x3F800000, "f32")),
        ("= {}", []),
        ("= {1, 2, 3}", [number(1), number(2), number(3)]),
        ("= { {1,2}, {3} }", [[number(1), number(2)], [number(3)]]),
        ("= {1+1, 2U}", [number(2), Immediate(2, "u64")]),
        ("= foo", SymbolValue("foo")),
        ("= foo+8", SymbolValue("foo", 8)),
        ("= foo+-8", SymbolValue("foo", -8)),
        ("= foo+4+4", SymbolValue("foo", 8)),
        ("= generic(foo)", SymbolValue("foo", 0, True)),
        ("= generic(foo)+8", SymbolValue("foo", 8, True)),
        ("= {foo, 0, bar+4}", [SymbolValue("foo"), number(0), SymbolValue("bar", 4)]),
        ("= {0xff(foo), 0xff00(foo+4)}", [SymbolValue("foo", 0, False, 0xFF), SymbolValue("foo", 4, False, 0xFF00)]),
        ("= {0xff(generic(foo)+4)}", [SymbolValue("foo", 4, True, 0xFF)]),
        ("= {0xFF(1000 + 546), 0xFF00(131187)}", [number(10), number(0)]),
        ("= 0xFF00000000000000(foo)", SymbolValue("foo", 0, False, 0xFF << 56)),
        (
            "= { addr_mode_0 = clamp_to_border, filter_mode = nearest, width = 4 }",
            [Member("addr_mode_0", "clamp_to_border"), Member("filter_mode", "nearest"), Member("width", number(4))],
        ),
    ],
)
def test_initializer(text, value):
    assert item(f".global .u64 x {text};").init == value


def test_long_initializer():
    values = list(range(-5000, 5000))
    found = item(f".global .s32 x[] = {{{', '.join(map(str, values))}}};")
    assert [constant.value for constant in found.init] == values


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (".param .u64 a", Variable("a", "param", "u64")),
        (".param .u64 .ptr a", Variable("a", "param", "u64", ptr=("", None))),
        (".param .u32 .ptr.global.align 16 a", Variable("a", "param", "u32", ptr=("global", 16))),
        (".param .u32 .ptr .const .align 8 a", Variable("a", "param", "u32", ptr=("const", 8))),
        (".param .u32 .ptr.align 16 a", Variable("a", "param", "u32", ptr=("", 16))),
        (".param .align 8 .b8 buffer[64]", Variable("buffer", "param", "b8", align=8, dims=(64,))),
        (".param .align 8 .u64 .ptr .global .align 4 a", Variable("a", "param", "u64", align=8, ptr=("global", 4))),
        (".param .texref t", Variable("t", "param", "texref")),
        (".reg .b32 N", Variable("N", "reg", "b32")),
        (".reg .v4 .f32 N", Variable("N", "reg", "f32", vector=4)),
    ],
)
def test_parameter(text, expected):
    assert item(f".func f({text});").params == [expected]


def test_declarations_in_a_body():
    assert statement(".reg .b32 %r<100>;") == Variable("%r", "reg", "b32", count=100)
    assert statement(".reg .pred p;") == Variable("p", "reg", "pred")
    assert len(body(".reg .pred p, q, r;")) == 3
    assert statement(".param .align 8 .b8 py[12];") == Variable("py", "param", "b8", align=8, dims=(12,))
    assert statement(".local .align 8 .b8 __local_depot0[24];").space == "local"


@rows(
    ("text", "code", "marked"),
    [
        (".global x;", "PTX108", ".global x"),
        (".sreg .b32 %clock;", "PTX108", ".sreg .b32 %clock"),
        (".visible .u32 x;", "PTX108", ".visible .u32 x"),
        (".global .b32 .b32 x;", "PTX108", ".b32"),
        (".global .f32 .v4 x;", "PTX108", ".v4"),
        (".param .b8 .align 8 x[4];", "PTX108", ".align"),
        (".visible .weak .global .b32 x;", "PTX108", ".weak"),
        (".global .visible .b32 x;", "PTX108", ".visible"),
        (".func f(.param .u64 .ptr .align 8 .global x);", "PTX108", ".global"),
        (".param .u64 .ptr x;", "PTX108", ".ptr"),
        (".global .align 2+2 .b32 x;", "PTX100", "+"),
        (".global .align 1.5 .b32 x;", "PTX105", "1.5"),
        (".global .b32 x[1.5];", "PTX105", "1.5"),
        (".global .b32 x[4;", "PTX100", ";"),
        (".global .b32 x y;", "PTX100", "y"),
        (".global .b32 a.b;", "PTX108", "a.b"),
        (".global .b33 x;", "PTX119", ".b33"),
        (".global .b32 x, , y;", "PTX100", ","),
        (".global .b32 x[2] = {1,2,};", "PTX100", "}"),
        (".global .b32 x = \"abc\";", "PTX100", "\"abc\""),
        (".global .b64 x = 8+foo;", "PTX100", "foo"),
        (".global .b64 x = foo-8;", "PTX100", "-"),
        (".global .b64 x = foo[2];", "PTX100", "["),
        (".global .b64 x = general(foo);", "PTX100", "general"),
        (".global .b64 x = generic(foo+8);", "PTX100", "+"),
        (".global .u8 x = 0xffff(foo);", "PTX107", "0xffff"),
        (".global .u8 x = 1.5(foo);", "PTX107", "1.5"),
        (".global .u8 x = 0xff(1.5);", "PTX105", "0xff"),
    ],
)  # fmt: skip
def test_mistake(text, code, marked):
    assert error(text)[:2] == (code, marked)
