"""The text of a module in bitcode, in the dialect that it was written in, and where its instructions stand in it."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field

from ptxtools.diagnostics.origin import Origin

from ..assembly.types import Type
from . import names
from .attributes import RESULT, Attributes
from .facts import Facts, note_facts
from .functions import Body
from .instructions import Operands
from .metadata import Metadata
from .names import name, quoted
from .stream import (
    BUNDLES,
    CONSTANTS,
    FUNCTION,
    KINDS,
    METADATA,
    MODULE,
    SCOPES,
    STRINGS,
    SUMMARY,
    SYMBOLS,
    TYPES,
    BitcodeError,
    Block,
    Record,
    blocks_of,
    text_of,
)
from .types import TypeTable
from .values import Values

_VERSION, _TRIPLE, _LAYOUT, _ASSEMBLER, _SECTION, _VARIABLE, _FUNCTION, _OLD_ALIAS = 1, 2, 3, 4, 5, 7, 8, 9
_COLLECTOR, _COMDAT, _ALIAS, _SOURCE, _IFUNC = 11, 12, 14, 16, 18
_ENTRY, _FUNCTION_ENTRY = 1, 3
#: The version of the records: operands relative to the instruction, and names in a table of strings.
_RELATIVE, _WITH_STRINGS = 1, 2
_EXPLICIT_TYPE = 2


@dataclass(frozen=True, slots=True)
class Place:
    """A line of the text: the function that it is in ("" outside), the number of its instruction there (from 1; 0 is
    none), and the place in the source."""

    function: str = ""
    number: int = 0
    origin: Origin | None = None


@dataclass(slots=True)
class Text:
    """The text of a module. starts, places: the offset of each line, and what stands there."""

    text: str
    facts: Facts
    starts: list[int] = field(default_factory=list)
    places: list[Place] = field(default_factory=list)

    def place(self, offset: int) -> Place:
        return self.places[max(bisect_right(self.starts, offset) - 1, 0)] if self.places else Place()


def disassembled(data: bytes) -> Text:
    """The module in a bitcode file as text. Raises BitcodeError."""
    blocks = blocks_of(data)
    facts = Facts()
    for block in blocks:
        note_facts(facts, block)
    module = next(block for block in blocks if block.number == MODULE)
    tables = [one.blob for block in blocks if block.number == STRINGS for one in block.records]
    try:
        writer = _Writer(module, tables[0] if tables else b"")
        lines = list(writer.lines())
    except IndexError:
        raise BitcodeError("the record of a global is too short") from None
    found = Text("", facts)
    at, parts = 0, []
    for line, place in lines:
        found.starts.append(at)
        found.places.append(place)
        parts.append(line + "\n")
        at += len(line) + 1
    found.text = "".join(parts)
    return found


_OUTSIDE = Place()


class _Writer:
    def __init__(self, module: Block, strings: bytes) -> None:
        self._module, self._strings = module, strings
        self._types = TypeTable(next(iter(module.blocks(TYPES)), None))
        self._values = Values(self._types)
        self._attributes = Attributes(module, self._types)
        self._metadata = Metadata(self._values)
        self._version = 0
        self._symbols: dict[int, str] = {}
        self._lists: dict[int, list[str]] = {_SECTION: [], _COLLECTOR: [], _COMDAT: []}
        self._head: list[str] = []
        #: The globals: the code of their record, the rest of it, and the number of the value.
        self._globals: list[tuple[int, list[int], int]] = []
        self._unnamed = 0

    def lines(self) -> Iterator[tuple[str, Place]]:
        for part in self._module.parts:
            if isinstance(part, Record):
                self._record(part)
            elif part.number == SYMBOLS:
                self._read_symbols(part)
        self._name_globals()
        for part in self._module.parts:
            if isinstance(part, Block) and part.number == CONSTANTS:
                self._values.read(part)
            elif isinstance(part, Block) and part.number in (KINDS, METADATA):
                self._metadata.read(part)
        for line in self._declarations():
            yield line, _OUTSIDE
        bodies = iter(self._module.blocks(FUNCTION))
        operands = self._operands()
        for code, values, number in self._globals:
            if code == _FUNCTION:
                yield from self._function(values, number, operands, bodies)
        trailing = (self._attributes.lines(), self._metadata.named_lines(), self._metadata.lines())
        for each in trailing:
            for line in each:
                yield line, _OUTSIDE
        if self._module.blocks(SUMMARY):
            yield '^0 = module: (path: "")', _OUTSIDE

    # --- records of the module ----------------------------------------------------------------------------------------

    def _record(self, record: Record) -> None:
        code, values = record.code, record.values
        if code == _VERSION:
            self._version = values[0]
        elif code in (_TRIPLE, _LAYOUT):
            self._head.append(f"target {'triple' if code == _TRIPLE else 'datalayout'} = {quoted(text_of(values))}")
        elif code == _SOURCE:
            self._head.append(f"source_filename = {quoted(text_of(values))}")
        elif code == _ASSEMBLER:
            self._head += [f"module asm {quoted(one)}" for one in text_of(values).splitlines()]
        elif code in (_SECTION, _COLLECTOR):
            self._lists[code].append(text_of(values))
        elif code == _COMDAT:
            text = self._in_table(values) if self._version >= _WITH_STRINGS else text_of(values[2:])
            self._lists[code].append(name("$", text))
            self._head.append(f"{self._lists[code][-1]} = comdat any")
        elif code in (_VARIABLE, _FUNCTION, _ALIAS, _IFUNC, _OLD_ALIAS):
            self._global(code, values)

    def _in_table(self, values: list[int]) -> str:
        start, size = values[:2]
        if start + size > len(self._strings):
            raise BitcodeError("a name extends past the table of strings")
        return self._strings[start : start + size].decode("utf-8", "surrogateescape")

    def _global(self, code: int, values: list[int]) -> None:
        number = len(self._values)
        if self._version >= _WITH_STRINGS:
            self._symbols[number] = self._in_table(values)
            values = values[2:]
        type = self._types[values[0]]
        if code == _VARIABLE:
            own = type if values[1] & _EXPLICIT_TYPE or type.pointee is None else type.pointee
            space = values[1] >> 2 if values[1] & _EXPLICIT_TYPE else type.space
        elif code == _FUNCTION:
            own = type.pointee or type
            space = values[16] if len(values) > 16 else 0
            if own.kind != "function":
                raise BitcodeError("a function has no type of one")
        else:
            own = type.pointee or type if code == _OLD_ALIAS else type
            space = type.space if code == _OLD_ALIAS else values[1]
            if code != _OLD_ALIAS:
                values = [values[0], *values[2:]]
        self._values.add(self._types.pointer(own, space))
        self._globals.append((code, values, number))

    def _read_symbols(self, block: Block) -> None:
        for record in block.records:
            if record.code in (_ENTRY, _FUNCTION_ENTRY) and len(record.values) > record.code - 1:
                skipped = 1 if record.code == _ENTRY else 2
                self._symbols.setdefault(record.values[0], text_of(record.values[skipped:]))

    def _name_globals(self) -> None:
        for _, _, number in self._globals:
            own = self._symbols.get(number, "")
            self._values.name(number, name("@", own) if own else f"@{self._unnamed}")
            self._unnamed += not own

    def _operands(self) -> Operands:
        operands = Operands(self._values, self._metadata, self._attributes, self._version >= _RELATIVE)
        for block in self._module.blocks(BUNDLES):
            operands.tags += [text_of(one.values) for one in block.records]
        for block in self._module.blocks(SCOPES):
            operands.scopes += [text_of(one.values) for one in block.records]
        return operands

    # --- statements ---------------------------------------------------------------------------------------------------

    def _declarations(self) -> Iterator[str]:
        yield from self._head
        for text, type in self._types.named.items():
            yield f"{text} = type {type.text if type else 'opaque'}"
        for code, values, number in self._globals:
            if code == _VARIABLE:
                yield self._variable(values, number)
            elif code != _FUNCTION:
                yield self._alias(code, values, number)

    def _word(self, table: tuple[str, ...] | dict[int, str], values: list[int], place: int) -> str:
        """The word for a field of a record, with a blank behind it."""
        number = values[place] if len(values) > place else 0
        word = table.get(number, "") if isinstance(table, dict) else table[number] if number < len(table) else ""
        return f"{word} " if word else ""

    def _listed(self, code: int, values: list[int], place: int) -> str:
        """The text that a field names, from 1; "" for none."""
        number, texts = values[place] if len(values) > place else 0, self._lists[code]
        return texts[number - 1] if 0 < number <= len(texts) else ""

    def _comdat(self, values: list[int], place: int) -> str:
        found = self._listed(_COMDAT, values, place)
        return f"comdat({found})" if found else ""

    @staticmethod
    def _local(values: list[int], place: int, linkage: str, visibility: str) -> str:
        """`dso_local`, unless linkage or visibility imply it."""
        implied = linkage in ("internal ", "private ") or visibility
        return "" if implied or values[place : place + 1] != [1] else "dso_local "

    def _variable(self, values: list[int], number: int) -> str:
        type = self._types[values[0]]
        explicit = values[1] & _EXPLICIT_TYPE
        own = type if explicit or type.pointee is None else type.pointee
        space = values[1] >> 2 if explicit else type.space
        linkage = self._word(names.LINKAGES, values, 3)
        initial = values[2]
        visibility = self._word(names.VISIBILITIES, values, 6)
        words = (linkage or ("" if initial else "external ")) + self._local(values, 13, linkage, visibility)
        words += visibility + self._word(names.STORAGE, values, 10)
        words += self._word(names.THREADS, values, 7) + self._word(names.UNNAMED, values, 8)
        words += f"addrspace({space}) " if space else ""
        words += "externally_initialized " if values[9:10] == [1] else ""
        kind = "constant" if values[1] & 1 else "global"
        text = f"{self._values.text(number)} = {words}{kind} {own.text}"
        text += f" {self._values.text(initial - 1)}" if initial else ""
        section = self._listed(_SECTION, values, 5)
        text += f", section {quoted(section)}" if section else ""
        comdat = self._comdat(values, 11)
        text += f", {comdat}" if comdat else ""
        text += f", align {1 << values[4] - 1}" if 0 < values[4] < 64 else ""
        text += self._metadata.attachments(self._metadata.attached.get(number, []))
        return text + (self._attributes.of_function(values[12]) if len(values) > 12 else "")

    def _alias(self, code: int, values: list[int], number: int) -> str:
        own, aliasee = self._types[values[0]], values[1]
        own = own.pointee or own if code == _OLD_ALIAS else own
        linkage, visibility = self._word(names.LINKAGES, values, 2), self._word(names.VISIBILITIES, values, 3)
        words = linkage + self._local(values, 7, linkage, visibility) + visibility
        words += self._word(names.STORAGE, values, 4)
        words += self._word(names.THREADS, values, 5) + self._word(names.UNNAMED, values, 6)
        kind = "ifunc" if code == _IFUNC else "alias"
        return f"{self._values.text(number)} = {words}{kind} {own.text}, {self._values.typed(aliasee)}"

    # --- functions ----------------------------------------------------------------------------------------------------

    def _function(self, values: list[int], number: int, operands: Operands,
                  bodies: Iterator[Block]) -> Iterator[tuple[str, Place]]:  # fmt: skip
        type = self._types[values[0]]
        type = type.pointee or type
        shown = self._values.text(number)
        if values[2]:
            head = self._head_of(values, type, shown, [one.text for one in type.elements[1:]])
            yield f"declare{self._attached(self._metadata.attached.get(number, []))} {head}", _OUTSIDE
            return
        block = next(bodies, None)
        if block is None:
            raise BitcodeError(f"function {shown} has no body")
        body = Body(block, operands, number, list(type.elements[1:]))
        body.read()
        head = self._head_of(values, type, shown, [one.text for one in type.elements[1:]], body.names)
        attached = [*self._metadata.attached.get(number, []), *body.attached]
        yield f"define {head}{self._attached(attached)} {{", Place(shown)
        for line, count, origin in body.lines():
            yield line, Place(shown, count, origin)
        yield "}", Place(shown)
        for line in body.close():
            yield line, _OUTSIDE

    def _attached(self, values: list[int]) -> str:
        """What is attached to a function, which the text has without commas."""
        return self._metadata.attachments(values).replace(", !", " !")

    def _head_of(self, values: list[int], type: Type, shown: str, params: list[str],
                 given: list[str] | None = None) -> str:  # fmt: skip
        linkage, visibility = self._word(names.LINKAGES, values, 3), self._word(names.VISIBILITIES, values, 7)
        words = linkage + self._local(values, 15, linkage, visibility) + visibility
        words += self._word(names.STORAGE, values, 11)
        convention = names.CONVENTIONS.get(values[1], f"cc {values[1]}")
        attributes = values[4]
        result = self._attributes.of(attributes, RESULT).lstrip()
        words += " ".join(filter(None, (convention, result, type.elements[0].text)))
        each = [one + self._attributes.of(attributes, n) + (f" {given[n - 1]}" if given else "")
                for n, one in enumerate(params, 1)]  # fmt: skip
        text = f"{words} {shown}({', '.join(each + ['...'] * type.open)}) {self._word(names.UNNAMED, values, 9)}"
        text = text.rstrip() + (f" addrspace({values[16]})" if len(values) > 16 and values[16] else "")
        text += self._attributes.of_function(attributes)
        section, collector = self._listed(_SECTION, values, 6), self._listed(_COLLECTOR, values, 8)
        text += f" section {quoted(section)}" if section else ""
        comdat = self._comdat(values, 12)
        text += f" {comdat}" if comdat else ""
        text += f" align {1 << values[5] - 1}" if 0 < values[5] < 64 else ""
        text += f" gc {quoted(collector)}" if collector else ""
        for word, place in (("prefix", 13), ("prologue", 10), ("personality", 14)):
            if len(values) > place and values[place]:
                text += f" {word} {self._values.typed(values[place] - 1)}"
        return text
