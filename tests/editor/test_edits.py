"""What is kept from one state of a text for the next gives what the whole text gives, after any change."""

import asyncio
import random
import re
from pathlib import Path

import pytest
from lsprotocol import types as lsp
from pygls.workspace import PositionCodec, TextDocument

from ptxtools.editor import answers
from ptxtools.editor.document import Document
from ptxtools.editor.positions import Positions
from ptxtools.editor.state import State
from ptxtools.editor.texts import OpenText
from ptxtools.editor.words import Coloured, Words, encoded
from ptxtools.ir import Function
from ptxtools.syntax import plainrows
from ptxtools.syntax.reformat import reformat
from tests.rows import rows
from tests.work import calls

DATA = Path(__file__).parents[2] / "testdata"
TEXT = """.version 9.0
.target sm_80
.address_size 64
.global .b32 g; // %r1
.func f(.reg .b32 %r1)
{
    ret;
}
.entry k()
{
    .reg .b32 %r<9>;
    .reg .pred %p;
    mov.b32 %r1, 1; /* %r1
    %r1 */ add.s32 %r2, %r1, %r1;
    { .reg .b32 %r1; mov.b32 %r1, 2; }
    @%p bra L1;
    st.b32 [%r1], %r1;
    .pragma "%r1";
L1: add.s32 %r1, %r1, 4; // more of %r1
    ret;
}
"""
TYPED = ["a", ";", ",", " ", "\n", "%r1", "{", "}", "[", "//", "/*", "*/", '"', ":", "@p ", "1", "L2:", "",
         "", "\r\n", "mov.b32 %r1, %r2;\n", "add.s32 %r1", ".reg .b32 %q;", "\r", "\t", "\u00e9",
         "\U0001f600", "\u2028"]  # fmt: skip


#: What leaves the text to be read in part.
PLAIN = [typed for typed in TYPED if typed.isascii() and typed not in ("{", "}", "/*", "*/", '"')]
LONG = TEXT.replace(
    "    @%p", "    sub.s32 %r2, %r1, 1;\n" * 9 + "L2:\n" + "    xor.b32 %r1, %r1, %r2;\n" * 20 + "    @%p"
)


def strokes(seed: int, start: str = TEXT, count: int = 120, all_typed: list[str] = TYPED):
    """Texts with the edit that makes each of the one before, as a span of that and what replaces it."""
    numbers, text = random.Random(seed), start
    for number in range(count):
        if number % 15 == 0:
            yield start, (0, len(text)), start
            text = start
        at = numbers.randrange(len(text) + 1)
        end = min(len(text), at + numbers.choice([0, 0, 1, 1, 2, 5, 20]))
        typed = numbers.choice(all_typed)
        text = text[:at] + typed + text[end:]
        yield text, (at, end), typed


@pytest.mark.parametrize("kept", [True, False])
@pytest.mark.parametrize("seed", range(3))
def test_words_are_those_of_the_whole_text(seed, kept):
    """From the words before, or from what is known of rows; and what differs makes the one of the other."""
    known, older = {}, Coloured(TEXT, "utf-16", {})
    for text, _, _ in strokes(seed):
        now = Coloured(text, "utf-16", known, older if kept else None)
        assert now.numbers() == encoded(list(Words().of(text)), Positions(text, "utf-16")), text
        start, count, data = now.difference(older)
        before = older.numbers()
        before[start : start + count] = data
        assert before == now.numbers()
        older = now


@rows(("text", "kinds"), [
    ("tex.2d.v4.f32.f32 {%f1, %f2}, [t];", ["opcode", *["modifier"] * 4, "name", "name", "name"]),
    ("cp.tensor.2d.shared::cluster;", ["opcode", *["modifier"] * 3]),
    (".loc 1 2 3\nL: ret;", ["directive", *["number"] * 3, "label", "opcode"]),
    (".loc 1 2 3 // x\n\tret;", ["directive", *["number"] * 3, "comment", "opcode"]),
    (".version 8.0\n.global .b32 a = 1.5;", ["directive", "number", "directive", "directive", "name", "number"]),
])  # fmt: skip
def test_kinds_of_words(text, kinds):
    assert [word.kind for word in Words().of(text)] == kinds


