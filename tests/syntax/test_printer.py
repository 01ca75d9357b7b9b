"""Printing (the round trip of parsed text is tested where it is parsed)."""

import pytest

from ptxtools.ir import (
    Address,
    Directive,
    Function,
    Guard,
    Header,
    Immediate,
    Instruction,
    Label,
    Loc,
    Module,
    Name,
    Pragma,
    Scope,
    SymbolOffset,
    Variable,
    Vector,
)
from ptxtools.syntax import parse, print_module, print_statement

from .syntaxtools import HEAD, module

KERNEL = """.version 8.7
.target sm_90
.address_size 64

.extern .shared .align 16 .b8 smem[];

.visible .entry scale(
\t.param .u64 .ptr .global .align 4 x,
\t.param .f32 factor
)
.maxntid 256, 1, 1
.pragma "nounroll";
{
\t.reg .pred %p<2>;
\t.reg .b32 %r<4>;

\tld.param.u64 \t%rd1, [x];
\tmov.u32 \t%r1, %tid.x;
\t@!%p1 bra \t$done;

\t.loc 1 2 3
\tld.global.v2.f32 \t{%f1, _}, [%rd1+8];
\t{
\t\t.reg .b32 t;

\t\tmul.f32 \t%f1, %f1, 0f3F800000;
\t}

$done:
\tret;
}
"""


def test_layout_is_canonical():
    text = KERNEL.replace("\t.loc 1 2 3\n", "").replace("$done;\n\n", "$done;\n")
    assert print_module(module(text)) == text


def test_constructed_module():
    built = Module(
        [
            Header(".version", ("8.7",)),
            Header(".target", ("sm_90",)),
            Variable("x", "global", "s64", dims=(2,), init=[Immediate(-(2**63), "s64"), Immediate(2**64 - 1, "u64")]),
            Function(
                "entry",
                "k",
                [Variable("a", "param", "u64")],
                directives=[Directive(".maxnreg", (32,)), Pragma(("a", "b"))],
                body=Scope(
                    [
                        Label("L"),
                        Loc(1, 2, 3, "f", 4, (5, 6, 7)),
                        Instruction(
                            "ld.global.v2.b64",
                            (Vector((Name("a"), Name("b"))), Address(Name("c"), -(2**63))),
                            Guard("p", True),
                        ),
                        Instruction("mov.u64", (Name("a"), SymbolOffset("x", -8))),
                        Scope([Scope([])]),
                    ]
                ),
                linkage="visible",
            ),
        ]
    )
    again = parse(print_module(built))
    assert again.diagnostics == []
    assert again.module == built


@pytest.mark.parametrize(
    ("value", "kind", "text"),
    [
        (5, "s64", "5"),
        (-5, "s64", "-5"),
        (5, "u64", "5U"),
        (0x3F800000, "f32", "0f3F800000"),
        (0x3FF0000000000000, "f64", "0d3FF0000000000000"),
        (-(2**63), "s64", "(-9223372036854775807-1)"),
    ],
)
def test_constants(value, kind, text):
    assert print_statement(Instruction("op", (Immediate(value, kind),))) == f"op \t{text};"


def test_statements():
    assert print_statement(Instruction("ret", (), Guard("p"))) == "@p ret;"
    assert print_statement(Label("L")) == "L:"
    assert print_statement(Variable("%r", "reg", "b32", count=3)) == ".reg .b32 %r<3>;"
    assert print_statement(Scope([Instruction("ret")])) == "{\n\tret;\n}"
    assert print_statement(Function("func", "f", returns=[Variable("r", "reg", "b32")])) == ".func (.reg .b32 r) f();"


def test_empty_module():
    assert print_module(Module()) == ""
    assert parse(print_module(Module())).module == Module()


def test_printed_text_of_a_parsed_header():
    assert print_module(module(HEAD)) == HEAD
