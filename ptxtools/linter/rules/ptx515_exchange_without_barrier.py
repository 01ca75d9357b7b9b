"""PTX515 | threads exchange data without a barrier | 8.5, 9.7.13.1

What: a thread stores what another one reads or stores, and nothing orders the two accesses. Certain for the threads
that the message names, if the CTA has both (a warp, if no directive says more); their addresses follow from %tid.x.
Possible if the way to it depends on something unknown; the finding says which. A product of tcgen05 that several lanes
each issue is such a store, too.
Why: the other thread may come first, or at the same time: a race.
Example:
    .shared .align 1024 .b32 s[64];
    mov.u32 %r4, %tid.x; shl.b32 %r4, %r4, 2; mov.u32 %r5, s; add.u32 %r5, %r5, %r4; xor.b32 %r6, %r5, 64;
    st.shared.b32 [%r5], %r1;
    ld.shared.b32 %r7, [%r6];
Better:
    .shared .align 1024 .b32 s[64];
    mov.u32 %r4, %tid.x; shl.b32 %r4, %r4, 2; mov.u32 %r5, s; add.u32 %r5, %r5, %r4; xor.b32 %r6, %r5, 64;
    st.shared.b32 [%r5], %r1;
    bar.sync 0;
    ld.shared.b32 %r7, [%r6];
"""

from __future__ import annotations

from ..context import LintContext
from ..facts import FunctionFacts
from ..registry import bodies_with
from ..walk import tell

CODE = "PTX515"


@bodies_with("st", "cp", "tcgen05", "discard", "tensormap")
def check(context: LintContext, facts: FunctionFacts) -> None:
    tell(context, facts, CODE, "race", "8.5")
