"""ELF64, little-endian, relocatable: read and write the subset that containers need.

The structures are those of the System V ABI, chapter 4, including its extended section numbers beyond 0xff00.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

from ptxtools.records import NamedTuple, dataclass, field

from .errors import Damage
from .magic import ELF, MACHINE

ET_REL = 1
SHT_NULL, SHT_PROGBITS, SHT_SYMTAB, SHT_STRTAB, SHT_RELA, SHT_NOTE, SHT_NOBITS = 0, 1, 2, 3, 4, 7, 8
SHT_SYMTAB_SHNDX = 18
SHF_WRITE, SHF_ALLOC, SHF_EXECINSTR, SHF_INFO_LINK, SHF_COMPRESSED = 1, 2, 4, 0x40, 0x800
SHN_UNDEF, SHN_LORESERVE, SHN_ABS, SHN_COMMON, SHN_XINDEX = 0, 0xFF00, 0xFFF1, 0xFFF2, 0xFFFF
STB_LOCAL, STB_GLOBAL, STB_WEAK = 0, 1, 2
STT_NOTYPE, STT_OBJECT, STT_FUNC = 0, 1, 2
#: The limit on the decompressed size of all sections of a container.
MAX_DECOMPRESSED = 512 << 20
#: Nodes take many times their encoded size in memory: these sections may compress to no less than a sixty-fourth.
_BECOME_NODES, _FREE, _MOST_RATIO = (".ptx", ".text"), 4 << 20, 64

_EHDR = struct.Struct("<16sHHIQQQIHHHHHH")
_SHDR = struct.Struct("<IIQQQQIIQQ")
_SYM = struct.Struct("<IBBHQQ")
_RELA = struct.Struct("<QQq")
_CHDR = struct.Struct("<IIQQ")
_ZLIB = 1


@dataclass(slots=True)
class Section:
    """size: of the content, or of the memory of a NOBITS section; index: its number in the file."""

    name: str
    type: int
    data: bytes | memoryview = b""
    flags: int = 0
    align: int = 1
    entsize: int = 0
    link: int = 0
    info: int = 0
    size: int = 0
    index: int = 0
    offset: int = 0


@dataclass(slots=True)
class Symbol:
    """section: a number, or SHN_UNDEF, SHN_COMMON; value: offset in it (alignment of a common symbol)."""

    name: str
    type: int
    binding: int
    section: int = SHN_UNDEF
    value: int = 0
    size: int = 0


#: Where a symbol is: section number, value, size.
SymbolExtent: TypeAlias = "tuple[int, int, int]"


class Relocation(NamedTuple):
    """The content at `offset` of a section depends on symbol number `symbol`, plus `addend`."""

    offset: int
    symbol: int
    type: int
    addend: int = 0


@dataclass(slots=True)
class ElfWriter:
    """Sections in the order of `add`, then relocations, symbols and the string table, then the section headers."""

    sections: list[Section] = field(default_factory=lambda: [Section("", SHT_NULL)])
    symbols: list[Symbol] = field(default_factory=lambda: [Symbol("", STT_NOTYPE, STB_LOCAL)])
    relocations: dict[int, list[Relocation]] = field(default_factory=dict)
    _names: _Names = field(default_factory=lambda: _Names())

    def add(self, section: Section) -> int:
        section.index = len(self.sections)
        section.size = max(section.size, len(section.data))
        self.sections.append(section)
        return section.index

    def add_symbols(self, symbols: Sequence[Symbol]) -> list[int]:
        """Number the symbols, local ones first as ELF requires; returns their numbers in the given order."""
        order = sorted(range(len(symbols)), key=lambda n: symbols[n].binding != STB_LOCAL)
        numbers = [0] * len(symbols)
        for index in order:
            numbers[index] = len(self.symbols)
            self.symbols.append(symbols[index])
        return numbers

    def finish(self) -> bytes:
        self._add_tables()
        out = bytearray(_EHDR.size)
        for section in self.sections[1:]:
            out += bytes(-len(out) % max(section.align, 1) if section.type != SHT_NOBITS else 0)
            section.offset = len(out)
            if section.type != SHT_NOBITS:
                out += section.data
        out += bytes(-len(out) % 8)
        table = len(out)
        out += self._section_headers()
        self._file_header(out, table)
        return bytes(out)

    def _add_tables(self) -> None:
        for index in sorted(self.relocations):
            entries = self.relocations[index]
            data = b"".join(_RELA.pack(r.offset, r.symbol << 32 | r.type, r.addend) for r in entries)
            self.add(Section(f".rela{self.sections[index].name}", SHT_RELA, data, SHF_INFO_LINK, 8, _RELA.size,
                             info=index))  # fmt: skip
        local = sum(s.binding == STB_LOCAL for s in self.symbols)
        symtab = self.add(Section(".symtab", SHT_SYMTAB, align=8, entsize=_SYM.size, info=local))
        extended = None
        if any(SHN_LORESERVE <= s.section < SHN_ABS or s.section > SHN_XINDEX for s in self.symbols):
            extended = Section(".symtab_shndx", SHT_SYMTAB_SHNDX, align=4, entsize=4, link=symtab)
            self.add(extended)
        strtab = self.add(Section(".strtab", SHT_STRTAB))
        self.sections[symtab].link = strtab
        for section in self.sections:
            if section.type == SHT_RELA:
                section.link = symtab
        names = self._names
        # Long names first: a symbol's name is the end of its section's.
        for name in [s.name for s in reversed(self.sections)] + [s.name for s in self.symbols]:
            names.add(name)
        rows = [_SYM.pack(names.place[s.name], s.binding << 4 | s.type, 0, _short(s.section), s.value, s.size)
                for s in self.symbols]  # fmt: skip
        self._set(self.sections[symtab], b"".join(rows))
        if extended is not None:
            wide = [s.section if _short(s.section) == SHN_XINDEX else 0 for s in self.symbols]
            self._set(extended, struct.pack(f"<{len(wide)}I", *wide))
        self._set(self.sections[strtab], bytes(names.data))

    @staticmethod
    def _set(section: Section, data: bytes) -> None:
        section.data, section.size = data, len(data)

    def _section_headers(self) -> bytes:
        place = self._names.place
        count, strtab = len(self.sections), len(self.sections) - 1
        rows = []
        for s in self.sections:
            if s.type == SHT_NULL:
                size = count if count >= SHN_LORESERVE else 0
                link = strtab if strtab >= SHN_LORESERVE else 0
                rows.append(_SHDR.pack(0, 0, 0, 0, 0, size, link, 0, 0, 0))
            else:
                rows.append(_SHDR.pack(place[s.name], s.type, s.flags, 0, s.offset, s.size, s.link, s.info, s.align,
                                       s.entsize))  # fmt: skip
        return b"".join(rows)

    def _file_header(self, out: bytearray, table: int) -> None:
        count, strtab = len(self.sections), len(self.sections) - 1
        ident = ELF + bytes((2, 1, 1, 0)) + bytes(8)
        _EHDR.pack_into(out, 0, ident, ET_REL, MACHINE, 1, 0, 0, table, 0, _EHDR.size, 0, 0, _SHDR.size,
                        count if count < SHN_LORESERVE else 0,
                        strtab if strtab < SHN_LORESERVE else SHN_XINDEX)  # fmt: skip


def _short(section: int) -> int:
    return section if section < SHN_LORESERVE or section in (SHN_ABS, SHN_COMMON) else SHN_XINDEX


class _Names:
    """A string table in which a text may be the suffix of another."""

    def __init__(self) -> None:
        self.data = bytearray(1)
        self.place = {"": 0}

    def add(self, name: str) -> None:
        if name in self.place:
            return
        start = len(self.data)
        self.place[name] = start
        self.data += name.encode("utf-8", "surrogateescape") + b"\0"
        for prefix in (".rela", ".rela.text.", ".text."):
            if name.startswith(prefix):
                self.place.setdefault(name[len(prefix) :], start + len(prefix))


def compressed(data: bytes, align: int) -> bytes:
    """The content of an SHF_COMPRESSED section."""
    return _CHDR.pack(_ZLIB, 0, len(data), align) + zlib.compress(data, 9)


# --- reading ----------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class ElfFile:
    """A parsed file: sections with their content (as views of it), symbols, nothing decompressed yet."""

    machine: int
    sections: list[Section]
    budget: int = MAX_DECOMPRESSED
    #: Content of compressed sections by number.
    _decompressed: dict[int, memoryview] = field(default_factory=dict)

    def find(self, name: str) -> Section:
        """The first section of that name. Raises Damage if there is none."""
        for section in self.sections:
            if section.name == name:
                return section
        raise Damage(f"there is no section {name}")

    def content(self, section: Section) -> memoryview:
        """A section's bytes, decompressed (once) if necessary."""
        if not section.flags & SHF_COMPRESSED:
            return memoryview(section.data)
        content = self._decompressed.get(section.index)
        if content is None:
            content = self._decompressed[section.index] = memoryview(self._decompress(section))
        return content

    def content_of(self, number: int) -> memoryview:
        """The bytes of the section with a number."""
        return self.content(self.sections[number])

    def _decompress(self, section: Section) -> bytes:
        kind, _, size, _ = _CHDR.unpack_from(section.data)
        if kind != _ZLIB:
            raise Damage(f"section {section.name} is compressed with the unknown method {kind}")
        if size > self.budget:
            raise Damage(f"compressed sections contain more than {MAX_DECOMPRESSED >> 20} MiB")
        if section.name.startswith(_BECOME_NODES) and size > _FREE + _MOST_RATIO * len(section.data):
            raise Damage(f"section {section.name} claims to contain {size} bytes in {len(section.data)}")
        self.budget -= size
        machine = zlib.decompressobj()
        try:
            data = machine.decompress(bytes(section.data[_CHDR.size :]), size + 1)
        except zlib.error as error:
            raise Damage(f"section {section.name} cannot be decompressed: {error}") from None
        if len(data) != size or not machine.eof:
            raise Damage(f"section {section.name} does not decompress to its size")
        return data

    def symbols(self) -> SymbolTable:
        """All symbols of `.symtab`, the null symbol included. Raises Damage."""
        table = self.find(".symtab")
        wide = next((s.data for s in self.sections if s.type == SHT_SYMTAB_SHNDX), b"")
        return SymbolTable(memoryview(table.data), bytes(self.sections[table.link].data), memoryview(wide))

    def relocations(self, section: Section) -> Iterable[Relocation]:
        for offset, info, addend in _RELA.iter_unpack(section.data):
            yield Relocation(offset, info >> 32, info & 0xFFFFFFFF, addend)


