"""Findings as text: the head line, the excerpt with its carets, the notes."""

import tracemalloc

import pytest

from ptxtools.diagnostics import Diagnostic, Requires, Severity, Source
from ptxtools.diagnostics.colour import Style, style_for
from ptxtools.diagnostics.origin import Origin
from ptxtools.diagnostics.text import describe_requires, join_words, printable, render


def at(text, piece, **more):
    start = text.index(piece)
    return Diagnostic("PTX301", "message", (start, start + len(piece)), Source(text, "a.ptx"), **more)


def test_head_excerpt_and_notes():
    d = at("first\n  add.q %r1;\n", "add.q", help=("write add.s32",), section="9.7.1.1",
           requires=Requires("8.0", ("sm_90",)))  # fmt: skip
    assert render(d).split("\n") == [
        "a.ptx:2:3: error: message [PTX301]",
        "      add.q %r1;",
        "      ^^^^^",
        "  help: write add.s32",
        "  requires: PTX ISA 8.0 or later, target sm_90 or later",
        "  see: PTX ISA 9.7.1.1",
    ]


def test_carets_line_up_under_tabs():
    lines = render(at("\tadd\tx;", "x")).split("\n")
    assert lines[1:] == ["    \tadd\tx;", "    \t   \t^"]


def test_a_tab_is_one_column():
    assert render(at("\tadd\tx;", "x")).startswith("a.ptx:1:6:")


def test_wide_characters_take_two_cells():
    assert render(at("// 漢字 x", "x")).split("\n")[2] == "    " + " " * 8 + "^"


def test_range_over_several_lines_ends_with_its_line():
    assert render(at("foo (\nbar)", "foo (\nbar)")).split("\n")[1:] == ["    foo (", "    ^^^^^"]


def test_empty_range_still_has_a_caret():
    d = Diagnostic("PTX401", "m", (3, 3), Source("abc", "a.ptx"))
    assert d.column == 4
    assert render(d).split("\n")[2] == "       ^"


def test_long_lines_are_cut_around_the_caret():
    lines = render(at("x" * 5000 + "HERE" + "y" * 5000, "HERE")).split("\n")
    assert len(lines[1]) < 200 and lines[1].strip().startswith("…") and lines[1].endswith("…")
    start = lines[2].index("^")
    assert lines[1][start : start + 4] == "HERE" and lines[2].count("^") == 4


def test_a_very_long_line_is_not_copied():
    d = at("x" * 10_000_000 + "HERE", "HERE")
    render(d)
    tracemalloc.start()
    render(d)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 100_000


def test_control_characters_cannot_steer_the_terminal():
    out = render(at("a\x1b[31m b", "b", target="sm_90"))
    assert "\x1b" not in out
    assert printable("a\x1b\x07b") == "a??b"


def test_without_source():
    assert render(Diagnostic("PTX801", "damaged")) == "<unknown>:1:1: error: damaged [PTX801]"


def test_warning_and_target():
    d = at("x", "x", severity=Severity.WARNING, target="sm_75")
    assert render(d).startswith("a.ptx:1:1: warning: message (target sm_75) [PTX301]")


def test_colour_paints_and_plain_does_not():
    d = at("add", "add")
    assert "\x1b[" in render(d, Style(True))
    assert "\x1b[" not in render(d, Style(False))


@pytest.mark.parametrize(("mode", "environment", "expected"), [
    ("always", {}, True), ("never", {}, False), ("auto", {}, False), ("always", {"NO_COLOR": "1"}, True),
])  # fmt: skip
def test_style_for_a_pipe(mode, environment, expected, monkeypatch, tmp_path):
    monkeypatch.delenv("NO_COLOR", raising=False)
    for key, value in environment.items():
        monkeypatch.setenv(key, value)
    with open(tmp_path / "out", "w") as stream:
        assert style_for(mode, stream).enabled is expected


def test_no_color_on_a_terminal(monkeypatch):
    class Terminal:
        def isatty(self):
            return True

    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert style_for("auto", Terminal()).enabled
    monkeypatch.setenv("NO_COLOR", "1")
    assert not style_for("auto", Terminal()).enabled


@pytest.mark.parametrize(("requires", "text"), [
    (Requires("8.6", ("sm_100f", "sm_120a")), "PTX ISA 8.6 or later, target sm_100f or later in its family or sm_120a"),
    (Requires(None, ("sm_90a",)), "target sm_90a"),
    (Requires("7.0", ()), "PTX ISA 7.0 or later"),
])  # fmt: skip
def test_requires_in_words(requires, text):
    assert describe_requires(requires) == text


def test_join_words():
    assert [join_words(w, "or") for w in ([], ["a"], ["a", "b"], ["a", "b", "c"])] == ["", "a", "a or b", "a, b or c"]


def test_mangled_names_in_a_message_are_explained():
    """The message keeps the name of the PTX, which is what one searches for."""
    d = Diagnostic("PTX811", "undefined symbol '_Z3fooPi', referenced from 'k', '_Z3fooPi' and '_Zxx'")
    assert render(d).splitlines()[1:] == ["  name: _Z3fooPi is foo(int*)"]


def test_the_source_of_a_line_stands_below_it():
    origin = Origin("a.cu", 9, 0, "_Z1fv", Origin("a.cu", 3, 5, "_Z1kv"))
    lines = render(Diagnostic("PTX501", "m", origin=origin, help=("h",))).splitlines()
    assert lines[1:] == ["  source: a.cu:9", "          in f(), inlined at a.cu:3 in k()", "  help: h"]
