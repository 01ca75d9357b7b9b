"""Shapes of lines: what the rules say of an instruction does mostly not depend on the names in it.

A line's shape is the line without its local names and the numbers of metadata. The rules judge the first line of each
shape. If they find no fault in it, the next line of that shape has none either, but for what a `Shape` asks of the
names: that they are defined, with these types, before their uses. Lines with faults are judged one by one.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterator, Mapping
from typing import NamedTuple

from ..assembly.functions import has_result
from ..assembly.instructions import BodyReader
from ..assembly.nodes import Instruction, Module, Value
from ..assembly.reader import Malformed
from ..assembly.tokens import unquoted
from ..assembly.types import VOID, Type
from .constants import check_constant, fits
from .context import Context
from .instructions import check_instruction
from .typing import TYPING

#: Kinds of lines. A plain one has no result, that of a named one has a name, and that of an unnamed one a number that
#: is not written.
PLAIN, PHI, BRANCH, RETURN, END, LABEL, BLANK, UNNAMED, NAMED = range(9)
_KINDS = {"phi": PHI, "br": BRANCH, "switch": BRANCH, "ret": RETURN, "unreachable": END}
#: What a name in a line is: an operand, one of a phi, the result, a node of metadata, where a terminator goes, where a
#: phi comes from, a value in metadata, or something else.
OPERAND, INCOMING, RESULT, NODE, TARGET, SOURCE, MENTIONED, OTHER = range(8)
#: What stands for a name in a shape.
HOLE = "\0"
#: What stands for the end of a line within a statement.
JOINED = "\r"
#: What stands for numbers and symbols in shapes of lines that differ in these.
_INTEGER, _FLOAT, _SYMBOL = "\1", "\2", "\3"
#: Prefixes of types, by which front ends tell them from values.
_TYPES = ("struct.", "class.", "union.")
_LABEL = re.compile(r'\s*([-a-zA-Z$._0-9]+|"[^"\n]*"):\s*')


class Shape(NamedTuple):
    """A line without names. kind: of the line; roles: what each of its names is; types: of its operands that are names;
    result: the type of its result, None if it has none; given: what a `ret` returns; label: the name that the line
    defines."""

    kind: int
    roles: bytes = b""
    types: tuple[Type, ...] = ()
    result: Type | None = None
    given: Type | None = None
    label: str = ""


class _Anything(Mapping[str, None]):
    """All names: metadata may mention them before they are defined."""

    def __contains__(self, name: object) -> bool:
        return True

    def __getitem__(self, name: str) -> None:
        return None

    def __iter__(self) -> Iterator[str]:
        return iter(())

    def __len__(self) -> int:
        return 0


def may_be_used_for(text: str) -> bool:
    """Whether a text has nothing that means something else in a shape."""
    return not any(one in text for one in (HOLE, _INTEGER, _FLOAT, _SYMBOL))


def has_prefix(name: str) -> bool:
    """Whether the name of a type, such as `%struct.S`, is not one that a value would have."""
    return name[1:].strip('"').startswith(_TYPES)


def names_in(types: Mapping[str, object], nodes: bool = True) -> re.Pattern[str]:
    """A pattern of the names that a shape lacks: of values, blocks and metadata, but not of these types. nodes: whether
    there is metadata; without it the pattern begins with one character, and takes half the time."""
    plain = [name[1:].strip('"') for name in types if not has_prefix(name)]
    listed = "".join(f"|{re.escape(name)}(?![-a-zA-Z$._0-9])" for name in plain)
    other = "|".join(map(re.escape, _TYPES)) + listed
    behind = r"|!\d+" if nodes else ""
    return re.compile(rf'(%(?:(?!{other})[-a-zA-Z$._0-9]+|"(?!{other})[^"\n]*"){behind})')


class Shapes:
    """The shapes of a module's lines; `known` has those without fault, by their texts."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self.names = names_in(context.module.types)
        self._locals = names_in(context.module.types, nodes=False)
        self.known: dict[str, Shape] = {}
        self._general: dict[str, tuple[Shape, list[Type]]] = {}
        self._reader = BodyReader(context.source.text, (), context.module)

    def split(self, code: str) -> list[str]:
        """Every second part is a name."""
        return (self.names if "!" in code else self._locals).split(code)

    def judge(self, line: str, begin: int) -> Shape | None:
        """The shape of a line that is not known, with findings about the line. None if it is not read, or if what is
        wrong matters to other lines. line: without names; begin: where it stands in the text."""
        if not line.strip():
            return self.known.setdefault(line, Shape(BLANK))
        if label := _LABEL.fullmatch(line):
            return self.known.setdefault(
                line, Shape(LABEL, label=unquoted(f"%{label[1]}") if '"' in line else f"%{label[1]}")
            )
        return self._instruction(line, begin)

    def _instruction(self, line: str, begin: int) -> Shape | None:
        general = _Generalised(line, self.context) if _ANY_NUMBER.match(line) and not _PARTICULAR.search(line) else None
        if general:
            known = self._general.get(general.text)
            if known and all(map(fits, general.integers, known[1])):
                self.known[line] = known[0]
                return known[0]
        slots = self._slots(line, begin)
        before = len(self.context.found)
        found = self._judged(begin, slots) if slots is not None else None
        if found is None:
            return None
        shape, one = found
        if len(self.context.found) > before:
            return shape
        if OTHER not in shape.roles and not any(name[0] == "!callalign" for name, _ in one.metadata):
            self.known[line] = shape
            types = general.types(one) if general else None
            if general and types is not None:
                self._general[general.text] = shape, types
        return shape

    def _slots(self, line: str, begin: int) -> dict[int, int] | None:
        """The number of each name by its place; None if the text at the place is not this line."""
        text, at, slots = self.context.source.text, begin, {}
        for number, part in enumerate(line.split(HOLE)):
            if number:
                name = self.names.match(text, at)
                if name is None:
                    return None
                slots[at] = number - 1
                at = name.end()
            if text[at : at + len(part)].replace("\n", JOINED) != part:
                return None
            at += len(part)
        self._end = at
        return slots

    def _judged(self, begin: int, slots: dict[int, int]) -> tuple[Shape, Instruction] | None:
        """An instruction and its shape, with findings."""
        context, reader = self.context, self._reader
        groups = len(context.module.group_uses)
        reader.over((begin, self._end))
        try:
            one = reader.instruction()
        except Malformed:
            return None
        if reader.texts[reader.i]:
            return None
        find = TYPING.get(one.op)
        one.type = find(context, one) if find else VOID
        check_instruction(context, one)
        shape = _shape(context, one, slots)
        defined = all(name in context.module.groups for name, _ in context.module.group_uses[groups:])
        known = one.type is not None or not has_result(one)
        return (shape, one) if shape and defined and known else None


