"""Reads a module: what stands at its top level, and the bodies of its functions. An error ends one statement."""

from __future__ import annotations

import re

from ptxtools.diagnostics import Diagnostic, Source

from .annotations import like
from .functions import FunctionReader
from .nodes import Function, Module, Named, Node, Variable, Word
from .outline import Extent, Head
from .reader import Malformed
from .tokens import AHEAD, words

_TOP = words("define declare target source_filename module attributes uselistorder uselistorder_bb")
_BEGINS = re.compile(r"[@%!$^]")
LINKAGES = words(
    "private internal available_externally linkonce weak common appending extern_weak linkonce_odr weak_odr external"
)
_SPECIAL = re.compile(r"!DI\w+|!GenericDINode")


class Parser(FunctionReader):
    """Reads a module but for the bodies of functions, which `read_body` reads one by one. alike: and but for heads and
    nodes that are like another one, which `read_head` and `read_lines` read."""

    def __init__(self, source: Source, alike: bool = False) -> None:
        super().__init__(source.text, alike)
        self.source = source

    def run(self) -> Module:
        if '"' in self.texts:
            self._unterminated()
        self._statements()
        self._annotations()
        return self.module

    def _annotations(self) -> None:
        """Add the annotations that were passed over."""
        nodes = self.module.metadata
        for first, *others in self.annotations:
            known = nodes.get(first[1])
            for line in others:
                made = like(known, line) if known is not None and known.at == first.start() else None
                if made is None or made.name in nodes:
                    self.read_lines([line.span()])
                else:
                    nodes[made.name] = made

    def read_head(self, head: Head) -> None:
        """Read a head that was passed over, and pass over the body."""
        begin, brace, end = head.outline
        self.over((begin, brace + 1), (end, end + 1))
        self._statements()

    def read_lines(self, lines: list[Extent]) -> None:
        """Read nodes that were passed over."""
        self.over(*lines)
        self._statements()

    def read_body(self, function: Function) -> None:
        """Read a body that was passed over, if it was."""
        if function.body is None:
            return
        begin, end = function.body
        function.body = None
        self.over((begin, end + 1))
        try:
            self.body(function)
            function.end = self.starts[self.i - 1]
        except Malformed as error:
            self.report(error)
            self._recover(max(1, error.token))
        self._statements()

    def _statements(self) -> None:
        while self.texts[self.i]:
            begun = self.i
            try:
                self._top()
            except Malformed as error:
                self.report(error)
                self.depth = 0
                self._recover(max(begun + 1, error.token))

    def _unterminated(self) -> None:
        token = self.texts.index('"')
        self.report(Malformed("a string does not end", token))
        del self.texts[token : -AHEAD - 1], self.starts[token : -AHEAD - 1]

    def _recover(self, token: int) -> None:
        """Go on with the next line that begins like a statement of the top level."""
        self.i = min(max(token, self.i), len(self.texts) - 1)
        while self.texts[self.i]:
            text = self.texts[self.i]
            if self.begins_line() and (text in _TOP or (_BEGINS.match(text) and self.texts[self.i + 1] == "=")):
                return
            self.i += 1

    def _top(self) -> None:
        token = self.texts[self.i]
        first = token[:1]
        if token == "define" or token == "declare":
            self.function()
        elif first == "@":
            self._variable()
        elif first == "!":
            self._metadata()
        elif first == "%":
            self._type_definition()
        elif token == "attributes":
            self._group()
        elif token == "target":
            self._target()
        elif token == "source_filename":
            self.i += 1
            self.demand("=")
            self.string()
        elif token == "module":
            self.i += 1
            self.demand("asm")
            at = self.at()
            self.module.inline.append((self.string(), at))
        elif first in ("$", "^") or token in ("uselistorder", "uselistorder_bb"):
            self._strange(token)
        else:
            raise self.fail(f"{self.shown()} begins no statement")

    def _strange(self, token: str) -> None:
        """What NVVM IR does not have at the top level: comdats, summaries, orders of uses."""
        self.module.strange.append((token, self.at()))
        self.i += 1
        self._recover(self.i)

    def _target(self) -> None:
        self.i += 1
        what = self.word()
        if what not in ("datalayout", "triple"):
            raise self.fail("expected 'datalayout' or 'triple'")
        self.demand("=")
        at = self.at()
        (self.module.layouts if what == "datalayout" else self.module.triples).append((self.string(), at))

    def _type_definition(self) -> None:
        at, name = self.at(), self.word()
        self.demand("=")
        self.demand("type")
        made = None if self.take("opaque") else self.type()
        if name in self.module.types and self.module.types[name][0] is not made:
            raise Malformed(f"redefinition of type '{name}'", self.i - 1, "NVVM110")
        self.module.types[name] = made, at

    def _group(self) -> None:
        self.i += 1
        name = self.word()
        if not re.fullmatch(r"#\d+", name):
            raise self.fail("expected the number of the group")
        self.demand("=")
        self.demand("{")
        self.module.groups.setdefault(name, []).extend(self.attributes_until("}"))

    def _variable(self) -> None:
        at, name = self.at(), self.word()
        if name == "@":
            raise self.fail("expected a name")
        self.demand("=")
        words = self.words_before()
        token = self.texts[self.i]
        space_at, space = -1, 0
        if token == "addrspace":
            space_at, space = self.at(), self.space()
        if self.take("externally_initialized"):
            pass
        kind = self.texts[self.i]
        if kind in ("alias", "ifunc"):
            self.i += 1
            of = self.type()
            self.demand(",")
            made = Variable(name, at, kind, of, words)
            made.initial = self.aliasee()
        elif kind in ("global", "constant"):
            self.i += 1
            made = Variable(name, at, kind, self.type(), words, space, space_at)
            if not self._is_declaration(words):
                made.initial = self.value(made.type)
        else:
            raise self.expected("'global', 'constant' or 'alias'")
        self._behind(made)
        self.declare_global(name, at)
        self.module.variables[name] = made

    @staticmethod
    def _is_declaration(words: list[Word]) -> bool:
        return any(word in ("external", "extern_weak") for word, _ in words)

    def _behind(self, made: Variable) -> None:
        while self.take(","):
            token, at = self.texts[self.i], self.at()
            if token in ("section", "partition", "code_model"):
                self.i += 1
                made.parts[token] = self.string(), at
            elif token == "align":
                self.i += 1
                made.parts[token] = self.number(), at
            elif token == "comdat":
                self.i += 1
                if self.texts[self.i] == "(":
                    self.in_parentheses()
                made.parts[token] = "", at
            elif token[:1] == "!":
                made.metadata.append(self.attachment())
            else:
                break
        made.attributes = self.attributes()

    # --- metadata -----------------------------------------------------------------------------------------------------

    def _metadata(self) -> None:
        at, name = self.at(), self.word()
        if name == "!":
            raise self.expected("metadata")
        self.demand("=")
        if name[1:].isdecimal():
            node = self._node(name, at)
            if name in self.module.metadata:
                raise Malformed(f"redefinition of metadata '{name}'", self.i - 1, "NVVM110")
            self.module.metadata[name] = node
            return
        self.demand("!")
        self.demand("{")
        named = self.module.named.setdefault(name, Named(name, at))
        while not self.take("}"):
            if named.nodes and self.texts[self.i] == ",":
                self.i += 1
            place, token = self.at(), self.texts[self.i]
            if token[:1] != "!" or len(token) < 2:
                raise self.expected("a metadata node")
            value = self.metadata_value()
            named.nodes.append((value.text, place))

    def _node(self, name: str, at: int) -> Node:
        node = Node(name, at, distinct=self.take("distinct"))
        token = self.texts[self.i]
        if token == "!":
            self.i += 1
            self.enter()
            node.operands = self.tuple_of_metadata()
            self.depth -= 1
        elif _SPECIAL.fullmatch(token):
            node.kind = token[1:]
            self.i += 1
            self._fields(node)
        elif token == "metadata" or token[:1] != "!":
            raise self.expected("a metadata node")
        else:
            raise self.fail(f"there is no metadata node {token[:40]}")
        return node

    def _fields(self, node: Node) -> None:
        """`(name: "f", line: 3)`; without names in DIExpression and the like."""
        self.demand("(")
        while not self.take(")"):
            if node.fields:
                self.demand(",")
            place = self.i
            key, at = self.word(), self.starts[place]
            if self.texts[self.i] == ":":
                if key in node.fields:
                    raise Malformed(f"{node.kind} has the field '{key}' twice", place)
                self.i += 1
                at = self.at()
                self._field()
                node.fields[key] = self.since(at), at
            else:
                self.i = place
                self._field()
                node.fields[f"{len(node.fields)}"] = self.since(at), at

    def _field(self) -> None:
        """What stands up to the next comma or the end of the list."""
        depth = 0
        while depth or self.texts[self.i] not in (",", ")"):
            token = self.word()
            depth += (token in "({[") - (token in ")}]")

    def report(self, error: Malformed) -> None:
        token = min(error.token, len(self.texts) - 1)
        at = self.starts[token]
        self.found.append(Diagnostic(error.code, error.message, (at, at + len(self.texts[token])), self.source))


def parse(source: Source) -> tuple[Module, list[Diagnostic]]:
    """The module in a text, and its errors: what could not be read is missing."""
    parser = Parser(source)
    module = parser.run()
    for function in parser.unread:
        parser.read_body(function)
    return module, parser.found
