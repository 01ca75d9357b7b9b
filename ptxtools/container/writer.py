"""Module → container bytes. The format is described in docs/container.md."""

from __future__ import annotations

import struct
from typing import Any

from ptxtools.diagnostics import NO_SPAN, Source, Span
from ptxtools.ir import Alias, Directive, File, Function, Item, Label, Loc, Module, Scope, Section, Statement, Variable
from ptxtools.ir.collector import CollectorOff
from ptxtools.ir.nodes import LOC_INTERMEDIATE, SOURCES
from ptxtools.ir.references import local_names
from ptxtools.ir.sections import section_image, section_labels

from . import elf, note
from .code import ENTRY, HAS_BODY, Body, CodeWriter, ordinals
from .codec import Builder, Strings, encode_numbers, pack_column, width_for
from .data import R_OPERAND, DataSections, binding_of
from .errors import UNWRITABLE, fail
from .layout import REGISTER_CLASSES, Descriptor, describe
from .operands import Pool
from .records import FUNCTION, KINDS, ImageInit, write_attributes, write_directives, write_record, write_variable
from .repeats import fold
from .source import LinkedSource
from .tables import SECTION, encode_tables


def write(module: Module, *, debug: bool = False, strip_debug: bool = False, compress: bool = False) -> bytes:
    """The container of a module.

    debug: keep the source's name and line numbers; strip_debug: leave out `.loc`, `.file` and DWARF sections;
    compress: sections are compressed by zlib. The same module gives the same bytes everywhere (compressed ones: with
    the same zlib). Raises PtxError when a figure is beyond the format.
    """
    if strip_debug:
        module = without_debug(module)
    try:
        with CollectorOff():
            return _Writer(module, compress).write(debug)
    except (ValueError, OverflowError, struct.error) as error:
        fail(UNWRITABLE, f"the module cannot be written: {error}", module.source.name if module.source else "<module>")


def _is_location(item: Item | Statement) -> bool:
    """Whether it only says where code comes from."""
    return isinstance(item, Loc) or (isinstance(item, Directive) and item.name in (LOC_INTERMEDIATE, SOURCES))


def without_debug(module: Module) -> Module:
    """A copy without `.loc`, `.file` and DWARF sections; everything else is shared."""

    def strip(scope: Scope) -> Scope:
        items: list[Statement] = [strip(i) if isinstance(i, Scope) else i for i in scope.items if not _is_location(i)]
        return Scope(items, scope.span)

    kept: list[Any] = []
    for item in module.items:
        if isinstance(item, Function) and item.body is not None:
            item = Function(item.kind, item.name, item.params, item.returns, item.directives, strip(item.body),
                            item.linkage, item.attributes, item.variadic, item.span, item.name_span)  # fmt: skip
        if (
            not isinstance(item, File)
            and not _is_location(item)
            and not (isinstance(item, Section) and item.name.startswith(".debug"))
        ):
            kept.append(item)
    return Module(kept, module.source)