class SymbolTable(Sequence[Symbol]):
    """The symbols of a file; each is created on access, since there may be millions. Access raises Damage."""

    def __init__(self, rows: memoryview, names: bytes, wide: memoryview) -> None:
        """wide: the section numbers that are too large for a symbol."""
        if len(rows) % _SYM.size:
            raise Damage("the symbol table is truncated")
        self._rows, self._names, self._wide = rows, names, wide

    def __len__(self) -> int:
        return len(self._rows) // _SYM.size

    def __getitem__(self, number: Any) -> Any:
        section, value, size = self.place(number)
        name, info, *_ = _SYM.unpack_from(self._rows, number * _SYM.size)
        return Symbol(_text(self._names, name), info & 15, info >> 4, section, value, size)

    def place(self, number: int) -> SymbolExtent:
        """Where a symbol is; quicker than all of it."""
        if not 0 <= number < len(self):
            raise IndexError(number)
        _, _, _, section, value, size = _SYM.unpack_from(self._rows, number * _SYM.size)
        if section == SHN_XINDEX:
            (section,) = struct.unpack_from("<I", self._wide, 4 * number)
        return section, value, size


def _text(table: bytes, start: int) -> str:
    end = table.find(b"\0", start)
    if start >= len(table) or end < 0:
        raise Damage("a name is outside the string table")
    return table[start:end].decode("utf-8", "surrogateescape")


