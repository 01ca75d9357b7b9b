"""Container bytes → module. Function headers and bodies are decoded when they are first touched."""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import fields
from functools import cached_property
from typing import Any, TypeVar

from ptxtools.diagnostics import PtxError, Span, span_at
from ptxtools.ir import (
    BranchTargets,
    CallPrototype,
    CallTargets,
    Directive,
    Function,
    Loc,
    Module,
    Pragma,
    Scope,
    Variable,
)
from ptxtools.ir.collector import CollectorOff

from . import elf, note
from .code import (
    ENTRY,
    HAS_BODY,
    Columns,
    Shapes,
    build_items,
    cumulative,
    decode_columns,
    decode_joined_columns,
)
from .codec import Cursor, decode_numbers, decode_plain_strings, decode_strings, unpack_column
from .data import image_reader
from .errors import DAMAGE, DAMAGED, NEWER, Damage, fail
from .layout import REGISTER_CLASSES, Descriptor
from .pool import OperandPool
from .records import FUNCTION, LINKAGE, read_attributes, read_directives, read_record
from .source import NAME_PART, Canonical, ContainerSource, OriginalSource, Origins, places_of_body, span_of
from .tables import ORIGINS, tables_of

T = TypeVar("T")
#: Most bytes of code for a byte of the file, beyond what is free.
_FREE, _MOST_RATIO = 4 << 20, 64
#: Fields of a function in `.ptx.functions`.
_FUNCTION_FIELDS = 6


def read(data: bytes, name: str = "<container>", *, canonical: Canonical | None = None) -> Module:
    """The module of a container. Raises PtxError when the bytes are damaged or of a newer format.

    canonical gives the same module parsed from its printed text: it is called when somebody asks for a line.
    Everything is verified by the content hash first; bodies are decoded on first touch.
    """
    with CollectorOff():
        container = Container(data, name)
        module = container.guarded(container.module)
        module.source = container.source(canonical)
    return module


def decode_all(module: Module) -> Module:
    """Decode every header and body now, quicker than one by one. Returns the module itself; raises PtxError."""
    with CollectorOff():
        for function in module.functions:
            if isinstance(function, LazyFunction):
                function.decode()
            if function.body is not None:
                len(function.body.items)
    return module


