"""Asynchronous stores and reductions, bulk and tensor copies, and tensor maps (9.7.9.12, 9.7.9.13, 9.7.9.25, 9.7.9.26).

All are events. The sources are the operands in order, addresses whole, vectors element by element; `SourceNames`
names each of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ptxtools.ir import Address, Immediate, Instruction, Operand
from ptxtools.isa import Opcode, OperandSpec
from ptxtools.program.details import Groups, SourceNames
from ptxtools.program.program import PARAM_WINDOW, Op, Ref

from .arithmetic import elements, shape_of
from .memory import locate
from .registry import Unsupported, lowers

if TYPE_CHECKING:
    from .function import FunctionLowering

#: What serves which instruction.
_EVENTS = {
    "st.async": "async.store", "red.async": "async.store", "st.bulk": "bulk.clear",
    "multimem.st.async": "async.store", "multimem.red.async": "async.store",
    "cp.async.bulk": "bulk.copy", "cp.reduce.async.bulk": "bulk.copy",
    "multimem.cp.async.bulk": "bulk.copy", "multimem.cp.reduce.async.bulk": "bulk.copy",
    "cp.async.bulk.tensor": "bulk.tensor", "cp.reduce.async.bulk.tensor": "bulk.tensor",
    "tensormap.replace": "tensormap.replace", "tensormap.cp_fenceproxy": "tensormap.copy",
}  # fmt: skip


class _Sources:
    """Source operands of one event."""

    def __init__(self, f: FunctionLowering) -> None:
        self.lowering = f
        self.refs: list[Ref] = []
        self.types: list[str] = []
        self.names: list[tuple[str, str]] = []

    def add(self, name: str, ref: Ref, type_name: str, space: str = "") -> None:
        self.refs.append(ref)
        self.types.append(type_name)
        self.names.append((name, space))

    def operand(self, operand: Operand, spec: OperandSpec) -> None:
        if spec.role == "addr":
            self.address(operand, spec)
            return
        type_name = spec.type or "b32"
        for item in elements(self.lowering, operand):
            self.add(spec.name, self.lowering.source(item, type_name), type_name)

    def address(self, operand: Operand, spec: OperandSpec) -> None:
        f = self.lowering
        space = spec.space
        if space is not None and space.startswith("shared"):
            space = "shared"
        place = locate(f, operand, space)
        base, offset, where = place.base, place.offset, place.space
        if where == "param":
            offset, where = offset + PARAM_WINDOW, "generic"
        self.add(spec.name, _sum(f, base, offset), "u64", "" if where == "generic" else where)
        if isinstance(operand, Address):
            for part, extra in zip(spec.parts, operand.extra, strict=False):
                self.operand(extra, part)


def _sum(f: FunctionLowering, base: Ref | None, offset: int) -> Ref:
    """An address as one 64-bit value; 32-bit ones wrap at 32 bits."""
    if base is None:
        return f.constant(offset, "b64")
    if base.type == "b32":
        if offset:
            base = f.compute("add.u32", ("u32", "u32"), (base, f.constant(offset, "b32")), "u32")
        return f.compute("cvt.u64.u32", ("u32",), (base,), "u64")
    return f.compute("add.u64", ("u64", "u64"), (base, f.constant(offset, "b64")), "u64") if offset else base


@lowers(*_EVENTS)
def asynchronous(f: FunctionLowering, instruction: Instruction, op: Opcode) -> None:
    after = f.guarded_region()
    sources = _Sources(f)
    for operand, spec in zip(instruction.operands, shape_of(op, instruction), strict=False):
        sources.operand(operand, spec)
    if op.name == "tensormap.replace" and op.mods["field"] == "global_stride" and f.linker.module.version < (8, 5):
        sources.add("shift", f.constant(4, "b32"), "u32")  # assemblers before took the stride in 16 bytes
    f.event(_event(_EVENTS[op.name], op, sources))
    f.end_region(after)


def _event(kind: str, op: Opcode, sources: _Sources) -> Op:
    return Op(kind, op, (), tuple(sources.refs), (), tuple(sources.types), detail=SourceNames(tuple(sources.names)))


@lowers("discard")
def discard(f: FunctionLowering, instruction: Instruction, op: Opcode) -> None:
    """Leaves memory undefined (9.7.9.17)."""
    after = f.guarded_region()
    place = locate(f, instruction.operands[0], "global")
    f.event(Op("discard", op, (), (_sum(f, place.base, place.offset),), (), ("u64",)))
    f.end_region(after)


@lowers("cp.async.bulk.commit_group", "cp.async.bulk.wait_group")
def group(f: FunctionLowering, instruction: Instruction, op: Opcode) -> None:
    after = f.guarded_region()
    detail = Groups(commit=True)
    if op.name.endswith("wait_group"):
        count = instruction.operands[0]
        if not isinstance(count, Immediate):
            raise Unsupported("the number of groups must be a constant")
        detail = Groups(commit=False, pending=count.value, read=op.has("read"))
    f.event(Op("bulk.group", op, detail=detail))
    f.end_region(after)


@lowers(
    "cp.async.bulk.prefetch",
    "cp.async.bulk.prefetch.tensor",
    "applypriority.async.bulk",
    "applypriority.async.bulk.tensor",
)
def prefetch(f: FunctionLowering, instruction: Instruction, op: Opcode) -> None:
    """Caches are not simulated."""
