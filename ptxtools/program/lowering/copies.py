"""Asynchronous copies of single threads: cp.async and its groups (9.7.9.25.3).

A copy is complete at once, which is one of the orders that the manual allows; waiting for groups is then no operation.
Where work is to complete late, all of them are events (`sim.asynchronous.copies`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ptxtools.ir import Immediate, Instruction, Negated, Operand
from ptxtools.isa import Opcode
from ptxtools.program.details import Groups, ThreadCopy
from ptxtools.program.program import Op, Ref

from .memory import Located, locate
from .registry import Unsupported, lowers

if TYPE_CHECKING:
    from .function import FunctionLowering


@lowers("cp.async")
def copy_async(f: FunctionLowering, instruction: Instruction, op: Opcode) -> None:
    """src = source address (+ imm), destination address, and the source's size or the predicate that ignores it."""
    after = f.guarded_region() if f.linker.variant.late else None
    target = locate(f, instruction.operands[0], op.mods["dst"])
    source = locate(f, instruction.operands[1], op.mods["src"])
    size = instruction.operands[2]
    if not isinstance(size, Immediate):
        raise Unsupported("the size must be a constant")
    rest = instruction.operands[3 : len(instruction.operands) - ("cache_hint" in op.mods)]
    rule, last = _source_rule(f, rest[0], size.value) if rest else ("", None)
    place = _whole(f, target)
    if target.space == "cluster" and not f.linker.variant.late:  # the copy is to this CTA's own memory
        place = f.compute("sub.u64", ("u64", "u64"), (place, f.cta_window()), "u64")
    src: tuple[Ref | None, ...] = (source.base, place)
    types: tuple[str, ...] = (source.type, "u64")
    if last is not None:
        src, types = (*src, last), (*types, "u32" if rule == "size" else "pred")
    kind = "async.copy" if f.linker.variant.late else "cp.async"
    copy = Op(kind, op, (), src, (), types, imm=source.offset, space=source.space, detail=ThreadCopy(size.value, rule))
    if f.linker.variant.late:
        f.event(copy)
        f.end_region(after)
    else:
        f.emit(copy)


def _source_rule(f: FunctionLowering, operand: Operand, count: int) -> tuple[str, Ref | None]:
    """The source's size, or the predicate that ignores it; a size that is all needs no look at all."""
    if isinstance(operand, Immediate):
        return ("", None) if operand.value >= count else ("size", f.constant(operand.value, "b32"))
    plain = operand.operand if isinstance(operand, Negated) else operand
    if f.declared_type(plain) != "pred":
        return "size", f.source(operand, "u32")
    ignored = f.source(plain, "pred")
    return "ignore", f.inverse(ignored) if isinstance(operand, Negated) else ignored


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
    """Nothing is waited for, if not late: copies are complete at once."""
    variant = f.linker.variant
    if not variant.late and not variant.groups:
        return
    after = f.guarded_region()
    detail = Groups(commit=True)
    if op.name.endswith("wait_all"):
        detail = Groups(commit=True, pending=-1)
    elif op.name.endswith("wait_group"):
        count = instruction.operands[0]
        if not isinstance(count, Immediate):
            raise Unsupported("the number of groups must be a constant")
        detail = Groups(commit=False, pending=count.value)
    f.event(Op("async.copy.group" if variant.late else "observe.group", op, detail=detail))
    f.end_region(after)
