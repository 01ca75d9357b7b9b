"""Shapes of lines: what the rules say of an instruction does mostly not depend on the names in it.

A line's shape is the line without its local names and the numbers of metadata. The rules judge the first line of each
shape. If they find no fault in it, the next line of that shape has none either, but for what a `Shape` asks of the
names: that they are defined, with these types, before their uses. Lines with faults are judged one by one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence

from ptxtools.diagnostics import Diagnostic
from ptxtools.records import NamedTuple

from ..assembly.functions import has_result
from ..assembly.instructions import BodyReader
from ..assembly.nodes import Instruction, Value
from ..assembly.reader import Malformed
from ..assembly.tokens import unquoted
from ..assembly.types import VOID, Type
from .constants import check_constant
from .context import Context
from .instructions import check_instruction
from .shape import (
    BEHIND,
    BLANK,
    HOLE,
    INCOMING,
    JOINED,
    KINDS,
    LABEL,
    MENTIONED,
    NAMED,
    NODE,
    OPERAND,
    OTHER,
    PHI,
    PLAIN,
    RESULT,
    RETURN,
    SOURCE,
    SYMBOL,
    TARGET,
    UNNAMED,
    VALUE,
    Shape,
)
from .templates import Templates, separated
from .typing import TYPING, by_value

#: Prefixes of types, by which front ends tell them from values.
_TYPES = ("struct.", "class.", "union.")
#: The last character.
_LAST = 0x10FFFF
_LABEL = re.compile(r'\s*([-a-zA-Z$._0-9]+|"[^"\n]*"):\s*')


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
    return not any(one in text for one in (HOLE, VALUE, SYMBOL))


def has_prefix(name: str) -> bool:
    """Whether the name of a type, such as `%struct.S`, is not one that a value would have."""
    return name[1:].strip('"').startswith(_TYPES)


def names_in(types: Mapping[str, object], node: str) -> re.Pattern[str]:
    """A pattern of the names that a shape lacks: of values, blocks and metadata, but not of these types. node: the
    pattern of a node of metadata."""
    plain = [name[1:].strip('"') for name in types if not has_prefix(name)]
    listed = "".join(f"|{re.escape(name)}(?![-a-zA-Z$._0-9])" for name in plain)
    other = "|".join(map(re.escape, _TYPES)) + listed
    return re.compile(rf'(%(?:(?!{other})[-a-zA-Z$._0-9]+|"(?!{other})[^"\n]*")|{node})')


class Columns(NamedTuple):
    """What `Shape` has, of all shapes, by their numbers; types as characters; and the events of each: its roles, the
    result behind the others, and a terminator's end of the block."""

    kind: list[int]
    roles: list[bytes]
    events: list[bytes]
    types: list[str]
    result: list[str]
    given: list[Type | None]


