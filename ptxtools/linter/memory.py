"""PTX540 to PTX542, PTX701: accesses to variables at addresses that are known."""

from __future__ import annotations

from ptxtools.diagnostics import Fix
from ptxtools.ir.nodes import Address, Element, Name, Variable
from ptxtools.isa import Opcode
from ptxtools.isa.types import TYPES

from . import codes
from .context import LintContext
from .facts import Line

_SPACES = frozenset({"global", "shared", "local"})


def check_access(context: LintContext, line: Line) -> None:
    """All rules for one load, store or atomic operation."""
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
        if symbol.space == "reg":
            _narrow(context, line, op, index, symbol, base.name)
            continue
        offset = operand.offset if isinstance(operand, Address) else 0
        if isinstance(base, Element):
            offset += base.index * _element_bytes(symbol)
        _bounds(context, line, op, index, symbol, offset)
        if op.space is None and symbol.space in _SPACES and op.family in ("ld", "st"):
            _generic(context, line, op, symbol)


def _access_bytes(op: Opcode) -> int:
    """Bytes of one access; 0 when the type does not tell."""
    info = TYPES.get(op.type or "")
    if info is None:
        return 0
    vector = next((int(atom[1:]) for atom in ("v2", "v4", "v8") if op.has(atom)), 1)
    return info.bytes * vector


def _element_bytes(symbol: Variable) -> int:
    return TYPES[symbol.type].bytes * symbol.vector


def _bounds(context: LintContext, line: Line, op: Opcode, index: int, symbol: Variable, offset: int) -> None:
    size = _access_bytes(op)
    if not size or symbol.type in ("texref", "samplerref", "surfref"):
        return
    align = symbol.align or _element_bytes(symbol)
    step = min(align, size)
    if step & (step - 1) == 0 and offset % step:
        message = f"'{symbol.name}{offset:+d}' is not aligned to the {size} bytes that '{op.text}' accesses"
        context.warn(codes.MISALIGNED, message, context.operand(line.item, index), section="6.4.1")
        return
    total = _total_bytes(symbol)
    if total is not None and not 0 <= offset <= total - size:
        message = f"'{op.text}' accesses bytes {offset} to {offset + size - 1} of '{symbol.name}', which has {total}"
        context.warn(codes.OUT_OF_BOUNDS, message, context.operand(line.item, index), section="6.4.1")


def _total_bytes(symbol: Variable) -> int | None:
    if symbol.linkage in ("extern", "common", "weak"):
        return None
    total = _element_bytes(symbol)
    for length in symbol.dims:
        if length is None:
            return None
        total *= length
    return total


def _narrow(context: LintContext, line: Line, op: Opcode, index: int, symbol: Variable, name: str) -> None:
    """PTX542: a 32-bit register where addresses have 64 bits."""
    if TYPES[symbol.type].bits != 32 or context.module.address_size != 64 or op.space not in (None, "global"):
        return
    message = f"'{name}' has 32 bits: it is zero-extended to a 64-bit address"
    context.warn(codes.NARROW_ADDRESS, message, context.operand(line.item, index), section="6.4.1")


def _generic(context: LintContext, line: Line, op: Opcode, symbol: Variable) -> None:
    message = f"'{symbol.name}' lies in .{symbol.space}: a generic '{op.family}' finds the space out at run time"
    opcode = context.parts(line.item).opcode
    head = opcode[0] + len(op.family)
    fix = None
    if not any(op.has(word) for word in ("volatile", "relaxed", "acquire", "release", "weak", "mmio")):
        fix = Fix((head, head), f".{symbol.space}", f"name the space .{symbol.space}")
    help = (f"write {op.family}.{symbol.space}…",)
    context.warn(codes.GENERIC_ACCESS, message, opcode, help=help, section=op.section, fix=fix)
