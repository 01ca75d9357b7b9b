"""A language server for PTX: `ptx-lint --lsp`.

A change is read at once, mostly only the statements that it touches; all is answered from that state. Findings are
worked out beside the server when the text has not changed for a moment, errors first; a further change ends that.
"""

from __future__ import annotations

import asyncio
import gc
from typing import Any
from urllib.parse import unquote, urlparse

from cattrs import Converter
from lsprotocol import types as lsp
from pygls.exceptions import JsonRpcInvalidParams
from pygls.lsp.server import LanguageServer
from pygls.protocol import default_converter

from ptxtools.diagnostics import Diagnostic, Severity, Span
from ptxtools.diagnostics.text import notes
from ptxtools.linter.config import ConfigError
from ptxtools.pages import describe
from ptxtools.syntax.edited import edit_of
from ptxtools.syntax.reformat import reformat

from . import answers
from .actions import all_fixed, silencing
from .background import FORKS
from .completion import complete
from .layout import edit_within
from .log import log_to_client
from .outline import Outline
from .settings import ALL, Chosen, chosen_for
from .state import State
from .texts import OpenText
from .words import NAMES, Coloured, Row, encoded

#: Seconds for the answers to requests that come with a change.
_SOON = 0.01
#: Seconds without a change before findings are worked out.
_PAUSE = 0.1
#: Seconds for others between two steps of preparations.
_BREAK = 0.002
#: Objects that are made between two runs of Python's collector, where it has to find the trees that threads have used.
_COLLECT = 100_000
_SEVERITIES = {
    Severity.ERROR: lsp.DiagnosticSeverity.Error,
    Severity.WARNING: lsp.DiagnosticSeverity.Warning,
    Severity.NOTE: lsp.DiagnosticSeverity.Information,
}
_ITEMS = {
    "opcode": lsp.CompletionItemKind.Function,
    "modifier": lsp.CompletionItemKind.Property,
    "register": lsp.CompletionItemKind.Variable,
    "variable": lsp.CompletionItemKind.Variable,
    "label": lsp.CompletionItemKind.Reference,
    "function": lsp.CompletionItemKind.Function,
    "special": lsp.CompletionItemKind.Constant,
    "component": lsp.CompletionItemKind.Field,
    "type": lsp.CompletionItemKind.TypeParameter,
    "directive": lsp.CompletionItemKind.Keyword,
    "value": lsp.CompletionItemKind.Value,
}
_USES = {
    None: lsp.DocumentHighlightKind.Text, True: lsp.DocumentHighlightKind.Write, False: lsp.DocumentHighlightKind.Read,
}  # fmt: skip
#: Findings that editors show in a way of their own: what is for nothing paler, what is deprecated struck out.
_TAGS = {
    **{code: [lsp.DiagnosticTag.Unnecessary] for code in ("PTX510", "PTX512", "PTX513", "PTX514")},
    "PTX601": [lsp.DiagnosticTag.Deprecated],
}
#: All fixes of a text, which editors may apply when it is saved.
_FIX_ALL = f"{lsp.CodeActionKind.SourceFixAll.value}.ptx-lint"
_LEGEND = lsp.SemanticTokensLegend(token_types=NAMES, token_modifiers=[])


