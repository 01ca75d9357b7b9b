"""The outline as the protocol has it. What was made for a function is kept: most have not changed since."""

from __future__ import annotations

from attrs import validators
from lsprotocol import types as lsp

from ptxtools.ir import Function, Variable

from . import answers
from .document import Document
from .positions import Positions

_SYMBOLS = {
    "entry": lsp.SymbolKind.Function,
    "func": lsp.SymbolKind.Function,
    "variable": lsp.SymbolKind.Variable,
    "parameter": lsp.SymbolKind.Field,
    "label": lsp.SymbolKind.Key,
}


class Outline:
    """Makes outlines. What an item gives depends on its text, on where that begins, and where its name does."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, int, int, int], lsp.DocumentSymbol] = {}

    def of(self, document: Document, places: Positions) -> list[lsp.DocumentSymbol]:
        """The functions and variables of a text."""
        known, found = self._known, {}
        with validators.disabled():  # positions are valid, and there are many
            for item in document.module.items:
                if isinstance(item, (Function, Variable)):
                    start, end = min(item.span[0], item.name_span[0]), max(item.span[1], item.name_span[1])
                    place = places.position(start)
                    key = document.text[start:end], place.line, place.character, item.name_span[0] - start
                    found[key] = known.get(key) or _symbol(answers.outline(item), places)
        self._known = found
        return list(found.values())


def _symbol(entry: answers.Entry, places: Positions) -> lsp.DocumentSymbol:
    area = places.range((min(entry.span[0], entry.name_span[0]), max(entry.span[1], entry.name_span[1])))
    name, children = places.range(entry.name_span), [_symbol(child, places) for child in entry.children]
    return lsp.DocumentSymbol(entry.name, _SYMBOLS[entry.kind], area, name, f".{entry.kind}", children=children)
