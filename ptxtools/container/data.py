"""Module-scope variables in ELF: sections by space, symbols, and the bytes of initialisers.

Sections are named by space and content: `.global.data`, `.global.bss`, `.const.data`, `.const2.bss`, `.shared.bss` ….
"""

from __future__ import annotations

from collections.abc import Callable

from ptxtools.ir import Immediate, Initializer, SymbolValue, Variable
from ptxtools.isa.types import TYPES
from ptxtools.records import dataclass, field

from . import elf
from .codec import unpack_column
from .errors import Damage
from .layout import align_up, alignment_of, element_bytes, size_of
from .records import ImageInit

#: The size limit of an initialised variable, since all of its bytes are in the file.
MAX_IMAGE = 256 << 20
#: Relocation types: an operand number that names a symbol; an address; a generic address; byte n of an address.
R_OPERAND, R_ADDRESS, R_GENERIC, R_BYTE = 1, 2, 3, 16
_BINDINGS = {"": elf.STB_LOCAL, "weak": elf.STB_WEAK}


@dataclass(slots=True)
class DataSections:
    """Allocates variables; `relocations` has (section, offset, symbol name, type, addend)."""

    writer: elf.ElfWriter
    images: dict[int, bytearray] = field(default_factory=dict)
    relocations: list[tuple[int, int, str, int, int]] = field(default_factory=list)
    _numbers: dict[str, int] = field(default_factory=dict)

    def place(self, v: Variable) -> tuple[elf.Symbol, ImageInit | None]:
        """The symbol of a variable, and the position of its initialiser if it can be read back from the bytes."""
        size, alignment = size_of(v), alignment_of(v)
        if size >= 1 << 63 or alignment >= 1 << 31:
            raise ValueError(f"variable {v.name} has {size} bytes, which is more than ELF64 can hold")
        binding = binding_of(v.linkage)
        if v.linkage == "extern":
            return elf.Symbol(v.name, elf.STT_OBJECT, binding, elf.SHN_UNDEF, 0, size), None
        if v.linkage == "common":
            return elf.Symbol(v.name, elf.STT_OBJECT, binding, elf.SHN_COMMON, alignment, size), None
        section = self._section(v, v.init is not None)
        section.align = max(section.align, alignment)
        offset = align_up(section.size, alignment)
        section.size = offset + size
        if section.size >= 1 << 63:
            raise ValueError(f"section {section.name} has more bytes than ELF64 can hold")
        if v.init is not None:
            self._write_image(v, section, offset, size)
        symbol = elf.Symbol(v.name, elf.STT_OBJECT, binding, section.index, offset, size)
        return symbol, image_of(v, section.index, offset)

    def finish(self) -> None:
        for number, image in self.images.items():
            section = self.writer.sections[number]
            section.data = bytes(image) + bytes(section.size - len(image))

    def _section(self, v: Variable, initialised: bool) -> elf.Section:
        space = "".join(c for c in v.space if c.isalnum()) + (str(v.bank) if v.bank else "")
        name = f".{space}.{'data' if initialised else 'bss'}"
        number = self._numbers.get(name)
        if number is None:
            flags = elf.SHF_ALLOC | (elf.SHF_WRITE if v.space in ("global", "shared", "local") else 0)
            kind = elf.SHT_PROGBITS if initialised else elf.SHT_NOBITS
            number = self._numbers[name] = self.writer.add(elf.Section(name, kind, flags=flags))
        return self.writer.sections[number]

    def _write_image(self, v: Variable, section: elf.Section, offset: int, size: int) -> None:
        if section.size > MAX_IMAGE:
            raise ValueError(f"initialised variables of section {section.name} have more than {MAX_IMAGE >> 20} MiB")
        image = self.images.setdefault(section.index, bytearray())
        image += bytes(offset + size - len(image))
        self._fill(v, v.init, 0, element_bytes(v) * _product(v.dims), section.index, offset, offset + size)

    def _fill(self, v: Variable, init: Initializer | None, depth: int, span: int, section: int, at: int,
              end: int) -> None:  # fmt: skip
        """Write `init`, which takes `span` bytes from `at` on; bytes past `end` are dropped."""
        scalar = _scalar_bytes(v)
        if isinstance(init, list):
            dims = [d or 0 for d in v.dims] + ([v.vector] if v.vector > 1 else [])
            inner = scalar
            for size in dims[depth + 1 :]:
                inner *= size
            for n, element in enumerate(init):
                self._fill(v, element, depth + 1, inner, section, at + n * inner, end)
        elif at + scalar <= end:
            if isinstance(init, Immediate):
                bits = _bits(init, v.type) & (1 << 8 * scalar) - 1
                self.images[section][at : at + scalar] = bits.to_bytes(scalar, "little")
            elif isinstance(init, SymbolValue):
                self.relocations.append((section, at, init.name, _address_type(init), init.offset))


