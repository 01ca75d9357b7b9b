"""Container bytes → module. Function headers and bodies are decoded on first access."""

from __future__ import annotations

import struct
from collections.abc import Callable
from functools import cached_property
from typing import Any, TypeVar

from ptxtools.diagnostics import PtxError, Span
from ptxtools.ir import Function, Module, Variable
from ptxtools.ir.collector import CollectorOff

from . import elf, note
from .code import (
    HAS_BODY,
    Columns,
    Shapes,
    build_items,
    decode_columns,
    decode_joined_columns,
)
from .codec import Cursor, decode_numbers, decode_plain_strings, decode_strings, unpack_column
from .errors import DAMAGE, DAMAGED, NEWER, Damage, fail
from .layout import REGISTER_CLASSES, Descriptor
from .lazy import LazyFunction, LazySection
from .magic import MACHINE
from .pool import OperandPool
from .records import FUNCTION, LINKAGE, read_attributes, read_directives
from .recordtable import RecordTable
from .source import NAME_PART, Canonical, ContainerSource, OriginalSource, Origins, places_of_body, span_of
from .tables import ORIGINS, tables_of

T = TypeVar("T")
#: The most bytes of code per byte of the file, beyond a free allowance.
_FREE, _MOST_RATIO = 4 << 20, 64
#: Fields of a function in `.ptx.functions`.
_FUNCTION_FIELDS = 6


def read(data: bytes, name: str = "<container>", *, canonical: Canonical | None = None) -> Module:
    """The module of a container. Raises PtxError if the bytes are damaged or of a newer format.

    canonical returns the same module parsed from its printed text; it is called on the first request for a line.
    The content hash is verified first; bodies are decoded on first access.
    """
    with CollectorOff():
        container = Container(data, name)
        module = container.guarded(container.module)
        module.source = container.source(canonical)
    return module


def decode_all(module: Module) -> Module:
    """Decode every header and body now, which is faster than one by one. Returns the module itself; raises PtxError."""
    with CollectorOff():
        for function in module.functions:
            if isinstance(function, LazyFunction):
                function.decode()
        for function in module.functions:
            if function.body is not None:
                len(function.body.items)
        for item in module.items:
            if isinstance(item, LazySection):
                len(item.lines)
    return module