class Server(LanguageServer):
    """Keeps the state of each open text."""

    def __init__(self, version: str) -> None:
        super().__init__("ptx-lint", version, converter_factory=_converter)
        self._states: dict[str, State] = {}
        self._rows: dict[tuple[str, str, bool], Row] = {}
        self._told: dict[str, tuple[str, Coloured]] = {}
        self._chosen: dict[str, Chosen] = {}
        self.outline = Outline()

    def state(self, uri: str) -> State:
        open_text = self._open_text(uri)
        known, text = self._states.get(uri), open_text.source
        if known is None or known.text != text:
            known = State(text, uri, open_text.encoding, known, open_text.places)
            if unquote(uri) not in self.workspace.text_documents:
                known.leave()  # nobody looks for findings in a text that is not open
                return known
            self._states[uri] = known
            if not known.document.in_place and not gc.isenabled():
                gc.freeze()  # a tree has no cycles: collecting garbage need not walk it
        return known

    def _open_text(self, uri: str) -> OpenText:
        """The text as the client has it."""
        found = self.workspace.get_text_document(uri)
        if not isinstance(found, OpenText):
            found, name = OpenText.of(found), unquote(uri)
            if name in self.workspace.text_documents:
                self.workspace.text_documents[name] = found
        return found

    def chosen(self, uri: str) -> Chosen:
        """What the settings of the project that a file is in leave of its findings."""
        known = self._chosen.get(uri)
        if known is None:
            parts = urlparse(uri)
            try:
                known = chosen_for(unquote(parts.path)) if parts.scheme == "file" else ALL
            except ConfigError as error:
                known = ALL
                message = lsp.ShowMessageParams(lsp.MessageType.Warning, f"ptx-lint: {error}")
                self.window_show_message(message)
            self._chosen[uri] = known
        return known

    def read_settings_again(self) -> None:
        """Settings may have changed."""
        self._chosen.clear()

    @property
    def refreshes_hints(self) -> bool:
        """Whether the client asks for hints again when it is told to."""
        workspace = self.client_capabilities.workspace
        hints = workspace.inlay_hint if workspace is not None else None
        return bool(hints is not None and hints.refresh_support)

    def is_newest(self, uri: str, state: State) -> bool:
        return self._states.get(uri) is state

    def coloured(self, uri: str) -> tuple[Coloured, str]:
        """The words of a text, and the name under which the client is told of them."""
        state = self.state(uri)
        number, older = self._told.get(uri, ("0", None))
        found = Coloured(state.text, state.encoding, self._rows, older)
        self._told[uri] = str(int(number) + 1), found
        return found, self._told[uri][0]

    def told(self, uri: str, name: str) -> Coloured | None:
        """What the client was told under a name, if that was the last time."""
        known = self._told.get(uri)
        return known[1] if known is not None and known[0] == name else None

    def forget(self, uri: str) -> None:
        self._told.pop(uri, None)
        self._chosen.pop(uri, None)
        known = self._states.pop(uri, None)
        if known is not None:
            known.leave()


def _converter() -> Converter:
    """Makes messages. References, of which there may be thousands, are made by their handler."""
    converter: Converter = default_converter()  # type: ignore[no-untyped-call]
    for response in (lsp.ReferencesResponse, lsp.DocumentHighlightResponse):
        converter.register_unstructure_hook(
            response, lambda made: {"id": made.id, "jsonrpc": made.jsonrpc, "result": made.result}
        )
    return converter


def serve(version: str) -> None:
    """Answer on standard input and output until the client ends it."""
    if FORKS:
        gc.disable()
    else:
        gc.set_threshold(_COLLECT)
    server = make_server(version)
    log_to_client(server)
    server.start_io()


def make_server(version: str) -> Server:
    """A server with all its features. version: the tool's."""
    server = Server(version)
    for feature, function, options in _FEATURES:
        server.feature(feature, *options)(function)
    return server


# --- findings ---------------------------------------------------------------------------------------------------------


async def _changed(server: Server, params: Any) -> None:
    """Publish findings: what is known of the function that was edited; and, once the text rests, the errors of the
    whole text, then everything."""
    uri = params.text_document.uri
    state = server.state(uri)
    await asyncio.sleep(_SOON)
    if not server.is_newest(uri, state):
        return
    soon = state.soon() if state.found is None else state.found  # a request may have asked before
    if soon is not None:
        _publish(server, uri, state, soon)
    await asyncio.sleep(_PAUSE)
    if not server.is_newest(uri, state) or state.begun:
        return
    state.begun = True
    preparing = asyncio.create_task(_prepare(server, uri, state))
    async for result in state.results():
        if not server.is_newest(uri, state):
            return
        state.found = result.findings if result.complete else state.with_warnings(result.findings)
        _publish(server, uri, state, state.found)
        if result.complete and state.told_older and server.refreshes_hints:
            server.workspace_inlay_hint_refresh(None)
    await preparing


async def _prepare(server: Server, uri: str, state: State) -> None:
    """Use the time until the next change for what the answers after it need; requests come between its steps."""
    for _ in state.preparations():
        await asyncio.sleep(_BREAK)
        if not server.is_newest(uri, state):
            return
    if not gc.isenabled():
        gc.collect()