def _shape(context: Context, one: Instruction, slots: dict[int, int]) -> Shape | None:
    """The shape of an instruction; None if a name is not where it is looked for. slots: the places of names."""
    kind = _KINDS.get(one.op, PLAIN)
    result = one.type if has_result(one) else None
    if kind == PHI and (result is None or not one.name or result.kind in ("void", "label", "function")):
        return None
    if one.name and result is None:
        return None
    if kind == PLAIN and result is not None:
        kind = NAMED if one.name else UNNAMED
    roles: dict[int, int] = {one.named_at: RESULT} if one.name else {}
    roles.update((block.at, SOURCE if kind == PHI else TARGET) for block in one.extra.get("blocks", ()))
    types: dict[int, Type] = {}
    for value in one.operands:
        if value.kind == "local":
            roles[value.at] = INCOMING if kind == PHI else OPERAND
            types[value.at] = value.type
        elif value.kind == "global":
            if value.text not in context.module.functions and value.text not in context.module.variables:
                return None
            if value is not one.operands[0] or one.op != "call":
                check_constant(context, value)
        else:
            check_constant(context, value, _ANYTHING)
            locals_ = [part.at for part in _parts(value) if part.kind == "local"]
            if locals_ and value.kind != "metadata":
                return None
            roles.update(dict.fromkeys(locals_, MENTIONED))
    if not roles.keys() <= slots.keys():
        return None
    nodes = [word for _, word in one.metadata]
    nodes += [(value.text, value.at) for value in one.operands if value.extra == "node"]
    roles.update((at, NODE) for _, at in nodes if at in slots)
    return Shape(
        kind, bytes([roles.get(at, OTHER) for at in slots]), tuple(types[at] for at in slots if at in types), result,
        (one.operands[0].type if one.operands else VOID) if kind == RETURN else None,
    )  # fmt: skip


_ANYTHING = _Anything()


def _parts(value: Value) -> Iterator[Value]:
    for part in value.parts:
        yield part
        yield from _parts(part)


# --- lines that differ in numbers and symbols -------------------------------------------------------------------------

#: Instructions to which a number is a value, and nothing more.
_ANY_NUMBER = re.compile(
    r"\s*(?:\0 = )?(?:f?add|f?sub|f?mul|[usf]div|[usf]rem|shl|[la]shr|and|x?or|[if]cmp|select|store|ret|phi|"
    r"getelementptr|(?:tail )?call)\b"
)
#: What makes a number or a symbol mean more: structs, intrinsics, inline assembly.
_PARTICULAR = re.compile(r'[{%"]|@llvm\.|\basm\b')
#: Integers that are no alignments, numbers that every type of up to 64 bits has, and symbols.
_VARIED = re.compile(
    r"(?<= )(?<!align )(?:(-?\d{1,18})|(0x[0-9A-Fa-f]{16}|-?\d+\.\d+e[-+]\d+))(?=[,\s\])>]|\Z)|(@[-\w$.]+)"
)


def stands_for(name: str, module: Module, opaque: Container[str]) -> str:
    """What is the same for all symbols that a line may have in the place of this one. opaque: textures and surfaces."""
    function, variable = module.functions.get(name), module.variables.get(name)
    if function is not None:
        return name if name.startswith("@llvm.") else f"{_SYMBOL}function {function.type}:{function.space}"
    if variable is None or variable.kind in ("alias", "ifunc") or name in opaque:
        return name
    return f"{_SYMBOL}variable {variable.type}:{variable.space}"


class _Generalised:
    """A line's shape without its numbers, and with the types of symbols for their names."""

    def __init__(self, line: str, context: Context) -> None:
        self.integers: list[str] = []
        self.floats: list[str] = []
        self._module, self._opaque = context.module, context.opaque
        self.text = _VARIED.sub(self._instead, line)

    def _instead(self, match: re.Match[str]) -> str:
        if match[1]:
            self.integers.append(match[1])
            return _INTEGER
        if match[2]:
            self.floats.append(match[2])
            return _FLOAT
        return stands_for(match[3], self._module, self._opaque)

    def types(self, one: Instruction) -> list[Type] | None:
        """The types of the integers; None if not all numbers that were left out are values of this instruction."""
        values = sorted((part for value in one.operands for part in (value, *_parts(value))), key=lambda each: each.at)
        integers = [each for each in values if each.kind == "int"]
        floats = [each.text for each in values if each.kind == "float"]
        if [each.text for each in integers] != self.integers or floats != self.floats:
            return None
        return [each.type for each in integers]
