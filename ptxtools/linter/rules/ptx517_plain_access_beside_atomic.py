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

from ..context import LintContext
from ..facts import FunctionFacts
from ..registry import bodies_with
from ..walk import tell

CODE = "PTX517"


@bodies_with("atom", "red")
def check(context: LintContext, facts: FunctionFacts) -> None:
    tell(context, facts, CODE, "race with an update", "8.5")
