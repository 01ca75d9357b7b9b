"""Hostile sizes and depths: clear diagnostics, no exceptions, work in proportion to the size."""

import pytest

from ptxtools.syntax import limits, parse, print_module
from tests import share
from tests.work import calls

from .syntaxtools import HEAD

SIZE = 20_000


def in_body(text):
    return f"{HEAD}.visible .entry f(.param .u64 a)\n{{\n{text}\nret;\n}}\n"


CASES = {
    "one word": lambda n: "x" * n,
    "digits": lambda n: in_body(f"mov.u32 a, {'1' * n};"),
    "operands": lambda n: in_body(f"op {'a, ' * (n // 3)}a;"),
    "vector": lambda n: in_body(f"op {{{'a, ' * (n // 3)}a}};"),
    "sum": lambda n: in_body(f"op {'1+' * (n // 2)}1;"),
    "signs": lambda n: in_body(f"op {'- ' * (n // 2)}1;"),
    "no semicolons": lambda n: in_body("add.s32 a, b, c\n" * (n // 16)),
    "no line ends": lambda n: in_body("add.s32 a, b, c " * (n // 16)),
    "open scopes": lambda n: in_body("{" * n),
    "closing braces": lambda n: in_body("}" * n),
    "parentheses": lambda n: in_body(f"op {'(' * n};"),
    "brackets": lambda n: in_body(f"op {'[' * n};"),
    "vectors": lambda n: in_body(f"op {'{' * n};"),
    "initialiser": lambda n: f".global .b32 x[] = {'{' * n};",
    "long initialiser": lambda n: f".global .b32 x[] = {{{'1, ' * (n // 3)}1}};",
    "quotes": lambda n: '"' * n,
    "slashes": lambda n: "/" * n,
    "open comments": lambda n: "/* " * (n // 3),
    "comments": lambda n: "/**/" * (n // 4),
    "preprocessor": lambda n: "#\n" * (n // 2),
    "semicolons": lambda n: ";" * n,
    "commas": lambda n: in_body("," * n),
    "blanks": lambda n: " " * n,
    "at signs": lambda n: in_body("@" * n),
    "labels": lambda n: in_body("L:" * (n // 2)),
    "words": lambda n: in_body("L " * (n // 2)),
    "dots": lambda n: "." * n,
    "dotted words": lambda n: ".a " * (n // 3),
    "modifiers": lambda n: in_body(f"a{'.b' * (n // 2)};"),
    "targets": lambda n: ".target " + "a, " * (n // 3),
    "data": lambda n: f".section .debug_x {{{'.b8 1 ' * (n // 6)}}}",
    "parameters": lambda n: f".entry f({'.param .b32 a, ' * (n // 15)}.param .b32 a) {{}}",
    "functions": lambda n: ".entry f() { ret; }\n" * (n // 20),
    "headers": lambda n: ".entry f() {\n" * (n // 13),
    "strings": lambda n: f'.pragma "{"x" * n}";',
    "control characters": lambda n: "\x01" * n,
    "letters": lambda n: "é" * n,
    "conditions": lambda n: in_body(f"op {'1?1:' * (n // 4)}1;"),
    "bars": lambda n: in_body(f"op {'a|' * (n // 2)};"),
    "blanks in a statement": lambda n: in_body("op" + " " * n),
}


@pytest.mark.share(6)
@pytest.mark.parametrize("case", CASES)
def test_hostile_text(case, cache_folder):
    """Four times the text takes four times the work, or less; a quadratic reader would take sixteen times as much."""
    small, large = (work(CASES[case](size)) for size in (SIZE // 4, SIZE))
    assert large <= 4.5 * small


def work(text, most=limits.MOST_FAULTS + 1):
    """The calls that reading and printing a text take, once the tables are loaded; it has at most so many faults."""
    parse(HEAD)
    results = []
    taken = calls(lambda: results.append(parse(text)))
    (result,) = results
    assert all(0 <= d.span[0] < d.span[1] <= len(text) + 1 for d in result.diagnostics)
    assert len(result.diagnostics) <= most
    return taken + calls(lambda: print_module(result.module))


def test_bodies_without_their_brace(cache_folder):
    """The braces behind each of a thousand faults are counted once for all."""
    fewer, more = (HEAD + ".entry f()\n.reg .b32 %r<4>;\nadd.s32 a, b, c;\nret;\n}\n" * n for n in (250, 1000))
    assert work(more) <= 4.5 * work(fewer)


@pytest.mark.share(4)
@pytest.mark.parametrize("make", [
    lambda n: "x" * n,
    lambda n: in_body("add.s32 a, b, c " * (n // 16)),
    lambda n: in_body(f"op {'a' * n};"),
], ids=["word", "words", "operand"])  # fmt: skip
def test_ten_megabytes_in_one_line(make, cache_folder):
    """Nothing is done for each character or word of a statement that is refused, or of a name."""
    assert work(make(10_000_000 if share.whole else 2_000_000), most=1) < 5_000


def test_scopes_may_nest_that_deep():
    depth = limits.MOST_SCOPES - 1
    result = parse(in_body("{" * depth + "}" * depth))
    assert result.diagnostics == []
    assert parse(print_module(result.module)).module == result.module
    result = parse(in_body("{" * (depth + 9) + "}" * (depth + 9)))
    assert [d.code for d in result.diagnostics] == ["PTX118"]


def test_brackets_may_nest_that_deep():
    depth = limits.MOST_BRACKETS
    fine = parse(f".global .b32 x[] = {'{' * depth}1{'}' * depth};")
    assert fine.diagnostics == []
    assert parse(print_module(fine.module)).module == fine.module
    deep = parse(f".global .b32 x[] = {'{' * (depth + 1)}1{'}' * (depth + 1)};")
    assert [d.code for d in deep.diagnostics] == ["PTX118"]


def test_a_long_statement_is_refused():
    (found,) = parse(in_body(f"op {'1+' * limits.MOST_WORDS}1;")).diagnostics
    assert found.code == "PTX118"


def test_statements_behind_a_stray_brace_are_read_as_quickly():
    rows = "".join(f"add.s32 %r{n % 9}, %r1, {n};\n" for n in range(1000))
    text = f".version 8.0\n.target sm_80\n.entry k()\n{{\n.reg .b32 %r<9>;\n{rows}ret;\n}}\n"
    middle = text.index(";", len(text) // 2) + 1
    stray = f"{text[:middle]} }}{text[middle:]}"
    assert [d.code for d in parse(stray).diagnostics] == ["PTX117"]
    assert calls(lambda: parse(stray)) < 2 * calls(lambda: parse(text))
