"""One state of a text: its tree, and what each of its words means."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator
from functools import cached_property, partial
from typing import NamedTuple

from ptxtools.diagnostics import Diagnostic, Severity, Span
from ptxtools.ir import Function, Instruction, Label, Scope, Statement, Variable
from ptxtools.ir.references import statements
from ptxtools.ir.symbols import Names, Symbol, declare, function_names, module_names
from ptxtools.isa.index import CHAPTERS
from ptxtools.linter import findings_of
from ptxtools.syntax import ParseResult, parse
from ptxtools.syntax.edited import parse_edited

#: Comments and strings, dotted words, numbers, names with their component, and single signs.
_TOKEN = re.compile(
    r"(?P<comment>//[^\n]*|/\*(?s:.*?)(?:\*/|\Z))|(?P<string>\"[^\"\n]*\"?)|(?P<dotted>\.[A-Za-z_]\w*(?:::\w+)*)"
    r"|(?P<number>\d[\w.]*)|(?P<name>[A-Za-z_$%][\w$]*)|(?P<sign>[^\s\w])",
    re.ASCII,
)
#: A comment; strings are not looked into.
_COMMENT = re.compile(r"//[^\n]*|/\*(?s:.*?)(?:\*/|\Z)|\"[^\"\n]*\"?")
_NAME_AROUND = re.compile(r"[\w$%]")


class Token(NamedTuple):
    """kind: "comment", "string", "directive", "modifier", "opcode", "number", "label" or "name"."""

    kind: str
    text: str
    span: Span


class Document:
    """A text and what is known of it, worked out when it is first asked for. name: of the file, for findings; parsed:
    what parsing the text gave."""

    def __init__(self, text: str, name: str, parsed: ParseResult | None = None) -> None:
        self.text, self.name = text, name
        self.module, self.syntax = parsed or parse(text, name)
        self._names: dict[int, Names] = {}

    def edited(self, text: str) -> Document:
        """The document of another text. Only what differs is read, if that can be: then this document is used up."""
        return Document(text, self.name, parse_edited(ParseResult(self.module, self.syntax), text))

    @cached_property
    def findings(self) -> list[Diagnostic]:
        return findings_of(self.module, self.syntax)

    @cached_property
    def tokens(self) -> list[Token]:
        return list(_tokens(self.text))

    def tokens_within(self, span: Span) -> list[Token]:
        """The words of some lines. They are read from the end of a statement above on, or a comment's there."""
        start = max(self.text.rfind(";\n", 0, span[0]) + 1, 0)
        if self.text.rfind("/*", 0, start) > self.text.rfind("*/", 0, start):
            start = self.text.rfind("/*", 0, start)
        found = _tokens(self.text[start : span[1]])
        moved = (t._replace(span=(t.span[0] + start, t.span[1] + start)) for t in found)
        return [token for token in moved if token.span[1] > span[0]]

    @cached_property
    def _module_names(self) -> Names:
        return module_names(self.module)

    @cached_property
    def has_errors(self) -> bool:
        return any(d.severity is Severity.ERROR for d in self.syntax)

    def token_at(self, offset: int) -> Token | None:
        """The word that an offset is in, or just behind."""
        line = self.text.rfind("\n", 0, offset) + 1
        end = self.text.find("\n", offset)
        for token in _tokens(self.text[line : end if end >= 0 else len(self.text)]):
            start, stop = token.span[0] + line, token.span[1] + line
            if start <= offset <= stop and token.kind not in ("comment", "string", "number"):
                if offset == stop and self.text[offset : offset + 1] and _NAME_AROUND.match(self.text[offset]):
                    continue
                return token._replace(span=(start, stop))
        return None

    def function_at(self, offset: int) -> Function | None:
        return next((f for f in self.module.functions if f.span[0] <= offset <= f.span[1]), None)

    def names_at(self, offset: int) -> Names:
        """The names known at an offset."""
        function = self.function_at(offset)
        if function is None:
            return self._module_names
        names, scope = self._known_names(function, lambda: function_names(function, self._module_names)), function.body
        while scope is not None:
            names, inner = self._known_names(scope, partial(_names_in, scope, names)), _item_at(scope, offset)
            scope = inner if isinstance(inner, Scope) and offset <= inner.span[1] else None
        return names

    def _known_names(self, node: object, make: Callable[[], Names]) -> Names:
        """The names of a function or scope, worked out once."""
        found = self._names.get(id(node))
        if found is None:
            found = self._names[id(node)] = make()
        return found

    def instruction_at(self, offset: int) -> Instruction | None:
        """The instruction that an offset is in."""
        function = self.function_at(offset)
        found = _item_at(function.body, offset) if function is not None and function.body is not None else None
        while isinstance(found, Scope):
            found = _item_at(found, offset)
        if not isinstance(found, Instruction):
            return None
        end = self.text.find(";", found.span[0])
        return found if end < 0 or offset <= end else None

    def meaning(self, offset: int) -> tuple[Token, Symbol] | None:
        """The name at an offset, and its declaration."""
        token = self.token_at(offset)
        if token is None or token.kind not in ("name", "label"):
            return None
        symbol = self.names_at(token.span[0]).lookup(token.text)
        return None if symbol is None else (token, symbol)

    def places(self, name: str, symbol: Symbol) -> list[Span]:
        """Wherever this name means this, its declaration included."""
        found = []
        own = self.function_at(self.declaration(name, symbol)[0])
        area = own.span if own is not None and symbol is not own else (0, len(self.text))
        for match in re.compile(rf"{re.escape(name)}(?![\w$])", re.ASCII).finditer(self.text, *area):
            token = self.token_at(match.start())
            if token is None or token.span[0] != match.start() or token.text != name or self._is_remark(match.start()):
                continue
            meant = self.names_at(token.span[0]).lookup(name)
            if meant is symbol or (isinstance(meant, Function) and isinstance(symbol, Function)):
                found.append(token.span)
        return found

    def _is_remark(self, offset: int) -> bool:
        """Whether an offset is in a comment of several lines."""
        place = bisect_right(self.remarks, offset, key=lambda span: span[0]) - 1
        return place >= 0 and offset < self.remarks[place][1]

    @cached_property
    def remarks(self) -> list[Span]:
        """Where comments between /* and */ stand."""
        if "/*" not in self.text:
            return []
        return [match.span() for match in _COMMENT.finditer(self.text) if match[0].startswith("/*")]

    def declaration(self, name: str, symbol: Symbol) -> Span:
        """Where a name is declared: the name itself; of `%r<8>` its declaration's name."""
        if isinstance(symbol, (Function, Variable)):
            return symbol.name_span if symbol.name_span != (0, 0) else symbol.span
        start = symbol.span[0]
        return (start, start + len(name)) if self.text.startswith(name, start) else symbol.span


