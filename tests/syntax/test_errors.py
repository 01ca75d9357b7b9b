"""Mistakes: each is reported once, where it is, and the rest is read all the same."""

import re
from inspect import cleandoc
from pathlib import Path

import pytest

import ptxtools.syntax
from ptxtools.ir import Instruction
from ptxtools.syntax import parse
from ptxtools.syntax.codes import CODES
from tests.rows import rows

from .syntaxtools import HEAD, both, error, errors


def in_body(text):
    return f"{HEAD}.visible .entry k(.param .u64 a)\n{{\n{text}\n\tret;\n}}\n.global .u32 after;\n"


def test_position():
    (found,) = parse(in_body("\tadd.s32 \t%r1, %r2 %r3;"), "k.ptx").diagnostics
    assert (found.file, found.line, found.column, found.end_line, found.end_column) == ("k.ptx", 6, 20, 6, 23)
    assert found.message == "expected ',' or ';', found '%r3'"
    assert found.severity.value == "error"


def test_many_mistakes_in_one_run():
    text = in_body(
        "\tadd.s32 a, b c;\n"  # 6
        "\tadd.s32 a, b, c;\n"
        "\tmov.u32 a, 0x;\n"  # 8
        "\t.reg .b33 x;\n"  # 9
        "\tld.u32 a, [b;\n"  # 10
        "\tst.u32 [b], a\n"  # 11: no ;
        "\tsub.s32 a, b, c;\n"
        "L1: mov.u32 a, 1/0;\n"  # 13
        "\t#define x\n"  # 14
        "\t@p @q bra L1;\n"  # 15
        "\tmov.u32 a, “b”;"  # 16
    )
    result = both(text)
    assert [d.line for d in result.diagnostics] == [6, 8, 9, 10, 11, 13, 14, 15, 16]
    (entry,) = result.module.entries
    opcodes = [i.opcode for i in entry.body.items if isinstance(i, Instruction)]
    assert opcodes == ["add.s32", "st.u32", "sub.s32", "ret"]  # the one without `;` is read all the same
    assert [v.name for v in result.module.variables] == ["after"]


def test_missing_semicolon():
    text = in_body("\tadd.s32 a, b, c // sum\n\tmul.lo.s32 a, b, c;")
    result = both(text)
    (found,) = result.diagnostics
    assert found.message == "missing ';' at the end of this statement"
    at = text.index("c // sum") + 1
    assert found.span == (at - 1, at)
    assert (found.fix.span, found.fix.text) == ((at, at), ";")
    assert any(getattr(i, "opcode", "") == "mul.lo.s32" for i in result.module.entries[0].body.items)
    fixed = text[:at] + ";" + text[at:]
    assert parse(fixed).diagnostics == []


def test_missing_semicolon_before_brace():
    text = HEAD + ".entry k() { ret }\n.global .u32 after;"
    found = errors(text, 1)
    assert found[0] == ("PTX100", "t", "missing ';' at the end of this statement")


def test_a_message_has_one_line():
    found = parse(in_body('\tmov.b32 a", b;\n\tmov.b32 a", b;')).diagnostics[0]
    assert (found.line, "\n" in found.message) == (6, False)
    assert found.message.endswith('", b;...')


def test_subtracted_offset_has_a_fix():
    text = in_body("\tld.u32 a, [b - 4];")
    (found,) = both(text).diagnostics
    begin, end = found.fix.span
    result = parse(text[:begin] + found.fix.text + text[end:])
    assert result.diagnostics == []
    assert result.module.entries[0].body.items[0].operands[1].offset == -4


