"""Loads, stores, atomics and reductions: addresses, spaces, element types (9.7.9.8 and on, 9.7.13.5)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ptxtools import semantics
from ptxtools.ir import Address, Element, Immediate, Instruction, Name, Operand
from ptxtools.isa import Opcode
from ptxtools.isa.types import TYPES
from ptxtools.program.layout import parameter_bytes
from ptxtools.program.program import Op, Ref

from .arithmetic import elements, shape_of
from .params import convert, scalar_parameter
from .registry import Unsupported, lowers

if TYPE_CHECKING:
    from .function import FunctionLowering

_SPACES = {
    None: "generic",
    "global": "global",
    "const": "const",
    "local": "local",
    "shared": "shared",
    "shared::cta": "shared",
    "shared::cluster": "shared",
    "param": "param",
    "param::entry": "param",
    "param::func": "param",
}


#: In a store of 256 bits: an element that is not written (9.7.9.11).
SINK = Name("_")


class Located:
    """An address operand: base value (None: the offset is the whole address), its type, offset, and state space."""

    __slots__ = ("base", "offset", "space", "type")

    def __init__(self, base: Ref | None, type_name: str, offset: int, space: str) -> None:
        self.base, self.type, self.offset, self.space = base, type_name, offset, space


def locate(f: FunctionLowering, operand: Operand, space_modifier: str | None) -> Located:
    """Resolve an address operand for an instruction with that state space."""
    if isinstance(operand, (Element, Name)):  # `ld.global.u32 s, table[1]` (6.4.2); an mbarrier without its brackets
        operand = Address(operand)
    if not isinstance(operand, Address):
        raise Unsupported("an address is expected")
    if space_modifier not in _SPACES:
        raise Unsupported(f".{space_modifier} is not supported yet")
    space = _SPACES[space_modifier]
    if space == "shared" and f.clustered:
        space = "cluster"
    base = operand.base
    if isinstance(base, Immediate):
        return Located(None, "u64", base.value + operand.offset, space)
    if isinstance(base, Name):
        ref = f.register(base.name)
        if isinstance(ref, Ref):
            if space == "param" and not f.entry:
                space = "local"  # the address of a parameter that was given a place in local memory
            if ref.type == "b16":  # as ptxas has it: 8 or 16 bits are extended with zeros
                short = f"u{TYPES[f.declared_type(base) or 'b16'].bits}"
                ref = f.compute(f"cvt.u64.{short}", (short,), (ref,), "u64")
            return Located(ref, "u32" if ref.type == "b32" else "u64", operand.offset, space)
    place = f.pointer_to(base)
    if space == "generic" or place.space == "local":
        space = "cluster" if place.space == "shared" and f.clustered else place.space
    return Located(place.base, "u64", place.offset + operand.offset, space)


@lowers("ld", "ld.global.nc", "ldu")
def load(f: FunctionLowering, instruction: Instruction, op: Opcode) -> None:
    target, address = instruction.operands[:2]
    type_name = op.type or "b32"
    targets = [f.destination(item) for item in elements(f, target)]
    if isinstance(address, Address):
        scalar = scalar_parameter(f, address)
        if scalar is not None:
            if targets[0] is not None:
                convert(f, targets[0], scalar[0], type_name)
            return
    place = locate(f, address, op.space)
    if place.space == "param" and place.base is None and f.optimise and _constant_load(f, targets, place, type_name):
        return
    types = (type_name,) * len(targets)
    f.emit(Op("ld", op, tuple(targets), (place.base,), types, (place.type,), imm=place.offset, space=place.space))


def _constant_load(f: FunctionLowering, targets: list[Ref | None], place: Located, type_name: str) -> bool:
    """Read kernel parameters as constants of the launch; except out of bounds, which traps at run time."""
    size = TYPES[type_name].bits // 8
    if place.offset < 0 or place.offset + size * len(targets) > parameter_bytes(f.function):
        return False
    for number, target in enumerate(targets):
        if target is not None:
            offset = place.offset + size * number
            f.copy(target, f.launch_constant("param", type_name, offset, target.type))
    return True


@lowers("st")
def store(f: FunctionLowering, instruction: Instruction, op: Opcode) -> None:
    address, value = instruction.operands[:2]
    type_name = op.type or "b32"
    sources = [None if item == SINK else f.source(item, type_name) for item in elements(f, value)]
    if isinstance(address, Address):
        scalar = scalar_parameter(f, address)
        if scalar is not None and sources[0] is not None:
            convert(f, scalar[0], sources[0], type_name)
            return
    place = locate(f, address, op.space)
    if place.space == "param":
        raise Unsupported("parameters of a kernel cannot be written")
    types = (place.type,) + (type_name,) * len(sources)
    f.emit(Op("st", op, (), (place.base, *sources), (), types, imm=place.offset, space=place.space))


@lowers("atom", "red")
def atomic(f: FunctionLowering, instruction: Instruction, op: Opcode) -> None:
    """`red` has no destination; a cache policy changes no value."""
    if semantics.atomic_rule(op) is None:
        raise Unsupported("this atomic operation is not supported yet")
    dst: list[Ref | None] = []
    dst_types: list[str] = []
    sources: list[Ref] = []
    src_types: list[str] = []
    place: Located | None = None
    for operand, spec in zip(instruction.operands, shape_of(op, instruction), strict=False):
        type_name = spec.type or op.type or "b32"
        if spec.role == "dst":
            items = elements(f, operand)
            dst += [f.destination(item) for item in items]
            dst_types += [type_name] * len(items)
        elif spec.role == "addr":
            place = locate(f, operand, op.space)
        elif "pol" not in spec.name:
            items = elements(f, operand)
            sources += [f.source(item, type_name) for item in items]
            src_types += [type_name] * len(items)
    if place is None or place.space in ("param", "const"):
        raise Unsupported("atomics require global, shared or local memory")
    kind = "atom" if op.family == "atom" else "red"
    types = (place.type, *src_types)
    src = (place.base, *sources)
    f.emit(Op(kind, op, tuple(dst), src, tuple(dst_types), types, imm=place.offset, space=place.space))