def _publish(server: Server, uri: str, state: State, findings: list[Diagnostic]) -> None:
    """Publish findings, unless they are shown."""
    shown = [_diagnostic(state, d) for d in server.chosen(uri).left(findings)]
    if shown != state.shown:
        state.shown = shown
        version = server.workspace.get_text_document(uri).version
        server.text_document_publish_diagnostics(lsp.PublishDiagnosticsParams(uri, shown, version))


def _saved(server: Server, params: lsp.DidSaveTextDocumentParams) -> None:
    """Settings are read again, and what is known is shown as they want it."""
    server.read_settings_again()
    uri = params.text_document.uri
    state = server.state(uri)
    if state.found is not None:
        _publish(server, uri, state, state.found)


def _closed(server: Server, params: lsp.DidCloseTextDocumentParams) -> None:
    server.forget(params.text_document.uri)
    server.text_document_publish_diagnostics(lsp.PublishDiagnosticsParams(params.text_document.uri, []))


def _diagnostic(state: State, d: Diagnostic) -> lsp.Diagnostic:
    message = "\n".join([d.message, *(f"{head} {text}" for head, text in notes(d))])
    severity, tags = _SEVERITIES[d.severity], _TAGS.get(d.code)
    return lsp.Diagnostic(state.places.range(d.span), message, severity, d.code, None, "ptx-lint", tags)


async def _actions(server: Server, params: lsp.CodeActionParams) -> list[lsp.CodeAction]:
    """The fixes of the findings in a range, comments that silence these, and all fixes of the text at once."""
    uri = params.text_document.uri
    state = server.state(uri)
    start, end = state.places.span(params.range)
    known = state.known_findings()
    findings = server.chosen(uri).left(known if known is not None else (await state.complete()).findings)
    if not server.is_newest(uri, state):
        return []  # the text has changed meanwhile

    def action(
        title: str, kind: lsp.CodeActionKind | str, span: Span, text: str, d: Diagnostic | None = None
    ) -> lsp.CodeAction:
        edit = lsp.WorkspaceEdit(changes={uri: [lsp.TextEdit(state.places.range(span), text)]})
        mends = [_diagnostic(state, d)] if d is not None else None
        preferred = True if d is not None and d.fix is not None and d.fix.text == text else None
        return lsp.CodeAction(title, kind, mends, preferred, edit=edit)

    found: list[lsp.CodeAction] = []
    here = [d for d in findings if d.span[0] <= end and start <= d.span[1]]
    fixes = {d.fix for d in findings if d.fix is not None and d.fix.span != (0, 0)}
    quick = lsp.CodeActionKind.QuickFix
    if _wanted(params, quick):
        for d in here:
            if d.fix is not None and d.fix.span != (0, 0):
                title = f"{d.fix.title or describe(d.code)[0]} [{d.code}]"
                found.append(action(title, quick, d.fix.span, d.fix.text, d))
        for d in {(d.code, state.places.range(d.span).start.line): d for d in here}.values():
            place = silencing(state.document, d)
            if place is not None:
                found.append(action(f"disable {d.code} for this line", quick, (place[0],) * 2, place[1], d))
    asked = bool(params.context.only) and _wanted(params, _FIX_ALL)
    if asked or (not params.context.only and len(fixes) > 1 and any(d.fix in fixes for d in here)):
        text = all_fixed(state.text, findings)
        if text != state.text:
            first, last = edit_of(state.text, text)
            found.append(action(f"apply all {len(fixes)} fixes", _FIX_ALL, (first, last),
                                text[first : len(text) - len(state.text) + last]))  # fmt: skip
    return found


def _wanted(params: lsp.CodeActionParams, kind: lsp.CodeActionKind | str) -> bool:
    """Whether a client asks for actions of a kind, or of one that has it as a part."""
    name = str(getattr(kind, "value", kind))
    only = [str(getattr(each, "value", each)) for each in params.context.only or ()]
    return not only or any(name == each or name.startswith(f"{each}.") for each in only)


# --- names ------------------------------------------------------------------------------------------------------------


def _hover(server: Server, params: lsp.HoverParams) -> lsp.Hover | None:
    state = server.state(params.text_document.uri)
    found = answers.hover(state.document, state.places.offset(params.position))
    if found is None:
        return None
    return lsp.Hover(lsp.MarkupContent(lsp.MarkupKind.Markdown, found[0]), state.places.range(found[1]))