@rows(
    ("text", "code", "marked"),
    [
        ("}", "PTX116", "}"),
        (".entry k() { ret; } }", "PTX116", "}"),
        (".entry k() { ret;", "PTX116", ""),
        (".entry k() { { ret; }", "PTX116", ""),
        (".entry a() { ret;\n.entry b() { ret; }", "PTX116", ".entry"),
        (".entry a() { ret;\n.visible .func b() { ret; }", "PTX116", ".visible"),
        (".section .debug_x { .b8 1", "PTX116", ""),
        ("ret;", "PTX117", "ret"),
        ("add.s32 a, b, c; ret; L: ret;", "PTX117", "add.s32"),
        ("{ ret; }", "PTX117", "{"),
        (".b8 1, 2", "PTX117", ".b8"),
        (".entry k() { .b8 1 ret; }", "PTX117", ".b8"),
        ('.entry k() { .file 1 "a" ret; }', "PTX117", ".file"),
        (".entry k() { .version 8.0 ret; }", "PTX117", ".version"),
        (".entry k() { .section .debug_x { .b8 1 } ret; }", "PTX117", ".section"),
        (".entry k() { .alias a, b; ret; }", "PTX117", ".alias"),
        (".section .debug_x { ret; }", "PTX117", "ret"),
        (".section .debug_x { .f32 1 }", "PTX108", ".f32"),
        (".section debug_x { .b8 1 }", "PTX100", "debug_x"),
        (".section .debug_x { .b8 1; }", "PTX100", ";"),
        (".version 9", "PTX103", "9"),
        (".version 9.", "PTX103", "9."),
        (".version 9.0.1", "PTX103", "9.0.1"),
        (".version 9.0e1", "PTX103", "9.0e1"),
        (".version", "PTX100", "n"),
        (".version x", "PTX100", "x"),
        (".version 9.0;", "PTX100", ";"),
        (".loc 1 2", "PTX100", "2"),
        (".loc 1 2 -3", "PTX100", "-"),
        (".loc 1 2 3, function_name x", "PTX100", "x"),
        (".loc 1 2 3, name x, inlined_at 1 2 3", "PTX100", "e"),
        (".foo bar;", "PTX119", ".foo"),
        (".entry () { ret; }", "PTX100", "("),
        (".entry k( { ret; }", "PTX100", "{"),
        (".entry k(.param .u64 a { ret; }", "PTX100", "{"),
        (".entry k(.param .u64 a,) { ret; }", "PTX100", ")"),
        (".entry k() ret; }", "PTX100", "ret"),
        (".entry k() .maxfoo 1 { ret; }", "PTX119", ".maxfoo"),
        (".func a.b() { ret; }", "PTX108", "a.b"),
        (".entry (.reg .b32 r) k() { ret; }", "PTX108", "(.reg .b32 r) k()"),
        (".entry .attribute(.managed) k() { ret; }", "PTX108", ".entry .attribute(.managed)"),
        (".alias a b;", "PTX100", "b"),
        (".pragma nounroll;", "PTX100", "nounroll"),
        ('.pragma "nounroll"', "PTX100", '"'),
        (";", "PTX100", ";"),
        ("#include <x>", "PTX115", "#include <x>"),
        ("#define a \\\n b\n.global .u32 x;", "PTX115", "#define a \\"),
        ("# 1 foo", "PTX115", "# 1 foo"),
        ("/* x", "PTX102", "/*"),
        (".entry k() { /* x\n ret; }", "PTX102", "/*"),
        ('.pragma "x;\n', "PTX102", '"x;'),
        ("“", "PTX101", "“"),
        ("\ufeff.version 9.0", "PTX101", "\ufeff"),
        (".global .u32 $;", "PTX101", "$"),
        ("\0\0", "PTX120", "\0"),
        ("\x7fELF\x02\x01\x01\0\0\0", "PTX120", "\x7f"),
        ("\x01\x02\x03 add", "PTX120", "\x01"),
    ],
)
def test_mistake(text, code, marked):
    assert error(text)[:2] == (code, marked)


def test_unknown_words_come_with_a_suggestion():
    (found,) = parse(".global .b33 x;").diagnostics
    assert found.help == ("did you mean .b32?",)


@pytest.mark.parametrize("text", ["", "\n", " \t\r\n", "// nothing\n", "/* nothing */"])
def test_empty(text):
    result = both(text)
    assert result.diagnostics == []
    assert result.module.items == []
    assert result.module.source.text == text


def test_bodies_of_unreadable_headers_are_read():
    text = ".entry k(.param u64 a)\n{\n\tadd.s32 a, b c;\n\tret;\n}\n.global .u32 after;\n"
    assert [code for code, _, _ in errors(text)] == ["PTX100", "PTX100"]
    assert [v.name for v in parse(text).module.variables] == ["after"]


def test_a_missing_brace_costs_one_message_only():
    text = HEAD + ".entry a() {\n\tret;\n.entry b() {\n\tret;\n}\n.entry c() {\n\tret;\n}\n"
    found = errors(text, 1)
    assert found[0][2] == "missing '}' at the end of a"
    assert [e.name for e in parse(text).module.entries] == ["a", "b", "c"]


def test_an_extra_brace_costs_one_message_only():
    text = HEAD + ".entry a() {\n\tmov.u32 x, y; }\n\tadd.s32 a, b, c;\n\tret;\n}\n.entry c() {\n\tret;\n}\n"
    assert [code for code, _, _ in errors(text)] == ["PTX117"]
    assert [e.name for e in parse(text).module.entries] == ["a", "c"]


def test_reading_stops_after_a_thousand_mistakes():
    result = parse(".foo;\n" * 5000)
    assert len(result.diagnostics) == 1001
    assert result.diagnostics[-1].code == "PTX121"


def test_every_code_is_explained_and_every_explanation_is_of_a_code():
    used = set()
    for path in Path(ptxtools.syntax.__file__).parent.glob("*.py"):
        if path.name != "codes.py":
            used |= set(re.findall(r'"(PTX\d{3})"', path.read_text()))
    assert used == set(CODES)
    for title, page in CODES.values():
        assert title
        assert title[-1] != "."
        assert page.startswith("What: ")
        assert "Why: " in page


def examples(page, title):
    """The indented texts below a line `title:`."""
    return re.findall(rf"{title}:\n\n((?: {{4,}}.*\n?|\n(?= {{4}}))+)", cleandoc(page))


@rows(("title", "wanted"), [("Example", True), ("Better", False)])
@rows("code", sorted(CODES))
def test_examples_of_the_pages(code, title, wanted):
    """What a page calls an example draws its code and no other; what it calls better draws nothing."""
    for text in examples(CODES[code][1], title):
        module_scope = text.strip()[0] in ".#"
        result = parse(text if module_scope else f".entry k() {{\n{text}\n}}")
        assert {d.code for d in result.diagnostics} == ({code} if wanted else set()), text


def test_pages_have_examples():
    assert sum(bool(examples(page, "Example")) for _, page in CODES.values()) >= 14
