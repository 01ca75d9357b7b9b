"""One state of a text: its tree, and what each of its words means."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cached_property
from typing import NamedTuple

from ptxtools.diagnostics import Diagnostic, Severity, Span
from ptxtools.ir import Function, Instruction, Label, Scope, Variable
from ptxtools.ir.references import statements
from ptxtools.ir.symbols import Names, Symbol, declare, function_names, module_names
from ptxtools.isa.index import CHAPTERS
from ptxtools.linter import findings_of
from ptxtools.syntax import parse

#: Comments and strings, dotted words, numbers, names with their component, and single signs.
_TOKEN = re.compile(
    r"(?P<comment>//[^\n]*|/\*(?s:.*?)(?:\*/|\Z))|(?P<string>\"[^\"\n]*\"?)|(?P<dotted>\.[A-Za-z_]\w*(?:::\w+)*)"
    r"|(?P<number>\d[\w.]*)|(?P<name>[A-Za-z_$%][\w$]*)|(?P<sign>[^\s\w])",
    re.ASCII,
)
_NAME_AROUND = re.compile(r"[\w$%]")


class Token(NamedTuple):
    """kind: "comment", "string", "directive", "modifier", "opcode", "number", "label" or "name"."""

    kind: str
    text: str
    span: Span


class Document:
    """A text and what is known of it, worked out when it is first asked for. name: of the file, for findings."""

    def __init__(self, text: str, name: str) -> None:
        self.text, self.name = text, name
        self.module, self.syntax = parse(text, name)

    @cached_property
    def findings(self) -> list[Diagnostic]:
        return findings_of(self.module, self.syntax)

    @cached_property
    def tokens(self) -> list[Token]:
        return list(_tokens(self.text))

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
        names = function_names(function, self._module_names)
        scope = function.body
        while scope is not None:
            names = Names(names)
            declare(scope, names)
            scope = next((s for s in scope.items if isinstance(s, Scope) and s.span[0] <= offset <= s.span[1]), None)
        return names

    def instruction_at(self, offset: int) -> Instruction | None:
        """The instruction that an offset is in."""
        function = self.function_at(offset)
        found = None
        for statement in statements(function.body) if function is not None and function.body is not None else ():
            if statement.span[0] > offset:
                break
            found = statement
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
        for token in self.tokens:
            if token.text == name and token.kind in ("name", "label"):
                meant = self.names_at(token.span[0]).lookup(name)
                if meant is symbol or (isinstance(meant, Function) and isinstance(symbol, Function)):
                    found.append(token.span)
        return found

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


def labels_of(function: Function) -> list[Label]:
    return [s for s in statements(function.body) if isinstance(s, Label)] if function.body is not None else []
