"""From places in PTX to the source that it was generated from (11.5.4)."""

from pathlib import Path

import pytest

from ptxtools.container import link, read, write
from ptxtools.ir.origins import add_origins, origins_of
from ptxtools.syntax import parse, print_module

DATA = Path(__file__).parents[2] / "testdata" / "lineinfo"
HEAD = ".version 8.0\n.target sm_80\n.address_size 64\n"


def chain_at(text, words, module=None):
    """File, line and function of each step at the first place of `words`."""
    module = module or parse(text).module
    found = origins_of(module).find(text.index(words))
    return found and [(place.file, place.line, place.function) for place in found.chain]


def test_what_nvcc_writes():
    text = (DATA / "lines.ptx").read_text()
    assert chain_at(text, "ld.global.f32") == [
        ("src/lines.cu", 2, "_Z4loadPKfi"),
        ("src/lines.cu", 7, "_Z6scaledIfET_PKS0_iS0_"),
        ("src/lines.cu", 16, "_Z4sumsPKfPfi"),
    ]
    assert chain_at(text, "st.global.f32") == [("src/lines.cu", 11, "_Z5storePfif")]
    source = (DATA / "lines.cu").read_text().splitlines()
    assert "return p[i]" in source[1] and "load(p, i)" in source[6] and "scaled(in, n" in source[15]


def test_the_second_call_of_an_inlined_function_is_told_apart():
    text = (DATA / "lines.ptx").read_text()
    second = text.index("ld.global.f32", text.index("ld.global.f32") + 1)
    found = origins_of(parse(text).module).find(second)
    assert [place.line for place in found.chain] == [2, 7, 17]


def test_what_triton_writes():
    text = (DATA / "triton.ptx").read_text()
    helpers = ("helpers.py", 12, "load_row")
    kernel = ("/kernels/add.py", 40, "add_kernel")
    assert chain_at(text, "mov.u32") == [("/kernels/add.py", 35, "add_kernel")]
    assert chain_at(text, "ld.global.u32") == [("helpers.py", 5, "_Z6offseti"), helpers, kernel]


def test_line_0_is_no_line():
    text = (DATA / "triton.ptx").read_text()
    assert chain_at(text, "st.global.u32 	[%rd3+4]") == [("/kernels/add.py", 40, "add_kernel")]
    assert chain_at(text, "st.global.u32 	[%rd3+8]") is None


BODY = """{ .reg .b32 %r;
mov.b32 %r, 1;
{ .loc 1 3 0
mov.b32 %r, 2; }
mov.b32 %r, 3; }
"""


def test_a_loc_holds_up_to_the_next_one_of_its_function():
    text = f'{HEAD}.file 1 "a.cu"\n.file 1 "other.cu"\n.entry a() {BODY}.func b() {BODY}.global .u32 g;'
    module = parse(text).module
    origins = origins_of(module)

    def line(words, which):
        at = -1
        for _ in range(which):
            at = text.index(words, at + 1)
        found = origins.find(at)
        return found and (found.file, found.line, found.function)

    assert line("mov.b32 %r, 1", 1) is None
    assert line("mov.b32 %r, 2", 1) == line("mov.b32 %r, 3", 1) == ("a.cu", 3, "a")
    assert line("mov.b32 %r, 1", 2) is None  # that of `a` ends with `a`
    assert line("mov.b32 %r, 3", 2) == ("a.cu", 3, "b")
    assert line(".global", 1) is None and line(".version", 1) is None


def test_recursion_ends():
    """A place that is inlined at itself, over and over: the chain has its bound, and needs no stack."""
    loc = ".loc 1 3 0, function_name $L, inlined_at 1 3 0\n"
    section = ".section .debug_str { $L:\n.b8 102, 0 }\n"
    text = f'{HEAD}.file 1 "a.cu"\n.entry a() {{ .loc 1 3 0\n{loc * 500} ret; }}\n{section}'
    found = origins_of(parse(text).module).find(text.index("ret"))
    assert len(found.chain) == 64 and {place.line for place in found.chain} == {3}
    assert found.calls()[0] == "in f, inlined at a.cu:3 in f"


