"""A text that is edited in one place: what is read again gives what reading all of it gives."""

import random
from pathlib import Path

import pytest

from ptxtools.syntax import parse
from ptxtools.syntax.edited import parse_edited
from ptxtools.syntax.parser import ParseResult
from tests.rows import rows

DATA = Path(__file__).resolve().parents[2] / "testdata" / "bench" / "ptx"
HEAD = ".version 8.0\n.target sm_80\n.address_size 64\n.global .b32 g;\n"
TEXT = (
    HEAD
    + """.func f()
{
    .reg .b32 %r<9>, a, b;
    .reg .pred p;
    mov.b32 %r1, 1;  // one
    @p bra L;
    {
        .reg .b32 %x;
        add.s32 %x, %r1, 2;
        add.s32 %r2, %x, 3;
    }
    ld.global.v2.b32 {%r3, %r4}, [g];
L:  sub.s32 %r5, %r1, %r2;
    st.global.b32 [g], %r5;
    ret;
}
.entry k(.param .b64 x) .maxntid 32
{
    .reg .b32 %r<3>;
    mov.b32 %r1, 1;
    mov.b32 %r2, %r1;
    ret;
}
"""
)


#: With a function behind the last one.
MORE = TEXT + ".entry last()\n{\n    ret;\n}\n"


def places(node):
    """All positions in a tree."""
    from ptxtools.ir import Instruction
    from ptxtools.ir.nodes import Node
    from ptxtools.ir.positions import parts_of

    if isinstance(node, Instruction):
        yield node.span, parts_of(node)
    elif isinstance(node, Node):
        yield getattr(node, "span", None), getattr(node, "name_span", None)
        for name in ("items", "params", "returns", "directives"):
            for part in getattr(node, name, ()):
                yield from places(part)
        if getattr(node, "body", None) is not None:
            yield from places(node.body)


def same(found: ParseResult, text: str):
    """Assert that a result is the one of the whole text."""
    whole = parse(text, "k.ptx")
    assert found.module == whole.module
    assert list(places(found.module)) == list(places(whole.module))
    assert found.module.unread == whole.module.unread
    assert found.module.source.text == text
    shown = [[(d.code, d.message, d.span, d.fix, d.help) for d in r.diagnostics] for r in (found, whole)]
    assert shown[0] == shown[1]


def edited(old: str, new: str, text: str = TEXT):
    """The text with a change, and what is read again; None if all has to be."""
    assert text.count(old) == 1
    changed = text.replace(old, new)
    return changed, parse_edited(parse(text, "k.ptx"), changed)


@rows(("old", "new"), [
    ("%r1, 1;  // one", "%r1, 12;  // one"),
    ("// one", "// two\n"),
    ("mov.b32 %r1, 1;  // one", ""),
    ("// one\n", "// one\nmul.lo.s32 %r2, %r1, %r1;\n"),
    ("@p bra L;", "@!p bra L;"),
    ("add.s32 %x, %r1, 2;", "add.s32 %x, %r1;"),
    ("add.s32 %x, %r1, 2;", "add.s32 %x, %r1, 2"),  # a ';' that is missing
    ("add.s32 %r2, %x, 3;", "add.s32 %r2, %x,"),
    ("add.s32 %r2, %x, 3;", ""),
    ("a, b;", "a, b, c;"),
    (".reg .b32 %x;", ".reg .b32 %x, %y;"),
    ("ld.global.v2.b32 {%r3, %r4}, [g];", "ld.global.v2.b32 {%r4, %r3}, [g];"),
    ("L:  sub", "L: M: sub"),
    ("st.global.b32 [g], %r5;\n    ret;", "st.global.b32 [g], %r5;\n    re"),
    ("mov.b32 %r2, %r1;\n    ret;", "mov.b32 %r2, %r1;\n    exit;"),
    ("mov.b32 %r2, %r1;", "mov.b32 %r2, %r1; }{ "[:-3] + " { } "),
])  # fmt: skip
def test_edits_inside_a_body(old, new):
    text, found = edited(old, new)
    assert found is not None
    same(found, text)


