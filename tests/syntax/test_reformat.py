"""The canonical layout: nothing that is read changes, comments stay, and a second time changes nothing."""

import random
import re

import pytest

from ptxtools.ir import Instruction
from ptxtools.ir.references import statements
from ptxtools.syntax import parse, plainrows
from ptxtools.syntax import reformat as reformat_module
from ptxtools.syntax.reformat import canonical_opcode, reformat
from tests.rows import rows
from tests.work import calls

from .syntaxtools import BENCH, FILES, file_id

HEAD = ".version 8.0\n.target sm_90\n.address_size 64\n"
COMMENT = re.compile(r"//[^\n]*|/\*(?s:.*?)\*/")
#: Texts above this many characters take seconds each.
LARGEST = 60_000


def body(text):
    """The lines of a kernel's body in the canonical layout."""
    made = reformat(f"{HEAD}.entry k()\n{{\n{text}\n}}\n")
    assert made.errors == []
    return made.text.split("{\n", 1)[1].removesuffix("}\n")


def scrambled(text):
    """The same text with other blanks: none at the start and end of lines, and blank lines."""
    return "\n\n\n".join(line.strip() for line in text.split("\n"))


def ordered(text):
    """The tree of a text, with modifiers in the manual's order."""
    module = parse(text).module
    for function in module.functions:
        for statement in statements(function.body) if function.body else ():
            if isinstance(statement, Instruction):
                statement.opcode = canonical_opcode(statement.opcode)
    return module


@rows("path", [path for path in FILES if path.stat().st_size < LARGEST], ids=file_id, share=4)
def test_real_file(path):
    text = path.read_text()
    made = reformat(text, path.name)
    assert made.errors == []
    assert ordered(made.text) == ordered(text)
    assert reformat(made.text).text == made.text
    assert COMMENT.findall(made.text) == [c.rstrip() for c in COMMENT.findall(text)]


@pytest.mark.share(3)
@pytest.mark.parametrize("path", [path for path in FILES if path.stat().st_size < 8000][::4], ids=file_id)
def test_blanks_do_not_matter(path):
    """Blank lines aside, of which one may stay; they part the groups of lines whose comments are aligned."""
    text = path.read_text()
    one, other = (reformat(t).text for t in (text, scrambled(text)))
    assert [line.split() for line in one.split("\n") if line] == [line.split() for line in other.split("\n") if line]


def test_modifiers_are_in_the_manuals_order():
    assert canonical_opcode("add.f32.ftz.rn") == "add.rn.ftz.f32"
    assert canonical_opcode("ld.f32.global") == "ld.global.f32"
    assert canonical_opcode("no.such.thing") == "no.such.thing"
    made = reformat(f"{HEAD}.entry k() {{ .reg .f32 f; add.f32.ftz.rn f, f, f; }}").text
    (add,) = [s for s in statements(parse(made).module.functions[0].body) if hasattr(s, "opcode")]
    assert add.opcode == "add.rn.ftz.f32"


@pytest.mark.parametrize(("text", "lines"), [
    ("ret; exit;", "\tret;\n\texit;\n"),
    ("L: ret;", "L:\n\tret;\n"),
    ("@ ! p  bra L;", "\t@!p bra \tL;\n"),
    ("mov.u32 r,0x7F;", "\tmov.u32 \tr, 0x7F;\n"),
    ("mov . u32 r,1;", None),
    ("ld.v2.b32 {a ,b},[ c + -4 ];", "\tld.v2.b32 \t{a, b}, [c+-4];\n"),
    (".reg .b32 %r< 9 > , x;", "\t.reg .b32 %r<9>, x;\n"),
    (".local .align 8 .b8 x [ 4 ][2];", "\t.local .align 8 .b8 x[4][2];\n"),
    ("call (r) , f, ( a,\n b ) ;", "\tcall \t(r), f, (a,\n\t\tb);\n"),
    ("P:.callprototype (.param .b32 _) _(.param .b32 _);", "\tP: .callprototype (.param .b32 _) _ (.param .b32 _);\n"),
    ("{ { ret; } }", "\t{\n\t\t{\n\t\t\tret;\n\t\t}\n\t}\n"),
    ("\n\n\nret;\n\n\n\nret;\n\n", "\tret;\n\n\tret;\n"),
    (".loc 1  2 3\nret;", "\t.loc 1 2 3\n\tret;\n"),
])  # fmt: skip
def test_statements(text, lines):
    if lines is None:  # no statement of PTX
        assert reformat(f"{HEAD}.entry k() {{ {text} }}").errors
    else:
        assert body(text) == lines


