"""How long the language server takes after a keystroke in a file of 20,000 lines: `python -m bench.editor`.

A client types in the middle of the file and asks at once, as an editor does. Milliseconds from the change being sent:
the median, and the longest, of the answers to each request, and of what is published (the server first waits until the
text rests).
"""

from __future__ import annotations

import asyncio
import statistics
import sys
import time
from typing import Any

from lsprotocol import types as lsp
from pygls.lsp.client import LanguageClient

from .kernels import megabyte

LINES, STROKES = 20_000, 12
URI = "file:///k.ptx"


def one_function() -> str:
    """A kernel of 20,000 lines."""
    head = ".version 9.0\n.target sm_80\n.address_size 64\n.entry k()\n{\n.reg .b32 %r<999>;\n.reg .f32 %f<999>;\n"
    add, fma = "add.s32 %r{}, %r{}, {};\n", "fma.rn.f32 %f{}, %f{}, %f{}, %f1;\n"
    lines = [(add if n % 2 else fma).format(n % 990, n * 7 % 990, n % 50) for n in range(LINES)]
    return head + "".join(lines) + "ret;\n}\n"


def many_functions() -> str:
    """266 kernels of together 20,000 lines."""
    text = megabyte()
    end = 0
    while text.count("\n", 0, end) < LINES:
        end = text.index("\n}\n", end) + 3
    return text[:end]


class Client(LanguageClient):  # type: ignore[misc]
    """Notes when findings are published."""

    def __init__(self) -> None:
        super().__init__("bench", "1")
        self.times: dict[int, list[float]] = {}
        self.feature(lsp.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)(lambda params: self._published(params))

    def _published(self, params: lsp.PublishDiagnosticsParams) -> None:
        self.times.setdefault(params.version or 0, []).append(time.perf_counter())


async def measure(text: str) -> dict[str, list[float]]:
    client: Any = Client()
    await client.start_io(sys.executable, "-m", "ptxtools", "lint", "--lsp")
    await client.initialize_async(lsp.InitializeParams(lsp.ClientCapabilities(), root_uri=None, process_id=None))
    client.initialized(lsp.InitializedParams())
    client.text_document_did_open(lsp.DidOpenTextDocumentParams(lsp.TextDocumentItem(URI, "ptx", 1, text)))
    this = lsp.TextDocumentIdentifier(URI)
    line = text.count("\n", 0, text.index(";\n", len(text) // 2))
    words = text.split("\n")[line]
    column, register = words.index(";"), lsp.Position(line, words.index("%") + 1)
    found: dict[str, list[float]] = {}
    requests = {
        "hover": lambda at: client.text_document_hover_async(lsp.HoverParams(this, register)),
        "completion": lambda at: client.text_document_completion_async(lsp.CompletionParams(this, at)),
        "definition": lambda at: client.text_document_definition_async(lsp.DefinitionParams(this, register)),
        "words of 60 lines": lambda at: client.text_document_semantic_tokens_range_async(
            lsp.SemanticTokensRangeParams(this, lsp.Range(lsp.Position(line - 30, 0), lsp.Position(line + 30, 0)))
        ),
        "folding": lambda at: client.text_document_folding_range_async(lsp.FoldingRangeParams(this)),
        "outline": lambda at: client.text_document_document_symbol_async(lsp.DocumentSymbolParams(this)),
    }
    await asyncio.sleep(5)
    version = 1
    for name, ask in requests.items():
        for _ in range(STROKES):
            version += 1
            place = lsp.Position(line, column)
            change = lsp.TextDocumentContentChangePartial(lsp.Range(place, place), "1" if version % 2 else " ")
            begin = time.perf_counter()
            known = lsp.VersionedTextDocumentIdentifier(version, URI)
            client.text_document_did_change(lsp.DidChangeTextDocumentParams(known, [change]))
            await ask(lsp.Position(line, column + 1))
            found.setdefault(name, []).append(time.perf_counter() - begin)
            column += 1
            if version % 4 == 0:
                await asyncio.sleep(3)
                for what, at in zip(("errors", "everything"), client.times.get(version, []), strict=False):
                    found.setdefault(what, []).append(at - begin)
    await client.shutdown_async(None)
    client.exit(None)
    await client.stop()
    return found


def main() -> None:
    for title, text in (("one function", one_function()), ("many functions", many_functions())):
        print(f"{title}, {text.count(chr(10))} lines, {len(text)} bytes")
        for name, seconds in asyncio.run(measure(text)).items():
            print(f"  {name:18} {statistics.median(seconds) * 1000:7.0f} ms, at most {max(seconds) * 1000:5.0f} ms")


if __name__ == "__main__":
    main()
