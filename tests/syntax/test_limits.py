"""Hostile sizes and depths: clear diagnostics, no exceptions, linear time."""

import time

import pytest

from ptxtools.syntax import limits, parse, print_module

from .syntaxtools import HEAD

SIZE = 60_000


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


@pytest.mark.parametrize("case", CASES)
def test_hostile_text(case):
    """Four times the text takes little more than four times as long; a quadratic reader would take sixteen times."""
    small, large = (timed(CASES[case](size)) for size in (SIZE // 4, SIZE))
    assert large < 0.3 + 8 * small


def timed(text):
    begin = time.perf_counter()
    result = parse(text)
    taken = time.perf_counter() - begin
    assert all(0 <= d.span[0] < d.span[1] <= len(text) + 1 for d in result.diagnostics)
    assert len(result.diagnostics) <= limits.MOST_FAULTS + 1
    print_module(result.module)
    return taken


def test_bodies_without_their_brace():
    """The braces behind each of a thousand faults are counted once for all."""
    bad, good = (
        HEAD + f".entry f()\n{brace}.reg .b32 %r<4>;\nadd.s32 a, b, c;\nret;\n}}\n" * 2000 for brace in ("", "{")
    )
    assert timed(bad) < 0.3 + 8 * timed(good)


def test_ten_megabytes_in_one_line():
    for text in ("x" * 10_000_000, in_body("add.s32 a, b, c " * 650_000), in_body("op " + "a" * 10_000_000 + ";")):
        begin = time.perf_counter()
        result = parse(text)
        assert time.perf_counter() - begin < 5
        assert len(result.diagnostics) <= 1


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