def _definition(server: Server, params: lsp.DefinitionParams) -> lsp.Location | None:
    state = server.state(params.text_document.uri)
    meant = state.document.meaning(state.places.offset(params.position))
    if meant is None:
        return None
    span = state.document.declaration(meant[0].text, meant[1])
    return lsp.Location(params.text_document.uri, state.places.range(span))


def _references(server: Server, params: lsp.ReferenceParams) -> list[dict[str, Any]]:
    """Locations, as they stand in messages (see `_converter`)."""
    state = server.state(params.text_document.uri)
    meant = state.document.meaning(state.places.offset(params.position))
    if meant is None:
        return []
    spans = state.document.places(meant[0].text, meant[1])
    if not params.context.include_declaration:
        declared = state.document.declaration(meant[0].text, meant[1])
        spans = [span for span in spans if span != declared]
    uri = params.text_document.uri
    return [{"uri": uri, "range": range} for range in state.places.messages(spans)]


def _highlights(server: Server, params: lsp.DocumentHighlightParams) -> list[dict[str, Any]]:
    """Where the name at a position stands, as in messages (see `_converter`); of a register, where it is written."""
    state = server.state(params.text_document.uri)
    meant = state.document.meaning(state.places.offset(params.position))
    if meant is None:
        return []
    uses = answers.uses(state.document, meant[0].text, meant[1])
    ranges = state.places.messages([span for span, _ in uses])
    return [{"range": range, "kind": _USES[writes].value} for range, (_, writes) in zip(ranges, uses, strict=True)]


def _prepare_rename(server: Server, params: lsp.PrepareRenameParams) -> lsp.PrepareRenamePlaceholder | None:
    """What a new name would be given to; nothing where that is refused."""
    state = server.state(params.text_document.uri)
    try:
        token, _ = answers.renamed(state.document, state.places.offset(params.position))
    except answers.RenameError as error:
        raise JsonRpcInvalidParams(str(error)) from None
    return lsp.PrepareRenamePlaceholder(state.places.range(token.span), token.text)


def _rename(server: Server, params: lsp.RenameParams) -> lsp.WorkspaceEdit:
    state = server.state(params.text_document.uri)
    try:
        spans = answers.rename(state.document, state.places.offset(params.position), params.new_name)
    except answers.RenameError as error:
        raise JsonRpcInvalidParams(str(error)) from None
    edits = [lsp.TextEdit(state.places.range(span), params.new_name) for span in spans]
    return lsp.WorkspaceEdit(changes={params.text_document.uri: edits})


def _completion(server: Server, params: lsp.CompletionParams) -> list[lsp.CompletionItem]:
    state = server.state(params.text_document.uri)
    found = complete(state.document, state.places.offset(params.position))
    return [lsp.CompletionItem(item.text, kind=_ITEMS[item.kind], detail=item.detail or item.kind) for item in found]


# --- structure --------------------------------------------------------------------------------------------------------


def _outline(server: Server, params: lsp.DocumentSymbolParams) -> list[lsp.DocumentSymbol]:
    state = server.state(params.text_document.uri)
    return server.outline.of(state.document, state.places)


def _folding(server: Server, params: lsp.FoldingRangeParams) -> list[lsp.FoldingRange]:
    state = server.state(params.text_document.uri)
    ranges = [state.places.range(span) for span in answers.folds(state.document)]
    return [lsp.FoldingRange(range.start.line, range.end.line) for range in ranges]


def _formatting(server: Server, params: lsp.DocumentFormattingParams) -> list[lsp.TextEdit]:
    """The canonical layout; nothing for a text with syntax errors, which are findings already."""
    state = server.state(params.text_document.uri)
    made = reformat(state.text)
    if made.errors or made.text == state.text:
        return []
    first, last = edit_of(state.text, made.text)
    return [lsp.TextEdit(state.places.range((first, last)), made.text[first : len(made.text) - len(state.text) + last])]


def _formatting_part(
    server: Server, params: lsp.DocumentRangeFormattingParams | lsp.DocumentOnTypeFormattingParams
) -> list[lsp.TextEdit]:
    """The canonical layout of some lines, or of the one that was typed in."""
    state = server.state(params.text_document.uri)
    if isinstance(params, lsp.DocumentRangeFormattingParams):
        area = state.places.span(params.range)
    else:
        area = (state.places.offset(params.position),) * 2
    made = reformat(state.text)
    found = None if made.errors else edit_within(state.text, made.text, area)
    return [lsp.TextEdit(state.places.range(found[0]), found[1])] if found is not None else []


