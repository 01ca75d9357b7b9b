"""Loads, stores and atomic operations whose address names a variable or a register."""

from __future__ import annotations

from collections.abc import Iterator

from ptxtools.ir.nodes import Address, Element, Name, Operand, Variable
from ptxtools.isa import Opcode
from ptxtools.isa.types import TYPES
from ptxtools.records import NamedTuple

from .facts import Line

#: The instructions that are checked.
ACCESSING = ("ld", "ldu", "st", "atom", "red")


class Access(NamedTuple):
    """An access at `name` + `offset` bytes. operand: its index; size: its bytes, 0 if unknown."""

    op: Opcode
    operand: int
    symbol: Variable
    name: str
    offset: int
    size: int

    @property
    def misaligned(self) -> bool:
        """Whether the address is certainly not a multiple of the size."""
        step = min(self.symbol.align or element_bytes(self.symbol), self.size)
        return bool(step) and step & (step - 1) == 0 and self.offset % step != 0


def in_register(line: Line, operand: Operand) -> bool:
    """Whether an address is in a register, not at a variable's name."""
    return type(operand) is Address and type(operand.base) is Name and line.registers[operand.base.name] is not None


def accesses_of(line: Line) -> Iterator[Access]:
    """The operands of an instruction that address a variable or a register."""
    op = line.plan.op
    if op is None:
        return
    for index, operand in enumerate(line.item.operands):
        base = operand.base if isinstance(operand, Address) else operand if isinstance(operand, Element) else None
        if not isinstance(base, (Name, Element)) or (isinstance(base, Element) and base.register is not None):
            continue
        symbol = line.names.lookup(base.name)
        if not isinstance(symbol, Variable) or symbol.type not in TYPES:
            continue
        offset, size = operand.offset if isinstance(operand, Address) else 0, 0
        if symbol.space != "reg":
            size = 0 if symbol.type in ("texref", "samplerref", "surfref") else accessed_bytes(op)
            if isinstance(base, Element):
                offset += base.index * element_bytes(symbol)
        yield Access(op, index, symbol, base.name, offset, size)


def element_bytes(symbol: Variable) -> int:
    """Bytes of one element of a variable."""
    return TYPES[symbol.type].bytes * symbol.vector


def variable_bytes(symbol: Variable) -> int | None:
    """Bytes of a variable; None if another module may decide."""
    if symbol.linkage in ("extern", "common", "weak"):
        return None
    total = element_bytes(symbol)
    for length in symbol.dims:
        if not length:
            return None
        total *= length
    return total


def accessed_bytes(op: Opcode) -> int:
    info = TYPES.get(op.type or "")
    if info is None:
        return 0
    vector = next((int(atom[1:]) for atom in ("v2", "v4", "v8") if op.has(atom)), 1)
    return info.bytes * vector


def rows_of(opcode: str) -> int:
    """How many lanes of a warp give ldmatrix or stmatrix the address of a row of 16 bytes, the first ones
    (9.7.14.5.15)."""
    matrices = 4 if ".x4" in opcode else 2 if ".x2" in opcode else 1
    return matrices * (16 if ".m16n16" in opcode else 8)
