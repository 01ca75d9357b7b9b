"""PTX525 | threads exchange data across the rounds of a loop without a barrier | 8.5, 9.7.14.1

What: in one round a thread reads or stores what another thread stores, or reads, in the next round, and no barrier is
behind the first or before the second. Certain for the threads that the message names: all threads run the loop
together, and its addresses stay the same.
Why: the other thread may be a round ahead: a race. The usual loop over tiles needs two barriers, one before the tile is
read and one before it is overwritten.
Example:
    .version 8.0
    .target sm_80
    .address_size 64
    .entry k() .reqntid 64 {
        .reg .pred %p<2>; .reg .b32 %r<9>; .shared .align 1024 .b32 s[64];
        mov.u32 %r1, %tid.x; mov.u32 %r7, s; mad.lo.u32 %r2, %r1, 4, %r7; xor.b32 %r3, %r2, 128;
        mov.b32 %r4, 0; mov.b32 %r6, 0;
        L: st.shared.b32 [%r2], %r4;
        bar.sync 0;
        ld.shared.b32 %r5, [%r3]; add.u32 %r6, %r6, %r5;
        add.u32 %r4, %r4, 1; setp.lt.u32 %p1, %r4, 8; @%p1 bra L;
        st.shared.b32 [s], %r6;
        ret;
    }
Better:
    .version 8.0
    .target sm_80
    .address_size 64
    .entry k() .reqntid 64 {
        .reg .pred %p<2>; .reg .b32 %r<9>; .shared .align 1024 .b32 s[64];
        mov.u32 %r1, %tid.x; mov.u32 %r7, s; mad.lo.u32 %r2, %r1, 4, %r7; xor.b32 %r3, %r2, 128;
        mov.b32 %r4, 0; mov.b32 %r6, 0;
        L: st.shared.b32 [%r2], %r4;
        bar.sync 0;
        ld.shared.b32 %r5, [%r3]; add.u32 %r6, %r6, %r5;
        bar.sync 0;
        add.u32 %r4, %r4, 1; setp.lt.u32 %p1, %r4, 8; @%p1 bra L;
        st.shared.b32 [s], %r6;
        ret;
    }
"""

from __future__ import annotations

from ..context import LintContext
from ..facts import FunctionFacts
from ..registry import bodies_with
from ..walk import tell

CODE = "PTX525"


@bodies_with("bar", "barrier")
def check(context: LintContext, facts: FunctionFacts) -> None:
    tell(context, facts, CODE, "race of rounds", "8.5")
