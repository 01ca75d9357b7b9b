"""Instructions and their operands (4.3.2, 6)."""

import pytest

from ptxtools.ir import (
    Address,
    Arguments,
    Element,
    Guard,
    Immediate,
    Instruction,
    Name,
    Negated,
    Pair,
    SymbolOffset,
    Vector,
)
from tests.rows import rows

from .syntaxtools import body, body_error, operand, operands, statement


def number(value):
    return Immediate(value, "s64")


@rows(
    ("text", "expected"),
    [
        ("%r1", Name("%r1")),
        ("_", Name("_")),
        ("$L1", Name("$L1")),
        ("%tid.x", Name("%tid.x")),
        ("V.w", Name("V.w")),
        ("%r1.b0", Name("%r1.b0")),
        ("r.h10", Name("r.h10")),
        ("add", Name("add")),
        ("table+4", SymbolOffset("table", 4)),
        ("table+-4", SymbolOffset("table", -4)),
        ("table+4*2-1", SymbolOffset("table", 7)),
        ("table[3]", Element("table", 3)),
        ("table[1+1]", Element("table", 2)),
        ("table[-1]", Element("table", -1)),
        ("table[%r1]", Element("table", 0, "%r1")),
        ("table[%r1+4]", Element("table", 4, "%r1")),
        ("table[%r1-4]", Element("table", -4, "%r1")),
        ("{a, _, 1}", Vector((Name("a"), Name("_"), number(1)))),
        ("{a}", Vector((Name("a"),))),
        ("{{a, b}, c}", Vector((Vector((Name("a"), Name("b"))), Name("c")))),
        ("p|q", Pair(Name("p"), Name("q"))),
        ("p | _", Pair(Name("p"), Name("_"))),
        ("{a, b}|p", Pair(Vector((Name("a"), Name("b"))), Name("p"))),
        ("!p", Negated(Name("p"))),
        ("-%r1.b0", Negated(Name("%r1.b0"), "-")),
        ("[a]", Address(Name("a"))),
        ("[ a + 4 ]", Address(Name("a"), 4)),
        ("[a+-4]", Address(Name("a"), -4)),
        ("[a+4+4]", Address(Name("a"), 8)),
        ("[a+1<<2]", Address(Name("a"), 4)),
        ("[a+4U]", Address(Name("a"), 4)),
        ("[a+0xffffffffffffffff]", Address(Name("a"), -1)),
        ("[a+WARP_SZ]", Address(Name("a"), 32)),
        ("[16]", Address(number(16))),
        ("[16+4]", Address(number(20))),
        ("[a].unified", Address(Name("a"), suffix="unified")),
        ("[m, {x, y}]", Address(Name("m"), extra=(Vector((Name("x"), Name("y"))),))),
        ("[t, s, {x}]", Address(Name("t"), extra=(Name("s"), Vector((Name("x"),))))),
        ("[m+64, {1, 2}]", Address(Name("m"), 64, (Vector((number(1), number(2))),))),
    ],
)
def test_operand(text, expected):
    assert operand(text) == expected


def test_operand_list():
    found = operands("%r1, {a, b}, [c, {d, e}], 5, !p")
    assert list(map(type, found)) == [Name, Vector, Address, Immediate, Negated]


@pytest.mark.parametrize(
    ("text", "opcode", "count"),
    [
        ("ret;", "ret", 0),
        ("ret ;", "ret", 0),
        ("bar.sync 0;", "bar.sync", 1),
        ("add.s32 a,b,c;", "add.s32", 3),
        ("add .s32 a, b, c;", "add.s32", 3),
        ("add .rn .ftz .f32 a, b, c;", "add.rn.ftz.f32", 3),
        ("ld.const[2].b32 a, [b];", "ld.const[2].b32", 2),
        ("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [a], [b], c, [d];",
         "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes", 4),
        ("tex.2d.v4.f32.f32 {a, b, c, d}, [t, {x, y}];", "tex.2d.v4.f32.f32", 2),
        ("mov.b64\n\t{a,\n\tb}, // lower, upper\n\tc;", "mov.b64", 2),
        ("add.s32 /* sum */ a, b /* first */, c;", "add.s32", 3),
    ],
)  # fmt: skip
def test_instruction(text, opcode, count):
    found = statement(text)
    assert (found.opcode, len(found.operands)) == (opcode, count)


