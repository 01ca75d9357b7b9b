"""Small verdicts in which ptxas is exact, each asked of ptxas 13.0: declarations, bytes, names and pragmas."""

import pytest

import ptxtools
from tests.rows import rows

HEAD = ".version 9.0\n.target sm_90{}\n.address_size 64\n"
BODY = """.visible .entry k()
{{
.reg .b32 %r<9>; .reg .f32 %f<9>; .reg .b64 %rd<9>; .reg .b16 %h<9>; .reg .pred %p<9>;
{}
ret;
}}
"""


def errors(text: str, options: str = "") -> list[tuple[str, int]]:
    """Codes and lines of the errors; lines count from that behind the headers."""
    found = ptxtools.lint(HEAD.format(options) + text)
    return [(d.code, d.line - 3) for d in found if d.severity.name == "ERROR"]


def codes(line: str, module: str = "") -> list[str]:
    return [code for code, _ in errors(module + "\n" + BODY.format(line))]


F, DECLARED = ".func b() { ret; }", ".func a();"


@rows(("module", "expected"), [
    (f"{F} {DECLARED} .alias a, b;", []),
    (f"{F} {DECLARED} .alias a, b; .alias a, b;", ["PTX432"]),
    (f"{F} .func c() {{ ret; }} {DECLARED} .alias a, b; .alias a, c;", ["PTX432"]),
    (f"{F} {DECLARED} .func c(); .alias a, b; .alias c, a;", ["PTX432"]),
    (".func b(); .alias b, b;", ["PTX432"]),
    (".func b() .noreturn { exit; } .func a(); .alias a, b;", ["PTX432"]),
    (".func b() { exit; } .func a() .noreturn; .alias a, b;", ["PTX432"]),
    (".func b() .noreturn { exit; } .func a() .noreturn; .alias a, b;", []),
    *((f".global .texref x{value};", ["PTX427"]) for value in (
        " = 5", " = 1.5", " = {5}", " = {width = 5, 6}", " = {{width = 5}}", "[2] = 5", "[2] = {5, 6}")),
    (".global .texref y; .global .texref x = y;", ["PTX427"]),
    *((f".global .texref x{value};", []) for value in (
        " = {}", " = {width = 5}", "[2] = {}", "[2] = {{width = 5}, {}}", "[2] = {width = 5, height = 6}")),
    (".func b(.param .b8 x[4294967295]) { ret; }", []),
    (".func b(.param .b8 x[4294967296]) { ret; }", ["PTX433"]),
    (".func b(.param .u32 x) { { .param .u32 x; st.param.u32 [x], 1; } ret; }", ["PTX243"]),
    (".entry b(.param .u32 x) { { .param .u32 x; st.param.u32 [x], 1; } ret; }", ["PTX243"]),
    (".func (.param .u32 x) b() { { .param .u32 x; st.param.u32 [x], 1; } ret; }", []),
    (".func b(.param .u32 x) { { .param .u32 y; st.param.u32 [y], 1; } ret; }", []),
    (".entry b(.param .u64 .ptr .texref x) { ret; }", []),
    (".entry b(.param .u32 .ptr .surfref .align 4 x) { ret; }", []),
    (".entry b(.param .u64 .ptr .global .texref x) { ret; }", ["PTX108"]),
    (".func b(.param .u64 .ptr .texref x) { ret; }", ["PTX430"]),
    (".func b(.reg .v4 .u16 x) { ret; }", []),
    (".func b(.reg .u16 x) { ret; }", ["PTX430"]),
])  # fmt: skip
def test_declarations(module: str, expected: list[str]) -> None:
    assert [code for code, _ in errors(module)] == expected


