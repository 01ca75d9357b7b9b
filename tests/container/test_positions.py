"""Where a statement of a container stands: in its own disassembly, or in the original with -g."""

import pytest

from ptxtools.container import link, read, write
from ptxtools.diagnostics import Diagnostic
from ptxtools.diagnostics.text import render
from ptxtools.syntax import parse, print_module

from .samples import EVERYTHING, module

CALLS = []


def canonical(tree):
    CALLS.append(tree)
    return parse(print_module(tree), tree.source.name).module


def kernel(tree):
    return next(f for f in tree.functions if f.name == "kernel")


def test_lines_are_those_of_the_disassembly():
    back = read(write(module()), "k.ptxo", canonical=canonical)
    lines = print_module(back).splitlines()
    for statement in kernel(back).body.items:
        line, column = back.source.position(statement.span[0])
        assert column == len(lines[line - 1]) - len(lines[line - 1].lstrip()) + 1 or lines[line - 1].startswith("$")
        assert back.source.line(line) == lines[line - 1]
    (load,) = [s for s in kernel(back).body.items if getattr(s, "opcode", "") == "ld.param.u64"]
    assert lines[back.source.line_of(load.span[0]) - 1].split() == ["ld.param.u64", "%rd1,", "[kernel_param_0];"]


def test_nothing_is_parsed_before_a_line_is_asked_for():
    CALLS.clear()
    back = read(write(module()), "k.ptxo", canonical=canonical)
    assert kernel(back).body.items and not CALLS
    back.source.line_of(kernel(back).span[0])
    back.source.line_of(kernel(back).body.items[5].span[0])
    assert len(CALLS) == 1


def test_debug_keeps_the_original_lines():
    original = module(name="dir/orig.ptx")
    back = read(write(original, debug=True), "k.ptxo", canonical=canonical)
    for ours, theirs in zip(kernel(back).body.items, kernel(original).body.items, strict=True):
        assert back.source.position(ours.span[0]) == original.source.position(theirs.span[0])
        assert back.source.name_of(ours.span[0]) == "dir/orig.ptx"
    found = Diagnostic("PTX000", "x", kernel(back).body.items[9].span, back.source)
    wanted = Diagnostic("PTX000", "x", kernel(original).body.items[9].span, original.source)
    assert (found.file, found.line, found.column) == (wanted.file, wanted.line, wanted.column)
    assert back.source.line(found.line).split() == original.source.line(wanted.line).split()


def test_debug_lines_survive_another_round():
    once = write(module(), debug=True)
    assert write(read(once), debug=True) == once


def test_positions_inside_a_statement():
    back = read(write(module()), "k.ptxo", canonical=canonical)
    span = kernel(back).body.items[12].span
    line, column = back.source.position(span[0])
    assert back.source.position(span[0] + 4) == (line, column + 4)
    assert back.source.position(span[1])[0] == line


def test_names_have_their_own_position():
    back = read(write(module()), "k.ptxo", canonical=canonical)
    line, column = back.source.position(kernel(back).name_span[0])
    assert back.source.line(line)[column - 1 :].startswith("kernel")


def test_without_a_printer_positions_do_not_fail():
    back = read(write(module()), "k.ptxo")
    assert back.source.position(kernel(back).span[0]) == (1, 1)
    assert back.source.line(1) == "" and back.source.text == ""


@pytest.mark.parametrize("debug", [False, True])
def test_a_linked_module_knows_both_inputs(debug):
    head = ".version 9.0\n.target sm_90\n.address_size 64\n"
    a = module(head + ".extern .func g();\n.visible .entry a() { call g; ret; }", "a.ptx")
    b = module(head + "\n\n.visible .func g() { ret; }", "b.ptx")
    back = read(write(link([a, b]), debug=debug), "ab.ptxo", canonical=canonical)
    g = next(f for f in back.functions if f.name == "g" and f.body is not None)
    where = back.source.name_of(g.span[0]), back.source.line_of(g.span[0])
    assert where == (("b.ptx", 6) if debug else ("ab.ptxo", back.source.line_of(g.span[0])))


def test_sources_have_the_text_of_the_disassembly():
    back = read(write(module(EVERYTHING)), "k.ptxo", canonical=canonical)
    assert back.source.text == print_module(module(EVERYTHING))


@pytest.mark.parametrize("debug", [False, True])
def test_a_finding_shows_the_words_that_it_is_about(debug):
    back = read(write(module(), debug=debug), "k.ptxo", canonical=canonical)
    variable = next(v for v in back.variables if v.name == "elsewhere")
    statement = next(s for s in kernel(back).body.items if getattr(s, "opcode", "") == "ld.const.u8")
    for span, words in ((variable.name_span, "elsewhere"), (statement.span, "ld.const.u8 \t%r4, [table+-1]")):
        _, line, carets, *_ = render(Diagnostic("PTX000", "x", span, back.source)).splitlines()
        marked = slice(carets.index("^"), carets.rindex("^") + 1)
        assert line[marked].split() == words.split()
