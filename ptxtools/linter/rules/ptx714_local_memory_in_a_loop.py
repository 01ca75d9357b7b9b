"""PTX714 | local memory in an inner loop | 5.1.5

What: a loop without inner loops loads from local memory. Loops of a few rounds are not reported, nor those that only
store, as the reduction of large angles does, nor modules for debuggers, where each variable is in memory.
Why: local memory is device memory behind the caches: an access takes at least as long as one of the L1 cache, where a
register costs nothing. An array whose indices are known when the loop is unrolled can be in registers.
Example:
    .local .align 4 .b32 table[8];
    mov.u32 %r4, table;
    mov.b32 %r5, 0;
    L:
    ld.local.b32 %r6, [%r4];
    add.u32 %r5, %r5, %r6;
    setp.lt.u32 %p1, %r5, %r2;
    @%p1 bra L;
Better:
    .local .align 4 .b32 table[8];
    mov.u32 %r4, table;
    mov.b32 %r5, 0;
    ld.local.b32 %r6, [%r4];
    L:
    add.u32 %r5, %r5, %r6;
    setp.lt.u32 %p1, %r5, %r2;
    @%p1 bra L;
"""

from __future__ import annotations

from ptxtools.ir.nodes import Immediate
from ptxtools.ir.positions import parts_of

from ..context import LintContext
from ..facts import FunctionFacts
from ..lanes import only_write
from ..loops import Loop
from ..registry import bodies_with

CODE = "PTX714"

#: Rounds of a loop that are a few.
_FEW = 8


@bodies_with("ld")
def check(context: LintContext, facts: FunctionFacts) -> None:
    local = {id(line.item) for line in facts.of("ld") if ".local" in line.item.opcode}
    if not local or "debug" in context.module.target_options:
        return
    for loop in facts.loops:
        lines = [line for line in loop.lines if id(line.item) in local] if loop.innermost else []
        if lines and not _short(facts, loop):
            times = f"{len(lines)} times " if len(lines) > 1 else ""
            message = f"each round of the loop loads from local memory {times}from here on"
            context.warn(CODE, message, parts_of(lines[0].item).opcode, section="5.1.5")


def _short(facts: FunctionFacts, loop: Loop) -> bool:
    """Whether a comparison with a small constant ends the loop."""
    guard = loop.lines[-1].item.guard
    test = only_write(facts, loop.lines[-1], guard.name) if guard is not None else None
    limits = [part.value for part in test.item.operands[1:] if isinstance(part, Immediate)] if test is not None else []
    return any(abs(limit) <= _FEW for limit in limits)
