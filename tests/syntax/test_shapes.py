"""The shape cache: the same results as the grammar's, faster."""

import gc
import os
import re
import subprocess
import sys
import tracemalloc
from concurrent.futures import ThreadPoolExecutor

import pytest

from ptxtools.ir import Instruction
from ptxtools.syntax import kept, parse, print_module, shapes, templates
from tests.rows import rows
from tests.work import calls

from .syntaxtools import BENCH, HEAD, ROOT, both, describe, file_id

#: Calls for one statement of compiler output; the speeds that they stand for are bounded in `make bench`.
CALLS_TO_READ, CALLS_TO_PRINT = 27, 15


def repeated(size):
    """The bench kernels over and over with renamed symbols, until the text has that size."""
    texts = [path.read_text().split(".address_size 64", 1)[1] for path in BENCH]
    parts = [HEAD]
    while sum(map(len, parts)) < size:
        for text in texts:
            names = set(re.findall(r"\.(?:entry|func)\s+(?:\([^)]*\)\s*)?([\w$]+)", text))
            for name in names:
                text = re.sub(rf"\b{re.escape(name)}(?=\b|_param)", f"{name}_{len(parts)}", text)
            parts.append(re.sub(r"\$L__BB(\d+)", rf"$L__BB\1x{len(parts)}", text))
    return "".join(parts)


@pytest.fixture(scope="module")
def megabyte():
    return repeated(1_000_000)


def test_a_megabyte_of_known_shapes_is_read_by_shape(megabyte, cache_folder):
    """Reading text whose shapes are known takes few calls for each statement; the grammar takes hundreds."""
    parse(megabyte)
    results = []
    taken = calls(lambda: results.append(parse(megabyte)))
    (result,) = results
    assert result.diagnostics == []
    statements = sum(len(entry.body.items) for entry in result.module.entries)
    assert statements > 28_000
    assert taken < CALLS_TO_READ * statements
    assert gc.isenabled()


def test_a_module_takes_little_memory():
    text = repeated(100_000)
    parse(text)
    tracemalloc.start()
    parse(text)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 20 * len(text)


def test_both_ways_agree_on_renamed_kernels():
    both(repeated(60_000))


def test_printing_takes_few_calls_for_each_statement(megabyte):
    module = parse(megabyte).module
    statements = sum(len(entry.body.items) for entry in module.entries)
    assert calls(lambda: print_module(module)) < CALLS_TO_PRINT * statements


def test_threads_do_not_disturb_each_other():
    texts = [path.read_text() for path in BENCH]
    expected = [parse(text).module for text in texts]
    with ThreadPoolExecutor(4) as pool:
        for cached in (True, False):
            found = pool.map(lambda text, cached=cached: parse(text, cache=cached).module, texts * 3)
            assert list(found) == expected * 3
    assert gc.isenabled()


def test_operands_are_shared():
    items = parse(".entry k() { add.s32 a, b, 5; sub.s32 a, b,5; @p ret; @p ret; }").module.items[0].body.items
    first, second, third, fourth = items
    assert all(x is y for x, y in zip(first.operands, second.operands, strict=True))
    assert third.guard is fourth.guard


@rows(
    "statement",
    [
        "op a, 1;",
        "op a, 1+2;",
        "op a, 1 , 1;",
        "op a,b , c ;",
        "op {a, b}, [c+4], [d, {e, f}];",
        "op a, -5, - 5, -5U, -1.5, 0f3f800000;",
        "op a, (4), ((4)), (.s64)4, WARP_SZ, -WARP_SZ;",
        "op a+0, a+-0, [a+0], [a+-0], [a+0x10], [a+(4)];",
        "op x.y, x.y.z, [x.y], %r1.b0;",
        "op\n\ta // first\n\t, b;",
        "@p op; @!p op a; @ p op;",
        ".reg .b32 a, b, c<5>;",
        ".reg .b32 %r<5>;\n\t.reg .b32 %r<5>; .reg .b32 a<0>; .reg .v4 .f32 q; .reg .pred p; .reg .b32 x = 1;",
        ".pragma \"a\"; op; .pragma  \"a\" ; .pragma \"a\";",
        ".loc 1 2 3\nop; .loc 01 2 3\nop;",
        ".loc 1 2 3, function_name a+0, inlined_at 1 2 3\nop;",
        "call f, (a, 1+1); call.uni (r), f, (a);",
        "L: M: op; N: /* x */ .branchtargets L<2>, M;",
        "{ { op; } .pragma \"a b\", \"c\"; }",
        "P: .callprototype (.param .b32 _) _ (.param .b32 _) ;",
    ],
)  # fmt: skip
def test_statement_twice(statement):
    """The first time a shape is new, the second time it is known."""
    text = f"{HEAD}.entry k() {{\n{statement}\n{statement.replace('a', 'zz').replace('1', '77')}\n{statement}\n}}\n"
    both(text)
    both(text)