def _product(sizes: tuple[int | None, ...]) -> int:
    total = 1
    for size in sizes:
        total *= size or 1
    return total


def binding_of(linkage: str) -> int:
    """Local without a linkage directive, weak for `.weak`, else global (11.6)."""
    return _BINDINGS.get(linkage, elf.STB_GLOBAL)


def _scalar_bytes(v: Variable) -> int:
    info = TYPES.get(v.type)
    return info.bytes if info else 0


def _address_type(value: SymbolValue) -> int:
    if value.mask:
        return R_BYTE + ((value.mask & -value.mask).bit_length() - 1) // 8
    return R_GENERIC if value.generic else R_ADDRESS


def _bits(value: Immediate, type_: str) -> int:
    """The bits of a constant in a variable of that type (4.5)."""
    import struct

    wide = {"f64": "<d", "f32": "<f", "f16": "<e"}
    if value.type not in ("f32", "f64"):
        if type_ not in wide:
            return value.value
        number = float(value.value)
    else:
        raw = value.value.to_bytes(8 if value.type == "f64" else 4, "little")
        if type_ not in wide or wide[type_] == wide[value.type]:
            return value.value
        (number,) = struct.unpack(wide[value.type], raw)
    try:
        return int.from_bytes(struct.pack(wide[type_], number), "little")
    except OverflowError:  # beyond the range of the narrower type: infinity
        return int.from_bytes(struct.pack(wide[type_], float("inf") if number > 0 else float("-inf")), "little")


def image_of(v: Variable, section: int, offset: int) -> ImageInit | None:
    """How to read the initialiser back from the bytes: as a scalar or a flat list of plain constants of one type."""
    init, scalar = v.init, _scalar_bytes(v)
    values = init if isinstance(init, list) else [init]
    if not values or scalar not in (1, 2, 4, 8) or len(v.dims) > 1 or v.vector != 1 or (init is values) == (not v.dims):
        return None
    kind = values[0].type if isinstance(values[0], Immediate) else ""
    if not kind or len(values) * scalar > size_of(v) or (kind[0] == "f") != (v.type in ("f32", "f64")):
        return None
    if kind[0] == "f" and kind != v.type:
        return None
    low, high = (-(1 << 8 * scalar - 1), 1 << 8 * scalar - 1) if v.type[0] == "s" else (0, 1 << 8 * scalar)
    if all(isinstance(i, Immediate) and i.type == kind and low <= i.value < high for i in values):
        return (len(values) if init is values else None, kind, section, offset)
    return None


def image_reader(content: Callable[[int], memoryview]) -> Callable[[str, ImageInit], Initializer]:
    """The function that reads initialisers back; `content(number)` gives a section's bytes."""

    def read(type_: str, image: ImageInit) -> Initializer:
        count, kind, section, offset = image
        scalar = TYPES[type_].bytes
        end = offset + scalar * (1 if count is None else count)
        data = content(section)
        if end > len(data) or (count is not None and count < 1):
            raise Damage("an initialiser extends past its section")
        values = unpack_column(data[offset:end], scalar, signed=type_[0] == "s")
        immediates: list[Initializer] = [Immediate(value, kind) for value in values]
        return immediates[0] if count is None else immediates

    return read
