"""Finish a lowered function: optimise it, and assign slots to its values."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ptxtools.program.passes.blocks import renumber, tidy
from ptxtools.program.passes.colouring import assign, live_at_lines
from ptxtools.program.passes.fuse import fuse
from ptxtools.program.passes.ifconvert import if_convert
from ptxtools.program.passes.simplify import simplify
from ptxtools.program.program import FunctionCode

if TYPE_CHECKING:
    from .function import FunctionLowering


def owners(f: FunctionLowering) -> dict[int, int]:
    """For each value that holds a register, by number, the number that the register was given first. Of several
    registers in one value it is the one that the value was made for; where that is none of them, nothing is known."""
    found: dict[int, list[int]] = {}
    for number in f.types:
        found.setdefault(f.refs[number].slot, []).append(number)
    return {
        value: value if value in held else held[0] for value, held in found.items() if value in held or len(held) == 1
    }


def finish(f: FunctionLowering) -> FunctionCode:
    """Optimise the blocks (if requested), assign slots, and describe the function. Block numbers stay local."""
    for op in f.outgoing_local:
        op.imm += f.local_bytes
    if f.optimise:
        f.blocks = tidy(f.blocks, f.constants)
        simplify(f.blocks, f, exact=f.linker.variant.apart_registers)
        f.blocks = tidy(f.blocks, f.constants)
        fuse(f.blocks, f)
        if not f.linker.variant.apart_registers:
            before = len(f.blocks)
            f.blocks = if_convert(f.blocks, f)
            if len(f.blocks) < before:
                fuse(f.blocks, f)
    else:
        f.blocks = renumber(f.blocks)
    if f.linker.variant.names and f.optimise:
        f.owners = owners(f)
        f.live = live_at_lines(f.blocks, set(f.owners))
    frame = assign(f.blocks, f, start=f.slot_start, share=f.optimise and not f.linker.variant.apart_registers)
    f.register_bytes = frame.variables
    return FunctionCode(
        f.function.name, 0, frame.size, f.local_bytes, frame.constants, frame.launch_constants, f.local_variables
    )