def _tokens(text: str) -> Iterator[Token]:
    """The words of a text, signs left out."""
    before = ";"
    opcode = False
    for match in _TOKEN.finditer(text):
        kind, word = match.lastgroup or "", match[0]
        if kind == "comment":
            yield Token(kind, word, match.span())
            continue
        if kind == "dotted":
            kind = "modifier" if opcode or before[-1:].isalnum() or before == "]" else "directive"
            if kind == "modifier" and not opcode and text[match.start() - 1 : match.start()].isspace():
                kind = "directive"
        elif kind == "name":
            if before in (";", "{", "}", ":", ")") and _is_label(text, match.end()):
                kind = "label"
            elif word in CHAPTERS and _heads(text, match.end(), before):
                kind = "opcode"
        opcode = kind == "opcode" or (opcode and kind == "modifier")
        if kind != "sign":
            yield Token(kind, word, match.span())
        before = word if kind != "name" or before != "@" else ";"
        before = "@" if before == "!" else before


def _is_label(text: str, at: int) -> bool:
    rest = text[at : at + 20].lstrip()
    return rest.startswith(":") and not rest.startswith("::")


def _heads(text: str, at: int, before: str) -> bool:
    """Whether a mnemonic begins an instruction: behind the end of a statement or a guard."""
    follows = text[at : at + 1]
    if before in (",", "[", "(", "@") or before[-1:].isalnum():
        return follows == "." and before != "@"
    return follows not in ("", ",", "}", "]", ")") if before == "{" else True


def _names_in(scope: Scope, outer: Names) -> Names:
    names = Names(outer)
    declare(scope, names)
    return names


def _item_at(scope: Scope, offset: int) -> Statement | None:
    """The last item of a scope that begins at an offset or before it."""
    place = bisect_right(scope.items, offset, key=lambda item: item.span[0]) - 1
    return scope.items[place] if place >= 0 else None


def labels_of(function: Function) -> list[Label]:
    return [s for s in statements(function.body) if isinstance(s, Label)] if function.body is not None else []
