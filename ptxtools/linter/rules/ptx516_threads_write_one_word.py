"""PTX516 | threads write different values to one address | 8.5

What: a store that at least two threads certainly run, with one address for both and different values; or a bulk copy
that two warps certainly begin, to one address.
Why: which value stays is not defined.
Example:
    .version 8.0
    .target sm_80
    .address_size 64
    .entry k(.param .b64 x) {
        .reg .b32 %r<5>; .reg .b64 %d<2>; .reg .pred %p<4>;
        ld.param.b64 %d1, [x];
        mov.u32 %r4, %laneid;
        st.global.b32 [%d1], %r4;
        ret;
    }
Better:
    .version 8.0
    .target sm_80
    .address_size 64
    .entry k(.param .b64 x) {
        .reg .b32 %r<5>; .reg .b64 %d<2>; .reg .pred %p<4>;
        ld.param.b64 %d1, [x];
        mov.u32 %r4, %laneid;
        setp.eq.u32 %p3, %r4, 0;
        @%p3 st.global.b32 [%d1], %r4;
        ret;
    }
"""

from __future__ import annotations

from ..context import LintContext
from ..facts import FunctionFacts
from ..registry import bodies_with
from ..walk import tell

CODE = "PTX516"


@bodies_with("st", "tcgen05", "cp")
def check(context: LintContext, facts: FunctionFacts) -> None:
    tell(context, facts, CODE, "race of one store", "8.5")
