"""Parameters and results of functions: their layout, and access by `ld.param`, `st.param` and calls (5.1.6)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ptxtools.ir import Address, Immediate, Instruction, Name, Variable, Vector
from ptxtools.ir.cfg import scopes_of
from ptxtools.ir.symbols import Names
from ptxtools.isa import resolve
from ptxtools.isa.types import TYPES
from ptxtools.program.layout import (
    align_up,
    element_bytes,
    is_unsized,
    kernel_parameters,
    storage_of,
    variable_alignment,
    variable_size,
)
from ptxtools.program.program import ByteOffset, Op, Ref

from .registry import Unsupported

if TYPE_CHECKING:
    from .function import FunctionLowering


def lay_out_parameters(f: FunctionLowering) -> None:
    """Assign a location to each parameter, result and `.param` variable of the body.

    Scalars are values; arrays, and scalars that are accessed in parts or whose address is taken, are in local memory.
    """
    if f.entry:
        for placed in kernel_parameters(f.function):
            f.parameter_offsets[id(placed.variable)] = placed.offset
    inner = [
        item
        for scope in scopes_of(f.function)
        for item in scope.items
        if isinstance(item, Variable) and item.space == "param"
    ]
    in_memory = _accessed_in_parts(f) if inner or not f.entry else set()
    offset = 0
    if not f.entry:
        offset = f.signature.memory_end
        f.slot_start = f.signature.slot_end
        for passed in (*f.signature.returns, *f.signature.params):
            variable = passed.variable
            if is_unsized(variable):
                f.array_addresses[id(variable)] = f.at(passed.slot, passed.storage)
            elif variable.space == "reg":
                f.bind(variable, [f.at(slot, passed.storage) for slot in passed.slots])
            elif not passed.storage:
                f.local_offsets[id(variable)] = passed.offset
            elif id(variable) in in_memory:
                offset = _home(f, variable, offset)
            else:
                f.passed[id(variable)] = f.at(passed.slot, passed.storage)
    for variable in inner:
        if variable.dims or variable.vector > 1 or id(variable) in in_memory:
            offset = _home(f, variable, offset)
        else:
            f.passed[id(variable)] = f.new(storage_of(variable.type))
    f.local_bytes = offset


def _home(f: FunctionLowering, variable: Variable, offset: int) -> int:
    offset = align_up(offset, variable_alignment(variable))
    f.local_offsets[id(variable)] = ByteOffset(offset)
    return offset + variable_size(variable)


def _accessed_in_parts(f: FunctionLowering) -> set[int]:
    """Scalar `.param` variables (by identity) that cannot be one value."""
    found: set[int] = set()
    for block in f.flow.blocks:
        for instruction, names in zip(block.instructions, block.scopes, strict=True):
            family = instruction.opcode.split(".", 1)[0]
            if family in ("ld", "st"):
                _note_access(instruction, names, found)
            elif family in ("mov", "cvta"):
                for operand in instruction.operands[1:]:
                    if isinstance(operand, Name):
                        symbol = names.lookup(operand.name)
                        if isinstance(symbol, Variable) and symbol.space == "param":
                            found.add(id(symbol))
    return found


def _note_access(instruction: Instruction, names: Names, found: set[int]) -> None:
    for operand in instruction.operands:
        if isinstance(operand, Address):
            symbol = names.lookup(operand.base.name) if not isinstance(operand.base, Immediate) else None
            if isinstance(symbol, Variable) and symbol.space == "param":
                whole = operand.offset == 0 and not any(isinstance(o, Vector) for o in instruction.operands)
                type_name = instruction.opcode.rsplit(".", 1)[-1]
                size = TYPES[type_name].bits // 8 if type_name in TYPES else 0
                if not whole or size > element_bytes(symbol):
                    found.add(id(symbol))


def prologue(f: FunctionLowering) -> None:
    """Store scalar parameters whose place is memory."""
    if f.entry:
        return
    for passed in f.signature.params:
        if passed.storage and id(passed.variable) in f.local_offsets:
            _move(f, "st", passed.variable, f.at(passed.slot, passed.storage))


def epilogue(f: FunctionLowering) -> None:
    """Before `ret`: fetch scalar results whose place is memory."""
    if f.entry:
        return
    for passed in f.signature.returns:
        if passed.storage and id(passed.variable) in f.local_offsets:
            _move(f, "ld", passed.variable, f.at(passed.slot, passed.storage))


def _move(f: FunctionLowering, family: str, variable: Variable, value: Ref) -> None:
    type_name = f"b{TYPES[variable.type].bits}"
    opcode = resolve(f"{family}.local.{type_name}")
    op = Op(family, opcode, imm=f.local_offsets[id(variable)], space="local", where=f.where)
    if family == "st":
        op.src, op.src_types = (f.stack_pointer, value), ("u64", type_name)
    else:
        op.dst, op.dst_types = (value,), (type_name,)
        op.src, op.src_types = (f.stack_pointer,), ("u64",)
    f.ops.append(op)


def scalar_parameter(f: FunctionLowering, operand: Address) -> tuple[Ref, Variable] | None:
    """The value that a `.param` address stands for, when it is one."""
    if f.passed and isinstance(operand.base, Name):
        symbol = f.names.lookup(operand.base.name)
        value = f.passed.get(id(symbol))
        if value is not None and isinstance(symbol, Variable):
            return value, symbol
    return None


def convert(f: FunctionLowering, target: Ref, source: Ref, type_name: str) -> None:
    """target = the low part of `source` that `type_name` covers, extended by that type to the target's width."""
    if target.type == source.type and f"b{max(16, TYPES[type_name].bits)}" == target.type:
        f.copy(target, source)
        return
    if target.type == "pred" or type_name == "pred":
        raise Unsupported("predicates are not passed in parameters")
    sign = "s" if TYPES[type_name].signed else "u"
    bits = TYPES[type_name].bits
    wide, narrow = f"{sign}{target.type[1:]}", f"{sign}{bits}"
    opcode = resolve(f"cvt.{wide}.{narrow}")
    f.emit(Op("alu", opcode, (target,), (source,), (wide,), (narrow,)))
