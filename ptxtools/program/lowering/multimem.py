"""multimem.ld_reduce, multimem.st, multimem.red (9.7.9.14): events whose source 0 is the multicast address."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ptxtools.ir import Instruction
from ptxtools.isa import Opcode
from ptxtools.program.program import Op

from .arithmetic import elements
from .memory import locate
from .registry import lowers

if TYPE_CHECKING:
    from .function import FunctionLowering


@lowers("multimem.ld_reduce", "multimem.st", "multimem.red")
def multimem(f: FunctionLowering, instruction: Instruction, op: Opcode) -> None:
    """src = address, then the values of a store or reduction."""
    after = f.guarded_region()
    type_name = op.type or "b32"
    loads = op.name == "multimem.ld_reduce"
    first, second = instruction.operands[:2]
    items = elements(f, first if loads else second)
    types = (type_name,) * len(items)
    place = locate(f, second if loads else first, op.space)
    if loads:
        targets = tuple(f.destination(item) for item in items)
        f.event(Op("multimem", op, targets, (place.base,), types, (place.type,), imm=place.offset))
    else:
        values = tuple(f.source(item, type_name) for item in items)
        f.event(Op("multimem", op, (), (place.base, *values), (), (place.type, *types), imm=place.offset))
    f.end_region(after)
