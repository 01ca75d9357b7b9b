"""One instruction of a litmus test, as PTX writes it (9.7) or as the public litmus suites abbreviate it."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, TypeVar

from ptxtools.diagnostics import Span
from ptxtools.records import replace

from .accesses import ACCESSES, read_access
from .async_instructions import OPCODES, read_asynchronous
from .functions import COMPARISONS, FUNCTIONS, OTHER_NAMES
from .multimem import read_multimem
from .ordering import read_barrier, read_fence
from .programs import (
    UNTYPED,
    Address,
    Branch,
    GridControl,
    Guard,
    Instruction,
    Label,
    Local,
    Location,
    Operand,
    Place,
    Register,
    Type,
    scalar_type,
)
from .refusals import not_modelled
from .tensor_cores import read_tensor_core
from .tensors import read_tensor_map
from .wgmma import read_product
from .words import Reader, Word, register_name

#: Modifiers without a meaning in the model: state spaces (8.3) and caches.
_IGNORED = frozenset(("global", "shared", "shared::cta", "shared::cluster", "generic", "ca", "cg", "cs", "lu", "cv",
                      "wb", "wt", "uni", "aligned", "noftz"))  # fmt: skip
_BRANCHES = {"beq": "eq", "bne": "ne", "blt": "lt", "ble": "le", "bgt": "gt", "bge": "ge"}
_REGISTER = re.compile(r"%.*|\$[A-Za-z_].*|(?:r|rd|rs|p|f|fd)\d+")


_PREDICATE = Type("u", 1)

_T = TypeVar("_T")


class Cells:
    """Reads the instructions of the threads. locations: those known so far, which grow; registers: of each thread."""

    def __init__(self, reader: Reader, locations: dict[str, Location], registers: dict[int, set[str]]) -> None:
        self.reader, self.locations, self.registers = reader, locations, registers
        self.known: set[str] = set()
        #: Whether the locations are those declared, and no others.
        self.fixed = False
        #: Whether shared memory is that of a cluster's CTAs, with a location in each.
        self.maps = False
        self.start: Word = reader.next

    def read(self, thread: int) -> list[Instruction]:
        """The instructions of one cell: labels, and at most one instruction."""
        reader = self.reader
        found: list[Instruction] = []
        self.known = self.registers.setdefault(thread, set())
        while reader.next.text not in ("|", ";") and reader.next.kind != "end":
            self.start = reader.next
            if reader.next.kind == "word" and reader.peek().text == ":":
                name = reader.take().text
                reader.take()
                found.append(Label(text=name + ":", span=self.start.span, name=name))
                continue
            found.append(self.one(thread))
            if reader.next.text not in ("|", ";"):
                reader.fail("expected '|' or ';' after the instruction")
        return found

    def one(self, thread: int) -> Instruction:
        """The next instruction, with its guard."""
        self.known = self.registers.setdefault(thread, set())
        self.start = self.reader.next
        guard = self.guard()
        instruction = self.instruction(self.reader.name("an instruction"))
        return replace(instruction, guard=guard) if guard else instruction

    # --- parts ---

    def guard(self) -> Guard | None:
        reader = self.reader
        if not reader.accept("@"):
            return None
        negated = reader.accept("!") is not None
        return Guard(self.register(reader.name("a register")), negated)

    def done(self) -> dict[str, Any]:
        """Text and span of the instruction that has been read."""
        reader = self.reader
        span: Span = (self.start.start, reader.words[reader.at - 1].span[1])
        return {"text": " ".join(reader.source.text[span[0] : span[1]].split()), "span": span}

    def is_register(self, name: str) -> bool:
        return register_name(name) in self.known or (name not in self.locations and bool(_REGISTER.fullmatch(name)))

    def register(self, word: Word) -> str:
        name = register_name(word.text)
        if not name:
            self.reader.fail("expected a register", word)
        return name

    def result(self) -> str:
        """A register that is written; `_` is none."""
        word = self.reader.name("a register")
        if word.text in self.locations:
            self.reader.fail(f"'{word.text}' is a location; a register is expected", word)
        name = self.register(word)
        self.known.add(name)
        return name

    def location(self, word: Word) -> str:
        if self.fixed and word.text not in self.locations:
            self.reader.fail(f"there is no location '{word.text}'", word)
        self.locations.setdefault(word.text, Location(word.text))
        return word.text

    def value(self) -> Operand:
        reader = self.reader
        if reader.next.kind == "number" or reader.next.text == "-":
            return reader.number("a number")
        if reader.accept("&"):
            return Address(self.location(reader.name("a location")))
        word = reader.name("a register or a number")
        if self.is_register(word.text):
            return Register(self.register(word))
        if word.text in self.locations:
            return Address(word.text)
        return reader.fail(f"unknown register '{word.text}'", word)

    def values(self, count: int) -> tuple[Operand, ...]:
        found = [self.value()]
        while len(found) < count:
            self.comma()
            found.append(self.value())
        return tuple(found)

    def comma(self) -> None:
        self.reader.expect(",", "between operands")

    def place(self) -> Place:
        """An address: a location or a register, with or without brackets, and bytes to add."""
        reader = self.reader
        bracket = reader.accept("[")
        reader.accept("*", "&")
        word = reader.name("a location")
        base: str | Register
        base = Register(self.register(word)) if self.is_register(word.text) else self.location(word)
        offset = self.element(base) if isinstance(base, str) and reader.next.text == "[" else 0
        if bracket:
            sign = reader.accept("+", "-")
            if sign:
                offset += reader.number("a number of bytes") * (-1 if sign.text == "-" else 1)
            reader.expect("]", "after the address")
        return base, offset

    def element(self, name: str) -> int:
        """Where an element of an array begins, as `x[2]` names it, bytes."""
        self.reader.take()
        index = self.reader.number("the number of an element")
        self.reader.expect("]", "after the number of an element")
        return index * (self.locations[name].type or UNTYPED).bits // 8

    # --- instructions ---

    def instruction(self, word: Word) -> Instruction:
        opcode, *modifiers = word.text.split(".")
        if opcode.partition("_")[0] in ACCESSES:  # `atom_add` of public suites
            opcode, *further = opcode.split("_")
            modifiers = further + modifiers
        if opcode in ACCESSES and modifiers[:1] == ["async"]:
            return read_asynchronous(self, word, opcode, modifiers)
        if opcode in ACCESSES:
            return read_access(self, word, opcode, modifiers)
        if opcode in ("fence", "membar"):
            return read_fence(self, word, opcode, modifiers)
        if opcode in ("bar", "barrier"):
            return read_barrier(self, word, opcode, modifiers)
        if opcode in OPCODES:
            return read_asynchronous(self, word, opcode, modifiers)
        if opcode == "griddepcontrol" and modifiers in (["wait"], ["launch_dependents"]):
            return GridControl(waits=modifiers == ["wait"], **self.done())
        if opcode == "wgmma" and len(modifiers) > 1:
            return read_product(self, word, modifiers)
        if opcode == "tcgen05":
            return read_tensor_core(self, word, modifiers)
        if opcode == "multimem" and "async" in modifiers[1:3]:
            return read_asynchronous(self, word, opcode, modifiers)
        if opcode == "multimem":
            return read_multimem(self, word, modifiers)
        if opcode == "tensormap":
            return read_tensor_map(self, word, modifiers)
        if opcode == "mapa" and self.maps:
            return self.mapped(word, modifiers)
        if opcode in _BRANCHES:
            values = self.values(2)
            self.comma()
            label = self.reader.name("a label").text
            return Branch(label=label, function=_BRANCHES[opcode], values=values, type=None, **self.done())
        if opcode in ("goto", "bra"):
            label = self.reader.name("a label").text
            return Branch(label=label, **self.done())
        if opcode in ("exit", "ret"):
            return Branch(label="", **self.done())
        if opcode in ("prefetch", "prefetchu"):  # only caches know of it (9.7.9.15)
            self.place()
            return Label(name="", **self.done())
        if opcode == "nanosleep":
            self.value()
        if opcode in ("nop", "nanosleep"):
            return Label(name="", **self.done())
        return self.local(word, opcode, modifiers)

    def type_of(self, word: Word, modifiers: list[str]) -> Type | None:
        """The type among the modifiers, which is removed."""
        for modifier in modifiers:
            type_ = scalar_type(modifier)
            if type_ is not None:
                modifiers.remove(modifier)
                return type_
        return None

    def rest(self, word: Word, modifiers: list[str]) -> None:
        """Refuse modifiers that nothing has taken. Hints to caches have no meaning here (9.7.9.2); one with an operand
        is refused, since its operand would be."""
        for modifier in modifiers:
            hint = modifier.startswith(("L1::", "L2::")) and modifier != "L2::cache_hint"
            if modifier not in _IGNORED and not hint:
                not_modelled(self.reader, word, modifier)

    def several(self, parts: int, read: Callable[[], _T]) -> tuple[_T, ...]:
        """One operand, or as many in braces."""
        reader = self.reader
        found: list[_T] = []
        if parts > 1:
            reader.expect("{", "before the elements of a vector")
        for part in range(parts):
            if part:
                self.comma()
            found.append(read())
        if parts > 1:
            reader.expect("}", "after the elements of a vector")
        return tuple(found)

    def listed(self, read: Callable[[], _T]) -> list[_T]:
        """One operand, or any number of them in braces."""
        if not self.reader.accept("{"):
            return [read()]
        found = [read()]
        while not self.reader.accept("}"):
            self.comma()
            found.append(read())
        return found

    def mapped(self, word: Word, modifiers: list[str]) -> Instruction:
        """mapa: an address, a variable or a register, in another CTA of the cluster (9.7.9.23)."""
        type_ = self.type_of(word, modifiers)
        self.rest(word, modifiers)
        result = self.result()
        self.comma()
        return Local(result=result, function="mapa", values=self.values(2), type=type_, **self.done())

    def move(self, type_: Type | None) -> Instruction:
        result = self.result()
        self.comma()
        return Local(result=result, function="mov", values=self.values(1), type=type_, **self.done())

    def conversion(self, word: Word, to: Type | None, modifiers: list[str]) -> Instruction:
        """Of integers (9.7.9.21): the value as the narrower of the two types has it."""
        source = self.type_of(word, modifiers) or to
        if to is None or source is None or "f" in (to.kind, source.kind):
            not_modelled(self.reader, word)
        self.rest(word, modifiers)
        return self.move(source if source.bits < to.bits else to)

    def local(self, word: Word, opcode: str, modifiers: list[str]) -> Instruction:
        type_ = self.type_of(word, modifiers)
        if type_ is None and "pred" in modifiers:
            modifiers.remove("pred")
            type_ = _PREDICATE
        if opcode == "cvt":
            return self.conversion(word, type_, modifiers)
        if opcode in ("mov", "cvta"):
            self.rest(word, [m for m in modifiers if opcode == "mov" or m not in ("to", "param")])
            return self.move(type_)
        function = OTHER_NAMES.get(opcode, opcode)
        if opcode == "setp":
            function = next((m for m in modifiers if m in COMPARISONS), "")
            if not function:
                self.reader.fail(f"'{word.text}' names no comparison", word)
            modifiers.remove(function)
        if function not in FUNCTIONS:
            not_modelled(self.reader, word)
        if type_ is not None and type_.kind == "f":
            self.reader.fail("floating-point arithmetic is not modelled", word)
        if function in ("mul", "mad") and "lo" in modifiers:
            modifiers.remove("lo")
        for part in ("wide", "hi"):
            if function in ("mul", "mad") and part in modifiers:
                modifiers.remove(part)
                function += "." + part
        self.rest(word, modifiers)
        result = self.result()
        self.comma()
        values = self.values(FUNCTIONS[function].operands)
        return Local(result=result, function=function, values=values, type=type_, **self.done())
