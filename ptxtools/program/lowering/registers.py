"""setmaxnreg (9.7.19.5), in kernels that are launched with a known number of registers a thread."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ptxtools.ir import Directive, Immediate, Instruction
from ptxtools.isa import Opcode
from ptxtools.program.details import RegisterChange
from ptxtools.program.layout import align_up
from ptxtools.program.program import LANES, Op

from .registry import Unsupported, lowers

if TYPE_CHECKING:
    from .function import FunctionLowering
    from .link import Linker

#: Registers of an SM; a warp gets them eight for each of its threads at a time.
_SM_REGISTERS, _UNIT = 65536, 8
_MOST_REGISTERS = 255


@lowers("setmaxnreg")
def setmaxnreg(f: FunctionLowering, instruction: Instruction, op: Opcode) -> None:
    """imm: registers a thread."""
    entry = _at_entry(f.linker)
    if entry is None:
        return
    wanted = instruction.operands[0]
    if not isinstance(wanted, Immediate):
        raise Unsupported("the number of registers is not a constant")
    after = f.guarded_region()
    f.synchronise(f.constant((1 << LANES) - 1, "b32"))
    f.event(Op("setmaxnreg", op, imm=wanted.value, detail=RegisterChange("inc" if op.has("inc") else "dec", entry)))
    f.end_region(after)


def _at_entry(linker: Linker) -> int | None:
    """Registers of a thread at the start: those that the directives allow, but no more than any setmaxnreg asks for.

    None without .maxnreg, or .minnctapersm beside the threads of a CTA: ptxas ignores setmaxnreg then.
    """
    function = linker.flows[0].function
    directives = {item.name: item.args for item in function.directives if isinstance(item, Directive)}
    threads = directives.get(".reqntid") or directives.get(".maxntid")
    most: list[int] = [_MOST_REGISTERS]
    if ".maxnreg" in directives:
        most.append(int(directives[".maxnreg"][0]))
    if threads and ".minnctapersm" in directives:
        warps = int(directives[".minnctapersm"][0])
        count = 1
        for size in threads:
            count *= int(size)
        warps *= -(-count // LANES)
        most.append(_SM_REGISTERS // max(1, warps * LANES) // _UNIT * _UNIT)
    if len(most) == 1:
        return None
    asked = [
        operand.value
        for flow in linker.flows
        for block in flow.blocks
        for instruction in block.instructions
        if instruction.opcode.startswith("setmaxnreg")
        for operand in instruction.operands
        if isinstance(operand, Immediate)
    ]
    return align_up(min(*most, max(asked)), _UNIT)
