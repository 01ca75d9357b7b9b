"""Functions: their heads, parameters and bodies; the numbers of what has no name."""

from __future__ import annotations

import re
from collections.abc import Callable

from ptxtools.diagnostics import Diagnostic

from .annotations import Line, annotation_lines
from .instructions import TERMINATORS, BodyReader
from .nodelines import NodeLines
from .nodes import Block, Function, Instruction, Param, Word
from .outline import Extent, Head, between, outlines
from .reader import Malformed
from .tokens import unquoted, words
from .types import VOID

#: Words before the type of a global: linkage, preemption, visibility, DLL storage, thread-local storage.
BEFORE = words(
    "private internal available_externally linkonce weak common appending extern_weak linkonce_odr weak_odr external "
    "dso_local dso_preemptable default hidden protected dllimport dllexport thread_local unnamed_addr "
    "local_unnamed_addr"
)
_NUMBER = re.compile(r"%\d+")
#: Blanks and comments.
_NOTHING = re.compile(r"\s*(?:;[^\n]*(?:\n\s*|\Z))*")


class FunctionReader(BodyReader):
    def __init__(self, text: str, alike: bool = False) -> None:
        """alike: pass over heads and nodes of metadata, too, that are like others; `heads`, `nodes` and `annotations`
        have them."""
        self.bodies: dict[int, Extent] = {}
        self.heads: dict[str, list[Head]] = {}
        self.nodes: NodeLines | None = None
        self.annotations: list[list[Line]] = []
        passed: list[Extent] = []
        found, regular = outlines(text)
        alike = alike and regular
        for outline in found:
            self.bodies[outline.brace] = extent = outline.body
            if alike:
                head = Head.of(text, outline)
                same = self.heads.setdefault(head.shape, [])
                if same:
                    extent = outline.begin, outline.end + 1
                same.append(head)
            if passed and _NOTHING.fullmatch(text, passed[-1][1], extent[0]):
                extent = passed.pop()[0], extent[1]
            passed.append(extent)
        if alike and passed:
            begin = passed[-1][1]
            self.nodes, self.annotations = NodeLines(text, begin), annotation_lines(text, begin)
            passed += self.nodes.passed
            passed += [line.span() for _, *others in self.annotations for line in others]
            passed.sort()
        super().__init__(text, between(passed, len(text)))
        #: Says whether a label that is a number is a name, as to LLVM 7; and whether one was read as a number.
        self.numbers_are_names: Callable[[], bool] = bool
        self.numbered_label = False
        #: Functions whose bodies were passed over.
        self.unread: list[Function] = []
        self.found: list[Diagnostic] = []

    def report(self, error: Malformed) -> None:
        raise NotImplementedError

    def declare_global(self, name: str, at: int) -> None:
        """Note a global name. Raises Malformed if it has a definition already."""
        if name in self.module.variables or name in self.module.functions:
            self.report(Malformed(f"redefinition of '{name}'", self.starts.index(at), "NVVM110"))

    def words_before(self) -> list[Word]:
        found: list[Word] = []
        while self.texts[self.i] in BEFORE:
            at = self.at()
            self.i += 1
            if self.texts[self.i] == "(" and self.texts[self.i - 1] == "thread_local":
                self.in_parentheses()
            found.append((self.since(at), at))
        return found

    def attributes_until(self, end: str) -> list[Word]:
        found = self.attributes()
        while not self.take(end):
            at, token = self.at(), self.word()
            if not re.fullmatch(r"[a-z][-\w]*", token):
                raise Malformed(f"expected an attribute, found '{token[:40]}'", self.i - 1)
            if self.texts[self.i] == "(":
                self.in_parentheses()
            found.append((self.since(at), at))
            found += self.attributes()
        return found

    def function(self) -> None:
        at, defined = self.at(), self.word() == "define"
        metadata = []
        while self.texts[self.i][:1] == "!":
            metadata.append(self.attachment())
        words = self.words_before()
        words += self.conventions()
        words += self.words_before()
        result_attributes = self.attributes()
        result = self.type()
        name_at, name = self.at(), self.word()
        if name[:1] != "@" or len(name) < 2:
            raise Malformed("expected the name of a function", self.i - 1)
        params, variadic = self._params()
        made = Function(name, name_at, result, params, variadic, defined, words, result_attributes)
        made.metadata = metadata
        self._behind_head(made)
        known = self.module.functions.get(name)
        if (
            known is not None and (known.defined or defined or known.type is not made.type)
        ) or name in self.module.variables:
            self.declare_global(name, name_at)
        self.module.functions[name] = made
        if not defined:
            made.end = self.starts[self.i - 1]
            return
        self.demand("{")
        made.body = self.bodies.get(self.starts[self.i - 1])
        if made.body:
            self.unread.append(made)
            self.demand("}")
        else:
            self.body(made)
        made.end = self.starts[self.i - 1] if self.i else at

    def _params(self) -> tuple[list[Param], bool]:
        self.demand("(")
        params: list[Param] = []
        variadic = False
        while not self.take(")"):
            if params or variadic:
                self.demand(",")
            if self.take("..."):
                variadic = True
                continue
            at, kind = self.at(), self.type()
            attributes = self.attributes()
            name = self.word() if self.texts[self.i][:1] == "%" else ""
            at = self.starts[self.i - 1] if name else at
            if _NUMBER.fullmatch(name):
                self.module.numbered.append((name, at))
            params.append(Param(kind, name, at, attributes))
        return params, variadic

    def _behind_head(self, made: Function) -> None:
        while True:
            token, at = self.texts[self.i], self.at()
            if token in ("unnamed_addr", "local_unnamed_addr"):
                self.i += 1
            elif token in ("section", "gc", "partition"):
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
            elif token in ("prefix", "prologue", "personality"):
                self.i += 1
                made.parts[token] = self.typed_value(), at
            elif token == "addrspace":
                made.space = self.space()
            elif token[:1] == "!" and self.texts[self.i + 1] != "=":
                made.metadata.append(self.attachment())
            else:
                attributes = self.attributes()
                if not attributes:
                    return
                made.attributes += attributes

    # --- bodies -------------------------------------------------------------------------------------------------------

    def body(self, made: Function) -> None:
        self._next = 0
        self._made = made
        for param in made.params:
            if not param.name:
                param.name = f"%{self._next}"
            self._number(param.name, param.at)
        open_: Block | None = None
        while not self.take("}"):
            if not self.texts[self.i]:
                raise self.fail(f"the body of {made.name} does not end")
            if self._ends_body():
                raise self.fail(f"expected '}}' at the end of {made.name}")
            open_ = self._statement(made, open_)
        if not made.blocks and not made.broken:
            raise Malformed("a definition has a block", self.i - 1, "NVVM113")

    def _ends_body(self) -> bool:
        """Whether a statement of the top level begins here, since the body was not closed."""
        return self.texts[self.i] in ("define", "declare") and self.begins_line()

    def _statement(self, made: Function, block: Block | None) -> Block | None:
        begun = self.i
        token = self.texts[begun]
        if self.texts[begun + 1] == ":" and token[:1] not in "%@!":
            self.i += 2
            block = Block(self._labelled(token), self.starts[begun])
            self._number(block.name, block.at)
            made.blocks.append(block)
            return block
        if token == "uselistorder":
            self.module.strange.append((token, self.at()))
            self._skip_line(begun + 1)
            return block
        try:
            one = self.instruction()
        except Malformed as error:
            self.report(error)
            self.depth = 0
            made.broken = True
            self._skip_line(max(error.token, begun + 1))
            if block is None:
                block = self._unnamed_block(made, begun)
            return None if token in TERMINATORS else block
        if block is None:
            block = self._unnamed_block(made, begun)
        self._name(one)
        block.instructions.append(one)
        return None if one.op in TERMINATORS else block

    def _labelled(self, token: str) -> str:
        """The name of a block, from its label."""
        if token[:1] == '"':
            return unquoted(f"%{token}")
        if token.isdecimal():
            if self.numbers_are_names():
                return f'%"{token}"'
            self.numbered_label = True
        return f"%{token}"

    def _unnamed_block(self, made: Function, token: int) -> Block:
        block = Block(f"%{self._next}", self.starts[token])
        self._next += 1
        made.blocks.append(block)
        return block

    def _name(self, one: Instruction) -> None:
        if one.name:
            self._number(one.name, one.named_at)
        elif has_result(one):
            one.name = f"%{self._next}"
            self._next += 1

    def _number(self, name: str, at: int) -> None:
        """Hold a numbered name against the next number. Numbers go up, before LLVM 17 one by one."""
        if not name[1:2].isdecimal() or not _NUMBER.fullmatch(name):
            return
        number = int(name[1:]) if len(name) < 12 else -1
        if number != self._next and not self._made.broken:
            word = f"expected the number %{self._next}, found {name}", at
            (self.module.gaps if number > self._next else self.module.steps_back).append(word)
        self._next = max(number, self._next) + 1

    def _skip_line(self, token: int) -> None:
        """Go on with the next line, or the end of the body."""
        self.i = min(max(token, self.i), len(self.texts) - 1)
        depth = self.texts[token : self.i].count("{") - self.texts[token : self.i].count("}")
        while self.texts[self.i] and not self.begins_line():
            text = self.texts[self.i]
            if text == "}" and depth <= 0:
                return
            depth += (text == "{") - (text == "}")
            self.i += 1


def has_result(one: Instruction) -> bool:
    """Whether an instruction has a result, with a name or a number."""
    if one.op == "call":
        return one.extra["callee"].result is not VOID
    return one.op not in ("store", "fence", "cleanupret") and one.op not in TERMINATORS and one.op[0] != "#"
