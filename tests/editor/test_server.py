"""`ptx-lint --lsp`, driven by a client in another process, as an editor drives it."""

import asyncio
import sys

import pytest
from lsprotocol import types as lsp
from pygls.exceptions import JsonRpcException
from pygls.lsp.client import LanguageClient

from tests.work import HANG

URI = "file:///k.ptx"
TEXT = """\
.version 8.0
.target sm_80
.address_size 64
.visible .entry k(
\t.param .u64 p
)
{
\t.reg .b32 \t%r<4>;
\t.reg .f32 \tf;
\t.shared .b32 \ttile[32];

\tmov.u32 \t%r1, %tid.x; // size
$L1:
\tadd.rn.ftz.f32 \tf, f, 0f3F800000;
\tadd.s32 \t%r2, %r1, 1;
\tld.b32 \t%r3, [tile];
\tbra \t$L1;
}
"""

LOOP = asyncio.new_event_loop()
SERVERS = []
OPEN = lsp.TextDocumentIdentifier(URI)
OTHER = lsp.TextDocumentIdentifier("file:///other.ptx")


class Client(LanguageClient):
    """Remembers published findings, and when it was told to ask for hints again."""

    def __init__(self):
        super().__init__("test", "1")
        self.published, self.refreshed = asyncio.Queue(), asyncio.Queue()
        self.version = 1  # of the text when it was opened; findings of texts before it may still be under way
        self.feature(lsp.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)(lambda params: self.publish(params))
        self.feature(lsp.WORKSPACE_INLAY_HINT_REFRESH)(lambda _: self.refreshed.put_nowait(True))

    def publish(self, params):
        if params.version is None or params.version >= self.version:
            self.published.put_nowait(params)


