"""One state of a text: its tree, and what each of its words means."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property, partial

from ptxtools.diagnostics import Diagnostic, Severity, Span
from ptxtools.ir import Function, Instruction, Label, Scope, Statement, Variable
from ptxtools.ir.references import statements
from ptxtools.ir.symbols import Names, Symbol, declare, function_names, module_names
from ptxtools.linter import findings_of
from ptxtools.syntax import ParseResult, parse
from ptxtools.syntax.edited import parse_edited

from .words import Token, Words

#: A comment; strings are not looked into.
_COMMENT = re.compile(r"//[^\n]*|/\*(?s:.*?)(?:\*/|\Z)|\"[^\"\n]*\"?")
_NAME_AROUND = re.compile(r"[\w$%]")


class Document:
    """A text and what is known of it, worked out when it is first asked for. name: of the file, for findings; parsed:
    what parsing the text gave."""

    def __init__(self, text: str, name: str, parsed: ParseResult | None = None) -> None:
        self.text, self.name = text, name
        self.module, self.syntax = parsed or parse(text, name)
        self._names: dict[int, Names] = {}
        #: Whether it comes of an earlier one, by an edit inside a function.
        self.in_place = False
        self._begins: dict[int, list[int]] = {}

    def edited(self, text: str) -> Document:
        """The document of another text. Only what differs is read, if that can be: then this document is used up."""
        parsed = parse_edited(ParseResult(self.module, self.syntax), text)
        document = Document(text, self.name, parsed and ParseResult(parsed.module, parsed.diagnostics))
        document.in_place = parsed is not None and parsed.inside
        return document

    @cached_property
    def findings(self) -> list[Diagnostic]:
        return findings_of(self.module, self.syntax)

    def tokens_within(self, span: Span) -> list[Token]:
        """The words of some lines. They are read from the end of a statement above on, or a comment's there."""
        start = max(self.text.rfind(";\n", 0, span[0]) + 1, 0)
        if self.text.rfind("/*", 0, start) > self.text.rfind("*/", 0, start):
            start = self.text.rfind("/*", 0, start)
        found = Words().of(self.text[start : span[1]])
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
        for token in Words().of(self.text[line : end if end >= 0 else len(self.text)]):
            start, stop = token.span[0] + line, token.span[1] + line
            if start <= offset <= stop and token.kind not in ("comment", "string", "number"):
                if offset == stop and self.text[offset : offset + 1] and _NAME_AROUND.match(self.text[offset]):
                    continue
                return token._replace(span=(start, stop))
        return None

    def function_at(self, offset: int) -> Function | None:
        functions, starts = self._functions
        place = bisect_right(starts, offset) - 1
        return functions[place] if place >= 0 and offset <= functions[place].span[1] else None

    @cached_property
    def _functions(self) -> tuple[list[Function], list[int]]:
        """The functions of the module, and where they begin."""
        functions = sorted(self.module.functions, key=lambda function: function.span)
        return functions, [function.span[0] for function in functions]

    @property
    def opcodes(self) -> set[str]:
        """The opcodes of the text."""
        bodies = (statements(f.body) for f in self.module.functions if f.body is not None)
        return {s.opcode for body in bodies for s in body if isinstance(s, Instruction)}

    def _item_at(self, scope: Scope, offset: int) -> Statement | None:
        """The last item of a scope that begins at an offset or before it."""
        place = bisect_right(self._begins_of(scope), offset) - 1
        return scope.items[place] if place >= 0 else None

    def _begins_of(self, scope: Scope) -> list[int]:
        """Where the items of a scope begin."""
        begins = self._begins.get(id(scope))
        if begins is None:
            begins = self._begins[id(scope)] = [item.span[0] for item in scope.items]
        return begins

    def names_at(self, offset: int) -> Names:
        """The names known at an offset."""
        function = self.function_at(offset)
        if function is None:
            return self._module_names
        names, scope = self._known_names(function, lambda: function_names(function, self._module_names)), function.body
        while scope is not None:
            names, inner = self._known_names(scope, partial(_names_in, scope, names)), self._item_at(scope, offset)
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
        return next(self.instructions_at([offset]))

    def instructions_at(self, offsets: Iterable[int]) -> Iterator[Instruction | None]:
        """The instruction that each offset is in. Offsets that rise are found sooner."""
        scope, area, begins = None, range(0), []
        for offset in offsets:
            if offset not in area:
                function = self.function_at(offset)
                area = range(*function.span) if function is not None else range(0)
                scope = function.body if function is not None else None
                begins = self._begins_of(scope) if scope is not None else []
            place = bisect_right(begins, offset) - 1
            found = scope.items[place] if scope is not None and place >= 0 else None
            if isinstance(found, Scope):
                found = self._item_within(found, offset)
            if isinstance(found, Instruction) and self.text.find(";", begins[place], offset) < 0:
                yield found
            else:
                yield None

    def _item_within(self, scope: Scope, offset: int) -> Statement | None:
        """The last item that begins at an offset or before it, in a scope or one inside of it, if its text goes on."""
        while True:
            begins = self._begins_of(scope)
            place = bisect_right(begins, offset) - 1
            found = scope.items[place] if place >= 0 else None
            if isinstance(found, Scope):
                scope = found
            else:
                return found if place >= 0 and self.text.find(";", begins[place], offset) < 0 else None

    def meaning(self, offset: int) -> tuple[Token, Symbol] | None:
        """The name at an offset, and its declaration."""
        token = self.token_at(offset)
        if token is None or token.kind not in ("name", "label"):
            return None
        symbol = self.names_at(token.span[0]).lookup(token.text)
        return None if symbol is None else (token, symbol)

    def places(self, name: str, symbol: Symbol) -> list[Span]:
        """Wherever this name means this, its declaration included."""
        found: list[Span] = []
        own = self.function_at(self.declaration(name, symbol)[0])
        area = own.span if own is not None and symbol is not own else (0, len(self.text))
        body = own.body if own is not None and area == own.span else None
        # In a body without scopes in it a name means the same everywhere.
        alike = body is not None and not _has_scopes(body) and self.names_at(body.span[0] + 1).lookup(name) is symbol
        # The name comes first, so that the search is for it.
        word = re.compile(rf"{re.escape(name)}(?<![\w$%.:]{re.escape(name)})(?![\w$])", re.ASCII)
        spans = [match.span() for match in word.finditer(self.text, *area)]
        if self._quiet:
            spans = [span for span in spans if not self.is_quiet(span[0])]
        if alike and body is not None:
            first = bisect_right(spans, (body.span[0], len(self.text)))
            spans, found = spans[:first], spans[first:]
        same = [span for span in spans if self._means(span[0], name, symbol)]
        return same + found

    def _means(self, offset: int, name: str, symbol: Symbol) -> bool:
        """Whether a name means this at an offset."""
        meant = self.names_at(offset).lookup(name)
        return meant is symbol or (isinstance(meant, Function) and isinstance(symbol, Function))

    def is_quiet(self, offset: int) -> bool:
        """Whether an offset is in a comment or a string."""
        place = bisect_right(self._quiet, (offset, len(self.text))) - 1
        return place >= 0 and offset < self._quiet[place][1]

    @cached_property
    def _quiet(self) -> list[Span]:
        """Where comments and strings stand."""
        return [match.span() for match in _COMMENT.finditer(self.text)]

    @cached_property
    def remarks(self) -> list[Span]:
        """Where comments between /* and */ stand."""
        if "/*" not in self.text:
            return []
        return [span for span in self._quiet if self.text.startswith("/*", span[0])]

    def declaration(self, name: str, symbol: Symbol) -> Span:
        """Where a name is declared: the name itself; of `%r<8>` its declaration's name."""
        if isinstance(symbol, (Function, Variable)):
            return symbol.name_span if symbol.name_span != (0, 0) else symbol.span
        start = symbol.span[0]
        return (start, start + len(name)) if self.text.startswith(name, start) else symbol.span


def _names_in(scope: Scope, outer: Names) -> Names:
    names = Names(outer)
    declare(scope, names)
    return names


def _has_scopes(scope: Scope) -> bool:
    return Scope in map(type, scope.items)


def labels_of(function: Function) -> list[Label]:
    return [s for s in statements(function.body) if isinstance(s, Label)] if function.body is not None else []
