"""Asynchronous copies of single threads: cp.async and its groups (9.7.9.25.3).

A copy is complete at once, which is one of the orders that the manual allows; waiting for groups is then no operation.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ptxtools.ir import Immediate, Instruction, Negated
from ptxtools.isa import Opcode

from ..program import Op, Ref
from .arithmetic import shape_of
from .memory import Located, locate
from .registry import Unsupported, lowers

if TYPE_CHECKING:
    from .function import FunctionLowering


@lowers("cp.async")
def copy_async(f: FunctionLowering, instruction: Instruction, op: Opcode) -> None:
    """src = source address (+ imm), destination address, and the source's size or the predicate that ignores it.

    detail: bytes, and what the third source is: "size", "ignore" or "".
    """
    target = locate(f, instruction.operands[0], op.mods["dst"])
    source = locate(f, instruction.operands[1], op.mods["src"])
    count, rule, last = 0, "", None
    for operand, spec in zip(instruction.operands, shape_of(op, instruction), strict=False):
        if spec.name == "cp_size":
            if not isinstance(operand, Immediate):
                raise Unsupported("the size must be a constant")
            count = operand.value
        elif spec.name == "src_size":
            rule, last = _size(f, operand.value if isinstance(operand, Immediate) else None, count)
            if rule and last is None:
                last = f.source(operand, "u32")
        elif spec.name == "ignore_src":
            plain = operand.operand if isinstance(operand, Negated) else operand
            rule, last = "ignore", f.source(plain, "pred")
            if isinstance(operand, Negated):
                last = f.inverse(last)
    src: tuple[Ref | None, ...] = (source.base, _whole(f, target))
    types: tuple[str, ...] = (source.type, "u64")
    if last is not None:
        src, types = (*src, last), (*types, "u32" if rule == "size" else "pred")
    f.emit(Op("cp.async", op, (), src, (), types, imm=source.offset, space=source.space, detail=(count, rule)))


def _size(f: FunctionLowering, constant: int | None, count: int) -> tuple[str, Ref | None]:
    """A source size that is the whole size needs no look at all."""
    if constant is None:
        return "size", None
    return ("", None) if constant >= count else ("size", f.constant(constant, "b32"))


def _whole(f: FunctionLowering, place: Located) -> Ref:
    """An address as one 64-bit value."""
    if place.base is None:
        return f.constant(place.offset, "b64")
    base = place.base
    if base.type == "b32":
        if place.offset:
            base = f.compute("add.u32", ("u32", "u32"), (base, f.constant(place.offset, "b32")), "u32")
        return f.compute("cvt.u64.u32", ("u32",), (base,), "u64")
    if place.offset:
        base = f.compute("add.u64", ("u64", "u64"), (base, f.constant(place.offset, "b64")), "u64")
    return base


@lowers("cp.async.commit_group", "cp.async.wait_group", "cp.async.wait_all")
def group(f: FunctionLowering, instruction: Instruction, op: Opcode) -> None:
    """Nothing is pending."""
