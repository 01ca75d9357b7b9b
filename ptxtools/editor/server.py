"""A language server for PTX: `ptx-lint --lsp`.

Findings are published when the text has not changed for a moment; everything else is answered from the newest state.
"""

from __future__ import annotations

import asyncio
from typing import Any
from urllib.parse import unquote, urlparse

from lsprotocol import types as lsp
from pygls.exceptions import JsonRpcInvalidParams
from pygls.lsp.server import LanguageServer

from ptxtools.diagnostics import Diagnostic, Severity
from ptxtools.diagnostics.text import notes
from ptxtools.pages import describe
from ptxtools.syntax.reformat import reformat

from . import answers
from .document import Document
from .positions import Positions

#: Seconds without a change before findings are worked out.
_PAUSE = 0.15
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
}
_SYMBOLS = {
    "entry": lsp.SymbolKind.Function,
    "func": lsp.SymbolKind.Function,
    "variable": lsp.SymbolKind.Variable,
    "parameter": lsp.SymbolKind.Field,
    "label": lsp.SymbolKind.Key,
}
#: Kinds of words, as `Document.tokens` has them, with the protocol's names.
_WORDS = {
    "comment": "comment", "string": "string", "number": "number", "directive": "keyword", "modifier": "decorator",
    "opcode": "function", "label": "label", "name": "variable",
}  # fmt: skip
_LEGEND = lsp.SemanticTokensLegend(token_types=list(dict.fromkeys(_WORDS.values())), token_modifiers=[])


class _State:
    """A text in its newest state."""

    def __init__(self, text: str, uri: str, encoding: str) -> None:
        parts = urlparse(uri)
        self.text = text
        self.document = Document(text, unquote(parts.path) if parts.scheme == "file" else uri)
        self.places = Positions(text, encoding)


class Server(LanguageServer):
    """Keeps the state of each open text."""

    def __init__(self, version: str) -> None:
        super().__init__("ptx-lint", version)
        self._states: dict[str, _State] = {}

    def state(self, uri: str) -> _State:
        text = self.workspace.get_text_document(uri).source
        known = self._states.get(uri)
        if known is None or known.text != text:
            known = self._states[uri] = _State(text, uri, str(getattr(self.workspace.position_encoding, "value", "")))
        return known

    def forget(self, uri: str) -> None:
        self._states.pop(uri, None)


def serve(version: str) -> None:
    """Answer on standard input and output until the client ends it."""
    make_server(version).start_io()


def make_server(version: str) -> Server:
    """A server with all its features. version: the tool's."""
    server = Server(version)
    for feature, function, options in _FEATURES:
        server.feature(feature, *options)(function)
    return server


# --- findings ---------------------------------------------------------------------------------------------------------


async def _changed(server: Server, params: Any) -> None:
    """Publish findings once the text rests. They are worked out beside the loop, which answers meanwhile."""
    uri = params.text_document.uri
    version = server.workspace.get_text_document(uri).version
    await asyncio.sleep(_PAUSE)
    if uri not in server.workspace.text_documents or server.workspace.get_text_document(uri).version != version:
        return
    state = server.state(uri)
    found = await asyncio.get_running_loop().run_in_executor(None, lambda: state.document.findings)
    if uri in server.workspace.text_documents and server.workspace.get_text_document(uri).version == version:
        shown = [_diagnostic(state, d) for d in found]
        server.text_document_publish_diagnostics(lsp.PublishDiagnosticsParams(uri, shown, version))


def _closed(server: Server, params: lsp.DidCloseTextDocumentParams) -> None:
    server.forget(params.text_document.uri)
    server.text_document_publish_diagnostics(lsp.PublishDiagnosticsParams(params.text_document.uri, []))


def _diagnostic(state: _State, d: Diagnostic) -> lsp.Diagnostic:
    message = "\n".join([d.message, *(f"{head} {text}" for head, text in notes(d))])
    return lsp.Diagnostic(state.places.range(d.span), message, _SEVERITIES[d.severity], d.code, None, "ptx-lint")


def _actions(server: Server, params: lsp.CodeActionParams) -> list[lsp.CodeAction]:
    """The fixes of the findings in a range."""
    state = server.state(params.text_document.uri)
    start, end = state.places.span(params.range)
    found = []
    for d in state.document.findings:
        if d.fix is not None and d.span[0] <= end and start <= d.span[1] and d.fix.span != (0, 0):
            edit = lsp.TextEdit(state.places.range(d.fix.span), d.fix.text)
            changes = lsp.WorkspaceEdit(changes={params.text_document.uri: [edit]})
            title = f"{d.fix.title or describe(d.code)[0]} [{d.code}]"
            action = lsp.CodeAction(title, lsp.CodeActionKind.QuickFix, [_diagnostic(state, d)], edit=changes)
            found.append(action)
    return found


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