class Container:
    """An open container: its tables, decoded as they are needed. It knows no module made of it: that makes no cycle."""

    def __init__(self, data: bytes, name: str) -> None:
        self.name = name
        self.file = self.guarded(_verified, data, name)
        #: Bytes of code that the bodies of a module may have together, and may still have.
        self._most_code = self._code_left = _FREE + _MOST_RATIO * len(data)
        self.notes = note.decode_notes(bytes(self.file.find(note.SECTION).data))
        self._patterns: dict[int, tuple[Any, ...]] = {}
        #: What makes another node for a record that was decoded before: its type and fields.
        self._flat: dict[int, tuple[Callable[..., Any], tuple[Any, ...]]] = {}

    def guarded(self, decode: Callable[..., T], *args: Any) -> T:
        """Run a decoder; bytes that make no sense become a PtxError."""
        try:
            return decode(*args)
        except PtxError:
            raise
        except DAMAGE as error:
            why = str(error) if isinstance(error, Damage) else f"its content makes no sense ({type(error).__name__})"
            fail(DAMAGED, f"the container is damaged: {why}", self.name)

    # --- tables ---------------------------------------------------------------------------------------------------

    @cached_property
    def major(self) -> int:
        """Of the format."""
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
        return Shapes(bytes(self._tables["shapes"]), self.strings, joined=self.major < 2)

    @cached_property
    def locs(self) -> list[tuple[int, int, int]]:
        data = self._tables["lines"]
        count, *widths = struct.unpack_from("<IBBB", data)
        columns, at = [], 8
        for width in widths:
            column = unpack_column(data[at : at + count * width], width)
            if len(column) != count:
                raise Damage("the table of lines is cut off")
            columns.append(column)
            at += count * width
        return list(zip(*columns, strict=True))

    @cached_property
    def origins(self) -> Origins:
        take = iter(decode_numbers(bytes(self._tables[ORIGINS]))).__next__
        origins: Origins = []
        for _ in range(self._records[0]):
            name = self.strings[take()]
            origins.append((name, [(take(), take(), take()) for _ in range(take())]))
        return origins

    def original_name(self) -> str | None:
        """Name of the first text that the module was made from, if it was kept (`-g`)."""
        if ORIGINS not in self._tables:
            return None
        return next((name for name, _ in self.origins if name), self.name)

    @cached_property
    def _records(self) -> tuple[int, list[int], memoryview]:
        """Number of items, start of each record in the content behind, that content."""
        data = self._tables["records"]
        items, count, width = struct.unpack_from("<III", data)
        end = 12 + count * width
        if end + count > len(data):  # every record has a byte
            raise Damage("the records are cut off")
        starts = cumulative(unpack_column(data[12:end], width))
        content = data[end:]
        if len(starts) != count + 1 or starts[-1] != len(content) or items > count:
            raise Damage("the records are cut off")
        return items, starts, content

    def cursor(self, number: int) -> Cursor:
        """For reading a record."""
        _, starts, content = self._records
        return Cursor(decode_numbers(bytes(content[starts[number] : starts[number + 1]])), self.strings)

    def record(self, number: int) -> Any:
        """A new node for the record. Declarations repeat from function to function: what was decoded is kept."""
        known = self._flat.get(number)
        if known is not None:
            make, values = known
            return make(*values)
        node = read_record(self.cursor(number), image_reader(lambda n: self.file.content(self.file.sections[n])))
        if type(node) in _FLAT and getattr(node, "init", None) is None:
            self._flat[number] = type(node), tuple([getattr(node, field) for field in _FLAT[type(node)]])
        return node

    # --- the module -----------------------------------------------------------------------------------------------

    def module(self) -> Module:
        """A new tree, without a source."""
        self._code_left = self._most_code
        count = self._records[0]
        functions = self._functions()
        items: list[Any] = []
        for number in range(count):
            function = functions.get(number)
            if function is None:
                node = self.record(number)
                node.span = span_of(number)
                if isinstance(node, Variable):
                    node.name_span = span_of(number, NAME_PART)
                items.append(node)
            else:
                items.append(function)
        if len(functions) > count or (functions and max(functions) >= count):
            raise Damage("a function is no item of the module")
        return Module(items)

    def _functions(self) -> dict[int, Function]:
        numbers = decode_numbers(bytes(self._tables["functions"]))
        if len(numbers) % _FUNCTION_FIELDS:
            raise Damage("the table of functions is cut off")
        strings, symbols, first_loc, last = self.strings, self.symbols, 0, -1
        found: dict[int, Function] = {}
        rows = iter(numbers)
        for item, flags, name, linkage, symbol, locs in zip(*[rows] * _FUNCTION_FIELDS, strict=True):
            place = symbols.place(symbol) if flags & HAS_BODY else None
            if not last < item < self._records[0]:
                raise Damage("the table of functions is in no order")
            last = item
            if not strings[name] or strings[linkage] not in LINKAGE:
                raise Damage("a function without a name")
            found[item] = LazyFunction.of(self, item, flags, strings[name], strings[linkage], place,
                                          range(first_loc, first_loc + locs))  # fmt: skip
            first_loc += locs
        return found

    def header(self, item: int) -> tuple[dict[str, Any], Cursor]:
        """The remaining fields of a function; its figures are what the cursor reads next."""
        c = self.cursor(item)
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
        found = []
        take, strings, known = c.next, self.strings, self._patterns
        for _ in range(take()):
            name, pattern = strings[take()], take()
            others = known.get(pattern) or self._pattern(pattern)
            found.append(Variable(name, *others, span, span))  # type: ignore[call-arg]
        return found

    def _pattern(self, number: int) -> tuple[Any, ...]:
        """All fields but the name of the parameters that a record describes."""
        node = self.record(number)
        if not isinstance(node, Variable) or node.init is not None:
            raise Damage("a parameter that is no plain variable")
        self._patterns[number] = self._flat[number][1][1:]
        return self._patterns[number]

    def descriptor(self, item: int) -> Descriptor:
        """The figures of a function."""
        found, c = self.header(item)
        d = Descriptor(param_bytes=c.next())
        d.params = [(c.next(), c.next(), c.next()) for _ in found["params"]]
        d.registers = {name: c.next() for name in REGISTER_CLASSES}
        d.shared, d.local, d.const, d.instructions = [c.next() for _ in range(4)]
        return d

    def body(self, item: int, place: elf.Place, locs: range) -> list[Any]:
        """The statements of a function."""
        section, start, size = place
        self._code_left -= size  # when many symbols share one place, it is soon used up
        if self._code_left < 0:
            raise Damage("function bodies overlap")
        with CollectorOff():
            columns = self._columns(self.file.content(self.file.sections[section])[start : start + size])
            rows = self.locs[locs.start : locs.stop] if locs else ()
            places = places_of_body(item, len(columns[0]))
            return build_items(columns, self.shapes, self.pool, rows, self._statement, places)

    def _columns(self, code: memoryview) -> Columns:
        return decode_columns(code) if self.major >= 2 else decode_joined_columns(code, self.shapes, self.pool)

    def _statement(self, number: int, place: int) -> Any:
        """A new node for a record in a body."""
        span, known = span_at(place), self._flat.get(number)
        if known is not None:
            make, values = known
            return make(*values, span)
        node = self.record(number)
        if type(node) not in _STATEMENTS:
            raise Damage("a statement that is none")
        node.span = span
        return node

    def source(self, canonical: Canonical | None) -> ContainerSource:
        """Where positions in a module of the container are looked up."""
        name = self.guarded(self.original_name)
        if name is None:
            return ContainerSource(self.name, self.module, canonical)
        return OriginalSource(name, self.module, canonical, lambda: self.origins)


