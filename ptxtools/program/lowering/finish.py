"""Finish a lowered function: optimise it, and assign slots to its values."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ptxtools.program.passes.blocks import renumber, tidy
from ptxtools.program.passes.colouring import assign
from ptxtools.program.passes.fuse import fuse
from ptxtools.program.passes.ifconvert import if_convert
from ptxtools.program.passes.simplify import simplify
from ptxtools.program.program import FunctionCode

if TYPE_CHECKING:
    from .function import FunctionLowering


def finish(f: FunctionLowering) -> FunctionCode:
    """Optimise the blocks (if requested), assign slots, and describe the function. Block numbers stay local."""
    for op in f.outgoing_local:
        op.imm += f.local_bytes
    if f.optimise:
        f.blocks = tidy(f.blocks, f.constants)
        simplify(f.blocks, f)
        f.blocks = tidy(f.blocks, f.constants)
        fuse(f.blocks, f)
        before = len(f.blocks)
        f.blocks = if_convert(f.blocks, f)
        if len(f.blocks) < before:
            fuse(f.blocks, f)
    else:
        f.blocks = renumber(f.blocks)
    frame = assign(f.blocks, f, start=f.slot_start, share=f.optimise)
    f.register_bytes = frame.variables
    return FunctionCode(
        f.function.name, 0, frame.size, f.local_bytes, frame.constants, frame.launch_constants, f.local_variables
    )
