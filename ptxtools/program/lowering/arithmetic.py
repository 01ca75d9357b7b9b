"""Instructions that map lane values to lane values, and `mov` in its forms."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ptxtools import semantics
from ptxtools.ir import Immediate, Instruction, Name, Operand, Pair, Vector
from ptxtools.ir.fitting import fitting
from ptxtools.isa import Opcode, OperandSpec
from ptxtools.isa.types import TYPES
from ptxtools.program.details import Constant, Detail, Suffixes, Truncated
from ptxtools.program.layout import storage_of
from ptxtools.program.program import Op, Ref
from ptxtools.records import NamedTuple

from .registry import Unsupported, lowers

if TYPE_CHECKING:
    from .function import FunctionLowering


def shape_of(op: Opcode, instruction: Instruction) -> tuple[OperandSpec, ...]:
    """The operand list that an instruction is written with."""
    found = fitting(op, instruction.operands)
    if found is None:
        raise Unsupported("the operands do not fit any form")
    return found


class Operands(NamedTuple):
    """What an instruction writes and reads, with the types that it has at each position."""

    dst: list[Ref | None]
    src: list[Ref]
    dst_types: list[str]
    src_types: list[str]


def operands_of(f: FunctionLowering, instruction: Instruction, op: Opcode) -> Operands:
    """Operands of an instruction of which all are destinations or sources."""
    found = Operands([], [], [], [])
    for operand, spec in zip(instruction.operands, shape_of(op, instruction), strict=False):
        if spec.role == "dst":
            add_destination(f, operand, spec, found.dst, found.dst_types)
        elif spec.role == "src":
            add_source(f, operand, spec, found.src, found.src_types)
        else:
            raise Unsupported("this form has no simulation")
    return found


@lowers("*")
def alu(f: FunctionLowering, instruction: Instruction, op: Opcode) -> None:
    """Any instruction with scalar semantics."""
    compute(f, instruction, op)


def compute(f: FunctionLowering, instruction: Instruction, op: Opcode, suffixes: Suffixes | None = None) -> None:
    """Emit an operation on lane values; `suffixes` of a video instruction's operands."""
    if semantics.find(op) is None:
        raise Unsupported("this instruction has no simulation")
    dst, src, dst_types, src_types = operands_of(f, instruction, op)
    if op.carry_in:
        src.append(f.carry_flag())
        src_types.append("pred")
    if op.carry_out:
        dst.append(f.carry_flag())
        dst_types.append("pred")
    detail: Detail | None = suffixes
    if op.family in ("prmt", "lop3"):
        detail = _selector(instruction, op)
    elif f.linker.variant.truncates and op.family == "mad" and op.type == "f32":
        detail = Truncated()
    f.emit(Op("alu", op, tuple(dst), tuple(src), tuple(dst_types), tuple(src_types), detail=detail))


def _selector(instruction: Instruction, op: Opcode) -> Constant | None:
    """prmt's selector and lop3's table decide what is computed, when they are constant."""
    place = 2 if op.family == "prmt" else 3
    operand = instruction.operands[place + 1]
    return Constant(place, operand.value) if isinstance(operand, Immediate) else None


def add_destination(
    f: FunctionLowering, operand: Operand, spec: OperandSpec, dst: list[Ref | None], types: list[str]
) -> None:
    """Append the values of one destination operand: one value, the two of `p|q`, or a vector's elements."""
    if isinstance(operand, Pair):
        second = spec.second
        dst += (f.destination(operand.first), f.destination(operand.second))
        types += (type_of(f, operand.first, spec), (second.type if second else None) or "pred")
    elif spec.vector or isinstance(operand, Vector):
        items = elements(f, operand)
        dst += [f.destination(item) for item in items]
        types += [type_of(f, item, spec) for item in items]
    else:
        dst.append(f.destination(operand))
        types.append(spec.type or type_of(f, operand, spec))


def add_source(f: FunctionLowering, operand: Operand, spec: OperandSpec, src: list[Ref], types: list[str]) -> None:
    """Append the values of one source operand."""
    if spec.vector or type(operand) is Vector:
        items = elements(f, operand)
        names = [type_of(f, item, spec) for item in items]
        src += [f.source(item, name) for item, name in zip(items, names, strict=True)]
        types += names
    else:
        name = spec.type or type_of(f, operand, spec)
        src.append(f.source(operand, name))
        types.append(name)