class Shapes:
    """The shapes of a module's lines, by number; `known` has the numbers of those without fault, by their texts."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self.columns = Columns([], [], [], [], [], [])
        self.known: dict[str, int] = {}
        self._characters: dict[Type, str] = {}
        self._symbols: dict[str, str] = {}
        #: Shapes that hold for one line only: with a finding, or with names of which nobody knows what they are.
        self.particular: set[int] = set()
        self._templates = Templates(self.stands_for, self.added, context.modern)
        self._blank, self._label = (self.added(Shape(kind)) for kind in (BLANK, LABEL))
        #: The names that the lines of labels define.
        self.labels: dict[str, str] = {}
        self._reader = BodyReader(context.source.text, (), context.module)
        self._names = names_in(context.module.types, r"!\d+")
        self._marked = names_in(context.module.types, r"%!\d+")

    def split(self, code: str) -> tuple[list[str], str]:
        """The names in the text of a body, and the text without them. "!" is "%!" in both: so all names begin alike,
        and are found in half the time."""
        parts = self._marked.split(code.replace("!", "%!") if "!" in code else code)
        return parts[1::2], HOLE.join(parts[::2])

    def stands_for(self, name: str) -> str:
        """What is the same for all symbols that a line may have in the place of this one."""
        if name not in self._symbols:
            self._symbols[name] = self._stands_for(name)
        return self._symbols[name]

    def _stands_for(self, name: str) -> str:
        module = self.context.module
        function, variable = module.functions.get(name), module.variables.get(name)
        if function is not None:
            copied = ",".join([by_value(param.attributes) for param in function.params])
            own = f"{SYMBOL}function {function.type}:{function.space}:{copied}"
            return name if name.startswith("@llvm.") else own
        if variable is None or variable.kind in ("alias", "ifunc") or name in self.context.opaque:
            return name
        return f"{SYMBOL}variable {variable.type}:{variable.space}"

    @property
    def full(self) -> bool:
        """Whether there are more types than characters, so that columns of types show nothing."""
        return len(self._characters) > _LAST

    def character(self, type: Type) -> str:
        """What stands for a type in columns."""
        if type not in self._characters:
            self._characters[type] = chr(min(len(self._characters), _LAST))
        return self._characters[type]

    def added(self, shape: Shape) -> int:
        """The number of a shape."""
        columns = self.columns
        columns.kind.append(shape.kind)
        columns.roles.append(shape.roles)
        columns.events.append(shape.roles.replace(bytes((RESULT,)), b"") + BEHIND.get(shape.kind, b""))
        columns.types.append("".join(map(self.character, shape.types)))
        columns.result.append(self.character(shape.result) if shape.result else "")
        columns.given.append(shape.given)
        return len(columns.kind) - 1

    def look_at(self, lines: Sequence[str]) -> None:
        """Find the numbers of lines that are not known, where no reading is needed: of labels, and of lines whose
        templates are known."""
        others: list[str] = []
        for line in lines:
            if ":" not in line or not self._is_label(line):
                others.append(line)
        if others:
            plain = "\n".join(others).replace("%!", "!")
            numbers = self._templates.shapes_of(plain)
            self.known.update(
                (line, number) for line, number in zip(others, numbers, strict=True) if number is not None
            )

    def shapes_of(self, lines: Sequence[str], places: Sequence[int]) -> Iterator[int | None]:
        """The numbers of the shapes of lines that stand at places, and which are no labels; None for one that is not
        read. Findings about lines are not kept: one of which there are some is `particular`. lines: without names."""
        found, find = self.context.found, self._templates.shape_of
        for line, place, parts in zip(lines, places, separated("\n".join(lines)), strict=False):
            number = find(parts)
            if number is None:
                before = len(found)
                number = self.judge(line, lambda place=place: place)  # type: ignore[misc]
                del found[before:]
            yield number

    def findings_in(self, line: str, place: int, number: int) -> list[Diagnostic] | None:
        """The findings about a line that stands at a place; None if it has not the shape of this number after all."""
        found, columns = self.context.found, self.columns
        before = len(found)
        own = self.judge(line, lambda: place)
        made = found[before:]
        del found[before:]
        same = own is not None and all(column[own] == column[number] for column in columns)
        return made if same else None

    def _is_label(self, line: str) -> bool:
        """Note the name in a line, if it is one. A number is none: to LLVM 7 it is a name."""
        label = _LABEL.fullmatch(line)
        if label is None or (not self.context.modern and label[1].isdecimal()):
            return False
        self.labels[line] = unquoted(f"%{label[1]}") if '"' in line else f"%{label[1]}"
        self.known[line] = self._label
        return True

    def judge(self, text: str, place: Callable[[], int]) -> int | None:
        """The shape of a line that is not known, with findings about the line. None if it is not read, or if what is
        wrong matters to other lines. text: without names; place: says where it begins in the text."""
        if not text or text.isspace():
            self.known[text] = self._blank
            return self._blank
        plain = text.replace("%!", "!")
        begin = place()
        slots = self._slots(plain, begin) if begin >= 0 else None
        before = len(self.context.found)
        found = self._judged(begin, slots) if slots is not None else None
        if found is None:
            return None
        shape, one = found
        number = self.added(shape)
        if len(self.context.found) > before:
            self.particular.add(number)
        elif OTHER not in shape.roles and not any(name[0] == "!callalign" for name, _ in one.metadata):
            self.known[text] = number
            self._templates.learn(plain, number, shape, one)
        else:
            self.particular.add(number)
        return number

    def _slots(self, line: str, begin: int) -> dict[int, int] | None:
        """The number of each name by its place; None if the text at the place is not this line."""
        text, at, slots = self.context.source.text, begin, {}
        for number, part in enumerate(line.split(HOLE)):
            if number:
                name = self._names.match(text, at)
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
    kind = KINDS.get(one.op, PLAIN)
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
