"""Findings are worked out beside the server: errors first, then everything; and the work can be ended."""

import asyncio
import random
import sys
from types import SimpleNamespace

import pytest

from ptxtools.editor import background
from ptxtools.editor import server as server_module
from ptxtools.editor import state as state_module
from ptxtools.editor.answers import hints as hints_of
from ptxtools.editor.answers import hover
from ptxtools.editor.document import Document
from ptxtools.editor.outline import Outline
from ptxtools.editor.positions import Positions
from ptxtools.editor.server import _changed
from ptxtools.editor.state import State, is_warning
from ptxtools.editor.words import Coloured, Words
from tests.work import HANG, calls

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
    assert [text for _, text in everything.hints] == ["needs PTX 7.0, sm_80 or later"]


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
    assert document.tokens_within((start, end)) == [t for t in Words().of(text) if start <= t.span[0] < end]
    start = text.index("two")
    assert [t.kind for t in document.tokens_within((start, len(text)))] == ["comment", "opcode"]


def test_only_what_changed_is_sent():
    long = TEXT + "// end\n" * 500
    older, now = (Coloured(text, "utf-16", {}) for text in (long, long.replace("ret;", "exit;")))
    start, count, data = now.difference(older)
    assert start > 0 and count == len(data) <= 10


def test_a_register_that_is_used_on_every_line():
    """Where it is written and read is found without going over the function for each line."""
    head, _, end = TEXT.partition("ret;")

    def text(count):
        return head + "add.s32 %r2, %r2, %r1;\n" * count + "ret;" + end

    def work(count):
        document = Document(text(count), "k.ptx")
        document.meaning(document.text.index("%r2"))
        return calls(lambda: hover(document, document.text.index("%r2") + 1))

    assert work(4000) < 5 * work(1000)
    shown, _ = hover(Document(text(50), "k.ptx"), text(50).index("%r2") + 1)
    assert "written on lines" in shown and " \u2026" in shown and "live within lines" in shown


@pytest.mark.parametrize("long", [100_000, 0])
def test_errors_of_an_edited_function_are_known_at_once(monkeypatch, long):
    """After any edits inside of functions: those of the whole text, though only one body is looked at; of a long one,
    only the instruction."""
    monkeypatch.setattr(state_module, "_LONG", long)
    body = TEXT[TEXT.index(".entry") :]
    start = TEXT.replace("%r9", "%r1") + "".join(body.replace("k()", f"k{n}()") for n in range(3))
    numbers = random.Random(3)

    if not long:
        start = start.replace("%r9", "%r1")

    def begun():
        state = State(start, "file:///k.ptx", "utf-16")
        state.found = state.document.findings
        return state

    async def run():
        state = begun()
        known = skipped = wrong = 0
        for _ in range(150):
            places = [n for n in range(len(state.text)) if state.text.startswith(("%r", "ret", "40", ";"), n)]
            place = numbers.choice(places)
            word = numbers.choice(
                ["%r1", "%r2, ", "7", "", "\n    mov.b32 %r1, %r8;\n    ", "add.f16 ", "ret", ";", " "]
            )
            text = state.text[:place] + word + state.text[place + numbers.choice((0, 0, 2)) :]
            state = State(text, "file:///k.ptx", "utf-16", state)
            if numbers.random() < 0.3:
                skipped += 1
                continue  # the next change comes before anything is known
            soon = state.soon()
            if soon is None:
                if long:
                    state.found = Document(text, "/k.ptx").findings
                else:
                    state = begun()
                continue
            known += 1
            errors = [(d.code, d.message, d.span, d.line) for d in soon if not is_warning(d)]
            fresh = [d for d in Document(text, "/k.ptx").findings if not is_warning(d)]
            wrong += bool(fresh)
            assert sorted(errors) == sorted((d.code, d.message, d.span, d.line) for d in fresh), text
        return known, skipped, wrong

    known, skipped, wrong = asyncio.run(run())
    assert known > (50 if long else 20) and skipped > 20 and wrong > (30 if long else 5)


def test_errors_of_an_edited_function_before_anything_is_known():
    text = ".version 8.0\n.target sm_80\n.address_size 64\n.func f()\n{\n    .reg .b32 %r<4>;\n    ret;\n}\n"

    async def run():
        state = State(text, "file:///k.ptx", "utf-16")
        for word in ("add.s32 %r1, %r2, %q;", "mov.b32 %r9, 1;"):
            state = State(state.text.replace("    ret", f"    {word}\n    ret"), "file:///k.ptx", "utf-16", state)
        assert state.known_findings() is None  # of warnings nothing is known
        return state.soon(), [d for d in state.document.findings if not is_warning(d)]

    soon, errors = asyncio.run(run())
    assert [(d.code, d.span) for d in soon] == [(d.code, d.span) for d in errors] and len(errors) == 2