@pytest.mark.parametrize(("text", "lines"), [
    ("ret;// a\nmov.u32 r, 1;  // b", "\tret;" + 19 * " " + "// a\n\tmov.u32 \tr, 1;  // b\n"),
    ("// a\nret;\n/* b */", "\t// a\n\tret;\n\t/* b */\n"),
    ("/*0010*/ ret;", "\t/*0010*/ ret;\n"),
    ("mov.u32 r, // a\n1;", "\tmov.u32 \tr, // a\n\t\t1;\n"),
    ("/* a\n  b */ ret;", "\t/* a\n  b */ ret;\n"),
    ("L: // a\nret;", "L:  // a\n\tret;\n"),
])  # fmt: skip
def test_comments(text, lines):
    assert body(text) == lines
    assert body(lines) == lines


def test_what_a_comment_is_about_stays_on_its_line():
    line = "add.s32  r,r,1; add.u16 h,h,70000;"
    for text in (f"{line}  // ptx-lint: disable=PTX501\n", f"// ptx-lint: disable=PTX501\n\t{line}\n"):
        assert body(text) == f"\t{text}"


def test_a_header_has_a_parameter_a_line():
    text = HEAD + '.visible .entry k( .param .u64 p , // first\n .param .b8 q[ 4 ]).maxntid 1,2 .pragma "x"; { ret; }'
    assert reformat(text).text == HEAD + (
        '.visible .entry k(\n\t.param .u64 p, // first\n\t.param .b8 q[4]\n)\n.maxntid 1, 2\n.pragma "x";\n'
        "{\n\tret;\n}\n"
    )
    assert reformat(HEAD + ".func (.param .b32 r) f ( ) ;").text == HEAD + ".func (.param .b32 r) f();\n"


def test_line_ends_and_marks_stay():
    text = "\ufeff" + (HEAD + ".entry k()\n{\nret;\n}\n").replace("\n", "\r\n")
    made = reformat(text)
    assert made.errors == []
    assert made.text == text.replace("ret;", "\tret;")


def test_syntax_errors_leave_the_text():
    made = reformat(HEAD + ".entry k() { add.u32 ; ;; }")
    assert made.text == HEAD + ".entry k() { add.u32 ; ;; }" and made.errors[0].code == "PTX100"


def ways(text):
    """The result with plain rows, whether these were of use, and the result without them."""
    quick = reformat_module._quick(text)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reformat_module, "_quick", lambda text: None)
        slow = reformat(text)
    return reformat(text), quick is not None, slow


def spoilt(text, generator):
    """A text with something else at some line ends, or in front of lines."""
    rows = text.split("\n")
    for _ in range(generator.randrange(1, 4)):
        at = generator.randrange(len(rows))
        row = rows[at]
        rows[at] = generator.choice([
            row[:-1], row + " // c;", row + ";", "\t " + row, row + " \t", "{ " + row, row + " }", "", row + "\n\n\n",
            "lab:", "lab: " + row, row.replace(",", ",\n", 1), row.replace(" ", "  ", 1), "/* " + row, "// " + row,
            row + ' "', "ret;", "@%p1 bra lab;", ".reg .b32 x, y;", "mov.u32 %r1,", ".branchtargets a, b;",
            ".loc 1 2 3", "call f, (a);", "mov.b64 {%r1,%r2}, %rd1;", "{", "}", "\r" + row,
            "// ptx-lint: disable=PTX501", "/* c\nmov.u32 %r1, 2;\nc */", f"{{\n{row}\n}}", f"{row} // ptx-run: c",
            f"// /*\n{row}", f"{row}\t// c \n{row} //\n{row}",
            f"mov.u32 %r1, 2; // 1\nl: // 2\n{row}", f"{row} /* c */", f"/* // c */ {row}", f"*/ {row}",
            f"{{\n{{\n{row}\nx:\n{row}\n}}\n}}",
        ])  # fmt: skip
    return "\n".join(rows)