@rows(
    "text",
    [
        ".version 9.0\n, .target sm_90",
        ".version 9.0 // x\n\n.target sm_90 // y\n, debug",
        ".target sm_90 debug",
        ".file 1 \"a\" , 1, 2",
        ".entry k() { .loc 1 2 3 // c\n , function_name x, inlined_at 1 2 3 }",
        ".entry k() { .loc 1 2 3 4\n}",
        ".section .debug_x { .b8 1 // one\n , 2 }",
        ".section .debug_x { .b8 1 2 }",
        ".section .debug_x { .b8 1, .b8 2 }",
        ".section .debug_x { .b8 -a }",
        ".section .debug_x { .b8 a+1-b }",
        ".global .b32 x[] = {1, 2;",
        ".global .b32 x[] = {1, 2}, y = {3};",
        ".global .b32 x[] = {{1, {2}}, {}};",
        ".entry k() { call; call f; call (f); call f, f(; }",
        ".entry k() { op a, \"b\"; op a; }",
        ".entry k() { op a: ; op }",
        ".entry k() { op a\n op b\n\t; op c; }",
        ".entry k() { .reg .b32 r; .pragma \"a\"; }\n.reg .b32 r; op;\n.reg .b32 r;\n op; .pragma \"a\";\n}",
        ".entry k() { .reg .b32 r;\n{ .reg .b32 r; .reg .b32 r }\n.reg .b32 r;",
        ".entry k() { op a, b @p ret; }",
        ".entry k() { op ptx_hole_0_, 7919000000; op 7919000001, ptx_hole_1_; }",
        ".entry ptx_hole_0_(.param .b32 ptx_hole_1_) { .reg .b32 ptx_hole_2_<7919000003>; }",
    ],
)  # fmt: skip
def test_where_the_two_ways_could_differ(text):
    both(text)
    both(text)


def test_known_shapes_need_no_ply(cache_folder):
    """A process that finds tables and shapes in the cache starts without PLY and without the instruction set."""
    code = (
        "import sys; from ptxtools.syntax import parse;"
        "r = parse(open(sys.argv[1]).read()); assert not r.diagnostics; print(len(r.module.items),"
        "[m for m in sys.modules if m.startswith(('ply', 'ptxtools.isa', 'ptxtools.syntax.grammar', 'numpy'))])"
    )
    outputs = []
    for _ in range(2):
        run = subprocess.run(
            [sys.executable, "-c", code, str(BENCH[0])],
            env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=True,
        )  # fmt: skip
        outputs.append(run.stdout)
    assert outputs[1].endswith(" []\n")


def test_shapes_survive_the_cache_file(cache_folder):
    text = BENCH[0].read_text()
    before = parse(text)
    templates.store.cache_clear()
    again = parse(text)
    assert again.module == before.module
    assert any(name.name.startswith("shapes-") for name in cache_folder.iterdir())


DAMAGE = {
    "empty": lambda data: b"",
    "short": lambda data: data[:-7],
    "flipped": lambda data: data[:-9] + bytes([data[-9] ^ 1]) + data[-8:],
    "other": lambda data: b"no cache at all",
}