def elements(f: FunctionLowering, operand: Operand) -> list[Operand]:
    """Elements of a vector operand; of a vector register its components."""
    if isinstance(operand, Vector):
        return list(operand.items)
    if isinstance(operand, Name):
        register = f.register(operand.name)
        if isinstance(register, tuple):
            return [Name(f"{operand.name}.{part}") for part in "xyzw"[: len(register)]]
    return [operand]


def type_of(f: FunctionLowering, operand: Operand, spec: OperandSpec) -> str:
    """The operand's type: the form's, else that of the register, else of the constant."""
    if spec.type is not None:
        return spec.type
    declared = f.declared_type(operand)
    if declared is not None:
        return declared
    if isinstance(operand, Immediate) and operand.type in ("f32", "f64"):
        return operand.type
    return "b32"


def _spelt_out(f: FunctionLowering, operand: Operand) -> Operand:
    """A vector register as the vector of its components; anything else as it is."""
    items = elements(f, operand)
    return operand if len(items) == 1 else Vector(tuple(items))


@lowers("mov")
def mov(f: FunctionLowering, instruction: Instruction, op: Opcode) -> None:
    """Copies, vectors packed and unpacked, special registers, addresses (9.7.9.1, 9.7.9.2)."""
    target, value = (_spelt_out(f, operand) for operand in instruction.operands)
    type_name = op.type or "b32"
    if isinstance(target, Vector) and not isinstance(value, Vector) and len(elements(f, value)) == 1:
        _unpack(f, op, target, value, type_name)
    elif isinstance(value, Vector) and len(elements(f, target)) == 1:
        _pack(f, op, target, value, type_name)
    elif isinstance(value, Vector) or len(elements(f, target)) > 1:
        targets, values = elements(f, target), elements(f, value)
        if len(targets) != len(values):
            raise Unsupported("vectors of different lengths")
        # All sources are read before the first write: `mov.v2 {a, b}, {b, a}` swaps.
        _copy_all(f, [f.destination(t) for t in targets], [f.source(v, type_name) for v in values])
    else:
        _scalar(f, op, target, value, type_name)


def _scalar(f: FunctionLowering, op: Opcode, target: Operand, value: Operand, type_name: str) -> None:
    ref = f.destination(target)
    if ref is None:
        return
    source = f.source(value, type_name)
    last = f.ops[-1] if f.ops else None
    if last is not None and last.kind == "sreg" and last.dst[0] is source and source.type == ref.type:
        last.dst = (ref,)
        last.guard, last.negated = f.guard, f.negated
    elif source.type == ref.type:
        f.copy(ref, source)
    else:
        f.emit(Op("alu", op, (ref,), (source,), (type_name,), (type_name,)))


def _copy_all(f: FunctionLowering, targets: list[Ref | None], sources: list[Ref]) -> None:
    written = {target.slot for target in targets if target is not None}
    if any(source.slot in written for source in sources):
        fresh = [f.new(source.type) for source in sources]
        for ref, source in zip(fresh, sources, strict=True):
            f.copy(ref, source)
        sources = fresh
    for target, source in zip(targets, sources, strict=True):
        if target is not None:
            f.copy(target, source)


def _unpack(f: FunctionLowering, op: Opcode, target: Vector, value: Operand, type_name: str) -> None:
    part = f"b{TYPES[type_name].bits // len(target.items)}"
    dst = tuple(f.destination(item) for item in target.items)
    source = f.source(value, type_name)
    f.emit(Op("unpack", op, dst, (source,), (part,) * len(dst), (type_name,)))


def _pack(f: FunctionLowering, op: Opcode, target: Operand, value: Vector, type_name: str) -> None:
    part = f"b{TYPES[type_name].bits // len(value.items)}"
    src = tuple(f.source(item, part) for item in value.items)
    ref = f.destination(target)
    f.emit(Op("pack", op, (ref,), src, (type_name,), (part,) * len(src)))


@lowers("cvta")
def cvta(f: FunctionLowering, instruction: Instruction, op: Opcode) -> None:
    """Generic addresses of global and constant memory are the addresses themselves; others are computed (9.7.9.20)."""
    target, value = instruction.operands
    ref = f.destination(target)
    if ref is None:
        return
    type_name = op.type or "u64"
    if op.space in ("global", "const") and storage_of(type_name) == ref.type:
        source = f.source(value, type_name)
        if source.type == ref.type:
            f.copy(ref, source)
            return
    alu(f, instruction, op)