@pytest.mark.parametrize(
    ("text", "guard"),
    [
        ("@p ret;", Guard("p")),
        ("@!p ret;", Guard("p", True)),
        ("@%p1 bra L;", Guard("%p1")),
        ("@ p ret;", Guard("p")),
        ("@! p ret;", Guard("p", True)),
        ("@p\n\tret;", Guard("p")),
    ],
)
def test_guard(text, guard):
    assert statement(text).guard == guard


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("call foo;", (Name("foo"),)),
        ("call foo, ();", (Name("foo"), Arguments(()))),
        ("call (), foo, ();", (Arguments(()), Name("foo"), Arguments(()))),
        ("call foo, (a);", (Name("foo"), Arguments((Name("a"),)))),
        ("call (r), foo, (a, 4);", (Arguments((Name("r"),)), Name("foo"), Arguments((Name("a"), number(4))))),
        ("call (r), %rd1, (a), proto;",
         (Arguments((Name("r"),)), Name("%rd1"), Arguments((Name("a"),)), Name("proto"))),
        ("call.uni \n(\nr\n)\n, \nfoo, \n(\na,\nb\n);",
         (Arguments((Name("r"),)), Name("foo"), Arguments((Name("a"), Name("b"))))),
        ("call foo, ({a, b}, 1+1);", (Name("foo"), Arguments((Vector((Name("a"), Name("b"))), number(2))))),
    ],
)  # fmt: skip
def test_call(text, expected):
    assert statement(text).operands == expected


def test_labels_and_statements_share_lines():
    first, second, third = body("L1: add.s32 a, b, c; L2:")
    assert (first.name, third.name) == ("L1", "L2")
    assert isinstance(second, Instruction)


@rows(
    ("text", "code", "marked"),
    [
        ("\tadd.s32 a, b c;", "PTX100", "c"),
        ("\tadd.s32 a,, c;", "PTX100", ","),
        ("\tadd.s32 a, b,;", "PTX100", ";"),
        ("\tadd.s32 , a;", "PTX100", ","),
        ("\tadd. s32 a, b;", "PTX101", "."),
        ("\tmov.b64 {a, b, c;", "PTX100", ";"),
        ("\tmov.b64 {}, c;", "PTX100", "}"),
        ("\tmov.b64 {a,}, c;", "PTX100", "}"),
        ("\tld.u32 a, [b;", "PTX100", ";"),
        ("\tld.u32 a, [];", "PTX100", "]"),
        ("\tld.u32 a, [b+];", "PTX100", "]"),
        ("\tld.u32 a, [b-4];", "PTX109", "-"),
        ("\tld.u32 a, [b+c];", "PTX100", "c"),
        ("\tld.u32 a, [4+b];", "PTX100", "b"),
        ("\tld.u32 a, [(b+4)];", "PTX100", "b"),
        ("\tld.u32 a, [1.5];", "PTX105", "1.5"),
        ("\tld.u32 a, [b].volatile;", "PTX108", ".volatile"),
        ("\tld.u32 a, b[1][2];", "PTX100", "["),
        ("\tmov.u64 a, b-4;", "PTX100", "-"),
        ("\tmov.u64 a, 4+b;", "PTX100", "b"),
        ("\tmov.u64 a, (b);", "PTX100", "b"),
        ("\t@p @q ret;", "PTX108", "@p"),
        ("\t@1 ret;", "PTX100", "1"),
        ("\t@p L: ret;", "PTX100", ":"),
        ("\tcall f (a);", "PTX100", "("),
        ("\tcall;", "PTX100", ";"),
        ("\tadd.s32 (a), b;", "PTX100", "a"),
        ("\tmov.u32 a, \"b\";", "PTX100", "\"b\""),
        ("\ta.b: ret;", "PTX108", "a.b"),
        ("\t;", "PTX100", ";"),
    ],
)  # fmt: skip
def test_mistake(text, code, marked):
    assert body_error(text)[:2] == (code, marked)
