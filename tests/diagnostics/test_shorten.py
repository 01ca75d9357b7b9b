"""What a user wrote is repeated, but not by the megabyte."""

import json

import pytest

import ptxtools
from ptxtools.diagnostics import Diagnostic, Trap
from ptxtools.diagnostics.shorten import line_around, shortened
from ptxtools.diagnostics.text import render

HEAD = ".version 8.0\n.target sm_80\n.address_size 64\n"
LONG = "z" * 400_000


def test_short_messages_stay():
    text = "a" * 900 + " " + "b" * 1000
    assert shortened("abc") == "abc" and shortened(text) == text


def test_the_middle_of_a_long_word_is_left_out():
    assert shortened(f"'a{LONG}b' is no word") == "'a" + "z" * 117 + "…" + "z" * 38 + "b' is no word"


def test_very_many_words():
    assert len(shortened("word " * 100_000)) == 8000


@pytest.mark.parametrize("at", [0, 5, 5000, 9999])
def test_a_line_around_a_place(at):
    line = "".join(chr(0x4E00 + n) for n in range(10_000))
    shown = line_around(line, at)
    assert line[at] in shown and 160 <= len(shown) <= 162 and shown.strip("…") in line


@pytest.mark.share(3)
@pytest.mark.parametrize("body", [
    f".entry k() {{ {LONG}.u32 %r1; ret; }}", f".entry k() {{ add.{LONG} %r1, 1, 2; ret; }}",
    f".entry k() {{ mov.u32 {LONG}, 1; ret; }}", f".entry k() {{ bra {LONG}; }}", f".{LONG} x;", f".pragma \"{LONG}\";",
    f".global .u32 x = {LONG};", f".entry k() {{ .reg .{LONG} x; }}", f".entry k() {{ call {LONG}; }}",
    f".entry k() {{ mov.u32 x, 1{LONG}; }}", f".entry {LONG}() {{ }}\n.entry {LONG}() {{ }}",
    f".entry k() {{ .reg .u32 a; add.u32 a, a, [{LONG}]; {LONG}", f".global .b8 a[{'9' * 4000}];",
    f".version {'9' * 4000}.0", f".target {LONG}",
])  # fmt: skip
def test_findings_about_long_words_are_short(body):
    found = ptxtools.lint(HEAD + body)
    assert found
    for finding in found:
        assert len(finding.message) < 1000 and all(len(text) < 1000 for text in finding.help), finding.code
        assert len(render(finding)) < 3000 and len(json.dumps(finding.to_json())) < 3000


def test_requirements_of_long_lines():
    from ptxtools.linter.requirements import requirements
    from ptxtools.syntax import parse

    text = (
        HEAD.replace("\n", " ")
        + "\t"
        + ".visible .entry k() {"
        + "ret; " * 50_000
        + "redux.sync.add.s32\t%r1, %r1, -1;}"
    )
    needs = requirements(parse(text, "x").module, "x")
    assert needs.because and all(len(cause.text) < 200 for cause in needs.because)
    assert "?" not in needs.to_text() and "redux.sync.add.s32 %r1" in needs.to_text()


def test_a_trap_shows_a_piece_of_its_line():
    assert len(Trap("no", text=LONG, file="x", line=1).describe()) < 300


def test_help_is_cut_too():
    assert len(Diagnostic("PTX201", "m", help=(LONG,)).help[0]) == 160
