"""PTX516 | threads write different values to one address | 8.5

What: a store that at least two threads certainly run, with one address for both and different values.
Why: which value stays is not defined.
Example:
    mov.u32 %r4, %laneid;
    st.global.b32 [%rd1], %r4;
Better:
    mov.u32 %r4, %laneid;
    setp.eq.u32 %p3, %r4, 0;
    @%p3 st.global.b32 [%rd1], %r4;
"""

from __future__ import annotations

from ptxtools.ir.positions import part_span

from ..context import LintContext
from ..facts import FunctionFacts
from ..registry import bodies_with
from ..walk import tell

CODE = "PTX516"


@bodies_with("st")
def check(context: LintContext, facts: FunctionFacts) -> None:
    for steps in facts.steps:
        for step in steps:
            if step.active is None:
                break
            access = step.access if step.family == "st" else None
            if access is None or access.space not in ("shared", "global", "") or step.stored is None or step.strong:
                continue
            if not isinstance(access.address.each, int) or not access.address.uniform or step.stored.terms:
                continue
            first: dict[int, int] = {}
            for thread, runs_it in enumerate(step.active):
                if runs_it:
                    first.setdefault(step.stored.numbers[thread], thread)
            if len(first) > 1:
                a, b = list(first.values())[:2]
                message = f"threads {a} and {b} store {step.stored.numbers[a]} and {step.stored.numbers[b]} here"
                context.warn(CODE, message, part_span(step.line.item, access.operand), section="8.5")
    tell(context, facts, CODE, "race of one store", "8.5")