def _references(server: Server, params: lsp.ReferenceParams) -> list[lsp.Location]:
    state = server.state(params.text_document.uri)
    meant = state.document.meaning(state.places.offset(params.position))
    if meant is None:
        return []
    spans = state.document.places(meant[0].text, meant[1])
    if not params.context.include_declaration:
        declared = state.document.declaration(meant[0].text, meant[1])
        spans = [span for span in spans if span != declared]
    return [lsp.Location(params.text_document.uri, state.places.range(span)) for span in spans]


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
    found = answers.complete(state.document, state.places.offset(params.position))
    return [lsp.CompletionItem(item.text, kind=_ITEMS[item.kind], detail=item.detail or item.kind) for item in found]


# --- structure --------------------------------------------------------------------------------------------------------


def _outline(server: Server, params: lsp.DocumentSymbolParams) -> list[lsp.DocumentSymbol]:
    state = server.state(params.text_document.uri)

    def symbol(entry: answers.Entry) -> lsp.DocumentSymbol:
        whole = (min(entry.span[0], entry.name_span[0]), max(entry.span[1], entry.name_span[1]))
        return lsp.DocumentSymbol(
            entry.name, _SYMBOLS[entry.kind], state.places.range(whole), state.places.range(entry.name_span),
            f".{entry.kind}", children=[symbol(child) for child in entry.children],
        )  # fmt: skip

    return [symbol(entry) for entry in answers.outline(state.document)]


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
    return [lsp.TextEdit(state.places.range((0, len(state.text))), made.text)]


def _hints(server: Server, params: lsp.InlayHintParams) -> list[lsp.InlayHint]:
    state = server.state(params.text_document.uri)
    found = answers.hints(state.document, state.places.span(params.range))
    return [lsp.InlayHint(state.places.position(at), f"needs {needs}", padding_left=True) for at, needs in found]


def _semantic(server: Server, params: lsp.SemanticTokensParams) -> lsp.SemanticTokens:
    """Words with their kinds, each as its distance from the one before. A word of several lines is one for each."""
    state = server.state(params.text_document.uri)
    data: list[int] = []
    line = column = 0
    for token in state.document.tokens:
        kind = _LEGEND.token_types.index(_WORDS[token.kind])
        at = token.span[0]
        for text in token.text.split("\n"):
            start, end = state.places.position(at), state.places.position(at + len(text.rstrip("\r")))
            at += len(text) + 1
            if end.character > start.character:
                moved = start.line - line
                data += [moved, start.character - (0 if moved else column), end.character - start.character, kind, 0]
                line, column = start.line, start.character
    return lsp.SemanticTokens(data)


_FEATURES: tuple[tuple[str, Any, tuple[Any, ...]], ...] = (
    (lsp.TEXT_DOCUMENT_DID_OPEN, _changed, ()),
    (lsp.TEXT_DOCUMENT_DID_CHANGE, _changed, ()),
    (lsp.TEXT_DOCUMENT_DID_CLOSE, _closed, ()),
    (lsp.TEXT_DOCUMENT_CODE_ACTION, _actions, (lsp.CodeActionOptions([lsp.CodeActionKind.QuickFix]),)),
    (lsp.TEXT_DOCUMENT_HOVER, _hover, ()),
    (lsp.TEXT_DOCUMENT_DEFINITION, _definition, ()),
    (lsp.TEXT_DOCUMENT_REFERENCES, _references, ()),
    (lsp.TEXT_DOCUMENT_RENAME, _rename, ()),
    (lsp.TEXT_DOCUMENT_COMPLETION, _completion, (lsp.CompletionOptions(trigger_characters=[".", "%"]),)),
    (lsp.TEXT_DOCUMENT_DOCUMENT_SYMBOL, _outline, ()),
    (lsp.TEXT_DOCUMENT_FOLDING_RANGE, _folding, ()),
    (lsp.TEXT_DOCUMENT_FORMATTING, _formatting, ()),
    (lsp.TEXT_DOCUMENT_INLAY_HINT, _hints, ()),
    (lsp.TEXT_DOCUMENT_SEMANTIC_TOKENS_FULL, _semantic, (_LEGEND,)),
)