@rows(("declared", "line", "expected"), [
    (".global .u32 g;", "ld.global.u32 %r1, g[0];", ["PTX223"]),
    (".global .v2 .u32 g;", "st.global.u32 g[1], %r1;", ["PTX223"]),
    (".global .u32 g;", "mov.u64 %rd1, g[0];", ["PTX223"]),
    (".global .u32 g[2];", "ld.global.u32 %r1, g[0]; mov.u64 %rd1, g[1];", []),
    # An address with an offset is a constant.
    (".global .u32 g; .global .u64 x;", "st.global.u64 [x], g+1; st.global.b64 [x], g+4;", []),
    (".global .u32 g; .global .u64 x;", "st.global.u64 [x], g;", ["PTX223"]),
    (".global .u32 g;", "add.u64 %rd1, g+1, %rd2; setp.eq.u64 %p1, g+1, %rd1;", []),
    (".global .u32 g;", "add.f32 %f1, g+1, %f2;", ["PTX223"]),
    (".global .u32 g;", "st.global.v2.u64 [%rd1], {%rd1, g+1};", ["PTX223"]),
    (F, "add.u64 %rd1, %rd1, b+1;", ["PTX223"]),
    # .full stands behind div.
    ("", "div.full.ftz.f32 %f1, %f2, %f3; div.f32.approx %f1, %f2, %f3;", []),
    ("", "div.f32.full %f1, %f2, %f3;", ["PTX113"]), ("", "div.ftz.full.f32 %f1, %f2, %f3;", ["PTX113"]),
    # elect is asked for its predicate.
    ("", "elect.sync %r1|_, -1;", ["PTX228"]), ("", "elect.sync _|%p1, -1; setp.eq.u32 %p1|_, %r2, 0;", []),
    ("", '.pragma "abi_param_reg";', ["PTX410"]), ("", '.pragma "abi_param_reg 8";', ["PTX410"]),
    ('.func f() { .pragma "abi_param_reg";', 'ret; } .func g() { ret; ', ["PTX412"]),
])  # fmt: skip
def test_operands(declared: str, line: str, expected: list[str]) -> None:
    if declared.startswith(".func f()"):
        assert [code for code, _ in errors(f"{declared} {line}}}")] == expected
    else:
        assert codes(line, declared) == expected


@pytest.mark.parametrize("argument", ["8", "0x10", "all"])
def test_registers_for_parameters(argument: str) -> None:
    assert errors(f'.func b() {{ .pragma "abi_param_reg {argument}"; ret; }}') == []


@pytest.mark.parametrize("argument", ["", "0", "-1", "x", "8 9"])
def test_no_registers_for_parameters(argument: str) -> None:
    assert errors(f'.func b() {{ .pragma "abi_param_reg {argument}"; ret; }}') == [("PTX412", 1)]


@pytest.mark.parametrize("line", [
    ".reg .b32 call; mov.b32 call, 1; add.u32 call, call, call;", ".reg .b32 call<4>; mov.b32 call1, 1;",
    "call: bra call;", "call /* a */ : ;;".replace(";;", "bra call;"), ".reg .pred call; @call bra X; @!call ret; X:",
    ".reg .pred call; @call call f; @!call call.uni f;", "call f;", "@%p1 call f;", "call.uni f;",
])  # fmt: skip
def test_call_is_a_name_where_no_instruction_begins(line: str) -> None:
    assert codes(line, ".func f() { ret; }") == []


def test_functions_and_variables_may_be_named_call() -> None:
    assert codes("call call; call call, ();", ".func call() { ret; }") == []
    assert codes("ld.global.u32 %r1, [call];", ".global .u32 call;") == []


@pytest.mark.parametrize(("text", "expected"), [
    ("// \u00e4\n// \u00f6\n", [("PTX101", 1)]), ("\n/* a\u2192b */\n", [("PTX101", 2)]),
    ('.file 1 "\u00e4.cu"\n', [("PTX101", 1)]), ("\v\n", [("PTX101", 1)]), ("// \v\n", []), ("\f\n", []),
    (".global \v.u32 x;\n", [("PTX101", 1)]), ('# 1 "a.cu"\n', []), ('#line 1 "a.cu" 2\n', []),
    ('.global .u32 x;\n# 1 "a.cu"', [("PTX115", 2)]), ("# 1\n", [("PTX115", 1)]),
])  # fmt: skip
def test_bytes(text: str, expected: list[tuple[str, int]]) -> None:
    assert errors(text) == expected


def test_a_byte_order_mark_is_reported_where_it_stands() -> None:
    found = ptxtools.lint(b"\xef\xbb\xbf" + (HEAD.format("") + BODY.format("")).encode())
    assert [(d.code, d.line, d.column) for d in found] == [("PTX101", 1, 1)]


def test_metadata_of_sparse_products_may_stand_in_braces() -> None:
    product = (
        "mma.sp::ordered_metadata.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f1, %f2, %f3, %f4}, {%r1, %r2}, "
        "{%r3, %r4}, {%f1, %f2, %f3, %f4}, META, 0;"
    )
    assert codes(product.replace("META", "{%r5}")) == codes(product.replace("META", "%r5")) == []
    assert codes(product.replace("META", "{%r5, %r6}")) == ["PTX223"]