@rows(("old", "new"), [
    (".global .b32 g;", ".global .b32 h;"),
    (".global .b32 g;", ".global .b32 g"),
    (".version 8.0", ".version 8.7"),
    ("// one", "/* one"),
    ("// one\n", "// one "),
    ("{%r3, %r4}", "%r3, %r4}"),
    ("bra L;", "bra L; {}"),
    ('mov.b32 %r1, 1;  // one', '.pragma "nounroll";'),
    (".func f()", ".func f(.reg .b32 a)"),
    (".func f()", ".fun f()"),
    (".maxntid 32", ".maxntid 64"),
    (".entry k(", "}\n.entry k("),
])  # fmt: skip
def test_edits_of_parts_of_the_module(old, new):
    text, found = edited(old, new, MORE)
    if found is not None:
        same(found, text)
    assert (found is None) == (new in ("/* one", ".fun f()", "}\n.entry k("))


@rows(("old", "new"), [
    ("// one", "/* one"),
    ("bra L;", "bra L; }"),
    ("bra L;", "bra L; {"),
    (".version", "\0.version"),
    ("// one", "// one\0"),
])  # fmt: skip
def test_edits_for_which_all_is_read(old, new):
    _, found = edited(old, new)
    assert found is None


def test_characters_that_ptx_does_not_have_are_found_anew():
    """The first one alone is reported, wherever it is."""
    text, known = TEXT, parse(TEXT, "k.ptx")
    for old, new in (("// one", "// \u00e9"), ("bra L;", "bra L; // \u00fc"), ("\u00e9", "e"), ("\u00fc", "u")):
        text = text.replace(old, new)
        known = parse_edited(known, text)
        assert known is not None
        same(known, text)


def test_a_refused_edit_changes_nothing():
    before = parse(TEXT, "k.ptx")
    assert parse_edited(before, TEXT.replace("bra L;", "bra L; }")) is None
    same(before, TEXT)


def test_only_the_neighbours_are_read_again(monkeypatch):
    from ptxtools.syntax import edited as module

    line = "add.s32 %r1, %r1, {};\n"
    text = HEAD + ".entry k()\n{\n.reg .b32 %r<3>;\n" + "".join(line.format(n) for n in range(1000)) + "ret;\n}\n"
    read = []
    inner = module._read
    monkeypatch.setattr(module, "_read", lambda *args: read.append(inner(*args)) or read[-1])
    found = module.parse_edited(parse(text, "k.ptx"), text.replace("%r1, 500;", "%r2, 5000;"))
    same(found, text.replace("%r1, 500;", "%r2, 5000;"))
    assert len(read[0][1]) < 10


#: What somebody types, pastes or deletes.
TYPED = ["a", ";", ",", " ", "\n", "%r1", "{", "}", "[", "]", "//", "/*", "*/", '"', ":", "@p ", "1", ".", "L2:", "",
         "", "mov.b32 %r1, %r2;\n", "add.s32 %r1", ".reg .b32 %q;", "bra L;", "(", "\t", "\u00e9", "\ufeff", "\v",
         "// \u2028\n", ".global .b32 h;\n", "}\n.func q()\n{\n", ".entry", "#", "\0"]  # fmt: skip


STARTS = [TEXT, (DATA / "branchy.ptx").read_text("utf-8"), (DATA / "reduce.ptx").read_text("utf-8"), MORE * 2]


@pytest.mark.parametrize("seed", range(4))
def test_random_edits(seed):
    """Many edits one after another, each from the tree that the one before left."""
    random.seed(seed)
    start = STARTS[seed % 4]
    text, known, fast = start, parse(start, "k.ptx"), 0
    for count in range(150):
        if count % 12 == 0:
            text, known = start, parse(start, "k.ptx")
        at = random.randrange(len(text))
        end = at + random.choice([0, 0, 1, 1, 2, 5, 20])
        text = text[:at] + random.choice(TYPED) + text[end:]
        found = parse_edited(known, text)
        if found is not None:
            same(found, text)
            fast += 1
        known = found or parse(text, "k.ptx")
    assert fast > 10
