"""Instructions that change no value: prefetches, cache policies and priorities, performance events."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ptxtools.ir import Instruction
from ptxtools.isa import Opcode
from ptxtools.program.program import Op

from .registry import lowers

if TYPE_CHECKING:
    from .function import FunctionLowering


@lowers("prefetch", "prefetchu", "applypriority", "pmevent")
def nothing(f: FunctionLowering, instruction: Instruction, op: Opcode) -> None:
    """No operation."""


@lowers("griddepcontrol")
def dependency(f: FunctionLowering, instruction: Instruction, op: Opcode) -> None:
    """Grids run one after the other, so that all a grid may wait for has happened (9.7.13.13); shown to observers."""
    if f.linker.variant.fences:
        f.emit(Op("fence", op))


@lowers("createpolicy")
def policy(f: FunctionLowering, instruction: Instruction, op: Opcode) -> None:
    """A cache policy is an opaque value that only cache hints take (9.7.9.19)."""
    target = f.destination(instruction.operands[0])
    if target is not None:
        f.copy(target, f.constant(0, target.type))
