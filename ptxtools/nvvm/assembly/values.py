"""Constants, values, and what stands around operands: attributes, metadata."""

from __future__ import annotations

import re
from typing import Any

from . import types
from .nodes import Value, Word
from .reader import Malformed, Reader
from .tokens import words
from .types import METADATA, VOID, Type

CASTS = words("trunc zext sext fptrunc fpext fptoui fptosi uitofp sitofp ptrtoint inttoptr bitcast addrspacecast")
BINARY = words("add fadd sub fsub mul fmul udiv sdiv fdiv urem srem frem shl lshr ashr and or xor")
#: Operators of constant expressions that are lists of operands.
_LISTS = BINARY | words("select extractelement insertelement shufflevector extractvalue insertvalue fneg")
FLAGS = words("nuw nsw exact inbounds nusw inrange disjoint nneg samesign")
_WORDS = words("true false null undef poison zeroinitializer none")
#: LLVM 23's words for numbers.
_LATER = words("inf qnan nan snan")
_NUMBER = re.compile(r"[-+]?\d+\.\d*(?:[eE][-+]?\d+)?|0x[KLMHR]?[0-9a-fA-F]+")
#: Words of attributes that a list in parentheses follows.
_WITH_LIST = words(
    "dereferenceable dereferenceable_or_null align alignstack byval sret byref inalloca preallocated elementtype "
    "allocsize vscale_range memory uwtable allockind range nofpclass initializes captures"
)
#: Attributes of parameters, functions and call sites: LLVM 7's and LLVM 18's. Those that are none end a list.
ATTRIBUTES = _WITH_LIST | words(
    "zeroext signext inreg noalias nocapture nest returned nonnull swiftself swifterror swiftasync immarg noundef "
    "nofree readnone readonly writeonly allocalign allocptr dead_on_unwind writable alwaysinline argmemonly "
    "builtin cold convergent disable_sanitizer_instrumentation fn_ret_thunk_extern hot inaccessiblememonly "
    "inaccessiblemem_or_argmemonly inlinehint jumptable minsize mustprogress naked no-jump-tables nobuiltin "
    "nocallback nocf_check noduplicate noimplicitfloat noinline nomerge nonlazybind noprofile norecurse noredzone "
    "noreturn nosanitize_bounds nosanitize_coverage nosync nounwind null_pointer_is_valid optdebug optforfuzzing "
    "optnone optsize presplitcoroutine coro_only_destroy_when_complete returns_twice safestack sanitize_address "
    "sanitize_hwaddress sanitize_memory sanitize_memtag sanitize_thread shadowcallstack skipprofile speculatable "
    "speculative_load_hardening ssp sspreq sspstrong strictfp willreturn"
)


