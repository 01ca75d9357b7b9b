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

from ptxtools.ir.nodes import Immediate, Name
from ptxtools.ir.positions import parts_of

from ..context import LintContext
from ..facts import FunctionFacts, Line
from ..inflight import accessed
from ..lanes import only_write
from ..loops import Loop
from ..memory import Step
from ..registry import bodies_with

CODE = "PTX714"

#: Rounds of a loop that are a few.
_FEW = 8
#: Unknowns in the generic address of a fixed place in local memory: the variable, and the window.
_FIXED = 2


@bodies_with("ld")
def check(context: LintContext, facts: FunctionFacts) -> None:
    if "debug" in context.module.target_options or not _has_local(facts):
        return
    local = {id(step.line.item) for step in facts.accesses if _is_local_load(step)}
    if not local:
        return
    for loop in facts.loops:
        lines = [line for line in loop.lines if id(line.item) in local] if loop.innermost else []
        if lines and not _short(facts, loop):
            times = f"{len(lines)} times " if len(lines) > 1 else ""
            message = f"each round of the loop loads from local memory {times}from here on"
            context.warn(CODE, message, parts_of(lines[0].item).opcode, section="5.1.5")


def _has_local(facts: FunctionFacts) -> bool:
    loads = any(".local" in line.item.opcode for line in facts.of("ld"))
    return loads or any(line.item.opcode.startswith("cvta.local") for line in facts.of("cvta"))


def _is_local_load(step: Step) -> bool:
    """Whether a load is one of local memory: with .local, or by a computed address that cvta.local has made. Without
    optimisation, compilers load each variable from its place in this way."""
    if step.family != "ld" or step.access is None:
        return False
    address = step.access.address
    if step.access.space or ("cvta.local", 1) not in address.terms:
        return step.access.space == "local"
    return len(address.terms) > _FIXED or not isinstance(address.each, int)


def _short(facts: FunctionFacts, loop: Loop) -> bool:
    """Whether a comparison with a small constant ends the loop."""
    guard = loop.lines[-1].item.guard
    test = only_write(facts, loop.lines[-1], guard.name) if guard is not None else None
    parts = test.item.operands[1:] if test is not None else ()
    limits = [part.value for part in parts if isinstance(part, Immediate)]
    if limits != [0]:
        return any(abs(limit) <= _FEW for limit in limits)
    return test is not None and any(_counts_down(facts, loop, test, part.name) for part in parts if type(part) is Name)


def _counts_down(facts: FunctionFacts, loop: Loop, test: Line, name: str) -> bool:
    """Whether a register is counted to zero by constant steps, from a small constant."""
    key = test.registers[name]
    inside = {id(line.item) for line in loop.lines}
    for line in facts.lines:
        if not any(write and line.registers[other] == key for other, write in accessed(line)):
            continue
        sources = line.item.operands[1:]
        numbers = [part.value for part in sources if isinstance(part, Immediate)]
        if id(line.item) in inside:
            if line.plan.family not in ("add", "sub") or not numbers:
                return False
        elif line.plan.family != "mov" or not numbers or abs(numbers[0]) > _FEW:
            return False
    return True