@rows("path", FILES, ids=file_id, share=4)
def test_plain_rows_make_no_difference(path):
    generator = random.Random(path.name)
    text = path.read_text(encoding="utf-8", errors="replace")
    fast, _, slow = ways(text)
    assert fast == slow
    if len(text) < 20_000:
        for _ in range(6):
            fast, _, slow = ways(spoilt(text, generator))
            assert fast.text == slow.text
            assert [d.message for d in fast.errors] == [d.message for d in slow.errors]


@rows("path", BENCH, ids=file_id)
def test_rows_of_compilers_are_plain(path):
    """Nothing but headers, comments and braces takes long, and a text with one new row hardly anything."""
    text = path.read_text()
    fast, quick, slow = ways(text)
    assert quick
    assert fast == slow
    work = calls(lambda: reformat(text))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reformat_module, "_quick", lambda text: None)
        assert calls(lambda: reformat(text)) > 3 * work


def test_plain_rows_do_not_pile_up(monkeypatch):
    monkeypatch.setattr(plainrows, "_MOST", 50)
    plainrows._codes.clear()
    for number in range(30):
        moves = "".join(f"mov.b32 %r1, {number * 10 + n};\n" for n in range(10))
        text = f".version 8.0\n.target sm_80\n.entry k()\n{{\n.reg .b32 %r<4>;\n{moves}ret;\n}}\n"
        assert reformat(text).text.count("\tmov.b32 \t%r1, ") == 10
    assert len(plainrows._codes) <= 50 + 20


BETWEEN = (
    " ", " ", " ", "\n", "\n", "\n\n\n", " // ptx-lint: disable=PTX1\n", "\n// ptx-lint: disable=all\n", " // c\n",
    "\n/* d */", "/* e */ ", " // ptx-run: disable=racecheck\n", "\n// ptx-lint: disable-file=PTX7\n",
)  # fmt: skip
STATEMENTS = (
    "mov.u32 %r1, 5;",
    "L{}:",
    "{{ .reg .b32 %q; mov.u32 %q, 3; }}",
    "{{",
    "bar.sync 0;",
    "add.u32 %r1,%r1,1;",
)


def test_lines_that_comments_are_about_stay_whole_among_others():
    random.seed(5)
    for number in range(300):
        words = []
        for kernel in range(random.randrange(1, 4)):
            inside = [random.choice(STATEMENTS).format(n) for n in range(random.randrange(4))]
            own = [f".entry k{number}_{kernel}()", "{", ".reg .b32 %r<4>;", *inside, "ret;", "}"]
            words += [*own, *["}"] * inside.count("{")]
        text = HEAD + "".join(word + random.choice(BETWEEN) for word in words)
        assert not parse(text, "a.ptx").diagnostics
        once = reformat(text)
        assert once.text is not None and not once.errors
        assert reformat(once.text).text == once.text, text
        assert COMMENT.findall(once.text) == COMMENT.findall(text), text


@rows(("text", "result"), [
    ("// ptx-lint: disable=PTX5\n.entry k() { .reg .b32 %r; mov.b32 %r, 1;\nret; }",
     "// ptx-lint: disable=PTX5\n.entry k() { .reg .b32 %r; mov.b32 %r, 1;\n\tret;\n}\n"),
    ("// ptx-lint: disable-file=PTX5\n.entry k() { ret; }",
     "// ptx-lint: disable-file=PTX5\n.entry k()\n{\n\tret;\n}\n"),
    (".entry k() { bar.sync 0; /* all */ ret; } // ptx-lint: disable=PTX5",
     ".entry k() { bar.sync 0; /* all */ ret; }  // ptx-lint: disable=PTX5\n"),
])  # fmt: skip
def test_a_comment_about_a_line_is_still_about_the_same_statements(text, result):
    assert reformat(HEAD + text).text == HEAD + result