@pytest.mark.parametrize("how", DAMAGE)
def test_damaged_cache_file(tmp_path, monkeypatch, how):
    monkeypatch.setenv("PTXTOOLS_CACHE", str(tmp_path))
    templates.store.cache_clear()
    text = BENCH[0].read_text()
    expected = parse(text).module
    (path,) = tmp_path.glob("shapes-*")
    assert kept.load("shapes", templates.store().key) is not None
    path.write_bytes(DAMAGE[how](path.read_bytes()))
    assert kept.load("shapes", templates.store().key) is None
    templates.store.cache_clear()
    assert templates.store().units == {}
    assert parse(text).module == expected
    templates.store.cache_clear()


def test_many_shapes_do_not_grow_without_bound(tmp_path, monkeypatch):
    monkeypatch.setenv("PTXTOOLS_CACHE", str(tmp_path))
    monkeypatch.setattr(templates, "MOST_KEPT", 30)
    templates.store.cache_clear()
    lines = "\n".join(f".reg .b32 {', '.join('a' * (n + 1))};" for n in range(100))
    result = parse(f".entry k() {{\n{lines}\n}}")
    assert result.diagnostics == []
    assert len(templates.store().units) == 30
    templates.store.cache_clear()


def test_a_full_file_of_shapes_is_not_full_for_ever(tmp_path, monkeypatch):
    """What one strange input left behind does not keep other inputs from having shapes."""
    monkeypatch.setenv("PTXTOOLS_CACHE", str(tmp_path))
    monkeypatch.setattr(templates, "MOST_KEPT", 30)
    counts = []
    for word in ("b32", "b64", "f32", "f64"):
        templates.store.cache_clear()
        lines = "\n".join(f".reg .{word} {', '.join('a' * (n + 1))};" for n in range(100))
        assert parse(f".entry k() {{\n{lines}\n}}").diagnostics == []
        counts.append(len(templates.store().units))
    assert counts == [30, 60, 30, 60]
    templates.store.cache_clear()


@pytest.mark.parametrize("path", BENCH, ids=file_id)
def test_every_statement_of_the_bench_has_a_shape(path):
    """Nothing in ordinary compiler output is left to the grammar once its shape is known."""
    text = path.read_text()
    parse(text)
    store = templates.store()
    known = (len(store.units), len(store.operands))
    calls = []
    from ptxtools.syntax import units

    original = units.UnitParser.parse
    units.UnitParser.parse = lambda *a: calls.append(a) or original(*a)
    try:
        result = parse(text)
    finally:
        units.UnitParser.parse = original
    assert calls == []
    assert (len(store.units), len(store.operands)) == known
    assert describe(result) == []
    assert any(isinstance(i, Instruction) for e in result.module.entries for i in e.body.items)


def test_modules_share_operands():
    """A parser is used again by the next module, but for what texts did not have since it remembered too much."""

    def same(module):
        assert module == first
        pairs = zip(first.entries[0].body.items, module.entries[0].body.items, strict=True)
        return [a.operands[0] is b.operands[0] for a, b in pairs if isinstance(a, Instruction) and a.operands]

    def read_many(begin):
        values = ", ".join(str(n) for n in range(begin, begin + shapes._MOST_OPERANDS + 1))
        parse(f".global .b32 many[] = {{{values}}};")

    text = BENCH[0].read_text()
    first = parse(text).module
    assert len(same(parse(text).module)) > 10
    assert all(same(parse(text).module))
    read_many(0)
    assert all(same(parse(text).module))
    read_many(0)
    read_many(shapes._MOST_OPERANDS + 1)
    assert not any(same(parse(text).module))


def test_a_text_that_was_slow_leaves_nothing_to_the_next():
    begin = ".version 8.0\n.target sm_80\n.address_size 64\n.entry k() {\n"
    parse(begin + "add.s32 a, b, c " * 200)
    text = begin + ".reg .b32 %r<3>;\nadd.s32 %r1, %r2, 1;\nret;\n}\n"
    assert describe(parse(text)) == []
    assert parse(text).module == parse(text, cache=False).module