def at(text, word, count=0):
    """The position of a word's first character, the count-th time that it stands there."""
    offset = -1
    for _ in range(count + 1):
        offset = text.index(word, offset + 1)
    before = text[:offset]
    return lsp.Position(before.count("\n"), len(before.rpartition("\n")[2].encode("utf-16-le")) // 2)


def session(work, text=TEXT):
    """Open a text in the server of these tests, and do `work(client)`."""
    this = lsp.TextDocumentIdentifier(URI)

    async def run(client):
        client.published, client.version = asyncio.Queue(), client.version + 10
        item = lsp.TextDocumentItem(URI, "ptx", client.version, text)
        client.text_document_did_open(lsp.DidOpenTextDocumentParams(item))
        found = await work(client)
        client.text_document_did_close(lsp.DidCloseTextDocumentParams(this))
        await client.text_document_folding_range_async(lsp.FoldingRangeParams(OTHER))  # when all before it was answered
        return found

    try:
        return in_time(run(SERVERS[-1] if SERVERS else in_time(started())))
    except BaseException:
        SERVERS.clear()  # the next test gets a new one
        raise


async def started(encodings=None):
    client = Client()
    await client.start_io(sys.executable, "-m", "ptxtools", "lint", "--lsp")
    hints = lsp.InlayHintWorkspaceClientCapabilities(refresh_support=True)
    general = lsp.GeneralClientCapabilities(position_encodings=encodings)
    able = lsp.ClientCapabilities(workspace=lsp.WorkspaceClientCapabilities(inlay_hint=hints), general=general)
    await client.initialize_async(lsp.InitializeParams(able, root_uri=None, process_id=None))
    client.initialized(lsp.InitializedParams())
    client.text_document_did_open(lsp.DidOpenTextDocumentParams(lsp.TextDocumentItem(OTHER.uri, "ptx", 1, "")))
    await client.published.get()
    SERVERS.append(client)
    return client


async def ended(client):
    await client.shutdown_async(None)
    client.exit(None)
    await client.stop()


def in_time(work):
    return LOOP.run_until_complete(asyncio.wait_for(work, HANG))


@pytest.fixture(autouse=True, scope="module")
def server_that_ends():
    """One server for the tests of this file: it starts with the first one."""
    yield
    for client in SERVERS:
        in_time(ended(client))
    SERVERS.clear()


def ask(method, params_type, text=TEXT, **fields):
    """The answer to one request about an open text."""

    async def work(client):
        params = params_type(text_document=lsp.TextDocumentIdentifier(URI), **fields)
        return await getattr(client, f"text_document_{method}_async")(params)

    return session(work, text)


def edited(text, edits):
    """The text after edits, applied from the end."""
    lines = text.split("\n")

    def offset(position):
        line = lines[position.line].encode("utf-16-le")[: 2 * position.character].decode("utf-16-le")
        return sum(len(row) + 1 for row in lines[: position.line]) + len(line)

    for edit in sorted(edits, key=lambda e: offset(e.range.start), reverse=True):
        text = text[: offset(edit.range.start)] + edit.new_text + text[offset(edit.range.end) :]
    return text


def test_findings_come_with_opening_and_typing():
    async def work(client):
        opened = await client.published.get()
        change = lsp.TextDocumentContentChangePartial(lsp.Range(at(TEXT, "%r1, 1"), at(TEXT, ", 1;")), "nothing")
        version = lsp.VersionedTextDocumentIdentifier(client.version + 1, URI)
        client.text_document_did_change(lsp.DidChangeTextDocumentParams(version, [change]))
        typed = await client.published.get()
        while typed.version == opened.version:  # warnings about the text as it was opened
            typed = await client.published.get()
        client.text_document_did_close(lsp.DidCloseTextDocumentParams(lsp.TextDocumentIdentifier(URI)))
        return opened, typed, await client.published.get()

    opened, typed, closed = session(work)
    assert [d.code for d in opened.diagnostics if d.severity is lsp.DiagnosticSeverity.Error] == []
    (error,) = [d for d in typed.diagnostics if d.severity is lsp.DiagnosticSeverity.Error]
    assert error.code == "PTX201" and error.range.start == at(TEXT, "%r1, 1") and typed.version == opened.version + 1
    assert "nothing" in error.message and not closed.diagnostics


HOVERS = [
    ("rn.ftz", "add{.rnd}"),
    ("mov", "PTX ISA 9.7.9"),
    ("%tid", "special register, `.u32`, components x y z"),
    ("%r1, 1", "live within lines 12 to 15"),
    ("%r1, 1", "written on line 12"),
    ("tile]", ".shared .b32 tile[32];"),
]


def test_hover():
    async def work(client):
        this = lsp.TextDocumentIdentifier(URI)
        return [await client.text_document_hover_async(lsp.HoverParams(this, at(TEXT, word))) for word, _ in HOVERS]

    for (word, says), found in zip(HOVERS, session(work), strict=True):
        assert says in found.contents.value
        assert found.range.start.line == at(TEXT, word).line


def test_definition_references_and_rename():
    async def work(client):
        here = {"text_document": lsp.TextDocumentIdentifier(URI), "position": at(TEXT, "tile]")}
        definition = await client.text_document_definition_async(lsp.DefinitionParams(**here))
        context = lsp.ReferenceContext(include_declaration=True)
        places = await client.text_document_references_async(lsp.ReferenceParams(context=context, **here))
        named = await client.text_document_rename_async(lsp.RenameParams(new_name="x", **here))
        refused = []
        for name in ("f", "%tid", "1x", "k"):
            with pytest.raises(Exception, match=r"name|means"):
                await client.text_document_rename_async(lsp.RenameParams(new_name=name, **here))
            refused.append(name)
        return definition, places, named, refused

    definition, places, named, refused = session(work)
    assert definition.range.start == at(TEXT, "tile[32]")
    assert [place.range.start for place in places] == [at(TEXT, "tile[32]"), at(TEXT, "tile]")]
    assert edited(TEXT, named.changes[URI]) == TEXT.replace("tile", "x")
    assert len(refused) == 4


def test_labels_are_renamed():
    position = at(TEXT, "$L1;")
    named = ask("rename", lsp.RenameParams, position=position, new_name="again")
    assert edited(TEXT, named.changes[URI]) == TEXT.replace("$L1", "again")


COMPLETIONS = [
    ("\tadd.", {"f32", "rn", "s32", "ftz"}, {"global", "mov"}),
    ("\tadd.rn.", {"f32", "f64"}, {"rn", "s32"}),
    ("\tsh", {"shfl", "shl", "shr"}, {"add"}),
    ("\twg", set(), {"wgmma"}),  # sm_80 has none
    ("\tmov.u32 %r1, %t", {"%tid.x", "%tid"}, {"tile", "%clusterid"}),
    ("\tmov.u32 %r1, ", {"tile", "%r", "f", "$L1", "%laneid"}, {"add"}),
]


def test_completion():
    async def work(client):
        answers = []
        for version, (typed, _, _) in enumerate(COMPLETIONS, 2):
            text = TEXT.replace("\tbra", f"{typed}\n\tbra")
            known = lsp.VersionedTextDocumentIdentifier(client.version + version, URI)
            whole = lsp.TextDocumentContentChangeWholeDocument(text)
            client.text_document_did_change(lsp.DidChangeTextDocumentParams(known, [whole]))
            end = at(text, typed + "\n")
            position = lsp.Position(end.line, end.character + len(typed))
            params = lsp.CompletionParams(lsp.TextDocumentIdentifier(URI), position)
            answers.append(await client.text_document_completion_async(params))
        return answers

    for (typed, has, lacks), items in zip(COMPLETIONS, session(work), strict=True):
        found = {item.label for item in items}
        assert has <= found and not lacks & found, typed


def test_structure():
    (kernel,) = ask("document_symbol", lsp.DocumentSymbolParams)
    assert (kernel.name, [child.name for child in kernel.children]) == ("k", ["p", "$L1"])
    folds = ask("folding_range", lsp.FoldingRangeParams)
    assert [(fold.start_line, fold.end_line) for fold in folds] == [(6, 17)]


def test_fixes_are_offered():
    text = TEXT.replace("sm_80", "sm_70").replace("\tbra", "\tredux.sync.add.s32 \t%r1, %r1, -1;\n\tbra")
    whole = lsp.Range(lsp.Position(0, 0), lsp.Position(99, 0))
    context = lsp.CodeActionContext(diagnostics=[])
    actions = ask("code_action", lsp.CodeActionParams, text, range=whole, context=context)
    fixed = [edited(text, action.edit.changes[URI]) for action in actions]
    assert text.replace("sm_70", "sm_80") in fixed


def actions_of(text, only=None, line=None):
    area = lsp.Range(lsp.Position(line or 0, 0), lsp.Position(99 if line is None else line, 99))
    context = lsp.CodeActionContext(diagnostics=[], only=only)
    return ask("code_action", lsp.CodeActionParams, text, range=area, context=context)


def test_warnings_are_silenced_by_comments():
    """On the line, or in the comment that is there; what is offered does what it says."""
    shift = "\tshl.b32 \t%r2, %r1, 40;"
    text = TEXT.replace("\tadd.s32 \t%r2, %r1, 1;", f"{shift}\n\tshr.u32 \t%r2, %r2, 33; // because")
    silenced = []
    for action in actions_of(text):
        if action.title.startswith("disable "):
            code = action.title.split()[1]
            after = edited(text, action.edit.changes[URI])
            left = [each.title for each in actions_of(after) if each.title == action.title]
            assert left == [each.title for each in actions_of(text) if each.title == action.title][1:]
            silenced.append((code, after))
    wanted = [text.replace(line, f"{line} // ptx-lint: disable=PTX502") for line in (shift, "33; // because")]
    assert [after for code, after in silenced if code == "PTX502"] == wanted
    again = TEXT.replace("\tadd.s32 \t%r2, %r1, 1;", f"{shift} // ptx-lint: disable=PTX7")
    (action,) = [each for each in actions_of(again) if each.title.startswith("disable PTX502")]
    assert edited(again, action.edit.changes[URI]) == again.replace("disable=PTX7", "disable=PTX7,PTX502")
    within = TEXT.replace("\tadd.s32 \t%r2, %r1, 1;", f"{shift} /* here\nand there */")
    assert not [each for each in actions_of(within) if each.title.startswith("disable PTX502")]


def test_all_fixes_at_once():
    old = "\tred.global.add.u32 \t[p], 1;"
    text = TEXT.replace("\tbra", "\tld.global.b32 \t%r1, [%r1-4];\n\tld.global.b32 \t%r1, [%r1-8];\n\tbra")
    (whole,) = actions_of(text, only=["source.fixAll"])
    assert whole.kind == "source.fixAll.ptx-lint"
    after = edited(text, whole.edit.changes[URI])
    assert "[%r1+-4]" in after and "[%r1+-8]" in after and old not in after
    kinds = {action.kind for action in actions_of(text)}
    assert kinds == {"quickfix", "source.fixAll.ptx-lint"}
    assert {action.kind for action in actions_of(text, only=["quickfix"])} == {"quickfix"}
    assert not actions_of(text, only=["refactor"]) and not actions_of(after, only=["source.fixAll.ptx-lint"])


def test_names_are_highlighted_and_renaming_is_prepared():
    text = TEXT.replace("%r<4>", "%r<4>, total").replace("\tadd.s32 \t%r2, %r1, 1;", "\tadd.s32 \ttotal, total, %r1;")

    async def work(client):
        place = {"text_document": lsp.TextDocumentIdentifier(URI), "position": at(text, "total", 1)}
        marks = await client.text_document_document_highlight_async(lsp.DocumentHighlightParams(**place))
        ready = await client.text_document_prepare_rename_async(lsp.PrepareRenameParams(**place))
        place["position"] = at(text, "%r1, %tid")
        with pytest.raises(Exception, match="one of %r<4>"):
            await client.text_document_prepare_rename_async(lsp.PrepareRenameParams(**place))
        place["position"] = at(text, "add")
        nothing = await client.text_document_document_highlight_async(lsp.DocumentHighlightParams(**place))
        return marks, ready, nothing

    marks, ready, nothing = session(work, text)
    kinds = lsp.DocumentHighlightKind
    assert [(mark.range.start, mark.kind) for mark in marks] == [
        (at(text, "total", n), kind) for n, kind in enumerate((kinds.Text, kinds.Write, kinds.Read))
    ]
    assert (ready.range.start, ready.placeholder) == (at(text, "total", 1), "total") and not nothing


def test_the_settings_of_a_project_apply(tmp_path):
    (tmp_path / "pyproject.toml").write_text('[tool.ptx-lint]\nignore = ["PTX502"]\n')
    text = TEXT.replace("\tadd.s32 \t%r2, %r1, 1;", "\tshl.b32 \t%r2, %r1, 40;")

    async def work(client):
        uri = (tmp_path / "k.ptx").as_uri()
        client.version += 10
        item = lsp.TextDocumentItem(uri, "ptx", client.version, text)
        client.text_document_did_open(lsp.DidOpenTextDocumentParams(item))
        codes = []
        for settings in ("", "[tool.ptx-lint]\n"):
            if settings:
                (tmp_path / "pyproject.toml").write_text(settings)
                client.text_document_did_save(lsp.DidSaveTextDocumentParams(lsp.TextDocumentIdentifier(uri)))
            while True:
                params = await client.published.get()
                found = {d.code for d in params.diagnostics}
                if (
                    params.uri == uri
                    and ("PTX521" in found or "PTX520" in found)
                    and ("PTX502" in found) == bool(settings)
                ):
                    break
            codes.append(found)
        client.text_document_did_close(lsp.DidCloseTextDocumentParams(lsp.TextDocumentIdentifier(uri)))
        return codes

    before, after = session(work, text)
    assert after - before == {"PTX502"} and not before - after


def test_formatting():
    options = lsp.FormattingOptions(tab_size=8, insert_spaces=False)
    ugly = TEXT.replace("\tadd", "add").replace("rn.ftz.f32 \t", "f32.ftz.rn ")
    edits = ask("formatting", lsp.DocumentFormattingParams, ugly, options=options)
    canonical = edited(ugly, edits)
    assert "\tadd.rn.ftz.f32 \tf, f, 0f3F800000;\n" in canonical
    assert ask("formatting", lsp.DocumentFormattingParams, canonical, options=options) in ([], ())
    assert ask("formatting", lsp.DocumentFormattingParams, ugly + "}", options=options) in ([], ())


@pytest.mark.parametrize("text", [TEXT, TEXT.replace("\n", "\r\n")], ids=["lf", "crlf"])
def test_formatting_of_a_part(text):
    options = lsp.FormattingOptions(tab_size=8, insert_spaces=False)
    ugly = text.replace("\t", "  ")
    lines = lsp.Range(at(ugly, "add.s32"), at(ugly, "ld.b32"))
    edits = ask("range_formatting", lsp.DocumentRangeFormattingParams, ugly, range=lines, options=options)
    pairs = zip(ugly.split("\n"), text.split("\n"), strict=True)
    wanted = [canonical if "add.s32" in line or "ld.b32" in line else line for line, canonical in pairs]
    assert edited(ugly, edits) == "\n".join(wanted)
    end = at(ugly, ";", 4)
    typed = {"position": end, "ch": ";", "options": options}
    edits = ask("on_type_formatting", lsp.DocumentOnTypeFormattingParams, ugly, **typed)
    assert [edit.range.start.line for edit in edits] == [end.line] == [edit.range.end.line for edit in edits]
    assert ask("range_formatting", lsp.DocumentRangeFormattingParams, text, range=lines, options=options) in ([], ())


def test_hints_say_which_lines_force_the_target():
    text = TEXT.replace("\tbra", "\tredux.sync.add.s32 \t%r1, %r1, -1;\n\tbra")
    whole = lsp.Range(lsp.Position(0, 0), lsp.Position(99, 0))
    (hint,) = ask("inlay_hint", lsp.InlayHintParams, text, range=whole)
    assert "sm_80" in hint.label and hint.position.line == at(text, "redux").line


ACCESSES = """.version 8.0
.target sm_75
.address_size 64
.visible .entry k(.param .u64 out, .param .u32 n) .reqntid 128 {
	.reg .b32 %r<6>; .reg .b64 %d<4>; .shared .align 4 .b8 s[1024];
	ld.param.u64 %d1, [out]; mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x; mov.u32 %r3, s;
	shl.b32 %r4, %r1, 2; add.u32 %r4, %r4, %r3; mul.wide.u32 %d2, %r2, 512; add.u64 %d2, %d2, %d1;
	st.shared.u32 [%r4+8], %r1;
	mul.wide.u32 %d3, %r1, 4; add.u64 %d3, %d3, %d2;
	st.global.u32 [%d3], %r1;
	xor.b32 %r4, %r1, 1; shl.b32 %r4, %r4, 2; add.u32 %r4, %r4, %r3;
	ld.shared.u32 %r5, [%r4];
	ld.global.u32 %r5, [%d1];
	mul.wide.u32 %d3, %r5, 4; add.u64 %d3, %d3, %d1;
	st.global.u32 [%d3], 1;
	st.shared.u32 [s], 1;
	ret;
}
"""


def test_hints_say_where_accesses_go():
    """As threads decide it; nothing where data do, or where the text says it."""
    whole = lsp.Range(lsp.Position(0, 0), lsp.Position(99, 0))
    found = {hint.position.line: hint.label for hint in ask("inlay_hint", lsp.InlayHintParams, ACCESSES, range=whole)}
    assert {line: label for line, label in found.items() if label[:3] == "at "} == {
        7: "at s + 4 * %tid.x + 8, 8 to 516", 9: "at out + 512 * %ctaid.x + 4 * %tid.x, 0 to 508",
        11: "at s + (0 to 252 in two warps)", 12: "at out",
    }  # fmt: skip


def test_semantic_tokens():
    """With columns in the units of UTF-16, of which the last character of the comment has two."""
    text = TEXT.replace("\tmov", "/* größe \U0001f600 */ mov").replace("// size", "// größe \U0001f600")
    rows = [row.encode("utf-16-le") for row in text.split("\n")]
    found = ask("semantic_tokens_full", lsp.SemanticTokensParams, text)
    data, words, line, column = found.data, [], 0, 0
    kinds = ["comment", "string", "number", "keyword", "decorator", "function", "label", "variable"]
    for index in range(0, len(data), 5):
        down, right, length, kind, _ = data[index : index + 5]
        line, column = line + down, right if down else column + right
        words.append((rows[line][2 * column : 2 * (column + length)].decode("utf-16-le"), kinds[kind]))
    for expected in ((".version", "keyword"), ("add", "function"), (".rn", "decorator"), ("$L1", "label"),
                     ("// größe \U0001f600", "comment"), ("mov", "function"),
                     ("tile", "variable"), ("%tid", "variable")):  # fmt: skip
        assert expected in words


def test_a_text_of_anything_does_not_end_the_server():
    async def work(client):
        await client.published.get()
        for version, text in enumerate(
            ("\0\x01", "}{", '"', "/*", "add.", "é\U0001f600 \ufeff", ".entry k() { a: ", ""), 1
        ):
            whole = lsp.TextDocumentContentChangeWholeDocument(text)
            known = lsp.VersionedTextDocumentIdentifier(client.version + version, URI)
            client.text_document_did_change(lsp.DidChangeTextDocumentParams(known, [whole]))
            for position in (lsp.Position(0, 0), lsp.Position(0, 4), lsp.Position(9, 9)):
                params = {"text_document": lsp.TextDocumentIdentifier(URI), "position": position}
                await client.text_document_hover_async(lsp.HoverParams(**params))
                await client.text_document_completion_async(lsp.CompletionParams(**params))
            this = lsp.TextDocumentIdentifier(URI)
            await client.text_document_semantic_tokens_full_async(lsp.SemanticTokensParams(this))
            await client.text_document_document_symbol_async(lsp.DocumentSymbolParams(this))
        while (version := (await client.published.get()).version - client.version) < 1:
            pass  # more about the text that was opened
        return version

    assert session(work) in range(1, 9)


def test_after_a_change_hints_and_fixes_are_told_at_once():
    """And the client is told to ask for the hints again."""
    text = TEXT.replace("sm_80", "sm_70").replace("\tbra", "\tredux.sync.add.s32 \t%r1, %r1, -1;\n\tbra")
    whole = lsp.Range(lsp.Position(0, 0), lsp.Position(99, 0))
    context = lsp.CodeActionContext(diagnostics=[])
    this = lsp.TextDocumentIdentifier(URI)

    async def work(client):
        client.refreshed = asyncio.Queue()
        (hint,) = await client.text_document_inlay_hint_async(lsp.InlayHintParams(this, whole))
        place = lsp.Range(at(TEXT, "%r1, 1"), at(TEXT, "%r1, 1"))
        change = lsp.TextDocumentContentChangePartial(place, "\n\n")
        version = lsp.VersionedTextDocumentIdentifier(client.version + 1, URI)
        client.text_document_did_change(lsp.DidChangeTextDocumentParams(version, [change]))
        (moved,) = await client.text_document_inlay_hint_async(lsp.InlayHintParams(this, whole))
        await client.text_document_code_action_async(lsp.CodeActionParams(this, whole, context))
        await client.refreshed.get()
        (again,) = await client.text_document_inlay_hint_async(lsp.InlayHintParams(this, whole))
        return hint, moved, again

    hint, moved, again = session(work, text)
    assert moved.position.line == again.position.line == hint.position.line + 2
    assert moved.label == again.label == hint.label


def test_refusals_do_not_fill_a_pipe_that_nobody_reads():
    """The client here does not read standard error; the server tells it by messages what goes wrong."""

    async def work(client):
        place, refused = at(TEXT, "%r1"), 0
        for _ in range(400):
            try:
                await client.text_document_rename_async(lsp.RenameParams(OPEN, place, "new"))
            except JsonRpcException:
                refused += 1
        hover = await client.text_document_hover_async(lsp.HoverParams(OPEN, place))
        return refused, hover.contents.value

    refused, shown = session(work)
    assert refused == 400 and ".reg" in shown


@pytest.mark.parametrize(("encodings", "width"), [(["utf-16"], 9), (["utf-8", "utf-16"], 10)])
def test_clients_that_name_encodings(encodings, width):
    """As most editors do. A letter with an accent is one unit of UTF-16, and two of UTF-8."""

    async def work():
        client = await started(encodings)
        SERVERS.remove(client)
        item = lsp.TextDocumentItem(URI, "ptx", client.version, "// size é\n" + TEXT)
        client.text_document_did_open(lsp.DidOpenTextDocumentParams(item))
        this = lsp.TextDocumentIdentifier(URI)
        found = await client.text_document_semantic_tokens_full_async(lsp.SemanticTokensParams(this))
        await ended(client)
        return found.data[:3]

    assert list(in_time(work())) == [0, 0, width]


def test_a_text_that_is_not_open_has_nothing():
    """A request may come behind the end of an unsaved text."""

    async def work(client):
        gone = lsp.TextDocumentIdentifier("untitled:1")
        shown = await client.text_document_hover_async(lsp.HoverParams(gone, lsp.Position(3, 3)))
        folded = await client.text_document_folding_range_async(lsp.FoldingRangeParams(gone))
        whole = lsp.Range(lsp.Position(0, 0), lsp.Position(9, 0))
        hints = await client.text_document_inlay_hint_async(lsp.InlayHintParams(gone, whole))
        return shown, folded, hints

    shown, folded, hints = session(work)
    assert shown is None and not folded and not hints
