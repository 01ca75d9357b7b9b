"""Where the parts of instructions stand: what the tree says is what a second look at the text finds, both ways."""

import random
import re

import pytest

from ptxtools.ir import Guard, Immediate, Instruction, Name
from ptxtools.ir.positions import name_span, part_span, parts_of, spot_of, word_of_opcode
from ptxtools.ir.references import statements
from ptxtools.syntax import parse
from tests.rows import rows

from .positiontools import lexed
from .syntaxtools import FILES, HEAD, both, file_id

#: Each kind of operand, and of statement.
STATEMENTS = [
    "ret;", "bra L;", "@p bra L;", "@!%p1 bra.uni $L_1;", "add.s32 %r1, %r2, -5;", "add.u32 %r1, %r2, 0x10;",
    "mov.f32 %f1, 0f3f800000;", "mov.f64 %fd1, - 1.5;", "mov.u32 %r1, (1 + 2) * WARP_SZ;", "mov.u32 %r1, ~7 & 0xFF;",
    "mov.u32 %r1, %tid.x;", "mov.u64 %rd1, table + 4;", "mov.u64 %rd1, table + -4;", "mov.u32 %r1, table[3];",
    "mov.u32 %r1, table[%r2];", "mov.u32 %r1, table[%r2 + 3];", "mov.u32 %r1, table[%r2 - 3];",
    "mov.b64 {%r1, %r2}, %rd1;", "mov.b32 %r1, {a, b, c, 5};", "ld.global.v4.u32 {%r1, _, %r3, %r4}, [%rd1];",
    "ld.global.u32 %r1, [%rd1 + 16];", "ld.global.u32 %r1, [%rd1 + -16];", "ld.local.u32 %r1, [0x20];",
    "ld.global.u32 %r1, [%rd1 + (2 * 8)];", "ld.global.L2::128B.b32 %r1, [a].unified;", "st.shared.u32 [a + 4], 1;",
    "tex.2d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [tex, {%f5, %f6}];",
    "tex.a1d.v4.f32.s32 {%f1, %f2, %f3, %f4} | %p1, [tex, sampler, {%r1, %r2, _, _}], %r5, %f6;",
    "setp.lt.and.s32 %p1 | %p2, %r1, %r2, !%p3;", "setp.eq.s32 p | _, a, 0;", "vadd.s32.u32.s32 %r1, %r2.b0, -%r3.h1;",
    "ld.const[2].b32 %r1, [bank];", "call f;", "call.uni f, (%r1, 5, p);", "@p call (r), f, (a), proto;",
    "call (r, s), %rd1, (a, b, 1 + 2), targets;", "call f, ();", "wgmma.fence.sync.aligned;",
    "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [map, {%r2, %r3}], [%r4 + 8];",
]  # fmt: skip
TOKEN = re.compile(r"ld\.const\[2\]\.b32|::|\d+\.\d+|[\w$%]+|\.\w+|.")
TRIVIA = [" ", "  ", "\t", " \t", "\n", "\r\n\t", "/* c, d; */", "// e [f]\n", " /* ä€𝄞 */ ", "//\n\t"]


def instructions(module):
    return [i for f in module.functions if f.body for i in statements(f.body) if isinstance(i, Instruction)]


def found(item):
    parts = parts_of(item)
    return parts, [spot_of(node, span) for node, span in zip(item.operands, parts.operands, strict=True)]


def agree(text):
    """Check all instructions of a text; how many there are."""
    items = instructions(both(text).module)
    for item in items:
        assert found(item) == lexed(text, item), text[slice(*item.span)]
    return len(items)


def body(*lines):
    return HEAD + ".entry k()\n{\n" + "\n".join(lines) + "\n}\n"


@rows("path", FILES, ids=file_id, share=5)
def test_real_file(path):
    text = path.read_text()
    items = instructions(parse(text).module)
    assert items
    for item in items:
        assert found(item) == lexed(text, item), text[slice(*item.span)]


@rows("statement", STATEMENTS, share=3)
def test_each_kind(statement):
    """Seen for the first time, again, with other blanks, and inside of scopes and generated code."""
    tight = re.sub(r" ?([,+|]) ?", r"\1", statement)
    wide = re.sub(r"(?<!const)\[", "[ ", statement.replace(",", " ,\t ").replace("}", " }"))
    lines = [statement, statement, tight, tight, wide, wide, statement.replace(", ", ",\n\t"), statement]
    assert agree(body(*lines)) == len(lines)
    assert agree(body("{ {", *lines, "} }")) == len(lines)
    assert agree(body('# 7 "a.h"', ".loc 1 2 3", *lines, "/* über */ // ä\n\t.loc 1 2 3", *lines)) == 2 * len(lines)


