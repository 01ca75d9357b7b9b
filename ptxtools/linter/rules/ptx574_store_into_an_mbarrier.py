"""PTX574 | store into an mbarrier | 9.7.13.15

What: behind mbarrier.init, and before mbarrier.inval, a plain store of a thread, or a copy that it begins, reaches the
mbarrier's 8 bytes.
Why: an mbarrier may be changed by mbarrier operations only; afterwards it is undefined.
Example:
    .shared .align 8 .b64 bars[2];
    mbarrier.init.shared.b64 [bars], 32;
    st.shared.b32 [bars+4], 0;
Better:
    .shared .align 8 .b64 bars[2];
    mbarrier.init.shared.b64 [bars], 32;
    st.shared.b32 [bars+8], 0;
"""

from __future__ import annotations

from ptxtools.ir.positions import part_span

from ..context import LintContext
from ..facts import FunctionFacts
from ..mbarriers import life
from ..registry import bodies_with
from ..walk import tell

CODE = "PTX574"


@bodies_with("mbarrier")
def check(context: LintContext, facts: FunctionFacts) -> None:
    for step, state in life(facts):
        if state == "stored":
            message = "this store reaches into an mbarrier"
            context.warn(CODE, message, part_span(step.line.item, 0), section="9.7.13.15")
    tell(context, facts, CODE, "mbarrier stored", "9.7.13.15")
