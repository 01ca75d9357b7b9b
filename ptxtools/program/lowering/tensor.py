"""Asynchronous tensor cores: wgmma (9.7.15) and tcgen05 (9.7.16) become events that know their operands by name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ptxtools.ir import Address, Instruction, Operand
from ptxtools.isa import Opcode, OperandSpec
from ptxtools.program.details import NamedOperands
from ptxtools.program.program import Op, Ref

from .arithmetic import add_destination, add_source, elements, shape_of
from .memory import locate
from .registry import Unsupported, lowers

if TYPE_CHECKING:
    from .function import FunctionLowering

_ALL_LANES = 0xFFFF_FFFF


class _Event:
    """Operands of an event while they are collected."""

    def __init__(self) -> None:
        self.named = NamedOperands({}, {}, {}, {})
        self.dst: list[Ref | None] = []
        self.src: list[Ref | None] = []
        self.dst_types: list[str] = []
        self.src_types: list[str] = []

    def add(self, f: FunctionLowering, operand: Operand, spec: OperandSpec, op: Opcode) -> None:
        if spec.role == "dst":
            first = len(self.dst)
            add_destination(f, operand, spec, self.dst, self.dst_types)
            self.named.results[spec.name] = first, len(self.dst) - first
            return
        first = len(self.src)
        if spec.role == "addr":
            self._address(f, operand, spec, op)
        else:
            sources: list[Ref] = []
            add_source(f, operand, spec, sources, self.src_types)
            self.src += sources
        self.named.sources[spec.name] = first, len(self.src) - first

    def _address(self, f: FunctionLowering, operand: Operand, spec: OperandSpec, op: Opcode) -> None:
        memory = spec.space != "tmem"
        if not memory and not isinstance(operand, Address):
            raise Unsupported("an address in tensor memory is expected")
        place = locate(f, operand, _SPACES.get(op.space or "", op.space) if memory else None)
        self.src.append(place.base)
        self.src_types.append(place.type)
        self.named.offsets[spec.name] = place.offset
        self.named.spaces[spec.name] = place.space if memory else "tensor"

    def operation(self, kind: str, op: Opcode, where: int) -> Op:
        return Op(
            kind, op, tuple(self.dst), tuple(self.src), tuple(self.dst_types), tuple(self.src_types),
            detail=self.named, where=where,
        )  # fmt: skip


_SPACES = {"shared::cluster": "shared"}


def _event(f: FunctionLowering, instruction: Instruction, op: Opcode, kind: str, *, collective: bool) -> None:
    """The instruction as an event; all lanes of the warp meet before a collective one."""
    after = f.guarded_region()
    if collective:
        f.synchronise(f.constant(_ALL_LANES, "b32"))
    event = _Event()
    for operand, spec in zip(instruction.operands, shape_of(op, instruction), strict=False):
        event.add(f, operand, spec, op)
    f.event(event.operation(kind, op, f.where))
    f.end_region(after)


# --- wgmma ------------------------------------------------------------------------------------------------------------


@lowers("wgmma.mma_async", "wgmma.mma_async.sp")
def warpgroup_product(f: FunctionLowering, instruction: Instruction, op: Opcode) -> None:
    """The accumulator is source and destination."""
    after = f.guarded_region()
    f.synchronise(f.constant(_ALL_LANES, "b32"))
    event = _Event()
    for operand, spec in zip(instruction.operands, shape_of(op, instruction), strict=False):
        event.add(f, operand, spec, op)
        if spec.name == "d":
            first = len(event.src)
            for item in elements(f, operand):
                event.src.append(f.source(item, "b32"))
                event.src_types.append("b32")
            event.named.sources["d"] = first, len(event.src) - first
    f.event(event.operation("wgmma.mma_async", op, f.where))
    f.end_region(after)


@lowers("wgmma.commit_group", "wgmma.wait_group")
def warpgroup_group(f: FunctionLowering, instruction: Instruction, op: Opcode) -> None:
    _event(f, instruction, op, op.name, collective=True)


@lowers("wgmma.fence")
def warpgroup_fence(f: FunctionLowering, instruction: Instruction, op: Opcode) -> None:
    """Registers are read and written in program order: nothing to do (9.7.15.7.1), but to show it to observers."""
    if f.linker.variant.fences:
        f.emit(Op("fence", op))


# --- sparse vectors ---------------------------------------------------------------------------------------------------


@lowers("spcompress", "spdecompress")
def sparse_vector(f: FunctionLowering, instruction: Instruction, op: Opcode) -> None:
    """Each thread by itself."""
    _event(f, instruction, op, op.name, collective=False)


# --- tcgen05 ----------------------------------------------------------------------------------------------------------


@lowers("tcgen05.alloc", "tcgen05.dealloc", "tcgen05.relinquish_alloc_permit", "tcgen05.ld", "tcgen05.ld.red",
        "tcgen05.ld.spcompress", "tcgen05.ld.red.spcompress", "tcgen05.st")  # fmt: skip
def collective(f: FunctionLowering, instruction: Instruction, op: Opcode) -> None:
    """What a whole warp does together."""
    kind = "tcgen05.ld" if op.name.startswith("tcgen05.ld") else op.name
    _event(f, instruction, op, kind, collective=True)


@lowers("tcgen05.mma", "tcgen05.mma.sp", "tcgen05.mma.ws", "tcgen05.mma.ws.sp", "tcgen05.cp", "tcgen05.shift",
        "tcgen05.commit")  # fmt: skip
def single(f: FunctionLowering, instruction: Instruction, op: Opcode) -> None:
    """What each thread that executes it does for the whole CTA or pair of CTAs."""
    kind = "tcgen05.mma" if op.name.startswith("tcgen05.mma") else op.name
    _event(f, instruction, op, kind, collective=False)


@lowers("tcgen05")
def ordering(f: FunctionLowering, instruction: Instruction, op: Opcode) -> None:
    """tcgen05.wait and tcgen05.fence: loads and stores are complete when they have executed, if not late."""
    if (f.linker.variant.late or f.linker.variant.groups) and op.mods.get("operation", "").startswith("wait"):
        _event(f, instruction, op, "tcgen05.wait", collective=True)
    elif f.linker.variant.fences and (op.has("fence::before_thread_sync") or op.has("fence::after_thread_sync")):
        f.emit(Op("fence", op))