class ValueReader(Reader):
    def typed_value(self) -> Value:
        """A type and a value of it."""
        return self.value(self.type())

    def value(self, type: Type) -> Value:
        """A value of a type that was read before."""
        i = self.i
        token = self.texts[i]
        at = self.starts[i]
        first = token[:1]
        if type is METADATA:
            return self.metadata_value()
        if first == "%" and len(token) > 1:
            self.i = i + 1
            return Value("local", token, type, at)
        if first == "@" and len(token) > 1:
            self.i = i + 1
            return Value("global", token, type, at)
        if token in _WORDS:
            self.i = i + 1
            return Value("word", token, type, at)
        if first.isdecimal() or first in ("-", "+"):
            self.i = i + 1
            if token.removeprefix("-").isdecimal():
                return Value("int", token, type, at)
            if _NUMBER.fullmatch(token):
                return Value("float", token, type, at)
            if token[1:] in _LATER or (token == "+" and self.texts[self.i] in _LATER):
                raise Malformed("infinities and NaNs in words came with LLVM 23: write the bits of the double, 0x…", i)
            raise Malformed(f"'{token[:40]}' is not a number", i)
        if token[:2] == 'c"':
            self.i = i + 1
            return Value("string", token, type, at)
        if _is_hexadecimal_integer(token):
            self.i = i + 1
            return Value("int", token, type, at)
        if token[:3] == "f0x":
            raise self.fail(f"{self.shown()} is a number in the notation of LLVM 23: write the bits of the double, 0x…")
        self.enter()
        found = self._aggregate(type) if first in ("[", "{", "<") else self._expression(type)
        self.depth -= 1
        return found

    def aliasee(self) -> Value:
        """What an alias stands for: a typed value, or an expression, whose type is not written."""
        if self.texts[self.i] not in ("bitcast", "addrspacecast", "inttoptr", "getelementptr"):
            return self.typed_value()
        self.enter()
        found = self._expression(VOID)
        self.depth -= 1
        found.type = found.extra["type"] if found.extra["op"] in CASTS else found.parts[0].type
        return found

    def _list_until(self, end: str) -> tuple[Value, ...]:
        found: list[Value] = []
        while not self.take(end):
            if found:
                self.demand(",")
            found.append(self.typed_value())
        return tuple(found)

    def _aggregate(self, type: Type) -> Value:
        at, first = self.at(), self.word()
        if first == "<" and self.take("{"):
            parts = self._list_until("}")
            self.demand(">")
        else:
            parts = self._list_until({"[": "]", "{": "}", "<": ">"}[first])
        return Value("aggregate", self.since(at), type, at, parts)

    def since(self, at: int) -> str:
        """The text from a place to the last token that was read."""
        last = self.i - 1
        return self.text[at : self.starts[last] + len(self.texts[last])]

    def _expression(self, type: Type) -> Value:
        at, word = self.at(), self.texts[self.i]
        if word == "asm":
            return self.assembler(type)
        if not word:
            raise self.expected("a value")
        if word == "splat":
            raise self.fail("'splat' came with LLVM 19: write all elements, <2 x i32> <i32 1, i32 1>")
        self.i += 1
        if word in ("dso_local_equivalent", "no_cfi"):
            return Value("expression", word, type, at, (self.value(type),), {"op": word})
        extra: dict[str, Any] = {"op": word, "flags": self.flags()}
        if word == "blockaddress":
            self.in_parentheses()
            return Value("block address", self.since(at), type, at)
        if word in CASTS:
            self.demand("(")
            parts: tuple[Value, ...] = (self.typed_value(),)
            self.demand("to")
            extra["type"] = self.type()
            self.demand(")")
        elif word == "getelementptr":
            if self.take("inrange"):
                self.in_parentheses()
            self.demand("(")
            extra["type"] = self.type()
            self.demand(",")
            parts = self._indices()
        elif word in ("icmp", "fcmp"):
            extra["predicate"] = self.word()
            self.demand("(")
            parts = self._list_until(")")
        elif word in _LISTS:
            self.demand("(")
            parts = self._operands()
        else:
            self.i -= 1
            raise self.expected("a value")
        return Value("expression", self.since(at), type, at, parts, extra)

    def _operands(self) -> tuple[Value, ...]:
        """Operands of an expression up to the parenthesis; indices of aggregates have no type."""
        found: list[Value] = []
        while not self.take(")"):
            if found:
                self.demand(",")
            if self.texts[self.i].isdecimal():
                found.append(Value("int", self.texts[self.i], types.I32, self.at()))
                self.i += 1
            else:
                found.append(self.typed_value())
        return tuple(found)

    def _indices(self) -> tuple[Value, ...]:
        found: list[Value] = []
        while not self.take(")"):
            if found:
                self.demand(",")
            self.take("inrange")
            found.append(self.typed_value())
        return tuple(found)

    def flags(self) -> list[Word]:
        found: list[Word] = []
        while self.texts[self.i] in FLAGS:
            found.append((self.texts[self.i], self.at()))
            self.i += 1
        return found

    def assembler(self, type: Type) -> Value:
        """`asm sideeffect "text", "constraints"`."""
        at = self.at()
        self.demand("asm")
        flags: list[Word] = []
        while self.texts[self.i] in ("sideeffect", "alignstack", "inteldialect", "unwind"):
            flags.append((self.texts[self.i], self.at()))
            self.i += 1
        code_at, code = self.at(), self.string()
        self.demand(",")
        constraints_at, constraints = self.at(), self.string()
        extra = {"flags": flags, "code": (code, code_at), "constraints": (constraints, constraints_at)}
        return Value("asm", self.since(at), type, at, (), extra)

    # --- attributes ---------------------------------------------------------------------------------------------------

    def attributes(self) -> list[Word]:
        """Attributes, as many as come: words, with their lists, strings with their values, and groups."""
        found: list[Word] = []
        while True:
            token, at = self.texts[self.i], self.at()
            if token[:1] == "#" and len(token) > 1:
                self.module.group_uses.append((token, at))
                self.i += 1
            elif token[:1] == '"':
                self.i += 1
                if self.take("="):
                    self.string()
            elif token in ATTRIBUTES:
                self.i += 1
                after = self.texts[self.i]
                if after == "(" and token in _WITH_LIST:
                    self.in_parentheses()
                elif (token == "align" and after.isdecimal()) or (after == "=" and token in ("align", "alignstack")):
                    self.take("=")
                    self.number()
            else:
                return found
            found.append((self.since(at), at))

    # --- metadata -----------------------------------------------------------------------------------------------------

    def metadata_value(self) -> Value:
        """A value of type metadata: a node, a string, or a value in it."""
        at, token = self.at(), self.texts[self.i]
        if token[:1] != "!":
            inner = self.typed_value()
            return Value("metadata", self.since(at), METADATA, at, (inner,))
        self.i += 1
        if token == "!":
            after = self.texts[self.i]
            if after[:1] == '"':
                self.i += 1
                return Value("metadata", self.since(at), METADATA, at, extra="string")
            if after != "{":
                raise self.expected("metadata")
            self.enter()
            parts = self.tuple_of_metadata()
            self.depth -= 1
            return Value("metadata", self.since(at), METADATA, at, tuple(one for one in parts if one), extra="tuple")
        if self.texts[self.i] == "(":
            self.in_parentheses()
            return Value("metadata", self.since(at), METADATA, at, extra="special")
        return Value("metadata", token, METADATA, at, extra="node")

    def tuple_of_metadata(self) -> list[Value | None]:
        self.demand("{")
        found: list[Value | None] = []
        while not self.take("}"):
            if found:
                self.demand(",")
            if self.take("null"):
                found.append(None)
            elif self.texts[self.i][:1] == "!":
                found.append(self.metadata_value())
            elif self.texts[self.i] == "metadata":
                self.i += 1
                found.append(self.metadata_value())
            else:
                found.append(self.typed_value())
        return found


def _is_hexadecimal_integer(token: str) -> bool:
    return token[:3] in ("u0x", "s0x")