@pytest.mark.parametrize("name", ["$L__nothing", ".debug_line", ".debug_str+900"])
def test_names_that_no_section_has(name):
    loc = f".loc 1 3 0\n.loc 1 9 0, function_name {name}, inlined_at 1 3 0\n"
    text = f'{HEAD}.file 1 "a.cu"\n.entry a() {{ {loc} ret; }}\n.section .debug_str {{ .b8 102, 0 }}'
    assert chain_at(text, "ret") == [("a.cu", 9, ""), ("a.cu", 3, "a")]


def test_an_inlined_place_that_nothing_names_and_a_file_that_is_not_there():
    text = f'{HEAD}.file 1 "a.cu"\n.entry a() {{ .loc 1 9 0, function_name $L, inlined_at 7 3 0\n ret; }}'
    assert chain_at(text, "ret") == [("a.cu", 9, ""), ("<file 7>", 3, "")]


def test_names_cannot_steer_a_terminal():
    text = f'{HEAD}.file 1 "a\x1b[31m.cu"\n.entry a() {{ .loc 1 9 0\n ret; }}'
    found = origins_of(parse(text).module).find(text.index("ret"))
    assert found.lines() == ["source: a?[31m.cu:9"]


@pytest.mark.parametrize("debug", [False, True])
@pytest.mark.parametrize("name", ["lines.ptx", "triton.ptx"])
def test_containers_keep_it(name, debug):
    module = parse((DATA / name).read_text()).module
    text = print_module(module)
    stored = read(write(parse(text).module, debug=debug), name)
    expected, got = origins_of(parse(text).module), origins_of(stored)
    compared = 0
    for mine, theirs in zip(parse(text).module.entries, stored.entries, strict=True):
        for one, other in zip(mine.body.items, theirs.body.items, strict=True):
            assert expected.find(one.span[0]) == got.find(other.span[0])
            compared += got.find(other.span[0]) is not None
    assert compared > 10


def test_linked_containers_keep_it():
    texts = [(DATA / name).read_text() for name in ("lines.ptx", "triton.ptx")]
    stored = read(write(link([parse(text).module for text in texts]), debug=True), "both")
    origins = origins_of(stored)
    sums = next(f for f in stored.functions if f.name == "_Z4sumsPKfPfi")
    add = next(f for f in stored.functions if f.name == "add_kernel")

    def chain(function, opcode):
        found = next(i for i in function.body.items if getattr(i, "opcode", "").startswith(opcode))
        return [(place.file, place.line, place.function) for place in origins.find(found.span[0]).chain]

    assert chain(sums, "ld.global") == chain_at(texts[0], "ld.global.f32")
    assert chain(add, "ld.global") == chain_at(texts[1], "ld.global.u32")


def test_offsets_in_several_texts_mean_nothing():
    texts = [(DATA / name).read_text() for name in ("lines.ptx", "triton.ptx")]
    assert origins_of(link([parse(text).module for text in texts])) is None
    assert origins_of(link([parse(texts[0]).module])) is not None


def test_findings_get_it_only_where_there_is_one():
    from ptxtools.linter import lint

    text = f'{HEAD}.file 1 "a.cu"\n.entry a() {{ .reg .b32 %r; .loc 1 9 4\n add.b99 %r, %r, %r; ret; }}'
    parsed = parse(text)
    findings = [*parsed.diagnostics, *lint(parsed.module)]
    add_origins(findings, parsed.module)
    assert [(f.line, str(f.origin)) for f in findings if f.origin] == [
        (f.line, "a.cu:9") for f in findings if f.line == 6
    ]
    plain = parse(text.replace('.file 1 "a.cu"', ""))
    assert origins_of(plain.module) is None