def parse_elf(data: bytes) -> ElfFile:
    """Read the headers of a 64-bit little-endian ELF file. Raises Damage on anything inconsistent."""
    if len(data) < _EHDR.size:
        raise Damage(f"the file ends after {len(data)} bytes, inside its header")
    ident, _, machine, _, _, _, table, _, _, _, _, entry, count, strings = _EHDR.unpack_from(data)
    if ident[:6] != ELF + b"\x02\x01":
        raise Damage("not a 64-bit little-endian ELF file")
    if table == 0:
        return ElfFile(machine, [])
    if entry != _SHDR.size or table + _SHDR.size > len(data):
        raise Damage("the section headers are outside the file")
    first = _SHDR.unpack_from(data, table)
    count = count or first[5]
    strings = first[6] if strings == SHN_XINDEX else strings
    if table + count * _SHDR.size > len(data):
        raise Damage("the section headers are outside the file")
    rows = list(_SHDR.iter_unpack(memoryview(data)[table : table + count * _SHDR.size]))
    if not 0 < strings < count or rows[strings][4] + rows[strings][5] > len(data):
        raise Damage("there is no section name table")
    names = bytes(data[rows[strings][4] : rows[strings][4] + rows[strings][5]])
    view = memoryview(data)
    return ElfFile(machine, [_section(view, n, row, names) for n, row in enumerate(rows)])


def _section(data: memoryview, index: int, row: tuple[int, ...], names: bytes) -> Section:
    name, type_, flags, _, offset, size, link, info, align, entsize = row
    content = memoryview(b"")
    if type_ not in (SHT_NULL, SHT_NOBITS):
        if offset + size > len(data):
            raise Damage(f"section {index} extends past the end of the file")
        content = data[offset : offset + size]
    return Section(_text(names, name), type_, content, flags, align, entsize, link, info, size, index, offset)
