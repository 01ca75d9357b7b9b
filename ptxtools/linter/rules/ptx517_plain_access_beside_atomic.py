"""PTX517 | plain access beside atomic ones | 8.5

What: one address, the same for all threads, has a plain load or store and an atomic operation, and no barrier between.
Why: other threads may be at the atomic operation already, or still: a race, in which updates are lost.
Example:
    setp.eq.u32 %p3, %r1, 0;
    .shared .align 4 .b32 total;
    @%p3 st.shared.b32 [total], 0;
    atom.shared.add.u32 %r3, [total], 1;
Better:
    setp.eq.u32 %p3, %r1, 0;
    .shared .align 4 .b32 total;
    @%p3 st.shared.b32 [total], 0;
    bar.sync 0;
    atom.shared.add.u32 %r3, [total], 1;
"""

from __future__ import annotations

from ptxtools.ir.positions import part_span

from ..context import LintContext
from ..facts import FunctionFacts
from ..memory import Step, variable_of
from ..registry import bodies_with
from ..values import Value
from ..walk import tell

CODE = "PTX517"


@bodies_with("atom", "red")
def check(context: LintContext, facts: FunctionFacts) -> None:
    for steps in facts.steps:
        _check(context, steps)
    tell(context, facts, CODE, "race with an update", "8.5")


def _check(context: LintContext, steps: list[Step]) -> None:
    before: dict[Value, Step] = {}
    for step in steps:
        if step.active is None:
            return
        if step.family in ("bar", "barrier", "mbarrier", "call", "fence", "membar"):
            before = {}
        access = step.access
        if access is None or access.space != "shared" or not access.address.uniform or variable_of(
            step.line, access.address) is None or (step.strong and not step.atomic):  # fmt: skip
            continue
        other = before.setdefault(access.address, step)
        if other.atomic != step.atomic and sum(step.active) + sum(other.active or ()) > 2:
            kind = "an atomic" if other.atomic else "a plain"
            message = f"{kind} access to the same address stands before this, and no barrier between"
            context.warn(CODE, message, part_span(step.line.item, access.operand), section="8.5")
            return