def test_errors_are_shown_soon_after_a_request_that_has_looked_for_them(monkeypatch):
    shown = asyncio.Queue()
    monkeypatch.setattr(server_module, "_publish", lambda server, uri, state, found: shown.put_nowait(found))
    monkeypatch.setattr(server_module, "_PAUSE", 1000)

    async def run():
        state = State(TEXT.replace("%r9", "%r1"), "file:///k.ptx", "utf-16")
        state.found = []
        state = State(TEXT, "file:///k.ptx", "utf-16", state)
        known = state.known_findings()  # as for code actions
        server = SimpleNamespace(state=lambda uri: state, is_newest=lambda uri, which: True)
        task = asyncio.create_task(
            _changed(server, SimpleNamespace(text_document=SimpleNamespace(uri="file:///k.ptx")))
        )
        found = await asyncio.wait_for(shown.get(), HANG)
        task.cancel()
        return known, found

    known, found = asyncio.run(run())
    assert found == known and [d.code for d in found] == ["PTX201"]


def test_of_a_long_function_only_the_edited_instruction_is_looked_at(monkeypatch):
    monkeypatch.setattr(state_module, "_LONG", 0)

    def work(count):
        async def run():
            text = TEXT.replace("%r9", "%r1").replace("ret;", "add.s32 %r2, %r2, %r1;\n" * count + "ret;")
            state = State(text, "file:///k.ptx", "utf-16")
            state.found = []
            place = text.rindex("%r1;")
            state = State(text[:place] + "%r9" + text[place + 3 :], "file:///k.ptx", "utf-16", state)
            return calls(state.soon), [(d.code, d.span[0] - place) for d in state.found]

        return asyncio.run(run())

    (few, found), (many, others) = work(50), work(1000)
    assert found == others == [("PTX201", 0)] and many < 4 * few


def test_fixes_and_hints_of_the_text_before_are_moved():
    """Until all is known of the new text; those where it was edited are left out."""
    kernel = TEXT.replace("%r9", "%r1").replace("ret;", "redux.sync.add.s32 %r2, %r1, -1;\nshl.b32 %r2, %r1, 0;\nret;")
    text = kernel.replace("sm_80", "sm_70")

    async def run():
        state = State(text, "file:///k.ptx", "utf-16")
        assert state.known_findings() is None and state.known_hints() is None
        (*_, everything) = [result async for result in state.results()]
        assert state.known_findings() == everything.findings and state.known_hints() == everything.hints
        state.found = everything.findings
        assert not state.told_older
        found = []
        for word, into in (("redux", "  redux"), ("mov", "  mov"), ("redux.sync.add", "redux.sync.min")):
            old = State(text, "file:///k.ptx", "utf-16")
            old.found, old.hints = everything.findings, everything.hints
            new = State(text.replace(word, into, 1), "file:///k.ptx", "utf-16", old)
            findings, hints = new.known_findings(), new.known_hints()
            assert new.told_older
            fresh = Document(new.text, "/k.ptx")
            places = {(d.code, d.span, d.fix and (d.fix.span, d.fix.text)) for d in fresh.findings}
            known = {(d.code, d.span, d.fix and (d.fix.span, d.fix.text)) for d in findings}
            # Fixes of the header are left out for errors that are looked for anew.
            assert {one[:2] for one in known} == {one[:2] for one in places}
            assert all(one in places for one in known if one[2] is not None)
            assert set(hints) <= set(hints_of(fresh, (0, len(new.text))))
            found.append(len(hints))
        return found

    assert asyncio.run(run())[0] >= 1


def test_only_the_edited_function_is_looked_at():
    """A change costs the same in a file of many functions, but for the walk over their heads."""
    body = TEXT[TEXT.index(".entry") :].replace("ret;", "add.s32 %r2, %r2, %r1;\n" * 200 + "ret;")

    def work(count):
        async def run():
            text = TEXT + "".join(body.replace("k()", f"k{n}()") for n in range(count))
            state = State(text, "file:///k.ptx", "utf-16")
            state.found = []
            state = State(text.replace("%r9", "%r8", 1), "file:///k.ptx", "utf-16", state)
            return calls(state.soon), [d.code for d in state.found]

        return asyncio.run(run())

    (few, found), (many, others) = work(2), work(20)
    assert found == others == ["PTX201"] and many < 4 * few


def test_an_outline_after_changes_is_that_of_the_whole_text():
    start = ".global .b32 a, b;\n".join([TEXT[: TEXT.index(".entry")], TEXT[TEXT.index(".entry") :]])
    kept = Outline()
    texts = [start, *(start.replace("ret;", f"{label}: ret;") for label in "LM"), start.replace(".entry", "\n.entry")]
    for text in [*texts, start.replace(" a, b", " a, a"), start.replace("k()", "k(.param .b32 p)"), start]:
        document, places = Document(text, "k.ptx"), Positions(text, "utf-16")
        shown = kept.of(document, places)
        assert shown == Outline().of(document, places)
        assert [symbol.name for symbol in shown] == ["a", text[text.index(".b32 a, ") + 8], "k"]
