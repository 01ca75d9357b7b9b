"""PTX520 | register is never written | 5.1.1

What: an instruction computes with a register that the function never writes.
Why: the value is undefined. Compilers leave such reads where the value does not matter, so copies (mov, prmt) are not
reported.
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

from ptxtools.ir.positions import name_span

from ..context import LintContext
from ..facts import FunctionFacts
from ..registry import bodies

CODE = "PTX520"


@bodies
def check(context: LintContext, facts: FunctionFacts) -> None:
    # Compilers pack and move undefined bytes: only an instruction that computes with them is a hazard.
    parameters = {id(v) for v in (*facts.function.params, *facts.function.returns)}
    for key in facts.reads.keys() - facts.writes.keys():
        (declaration, name), item = key, facts.reads[key]
        if declaration not in parameters and not item.opcode.startswith(("mov.", "prmt.")):
            message = f"register '{name}' is read here but never written"
            context.warn(CODE, message, name_span(item, name), section="5.1.1")