@pytest.mark.parametrize("seed", range(3))
def test_answers_are_those_of_the_whole_text(seed):
    """Places of names, hover, outline and folds, of a document that was edited again and again."""

    async def run():
        state, kept = State(LONG, "file:///k.ptx", "utf-16"), 0
        for text, (at, _), _ in strokes(seed + 10, LONG, all_typed=PLAIN):
            state = State(text, "file:///k.ptx", "utf-16", state)
            fresh = Document(text, "/k.ptx")
            kept += state.document.in_place
            shown = [(answers.folds(one), list(map(str, map(answers.outline, one.module.functions))))
                     for one in (state.document, fresh)]  # fmt: skip
            assert shown[0] == shown[1]
            for word in ("%r1", "%r2", "L1", "f", "g"):
                offset = text.find(word, at)
                meant = [one.meaning(offset) if offset >= 0 else None for one in (state.document, fresh)]
                assert (meant[0] is None) == (meant[1] is None)
                if meant[0] is not None and meant[1] is not None:
                    places = [
                        one.places(word, what[1]) for one, what in zip((state.document, fresh), meant, strict=True)
                    ]
                    assert places[0] == places[1] == slow_places(fresh, word, meant[1][1])
                    assert answers.hover(state.document, offset) == answers.hover(fresh, offset)
        assert kept > 30

    asyncio.run(run())


def slow_places(document, name, symbol):
    """Word by word; another declaration of a function is that function, too."""
    found = []
    for token in Words().of(document.text):
        apart = not re.match(r"[\w$%.:]", document.text[token.span[0] - 1])
        if apart and token.text == name and token.kind in ("name", "label", "opcode"):
            meant = document.names_at(token.span[0]).lookup(name)
            if meant is symbol or (type(meant) is type(symbol) is Function):
                found.append(token.span)
    return found


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "utf-32"])
def test_changes_give_the_clients_text(encoding):
    """Whatever the client counts as a line's end: carriage returns alone do, other separators do not."""
    codec = PositionCodec(lsp.PositionEncodingKind(encoding))
    text = OpenText.of(TextDocument("file:///k.ptx", TEXT, 1, "ptx", position_codec=codec))
    for now, span, typed in strokes(5):
        before = text.places
        text.apply_change(lsp.TextDocumentContentChangePartial(before.range(span), typed))
        if span[0] and before.text[span[0] - 1 : span[0] + 1] == "\r\n":  # no position is between these
            text.apply_change(lsp.TextDocumentContentChangeWholeDocument(now))
        if before.text[span[1] - 1 : span[1] + 1] == "\r\n":
            text.apply_change(lsp.TextDocumentContentChangeWholeDocument(now))
        assert text.source == now
        places = text.places
        ends = sum(now.count(end) for end in "\r\n") - now.count("\r\n")
        assert places.position(len(now)).line == ends
        (message,) = places.messages([span])
        made = places.range(span)
        assert message == {name: {"line": at.line, "character": at.character}
                           for name, at in (("start", made.start), ("end", made.end))}  # fmt: skip


def test_positions_beyond_a_line_are_its_end():
    places = Positions("ab\r\ncd\ref\n", "utf-16")
    assert [places.offset(lsp.Position(line, 9)) for line in range(5)] == [2, 6, 9, 10, 10]
    assert [places.offset(lsp.Position(line, 0)) for line in range(5)] == [0, 4, 7, 10, 10]


def prepared(text: str) -> int:
    """Do all preparations for a text; their number."""

    async def run():
        return sum(1 for _ in State(text, "file:///k.ptx", "utf-16").preparations())

    return asyncio.run(run())


@pytest.fixture
def unknown_rows(monkeypatch):
    monkeypatch.setattr(plainrows, "_codes", {})


@pytest.mark.parametrize("name", ["bench/ptx/sgemm_tiled.ptx", "bench/ptx/reduce.ptx"])
def test_a_layout_that_was_prepared_is_that_of_the_whole_text(unknown_rows, name):
    path = DATA / name
    text = path.read_text("utf-8")
    made = reformat(text)
    plainrows._codes.clear()
    assert prepared(text) > 1
    assert reformat(text) == made


def test_after_preparations_little_is_left_to_do(unknown_rows):
    """The first layout takes no more than later ones."""
    text = TEXT.replace(
        "    ret;\n}\n.entry", "".join(f"    add.s32 %r{n}, %r{n}, {n};\n" for n in range(2000)) + "ret;}\n.entry"
    )
    text = text.replace('"%r1"', '"nounroll"').replace("/* %r1\n    %r1 */", "").replace(" // more of %r1", "")
    first = calls(lambda: reformat(text))
    plainrows._codes.clear()
    assert prepared(text) > 20
    later = calls(lambda: reformat(text))
    assert later < first / 10