class Container:
    """An open container: its tables, decoded on demand. It has no reference to its modules, which avoids cycles."""

    def __init__(self, data: bytes, name: str) -> None:
        self.name = name
        self.file = self.guarded(_verified, data, name)
        #: The limit on the bytes of code in a module's bodies, and the remainder.
        self._most_code = self._code_left = _FREE + _MOST_RATIO * len(data)
        self.notes = note.decode_notes(bytes(self.file.find(note.SECTION).data))

    def guarded(self, decode: Callable[..., T], *args: Any) -> T:
        """Run a decoder; invalid bytes raise a PtxError."""
        try:
            return decode(*args)
        except PtxError:
            raise
        except DAMAGE as error:
            why = str(error) if isinstance(error, Damage) else f"its content is invalid ({type(error).__name__})"
            fail(DAMAGED, f"the container is damaged: {why}", self.name)

    # --- tables ---------------------------------------------------------------------------------------------------

    @cached_property
    def major(self) -> int:
        """The major version of the format."""
        return int.from_bytes(self.notes[note.NT_FORMAT][1][:2], "little")

    @cached_property
    def _tables(self) -> dict[str, memoryview]:
        return tables_of(self.file, self.major)

    @cached_property
    def strings(self) -> list[str]:
        data = bytes(self._tables["strings"])
        return decode_strings(data) if self.major >= 2 else decode_plain_strings(data)

    @cached_property
    def symbols(self) -> elf.SymbolTable:
        return self.file.symbols()

    @cached_property
    def pool(self) -> OperandPool:
        return OperandPool(self._tables["operands"], self.strings)

    @cached_property
    def shapes(self) -> Shapes:
        shapes = Shapes(bytes(self._tables["shapes"]), self.strings, joined=self.major < 2)
        if repeats := self._tables.get("repeats"):
            places = range(len(repeats))
            shapes.repeat(build_items(decode_columns(repeats), shapes, self.pool, (), {}, places))
        return shapes

    @cached_property
    def locs(self) -> list[tuple[int, int, int]]:
        data = self._tables["lines"]
        count, *widths = struct.unpack_from("<IBBB", data)
        columns, at = [], 8
        for width in widths:
            column = unpack_column(data[at : at + count * width], width)
            if len(column) != count:
                raise Damage("the table of lines is truncated")
            columns.append(column)
            at += count * width
        return list(zip(*columns, strict=True))

    @cached_property
    def origins(self) -> Origins:
        take = iter(decode_numbers(bytes(self._tables[ORIGINS]))).__next__
        origins: Origins = []
        for _ in range(self.records.count):
            name = self.strings[take()]
            origins.append((name, [(take(), take(), take()) for _ in range(take())]))
        return origins

    def original_name(self) -> str | None:
        """The name of the first text that the module was made from, if recorded (`-g`)."""
        if ORIGINS not in self._tables:
            return None
        return next((name for name, _ in self.origins if name), self.name)

    @cached_property
    def records(self) -> RecordTable:
        return RecordTable(self._tables["records"], self.strings, self.file.content_of)

    # --- the module -----------------------------------------------------------------------------------------------

    def module(self) -> Module:
        """Create a new tree, without a source."""
        self._code_left = self._most_code
        count = self.records.count
        functions = self._functions()
        items: list[Any] = []
        for number in range(count):
            items.append(functions.get(number) or self._item(number))
        if len(functions) > count or (functions and max(functions) >= count):
            raise Damage("a function is not an item of the module")
        return Module(items)

    def _item(self, number: int) -> Any:
        """Create a node for an item other than a function."""
        if self.records.is_section(number):
            return LazySection.of(self, number)
        node = self.records.node(number)
        node.span = span_of(number)
        if isinstance(node, Variable):
            node.name_span = span_of(number, NAME_PART)
        return node

    def _functions(self) -> dict[int, Function]:
        numbers = decode_numbers(bytes(self._tables["functions"]))
        if len(numbers) % _FUNCTION_FIELDS:
            raise Damage("the table of functions is truncated")
        strings, symbols, first_loc, last = self.strings, self.symbols, 0, -1
        found: dict[int, Function] = {}
        rows = iter(numbers)
        for item, flags, name, linkage, symbol, locs in zip(*[rows] * _FUNCTION_FIELDS, strict=True):
            place = symbols.place(symbol) if flags & HAS_BODY else None
            if not last < item < self.records.count:
                raise Damage("the table of functions is out of order")
            last = item
            if not strings[name] or strings[linkage] not in LINKAGE:
                raise Damage("a function without a name")
            found[item] = LazyFunction.of(self, item, flags, strings[name], strings[linkage], place,
                                          range(first_loc, first_loc + locs))  # fmt: skip
            first_loc += locs
        return found

    def header(self, item: int) -> tuple[dict[str, Any], Cursor]:
        """The remaining fields of a function; the cursor is then at its descriptor."""
        c = self.records.cursor(item)
        if c.next() != FUNCTION:
            raise Damage("a function without a header")
        variadic, span = bool(c.next()), span_of(item)
        returns, params = self._parameters(c, span), self._parameters(c, span)
        directives, attributes = read_directives(c), read_attributes(c)
        for directive in directives:
            directive.span = span
        return {"variadic": variadic, "returns": returns, "params": params, "directives": directives,
                "attributes": attributes}, c  # fmt: skip

    def _parameters(self, c: Cursor, span: Span) -> list[Variable]:
        take, strings, pattern = c.next, self.strings, self.records.pattern
        return [Variable(strings[take()], *pattern(take()), span, span) for _ in range(take())]  # type: ignore[call-arg]

    def descriptor(self, item: int) -> Descriptor:
        """The descriptor of a function."""
        found, c = self.header(item)
        d = Descriptor(param_bytes=c.next())
        d.params = [(c.next(), c.next(), c.next()) for _ in found["params"]]
        d.registers = {name: c.next() for name in REGISTER_CLASSES}
        d.shared, d.local, d.const, d.instructions = [c.next() for _ in range(4)]
        return d

    def body(self, item: int, place: elf.SymbolExtent, locs: range) -> list[Any]:
        """The statements of a function."""
        section, start, size = place
        self._code_left -= size  # when many symbols share one place, it is soon used up
        if self._code_left < 0:
            raise Damage("function bodies overlap")
        with CollectorOff():
            columns = self._columns(self.file.content_of(section)[start : start + size])
            rows = self.locs[locs.start : locs.stop] if locs else ()
            places = places_of_body(item, len(columns[0]))
            return build_items(columns, self.shapes, self.pool, rows, self.records, places)

    def _columns(self, code: memoryview) -> Columns:
        return decode_columns(code) if self.major >= 2 else decode_joined_columns(code, self.shapes, self.pool)

    def source(self, canonical: Canonical | None) -> ContainerSource:
        """The source for positions in a module of the container."""
        name = self.guarded(self.original_name)
        if name is None:
            return ContainerSource(self.name, self.module, canonical)
        return OriginalSource(name, self.module, canonical, lambda: self.origins)


def _verified(data: bytes, name: str) -> elf.ElfFile:
    """The ELF file after format version and content hash were checked."""
    file = elf.parse_elf(data)
    if file.machine != MACHINE:
        raise Damage(f"its machine number is {file.machine:#x}, not {MACHINE:#x}")
    section = file.find(note.SECTION)
    notes = note.decode_notes(bytes(section.data))
    if len(notes.get(note.NT_FORMAT, (0, b""))[1]) != 4 or note.NT_SHA256 not in notes:
        raise Damage("it has no format version or no content hash")
    major, minor = struct.unpack("<HH", notes[note.NT_FORMAT][1])
    place, wanted = notes[note.NT_SHA256]
    if note.digest(data, section.offset + place) != wanted:
        raise Damage("its content hash differs")
    if major > note.FORMAT[0]:
        fail(NEWER, f"the container has format {major}.{minor}; this version reads up to {note.FORMAT[0]}.x", name)
    return file
