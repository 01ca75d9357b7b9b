"""Findings are worked out beside the server: errors first, then everything; and the work can be ended."""

import asyncio
import sys

import pytest

from ptxtools.editor import background
from ptxtools.editor.document import Document

TEXT = """.version 9.0
.target sm_80
.address_size 64
.entry k()
{
    .reg .b32 %r<3>;
    mov.b32 %r1, 1;
    shl.b32 %r2, %r1, 40;
    add.s32 %r2, %r2, %r9;
    ret;
}
"""


def results(document, count=2):
    async def run():
        work, found = background.Work(document), []
        async for result in work.results():
            found.append(result)
            if len(found) == count:
                work.end()
        return found

    return asyncio.run(run())


@pytest.fixture(params=["fork", "thread"])
def way(request, monkeypatch):
    if request.param == "thread":
        monkeypatch.setattr(sys, "platform", "darwin")


def test_errors_come_first_and_then_everything(way):
    document = Document(TEXT, "k.ptx")
    errors, everything = results(document)
    assert [d.code for d in errors.findings] == ["PTX201"] and not errors.complete
    assert [d.code for d in everything.findings] == [d.code for d in document.findings] == ["PTX502", "PTX201"]
    assert everything.complete and everything.findings[0].source.text == TEXT


def test_what_is_ended_says_no_more(way):
    assert len(results(Document(TEXT, "k.ptx"), count=1)) == 1


def test_hints_come_with_the_findings(way):
    text = TEXT.replace("add.s32 %r2, %r2, %r9;", "redux.sync.add.s32 %r2, %r1, -1;")
    _, everything = results(Document(text, "k.ptx"))
    assert [needs for _, needs in everything.hints] == ["PTX 7.0, sm_80 or later"]


def test_a_fork_that_ends_early_is_made_good(monkeypatch):
    monkeypatch.setattr(background, "packed", lambda result, shared: 1 / 0)  # in the fork; the thread packs nothing
    _, everything = results(Document(TEXT, "k.ptx"))
    assert [d.code for d in everything.findings] == ["PTX502", "PTX201"]


@pytest.mark.parametrize(("old", "new"), [("%r1, 40", "%r1, 4"), ("%r9", "%r2"), ("ret;", ""), ("k()", "k2()")])
def test_an_edited_document_has_the_findings_of_the_new_text(old, new):
    document = Document(TEXT, "k.ptx")
    assert document.meaning(TEXT.index("%r2"))
    text = TEXT.replace(old, new)
    edited, fresh = document.edited(text), Document(text, "k.ptx")
    shown = [[(d.code, d.message, d.span) for d in one.findings] for one in (edited, fresh)]
    assert shown[0] == shown[1]
    name = text.index("%r2")
    places = [one.places("%r2", one.meaning(name)[1]) for one in (edited, fresh)]
    assert places[0] == places[1] and len(places[0]) == text.count("%r2")


def test_words_in_comments_and_longer_names_are_no_places():
    text = TEXT.replace("ret;", "/* %r2\n%r2 */ // %r2\n    .reg .b32 %r2a; mov.b32 %r2a, %r2;\n    ret;")
    document = Document(text, "k.ptx")
    name = text.index("%r2")
    assert len(document.places("%r2", document.meaning(name)[1])) == TEXT.count("%r2") + 1


def test_words_of_some_lines():
    text = TEXT.replace("ret;", "/* one\ntwo */\n    ret;")
    document = Document(text, "k.ptx")
    start, end = text.index("shl"), text.index("add")
    assert document.tokens_within((start, end)) == [t for t in document.tokens if start <= t.span[0] < end]
    start = text.index("two")
    assert [t.kind for t in document.tokens_within((start, len(text)))] == ["comment", "opcode"]
