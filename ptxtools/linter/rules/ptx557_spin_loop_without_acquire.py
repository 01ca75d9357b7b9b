"""PTX557 | loop that waits without acquiring | 8.8, 8.10.6 (Causality)

What: a loop of one block polls memory by a volatile or relaxed load, or takes a lock by a relaxed compare-and-swap of
constants, and a plain load follows it with no fence, barrier or acquire in between. Possible: the load may not depend
on what the loop waits for.
Why: nothing orders the load behind the polling: it may give old data.
Example:
    mov.b32 %r4, 0;
    L: ld.volatile.global.b32 %r4, [%rd2];
    setp.eq.u32 %p3, %r4, 0;
    @%p3 bra L;
    ld.global.b32 %r5, [%rd2+4];
Better:
    mov.b32 %r4, 0;
    L: ld.volatile.global.b32 %r4, [%rd2];
    setp.eq.u32 %p3, %r4, 0;
    @%p3 bra L;
    membar.gl;
    ld.global.b32 %r5, [%rd2+4];
"""

from __future__ import annotations

from ptxtools.ir.nodes import Immediate, Label, Name
from ptxtools.ir.positions import parts_of

from ..context import LintContext
from ..facts import ENDING, FunctionFacts, Line
from ..registry import bodies_with

CODE = "PTX557"


_ORDERING = frozenset({"fence", "membar", "bar", "barrier", "call", "griddepcontrol", "mbarrier"})
_STRONG = ("volatile", "relaxed", "acquire", "mmio")


@bodies_with("ld", "atom")
def check(context: LintContext, facts: FunctionFacts) -> None:
    if not any(_polls(opcode) for opcode in {line.item.opcode for line in facts.of("ld", "atom")}):
        return
    polled: Line | None = None
    label = ""
    inside: list[Line] = []
    for item in facts.items:
        if isinstance(item, Label):
            polled = polled if polled is not None and not inside else None
            label, inside = item.name, []
        if not isinstance(item, Line):
            continue
        family, opcode = item.plan.family, item.item.opcode
        if polled is not None:
            if family in _ORDERING or ".acq" in opcode or item.item.guard is not None or family in ENDING:
                polled = None
            elif family == "ld" and not any(f".{word}" in opcode for word in ("param", "const", *_STRONG)):
                _report(context, item, polled)
                polled = None
        inside.append(item)
        if family == "bra" and item.item.guard is not None:
            target = item.item.operands[0] if item.item.operands else None
            if label and isinstance(target, Name) and target.name == label:
                polled = _poll(inside)
            label, inside = "", []


def _poll(lines: list[Line]) -> Line | None:
    """The one access of a loop, if it polls, and nothing in the loop orders others."""
    accesses = [line for line in lines if line.plan.family in ("ld", "st", "atom", "red", "cp")]
    if len(accesses) != 1 or any(line.plan.family in _ORDERING for line in lines):
        return None
    if not _polls(accesses[0].item.opcode):
        return None
    lock = all(isinstance(operand, Immediate) for operand in accesses[0].item.operands[2:4])
    return accesses[0] if accesses[0].plan.family == "ld" or lock else None


def _polls(opcode: str) -> bool:
    """Whether an access may poll memory without acquiring."""
    if ".acq" in opcode or ".param" in opcode or ".const" in opcode:
        return False
    return opcode.startswith(("ld.volatile", "ld.relaxed")) or (opcode.startswith("atom") and ".cas" in opcode)


def _report(context: LintContext, line: Line, polled: Line) -> None:
    where = context.source.line_of(polled.item.span[0])
    message = f"nothing orders this access behind the polling in line {where}"
    help_ = ("poll with .acquire, or add a fence",)
    context.warn(CODE, message, parts_of(line.item).opcode, help=help_, section="8.8, 8.10.6 (Causality)")
