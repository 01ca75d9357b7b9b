"""The text of a module in bitcode, in the dialect that it was written in, and where its instructions stand in it."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator

from ptxtools.diagnostics.origin import Origin
from ptxtools.records import dataclass, field

from .attributes import Attributes
from .declarations import COMDAT, EXPLICIT_TYPE, GARBAGE_COLLECTOR, IFUNC, OLD_ALIAS, SECTION, Declarations
from .facts import Facts, note_facts
from .functions import Body
from .metadata import Metadata
from .names import name, quoted
from .nodes import LAST_WITH_PUBNAMES
from .operands import Operands
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

_VERSION, _TRIPLE, _LAYOUT, _ASSEMBLER, _VARIABLE, _FUNCTION, _ALIAS, _SOURCE = 1, 2, 3, 4, 7, 8, 14, 16
_ENTRY, _FUNCTION_ENTRY = 1, 3
#: The version of the records: operands relative to the instruction, and names in a table of strings.
_RELATIVE, _WITH_STRINGS = 1, 2


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
        writer = _Writer(module, tables[0] if tables else b"", facts.version)
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


class _Writer(Declarations):
    def __init__(self, module: Block, strings: bytes, version: int) -> None:
        """version: of the LLVM that wrote it, 0 if that is not known."""
        self._module, self._strings = module, strings
        self._types = TypeTable(next(iter(module.blocks(TYPES)), None))
        self._values = Values(self._types)
        self._attributes = Attributes(module, self._types)
        self._metadata = Metadata(self._values, old=0 < version <= LAST_WITH_PUBNAMES)
        self._version = 0
        self._symbols: dict[int, str] = {}
        self._lists: dict[int, list[str]] = {SECTION: [], GARBAGE_COLLECTOR: [], COMDAT: []}
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
        elif code in (SECTION, GARBAGE_COLLECTOR):
            self._lists[code].append(text_of(values))
        elif code == COMDAT:
            text = self._in_table(values) if self._version >= _WITH_STRINGS else text_of(values[2:])
            self._lists[code].append(name("$", text))
            self._head.append(f"{self._lists[code][-1]} = comdat any")
        elif code in (_VARIABLE, _FUNCTION, _ALIAS, IFUNC, OLD_ALIAS):
            self._global(code, values)

    def _in_table(self, values: list[int]) -> str:
        start, size = values[0], values[1]
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
            own = type if values[1] & EXPLICIT_TYPE or type.pointee is None else type.pointee
            space = values[1] >> 2 if values[1] & EXPLICIT_TYPE else type.space
        elif code == _FUNCTION:
            own = type.pointee or type
            space = values[16] if len(values) > 16 else 0
            if own.kind != "function":
                raise BitcodeError("a function has no type of one")
        else:
            own = type.pointee or type if code == OLD_ALIAS else type
            space = type.space if code == OLD_ALIAS else values[1]
            if code != OLD_ALIAS:
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
