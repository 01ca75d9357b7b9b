"""PTX543 | access at a constant address near zero | 6.4.1

What: a generic or global access at a constant address below 4096; or at one that a thread has loaded from shared
memory, where it or another one has stored it. Possible under a guard of which it is not known where it holds.
Why: nothing is ever allocated there: it is an access through a null pointer, and traps.
Example:
    mov.b64 %rd3, 0;
    ld.global.b32 %r4, [%rd3+16];
Better:
    mov.b64 %rd3, 0;
    setp.ne.u64 %p3, %rd3, 0;
    @%p3 ld.global.b32 %r4, [%rd3+16];
"""

from __future__ import annotations

from ptxtools.ir.positions import part_span

from ..context import LintContext
from ..facts import FunctionFacts
from ..memory import PAGE
from ..registry import bodies_with
from ..walk import tell

CODE = "PTX543"

_GUARDED = "possible: the guard may hold nowhere"


@bodies_with("ld", "st", "atom", "red")
def check(context: LintContext, facts: FunctionFacts) -> None:
    for step in facts.accesses:
        access = step.access if step.active is None or any(step.active) else None
        at = access.address.constant if access is not None and access.space in ("", "global") else None
        if access is not None and at is not None and 0 <= at < PAGE and step.indirect:
            message = f"address {at} is that of no memory"
            help = (_GUARDED,) if step.active is None and step.line.item.guard is not None else ()
            context.warn(CODE, message, part_span(step.line.item, access.operand), help=help, section="6.4.1")
    tell(context, facts, CODE, "null", "6.4.1")