class _Writer:
    def __init__(self, module: Module, compress: bool) -> None:
        self.module = module
        self.compress = compress
        self.strings = Strings()
        self.pool = Pool()
        self.code = CodeWriter(self.pool)
        self.elf = elf.ElfWriter()
        self.data = DataSections(self.elf)
        #: Records of the items come first, one each; then those of statements.
        self.records: list[bytes] = [b""] * len(module.items)
        self.record_of: dict[bytes, int] = {}
        #: Declarations inside the function that is being written.
        self.declared: list[Variable] = []
        self.symbols: list[elf.Symbol] = []
        self.symbol_of: dict[str, int] = {}
        #: Number of the item, the function, its body, its rows of lines.
        self.functions: list[tuple[int, Function, Body, int]] = []
        self.function_symbols: list[int] = []
        #: DWARF sections: number and content.
        self.debug: list[tuple[int, Section]] = []

    def write(self, debug: bool) -> bytes:
        self.elf.add(elf.Section(note.SECTION, elf.SHT_NOTE, note.encode_notes(), align=4))
        tables = self.elf.add(elf.Section(SECTION, elf.SHT_PROGBITS))
        for number, item in enumerate(self.module.items):
            self._item(number, item)
        self._declared_symbols()
        pool, final, first_guard = self.pool.finish(self.strings)
        for _, _, body, _ in self.functions:
            body.finish(final, first_guard)
        named = self._named_by_operands(final)
        repeats = fold([body for _, _, body, _ in self.functions], list(self.code.shapes), named)
        bodies = self._bodies()
        self._debug_sections(bodies)
        numbers = self.elf.add_symbols(self.symbols)
        self._relocate(bodies, numbers, named)
        shapes = self.code.encode_shapes(self.strings)
        contents = [self._functions(numbers), self._records(), pool, shapes, self._locs(),
                    repeats.encode() if repeats.heads else b""]  # fmt: skip
        if debug and self.module.source is not None:
            contents.append(self._origins())
        self.data.finish()
        self._fill(self.elf.sections[tables], encode_tables([self.strings.encode(), *contents]))
        if self.compress:
            self._compress()
        data = self.elf.finish()
        return note.seal(data, self.elf.sections[1].offset)

    # --- items ----------------------------------------------------------------------------------------------------

    def _item(self, number: int, item: Any) -> None:
        if isinstance(item, Function):
            self._function(number, item)
            return
        image: ImageInit | None = None
        if isinstance(item, Variable):
            symbol, image = self.data.place(item)
            self._define(symbol)
        elif isinstance(item, Section):
            self.debug.append((self.elf.add(elf.Section(item.name, elf.SHT_PROGBITS)), item))
        self.records[number] = self._record(item, image)

    def _record(self, node: Any, image: ImageInit | None = None) -> bytes:
        builder = Builder(self.strings)
        write_record(node, builder, image)
        return encode_numbers(builder.numbers)

    def _statement(self, node: Any) -> int:
        """File a statement that is no instruction, label or plain `.loc`; its record's number, equal ones share it."""
        if isinstance(node, Variable):
            self.declared.append(node)
        return self._shared(self._record(node))

    def _shared(self, content: bytes) -> int:
        number = self.record_of.get(content)
        if number is None:
            number = self.record_of[content] = len(self.records)
            self.records.append(content)
        return number

    def _parameters(self, parameters: list[Variable], builder: Builder) -> None:
        """Each as its name and the record of everything else, which many share."""
        builder.add(len(parameters))
        for parameter in parameters:
            pattern = Builder(self.strings)
            pattern.add(KINDS[Variable])
            write_variable(parameter, pattern, named=False)
            builder.text(parameter.name)
            builder.add(self._shared(encode_numbers(pattern.numbers)))

    def _function(self, number: int, function: Function) -> None:
        locs = len(self.code.locs)
        self.declared = []
        body = Body() if function.body is None else self.code.collect(function.body, self._statement)
        descriptor = describe(function, self.declared)
        descriptor.instructions = body.instructions
        self.functions.append((number, function, body, len(self.code.locs) - locs))
        self.records[number] = self._header(function, descriptor)

    def _header(self, function: Function, d: Descriptor) -> bytes:
        builder = Builder(self.strings)
        builder.add(FUNCTION, function.variadic)
        self._parameters(function.returns, builder)
        self._parameters(function.params, builder)
        write_directives(function.directives, builder)
        write_attributes(function.attributes, builder)
        builder.add(d.param_bytes, *(number for place in d.params for number in place))
        builder.add(*(d.registers[name] for name in REGISTER_CLASSES))
        builder.add(d.shared, d.local, d.const, d.instructions)
        return encode_numbers(builder.numbers)

    # --- symbols --------------------------------------------------------------------------------------------------

    def _define(self, symbol: elf.Symbol) -> None:
        """A definition wins over a declaration of the same name."""
        known = self.symbol_of.get(symbol.name)
        if known is None:
            self.symbol_of[symbol.name] = len(self.symbols)
            self.symbols.append(symbol)
        elif self.symbols[known].section == elf.SHN_UNDEF:
            self.symbols[known] = symbol

    def _declared_symbols(self) -> None:
        """Functions and aliases; places are filled in later. Each body has a symbol of its own."""
        taken: set[int] = set()
        for _, function, _, _ in self.functions:
            self._define(elf.Symbol(function.name, elf.STT_FUNC, _declared_binding(function.linkage)))
            number = self.symbol_of[function.name]
            if function.body is not None:
                if number in taken:
                    number = len(self.symbols)
                    self.symbols.append(elf.Symbol(function.name, elf.STT_FUNC, elf.STB_GLOBAL))
                taken.add(number)
                entry = function.kind == "entry" and not function.linkage
                self.symbols[number].binding = elf.STB_GLOBAL if entry else binding_of(function.linkage)
            self.function_symbols.append(number)
        for item in self.module.items:
            if isinstance(item, Alias):
                self._define(elf.Symbol(item.name, elf.STT_FUNC, elf.STB_GLOBAL))

    def _bodies(self) -> list[tuple[int, int, Function, Body]]:
        """Place the code; (section, offset in it, function, body) of each."""
        bodies = []
        whole = self.elf.add(elf.Section(".text", elf.SHT_PROGBITS, flags=elf.SHF_EXECINSTR, align=4)) if (
            self.compress) else 0  # fmt: skip
        text = bytearray()
        for n, (_, function, body, _) in enumerate(self.functions):
            if function.body is None:
                continue
            code = body.encode()
            offset = len(text) if whole else 0
            section = whole or self.elf.add(elf.Section(f".text.{function.name}", elf.SHT_PROGBITS, code,
                                                        elf.SHF_ALLOC | elf.SHF_EXECINSTR, 4))  # fmt: skip
            if whole:
                text += code + bytes(-len(code) % 4)
            symbol = self.symbols[self.function_symbols[n]]
            symbol.section, symbol.value, symbol.size = section, offset, len(code)
            bodies.append((section, offset, function, body))
        if whole:
            self._fill(self.elf.sections[whole], bytes(text))
        self._place_aliases()
        return bodies

    def _place_aliases(self) -> None:
        for item in self.module.items:
            if isinstance(item, Alias) and item.target in self.symbol_of:
                alias, target = (self.symbols[self.symbol_of[n]] for n in (item.name, item.target))
                alias.section, alias.value, alias.size = target.section, target.value, target.size

    def _debug_sections(self, bodies: list[tuple[int, int, Function, Body]]) -> None:
        """Fill them, now that code and data have their places."""
        if not self.debug:
            return
        places = section_labels(section for _, section in self.debug)
        for _, offset, function, body in bodies:
            for ordinal, statement in ordinals(function.body):  # type: ignore[arg-type]
                if isinstance(statement, Label):
                    places.setdefault(statement.name, offset + body.statement_offset(ordinal - 1))
        for symbol in self.symbols:
            if symbol.section != elf.SHN_COMMON:
                places.setdefault(symbol.name, symbol.value)
        for number, section in self.debug:
            self._fill(self.elf.sections[number], section_image(section, lambda name: places.get(name, 0)))

    def _relocate(self, bodies: list[tuple[int, int, Function, Body]], numbers: list[int],
                  named: dict[int, list[str]]) -> None:  # fmt: skip
        """Say where code and data refer to symbols of the module. named: those that operands contain."""
        for section, offset, function, body in bodies:
            used = named.keys() & set(body.operands)
            if not used:
                continue
            own = local_names(function)
            used = {n for n in used if any(name not in own for name in named[n])}
            rows = self.elf.relocations.setdefault(section, []) if used else []
            for index, operand in enumerate(body.operands):
                if operand in used:
                    place = offset + body.operand_offset(index)
                    rows += [elf.Relocation(place, numbers[self.symbol_of[name]], R_OPERAND)
                             for name in named[operand] if name not in own]  # fmt: skip
        for section, offset, name, kind, addend in self.data.relocations:
            if name in self.symbol_of:
                row = elf.Relocation(offset, numbers[self.symbol_of[name]], kind, addend)
                self.elf.relocations.setdefault(section, []).append(row)

    def _named_by_operands(self, final: list[int]) -> dict[int, list[str]]:
        """Names of module symbols that an operand contains, by final operand number."""
        shapes = self.pool.shapes
        inside: list[list[str]] = []
        for _, parts, _, text in shapes:
            inside.append([text] if text in self.symbol_of else [n for p in parts for n in inside[p]])
        return {final[n]: names for n, names in enumerate(inside) if names}

    # --- tables ---------------------------------------------------------------------------------------------------

    def _functions(self, numbers: list[int]) -> bytes:
        out: list[int] = []
        for n, (item, function, _, locs) in enumerate(self.functions):
            flags = (function.kind == "entry") * ENTRY | (function.body is not None) * HAS_BODY
            out += (item, flags, self.strings(function.name), self.strings(function.linkage),
                    numbers[self.function_symbols[n]], locs)  # fmt: skip
        return encode_numbers(out)

    def _records(self) -> bytes:
        lengths = [len(r) for r in self.records]
        width = width_for(lengths)
        head = struct.pack("<III", len(self.module.items), len(lengths), width)
        return head + pack_column(lengths, width) + b"".join(self.records)

    def _locs(self) -> bytes:
        columns = list(zip(*self.code.locs, strict=True)) or [(), (), ()]
        widths = [width_for(c) for c in columns]
        head = struct.pack("<IBBBx", len(self.code.locs), *widths)
        return head + b"".join(pack_column(c, w) for c, w in zip(columns, widths, strict=True))

    def _origins(self) -> bytes:
        """For each item the name of its source, then its statements' line, column and length, as LEB128 numbers."""
        out: list[int] = []
        for item in self.module.items:
            source = self.module.source
            if isinstance(source, LinkedSource):
                source = source.of(item)
            rows = [] if source is None else _origin_rows(item, source)
            out += (self.strings(source.name_of(item.span[0]) if rows and source else ""), len(rows))
            out += [number for row in rows for number in row]
        return encode_numbers(out)

    @staticmethod
    def _fill(section: elf.Section, content: bytes) -> None:
        section.data, section.size = content, len(content)

    def _compress(self) -> None:
        for section in self.elf.sections:
            if section.type != elf.SHT_PROGBITS:
                continue
            small = elf.compressed(bytes(section.data), section.align)
            if len(small) < len(section.data):
                self._fill(section, small)
                section.flags = section.flags & ~elf.SHF_ALLOC | elf.SHF_COMPRESSED


def _declared_binding(linkage: str) -> int:
    """Of a symbol that may stay undefined: never local."""
    return elf.STB_WEAK if linkage == "weak" else elf.STB_GLOBAL


def _origin_rows(item: Any, source: Source) -> list[tuple[int, int, int]]:
    """Line, column and length (0: more than one line) of an item and of the statements in it; zeros where unknown."""

    def row(span: Span) -> tuple[int, int, int]:
        if span == NO_SPAN:
            return 0, 0, 0
        line, column = source.position(span[0])
        last, end = source.position(span[1])
        return line, column, max(end - column, 0) if last == line else 0

    rows = [row(item.span)]
    if isinstance(item, Function) and item.body is not None:
        for ordinal, statement in ordinals(item.body):
            rows += [(0, 0, 0)] * (ordinal - len(rows))
            rows.append(row(statement.span))
    return rows