def _verified(data: bytes, name: str) -> elf.ElfFile:
    """The ELF file after format version and content hash were checked."""
    file = elf.parse_elf(data)
    if file.machine != elf.MACHINE:
        raise Damage(f"its machine number is {file.machine:#x}, not {elf.MACHINE:#x}")
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


#: What may stand in a body beside instructions, labels and scopes.
_STATEMENTS = (Variable, Directive, Pragma, Loc, BranchTargets, CallTargets, CallPrototype)
#: Statements whose fields never change, so that nodes can share them; the fields without the span.
_FLAT = {kind: [field.name for field in fields(kind) if field.compare]
         for kind in (Variable, Directive, Pragma, Loc, BranchTargets, CallTargets)}  # fmt: skip
_HEADER_FIELDS = ("params", "returns", "directives", "attributes", "variadic")


class LazyScope(Scope):
    """A function's outermost scope whose statements are decoded on first touch."""

    __slots__ = ("_body", "_container")
    __hash__ = None  # type: ignore[assignment]

    _container: Container | None
    #: What the container calls it: item, place, rows of lines.
    _body: tuple[int, elf.Place, range]

    @classmethod
    def of(cls, container: Container, body: tuple[int, elf.Place, range], span: Span) -> LazyScope:
        self = cls.__new__(cls)
        self._container, self._body, self.span = container, body, span
        return self

    def __getattr__(self, name: str) -> Any:
        container = self._container
        if name != "items" or container is None:
            raise AttributeError(name)
        self.items = container.guarded(container.body, *self._body)
        self._container = None
        return self.items

    def __eq__(self, other: object) -> bool:
        return self.items == other.items if isinstance(other, Scope) else NotImplemented

    def __repr__(self) -> str:
        return f"Scope(items={self.items!r})"

    def __reduce__(self) -> Any:
        return Scope, (self.items, self.span)


class LazyFunction(Function):
    """A function whose header and body are decoded on first touch. `descriptor` has the stored figures."""

    __slots__ = ("_container", "_header", "_item")
    __hash__ = None  # type: ignore[assignment]

    _container: Container
    _item: int
    _header: dict[str, Any] | None

    @classmethod
    def of(cls, container: Container, item: int, flags: int, name: str, linkage: str, place: elf.Place | None,
           locs: range) -> LazyFunction:  # fmt: skip
        self = cls.__new__(cls)
        self._container, self._item, self._header = container, item, None
        self.kind = "entry" if flags & ENTRY else "func"
        self.name, self.linkage = name, linkage
        self.span, self.name_span = span_of(item), span_of(item, NAME_PART)
        self.body = None if place is None else LazyScope.of(container, (item, place, locs), self.span)
        return self

    def decode(self) -> dict[str, Any]:
        """The fields of the header. One that was set meanwhile is not asked for."""
        if self._header is None:
            container = self._container
            self._header, _ = container.guarded(container.header, self._item)
        return self._header

    def __getattr__(self, name: str) -> Any:
        if name not in _HEADER_FIELDS:
            raise AttributeError(name)
        value = self.decode()[name]
        setattr(self, name, value)
        return value

    @property
    def descriptor(self) -> Descriptor:
        """The stored figures."""
        return self._container.guarded(self._container.descriptor, self._item)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Function):
            return NotImplemented
        return all(getattr(self, f) == getattr(other, f) for f in ("kind", "name", *_HEADER_FIELDS, "body", "linkage"))

    def __repr__(self) -> str:
        return f"Function(kind={self.kind!r}, name={self.name!r}, …)"

    def __reduce__(self) -> Any:
        return Function, (self.kind, self.name, self.params, self.returns, self.directives, self.body, self.linkage,
                          self.attributes, self.variadic, self.span, self.name_span)  # fmt: skip
