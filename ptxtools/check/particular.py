"""Rules for single instructions that no table column covers."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from ptxtools.ir.nodes import Element, Immediate, Name, Operand, Vector
from ptxtools.ir.references import operand_names
from ptxtools.isa import Opcode

from . import codes
from .problems import Problem, Setting
from .values import OPAQUE, Scope

#: Geometries with a depth comparison (9.7.10.3).
_COMPARED = frozenset({"1d", "2d", "a1d", "a2d", "cube", "acube"})
#: A register with a selector.
_SELECTED = re.compile(r"\.[bh][0-3]$")


def particular(op: Opcode, operands: Sequence[Operand], setting: Setting, scope: Scope) -> Iterator[Problem]:
    """Problems of an instruction beyond its operand list."""
    if op.family == "cvta" and op.has("u32") and (setting.wide_only or setting.long) and setting.address_bits == 64:
        message = f"'{op.text}' converts 32-bit addresses; addresses have 64 bits here"
        yield Problem(codes.ADDRESS_REGISTER, message, -1, None, ("use .u64",), "9.7.9.20")
    if op.name == "isspacep" and isinstance(operands[1], Immediate) and operands[1].type[0] == "f":
        yield Problem(codes.CONSTANT_KIND, "a floating-point constant is not an address", 1)
    if operands and op.operands and "select" in op.operands[0].kinds:
        yield from _merged(op, operands)
    if op.family == "mov" and not op.operands[0].vector and all(_is_vector(o, scope) for o in operands):
        message = f"'{op.text}' packs a vector or takes one apart: one of its operands is a scalar"
        yield Problem(codes.OPERAND_KIND, message, 1, None, ("copy vectors by mov.v2 or mov.v4",), "9.7.9.4")
    if op.name == "createpolicy" and op.has("range"):
        yield from _sizes(operands)
    if op.name == "cp.async" and len(operands) > 3 and isinstance(operands[3], Immediate):
        yield from _copied(operands)
    if "spfactor" in op.mods:
        yield from _apart(op, operands)
    if op.name == "alloca" and len(operands) == 3 and isinstance(operands[2], Immediate):
        yield from _alignment(operands[2].value)
    if op.family == "tex":
        yield from _depth(op, operands, scope)
    if (
        setting.long
        and setting.address_bits == 64
        and op.family == "mov"
        and op.type in ("b32", "u32", "s32")
        and len(operands) == 2
    ):
        yield from _narrow(op, operands[1], scope)


def _sizes(operands: Sequence[Operand]) -> Iterator[Problem]:
    """The primary part of a range is no larger than the whole (9.7.9.18)."""
    sizes = [o.value & 0xFFFF_FFFF for o in operands[2:] if isinstance(o, Immediate)]
    if len(sizes) == 2 and sizes[0] > sizes[1]:
        message = f"the primary size, {sizes[0]}, exceeds the total size, {sizes[1]}"
        yield Problem(codes.CONSTANT_RANGE, message, 2, None, (), "9.7.9.18")


def _copied(operands: Sequence[Operand]) -> Iterator[Problem]:
    """A copy reads no more bytes than it writes (9.7.9.25.3.1)."""
    size, read = operands[2:4]
    if isinstance(size, Immediate) and isinstance(read, Immediate) and not 0 <= read.value <= size.value:
        message = f"{read.value} bytes are read, and {size.value} are written: it must be 0 to {size.value}"
        yield Problem(codes.CONSTANT_RANGE, message, 3, None, (), "9.7.9.25.3.1")


def _apart(op: Opcode, operands: Sequence[Operand]) -> Iterator[Problem]:
    """The results of a compression are in registers of their own (9.7.10.30 of PTX 9.4)."""
    seen: set[str] = set()
    for number, (operand, spec) in enumerate(zip(operands, op.operands, strict=False)):
        names = list(operand_names(operand)) if spec.role == "dst" else []
        again = next((name for place, name in enumerate(names) if name in seen or name in names[:place]), None)
        if again is not None and again != "_":
            message = f"'{again}' is written twice: registers of the results overlap, which every ptxas refuses"
            yield Problem(codes.NEVER_ACCEPTED, message, number, None, (), op.section)
            return
        seen.update(names)


def _alignment(value: int) -> Iterator[Problem]:
    """The alignment of an allocation is a power of two (9.7.17.3)."""
    if value & (value - 1):
        yield Problem(codes.CONSTANT_RANGE, f"the alignment is {value}; it must be a power of two", 2)


def _narrow(op: Opcode, source: Operand, scope: Scope) -> Iterator[Problem]:
    """The address of a global variable in 32 bits (6.4.1)."""
    if isinstance(source, (Name, Element)):
        found = scope.resolve(source.name)
        if (found.kind, found.space) == ("memory", "global") and found.type not in OPAQUE:
            message = f"'{source.name}' has an address of 64 bits: no ptxas of PTX 8.0 or later has '{op.text}' here"
            yield Problem(codes.NEVER_ACCEPTED, message, 1, None, ("use .u64",), "6.4.1")


def _is_vector(operand: Operand, scope: Scope) -> bool:
    return isinstance(operand, Vector) or (isinstance(operand, Name) and bool(scope.resolve(operand.name).vector))


def _depth(op: Opcode, operands: Sequence[Operand], scope: Scope) -> Iterator[Problem]:
    """Check the texture and coordinates of a depth comparison (9.7.10.3)."""
    lists = [shape for shape in op.shapes if len(shape) == len(operands) and shape[-1].name == "f"]
    last = operands[-1]
    single = op.variables["offsets"] == 1 and not (isinstance(last, Name) and scope.resolve(last.name).type == "f32")
    offset = isinstance(last, Vector) or single
    if not lists or (offset and len(operands) < len(op.operands)):
        return
    if op.mods["geom"] not in _COMPARED:
        message = f"a '.{op.mods['geom']}' texture has no depth to compare with"
        yield Problem(codes.OPERAND_COUNT, message, len(operands) - 1)
    elif op.mods["ctype"] != "f32":
        yield Problem(codes.OPERAND_TYPE, "a depth comparison requires '.f32' coordinates", len(operands) - 1)


def _merged(op: Opcode, operands: Sequence[Operand]) -> Iterator[Problem]:
    """A selected part of a video result is inserted into the third source (9.7.18.1.1)."""
    result = operands[0]
    if isinstance(result, Name) and _SELECTED.search(result.name) and len(operands) < 4:
        message = f"'{result.name}' is a part of a register: '{op.text}' needs a fourth operand to insert it into"
        yield Problem(codes.OPERAND_COUNT, message, 0)
