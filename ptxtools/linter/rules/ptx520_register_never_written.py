"""PTX520 | register is never written | 5.1.1

What: an instruction computes with a register that the function never writes.
Why: the value is undefined. Compilers leave such reads where the value does not matter, so what only moves bytes (mov,
prmt, the value of shfl) is not reported.
Example:
    .reg .b32 %never;
    mov.b32 %r1, 1;
    add.s32 %r2, %r1, %never;
    st.global.b32 [0x10], %r2;
Better:
    mov.b32 %r1, 1;
    add.s32 %r2, %r1, 5;
"""

from __future__ import annotations

from ptxtools.ir.nodes import Instruction, Name
from ptxtools.ir.positions import name_span

from ..context import LintContext
from ..facts import FunctionFacts
from ..registry import bodies

CODE = "PTX520"

#: What moves bytes without a look at them, as the one byte of an empty structure; a shfl also has a lane and a mask,
#: which matter.
_MOVES = ("mov.", "prmt.", "st.u8", "st.b8", "st.param.b8", "st.param.u8", "st.local.u8", "st.local.b8")


@bodies
def check(context: LintContext, facts: FunctionFacts) -> None:
    # Compilers pack and move undefined bytes: only an instruction that computes with them is a hazard.
    parameters = {id(v) for v in (*facts.function.params, *facts.function.returns)}
    for key in facts.reads.keys() - facts.writes.keys():
        (declaration, name), item = key, facts.reads[key]
        if declaration not in parameters and not item.opcode.startswith(_MOVES) and not _shuffled(item, name):
            message = f"register '{name}' is read here but never written"
            context.warn(CODE, message, name_span(item, name), section="5.1.1")


def _shuffled(item: Instruction, name: str) -> bool:
    """Whether a register is only the value that a shfl hands on, the padding of a structure perhaps."""
    if not item.opcode.startswith("shfl.") or (item.guard is not None and item.guard.name == name):
        return False
    return [place for place, operand in enumerate(item.operands) if operand == Name(name)] == [1]