async def _hints(server: Server, params: lsp.InlayHintParams) -> list[lsp.InlayHint]:
    state = server.state(params.text_document.uri)
    start, end = state.places.span(params.range)
    # Older ones only for a client that asks again when it is told to: another would keep them.
    known = state.known_hints() if server.refreshes_hints else state.hints
    hints = known if known is not None else (await state.complete()).hints
    found = [(at, text) for at, text in hints if start <= at <= end]
    return [lsp.InlayHint(state.places.position(at), text, padding_left=True) for at, text in found]


def _semantic(server: Server, params: lsp.SemanticTokensParams) -> lsp.SemanticTokens:
    coloured, number = server.coloured(params.text_document.uri)
    return lsp.SemanticTokens(coloured.numbers(), number)


def _semantic_delta(
    server: Server, params: lsp.SemanticTokensDeltaParams
) -> lsp.SemanticTokens | lsp.SemanticTokensDelta:
    """What has changed since the client was told last; all, if that is not known any more."""
    older = server.told(params.text_document.uri, params.previous_result_id)
    coloured, number = server.coloured(params.text_document.uri)
    if older is None:
        return lsp.SemanticTokens(coloured.numbers(), number)
    start, count, data = coloured.difference(older)
    edits = [lsp.SemanticTokensEdit(start, count, data)] if count or data else []
    return lsp.SemanticTokensDelta(edits, number)


def _semantic_range(server: Server, params: lsp.SemanticTokensRangeParams) -> lsp.SemanticTokens:
    state = server.state(params.text_document.uri)
    return lsp.SemanticTokens(encoded(state.document.tokens_within(state.places.span(params.range)), state.places))


_FEATURES: tuple[tuple[str, Any, tuple[Any, ...]], ...] = (
    (lsp.TEXT_DOCUMENT_DID_OPEN, _changed, ()),
    (lsp.TEXT_DOCUMENT_DID_CHANGE, _changed, ()),
    (lsp.TEXT_DOCUMENT_DID_SAVE, _saved, ()),
    (lsp.TEXT_DOCUMENT_DID_CLOSE, _closed, ()),
    (lsp.TEXT_DOCUMENT_CODE_ACTION, _actions, (lsp.CodeActionOptions([lsp.CodeActionKind.QuickFix, _FIX_ALL]),)),
    (lsp.TEXT_DOCUMENT_HOVER, _hover, ()),
    (lsp.TEXT_DOCUMENT_DEFINITION, _definition, ()),
    (lsp.TEXT_DOCUMENT_REFERENCES, _references, ()),
    (lsp.TEXT_DOCUMENT_DOCUMENT_HIGHLIGHT, _highlights, ()),
    (lsp.TEXT_DOCUMENT_PREPARE_RENAME, _prepare_rename, ()),
    (lsp.TEXT_DOCUMENT_RENAME, _rename, (lsp.RenameOptions(prepare_provider=True),)),
    (lsp.TEXT_DOCUMENT_COMPLETION, _completion, (lsp.CompletionOptions(trigger_characters=[".", "%"]),)),
    (lsp.TEXT_DOCUMENT_DOCUMENT_SYMBOL, _outline, ()),
    (lsp.TEXT_DOCUMENT_FOLDING_RANGE, _folding, ()),
    (lsp.TEXT_DOCUMENT_FORMATTING, _formatting, ()),
    (lsp.TEXT_DOCUMENT_RANGE_FORMATTING, _formatting_part, ()),
    (lsp.TEXT_DOCUMENT_ON_TYPE_FORMATTING, _formatting_part, (lsp.DocumentOnTypeFormattingOptions(";", ["}"]),)),
    (lsp.TEXT_DOCUMENT_INLAY_HINT, _hints, ()),
    (lsp.TEXT_DOCUMENT_SEMANTIC_TOKENS_FULL, _semantic, (_LEGEND,)),
    (lsp.TEXT_DOCUMENT_SEMANTIC_TOKENS_FULL_DELTA, _semantic_delta, (_LEGEND,)),
    (lsp.TEXT_DOCUMENT_SEMANTIC_TOKENS_RANGE, _semantic_range, (_LEGEND,)),
)
