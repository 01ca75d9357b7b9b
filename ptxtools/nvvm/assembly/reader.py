"""The cursor over the tokens of a module, and what every level reads: words, numbers, types."""

from __future__ import annotations

from collections.abc import Iterable

from . import types
from .nodes import Module
from .outline import Extent
from .tokens import tokens
from .types import Type

#: How deep types, constants and metadata may nest.
MOST_NESTED = 200


class Malformed(Exception):  # noqa: N818 - it says what the text is
    """The text is not LLVM assembly here. at: the token; code: of the finding."""

    def __init__(self, message: str, token: int, code: str = "NVVM101") -> None:
        super().__init__(message)
        self.message, self.token, self.code = message, token, code


class Reader:
    """Reads tokens. `texts[i]` is the one to read next; the last one is empty."""

    def __init__(self, text: str, parts: Iterable[Extent] | None = None, module: Module | None = None) -> None:
        """parts: of the text, to read first; all of it unless given."""
        self.module = Module() if module is None else module
        self.text = text
        self.over(*([(0, len(text))] if parts is None else parts))

    def over(self, *parts: Extent) -> None:
        """Read these parts of the text from now on."""
        self.texts, self.starts = tokens(self.text, parts)
        self.i = self.depth = 0

    def fail(self, message: str, code: str = "NVVM101") -> Malformed:
        return Malformed(message, self.i, code)

    def expected(self, what: str) -> Malformed:
        return self.fail(f"expected {what}, found {self.shown()}")

    def shown(self) -> str:
        token = self.texts[self.i]
        return f"'{token[:40]}'" if token else "the end of the text"

    def at(self) -> int:
        return self.starts[self.i]

    def take(self, token: str) -> bool:
        """Whether this token comes next; it is read then."""
        if self.texts[self.i] == token:
            self.i += 1
            return True
        return False

    def demand(self, token: str) -> None:
        if self.texts[self.i] != token:
            raise self.expected(f"'{token}'")
        self.i += 1

    def word(self) -> str:
        """Whatever comes next, unless that is the end."""
        token = self.texts[self.i]
        if not token:
            raise self.expected("more")
        self.i += 1
        return token

    def number(self) -> int:
        token = self.texts[self.i]
        if not token.removeprefix("-").isdecimal() or len(token) > 20:
            raise self.expected("a number")
        self.i += 1
        return int(token)

    def string(self) -> str:
        """A quoted token, with its quotes."""
        if self.texts[self.i][:1] != '"':
            raise self.expected("a string")
        return self.word()

    def in_parentheses(self) -> str:
        """A balanced list behind an opening parenthesis, which comes next, as it is written."""
        begin, depth = self.at(), 0
        while True:
            token = self.word()
            depth += (token == "(") - (token == ")")
            if not depth:
                return self.text[begin : self.starts[self.i - 1] + 1]

    def begins_line(self) -> bool:
        """Whether a line begins between the last token and the next."""
        last = self.i - 1
        return last < 0 or "\n" in self.text[self.starts[last] + len(self.texts[last]) : self.starts[self.i]]

    def enter(self) -> None:
        self.depth += 1
        if self.depth > MOST_NESTED:
            raise self.fail("nested too deeply")

    # --- types --------------------------------------------------------------------------------------------------------

    def type(self) -> Type:
        """A type (LLVM's "Type System")."""
        token = self.texts[self.i]
        found = types.SIMPLE.get(token) or types.simple(token)
        if found is not None:
            self.i += 1
            if found.kind == "pointer":
                if not 0 <= self.module.opaque_at <= self.starts[self.i - 1]:
                    self.module.opaque_at = self.starts[self.i - 1]
                if self.texts[self.i] == "addrspace":
                    found = types.opaque_pointer(self.space())
        else:
            found = self._compound(token)
        after = self.texts[self.i]
        return self._suffixes(found) if after in ("*", "addrspace", "(") else found

    def space(self) -> int:
        """`addrspace(n)`."""
        self.demand("addrspace")
        self.demand("(")
        number = self.number()
        self.demand(")")
        return number

    def _suffixes(self, found: Type) -> Type:
        while True:
            after = self.texts[self.i]
            if (
                after == "*"
                or (after == "addrspace" and found.kind != "pointer")
                or (after == "addrspace" and self.texts[self.i + 4 : self.i + 5] == ["*"])
            ):
                found = self._pointer(found)
            elif after == "(":
                found = self._function(found)
            else:
                return found

    def _pointer(self, to: Type) -> Type:
        if not 0 <= self.module.typed_at <= self.at():
            self.module.typed_at = self.at()
        if to.kind in ("void", "label", "metadata", "token"):
            raise self.fail(f"there are no pointers to {to}", "NVVM111")
        space = self.space() if self.texts[self.i] == "addrspace" else 0
        self.demand("*")
        return types.pointer(to, space)

    def _function(self, result: Type) -> Type:
        self.enter()
        self.demand("(")
        params: list[Type] = []
        variadic = False
        while not self.take(")"):
            if params or variadic:
                self.demand(",")
            variadic = self.take("...")
            if not variadic:
                params.append(self.type())
        self.depth -= 1
        return types.function(result, params, variadic)

    def _compound(self, token: str) -> Type:
        if token[:1] == "%" and len(token) > 1:
            uses, at = self.module.type_uses, self.at()
            uses[token] = min(uses.get(token, at), at)
            self.i += 1
            return types.named(token)
        self.enter()
        if token == "[":
            self.i += 1
            found = types.array(self._count(), self.type())
            self.demand("]")
        elif token == "{":
            found = self._struct()
        elif token == "<":
            self.i += 1
            if self.texts[self.i] == "{":
                found = types.struct(self._struct().elements, packed=True)
            else:
                found = self._vector()
            self.demand(">")
        elif token == "target" and self.texts[self.i + 1 : self.i + 2] == ["("]:
            self.i += 1
            found = types.target_type("target" + self.in_parentheses())
        else:
            raise self.expected("a type")
        self.depth -= 1
        return found

    def _count(self) -> int:
        count = self.number()
        if count < 0:
            raise Malformed("a count is not negative", self.i - 1)
        self.demand("x")
        return count

    def _vector(self) -> Type:
        scalable = self.take("vscale")
        if scalable:
            self.demand("x")
        place = self.i
        count, of = self._count(), self.type()
        if count == 0:
            raise Malformed("a vector has at least one element", place)
        if of.kind not in ("int", "float", "pointer"):
            raise Malformed(f"a vector has no elements of type {of}", place, "NVVM111")
        return types.vector(count, of, scalable)

    def _struct(self) -> Type:
        self.demand("{")
        elements: list[Type] = []
        while not self.take("}"):
            if elements:
                self.demand(",")
            elements.append(self.type())
        return types.struct(elements)