@rows("seed", range(40), share=3)
def test_random_blanks_and_comments(seed):
    """Anything that separates words: where blanks were, or between any two of them."""
    rng = random.Random(f"positions {seed}")
    text = body(*[rng.choice((_spaced, _torn))(rng, statement) for statement in rng.choices(STATEMENTS, k=25)])
    assert {d.code for d in both(text).diagnostics} <= {"PTX101"}  # some comments are not ASCII
    assert agree(text) == 25


def _spaced(rng, statement):
    return re.sub(r"\s+", lambda _: rng.choice(TRIVIA), statement)


def _torn(rng, statement):
    words = TOKEN.findall(statement)
    return "".join(word + _between(rng, word, after) for word, after in zip(words, [*words[1:], ""], strict=True))


def _between(rng, word, after):
    """Nothing where blanks are already, and inside of words."""
    if word.isspace() or after.isspace() or "::" in (word, after) or after.startswith(".") or word == "-":
        return ""
    return rng.choice(TRIVIA) if rng.random() < 0.2 else ""


def only(statement):
    """The one instruction of a text, and the text."""
    text = body(statement)
    (item,) = instructions(both(text).module)
    return item, text


@pytest.mark.parametrize(
    ("statement", "operand", "part"),
    [
        ("op {a, «b», c}, d;", 0, 1),
        ("op a, [«b + 4», c];", 1, 0),
        ("op a, [b, «{c, d}», e];", 1, 1),
        ("op a, [b, {c, «d»}, e];", 1, (1, 1)),
        ("op a, [b /* , */, {c, d},\n«e»].unified;", 1, 2),
        ("op «p»|q, a;", 0, 0),
        ("op p | «_», a;", 0, 1),
        ("op {a, «b»}|p, c;", 0, (0, 1)),
        ("op {a, b}|«p», c;", 0, 1),
        ("call (r), f, (a, «(1 + 2)»);", 2, 1),
        ("op a, «table[r + 3]»;", 1, 0),
        ("op a, «!p»;", 1, 0),
        ("op a, «-5»;", 1, 4),
        ("op «{a, b}», c;", 0, 2),
        ("«op.x» a, b;", 2, None),
        ("@!p «op» a, b;", -1, None),
    ],
)
def test_parts_by_number(statement, operand, part):
    item, text = only(statement.replace("«", "").replace("»", ""))
    begin, end = part_span(item, operand, part)
    assert text[:begin] + "«" + text[begin:end] + "»" + text[end:] == body(statement)


@pytest.mark.parametrize(
    ("statement", "name", "operand"),
    [
        ("@«a» op a, a;", "a", None),
        ("@a op «a», a;", "a", 0),
        ("@b op a, [«c»+4];", "c", None),
        ("add «add», b;", "add", None),
        ("op a, {b, «v».x};", "v", 1),
        ("op a, {b, «v.x»};", "v.x", 1),
        ("op a, table1, «table»[r];", "table", None),
        ("op a, table[«r»+3];", "r", None),
        ("op a /* r */, -«r»;", "r", None),
        ("op a|«p», b;", "p", None),
        ("op «a», b;", "c", 0),
        ("«op a, b»;", "c", None),
    ],
)
def test_names(statement, name, operand):
    item, text = only(statement.replace("«", "").replace("»", ""))
    begin, end = name_span(item, name, operand)
    assert text[:begin] + "«" + text[begin:end] + "»" + text[end:] == body(statement)


@pytest.mark.parametrize(
    ("statement", "word"),
    [
        ("cvt.sat«.s32».s8 a, b;", ".s32"),
        ("cvt.s32«.s3» a, b;", ".s3"),
        ("cvt .sat /* .s32 */ «.s32»\n.s8 a, b;", ".s32"),
        ("@p «ld».global a, b;", "ld"),
        ("@p «ld.global» a, b;", ".local"),
    ],
)
def test_words_of_the_opcode(statement, word):
    item, text = only(statement.replace("«", "").replace("»", ""))
    begin, end = word_of_opcode(item, word)
    assert text[:begin] + "«" + text[begin:end] + "»" + text[end:] == body(statement)


def test_statements_without_a_text_stand_where_they_stand():
    item = Instruction("add.s32", (Name("a"), Name("b"), Immediate(1, "s64")), Guard("p"), (10, 30))
    assert parts_of(item) == (None, (10, 30), ())
    assert part_span(item, 1) == name_span(item, "b") == word_of_opcode(item, ".s32") == (10, 30)


def test_statements_laid_out_alike_share_their_layout():
    """So positions take no more memory than a reference for each statement."""
    lines = [f"add.s32 %r{n}, %r{2 * n}, {n};\n@%p1 ld.global.u32 %r{n}, [%rd{n}+{n}];" for n in range(100)]
    items = instructions(parse(body(*lines)).module)
    assert len({id(item.layout) for item in items}) == 2
    assert len({id(item.operands[-1].extent) for item in items}) < 20
