"""Dynamic stack allocation: alloca, stacksave, stackrestore (9.7.17).

Frames of functions grow from the start of a thread's local memory; alloca takes memory from its end.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ptxtools.ir import Immediate, Instruction
from ptxtools.ir.cfg import ControlFlow
from ptxtools.isa import Opcode
from ptxtools.program.details import StackMove
from ptxtools.program.program import Op

from .registry import Unsupported, lowers

if TYPE_CHECKING:
    from .function import FunctionLowering

#: The alignment that every allocation has (9.7.17.3).
_LEAST_ALIGNMENT = 8


def takes_stack(flow: ControlFlow) -> bool:
    """Whether a function has instructions of this section."""
    return any(i.opcode.startswith(("alloca", "stack")) for block in flow.blocks for i in block.instructions)


def enter(f: FunctionLowering) -> None:
    """Remember the stack at the start of a function that changes it: its memory is freed when it returns."""
    if not f.entry and takes_stack(f.flow):
        f.saved_stack = f.new("b64")
        f.event(Op("stack", None, (f.saved_stack,), dst_types=("u64",), detail=StackMove("save")))


def leave(f: FunctionLowering) -> None:
    """Free what the function has allocated."""
    if f.saved_stack is not None:
        f.event(Op("stack", None, (), (f.saved_stack,), (), ("u64",), detail=StackMove("restore")))


@lowers("alloca")
def alloca(f: FunctionLowering, instruction: Instruction, op: Opcode) -> None:
    """src = bytes, and the frame's start in local memory; imm: where its variables end."""
    kind = op.type or "u64"
    alignment = _LEAST_ALIGNMENT
    if len(instruction.operands) > 2:
        written = instruction.operands[2]
        if not isinstance(written, Immediate) or written.value <= 0 or written.value & (written.value - 1):
            raise Unsupported("the alignment is not a power of two")
        alignment = max(alignment, written.value)
    after = f.guarded_region()
    size = f.source(instruction.operands[1], kind)
    target = f.destination(instruction.operands[0])
    f.event(Op(
        "stack", op, (target,), (size, f.stack_pointer), (kind,), (kind, "u64"), imm=f.local_bytes,
        detail=StackMove("allocate", alignment),
    ))  # fmt: skip
    f.end_region(after)


@lowers("stacksave")
def stacksave(f: FunctionLowering, instruction: Instruction, op: Opcode) -> None:
    after = f.guarded_region()
    target = f.destination(instruction.operands[0])
    f.event(Op("stack", op, (target,), dst_types=(op.type or "u64",), detail=StackMove("save")))
    f.end_region(after)


@lowers("stackrestore")
def stackrestore(f: FunctionLowering, instruction: Instruction, op: Opcode) -> None:
    after = f.guarded_region()
    source = f.source(instruction.operands[0], op.type)
    f.event(Op("stack", op, (), (source,), (), (op.type or "u64",), detail=StackMove("restore")))
    f.end_region(after)
