"""PTX585 | tcgen05 work that no mbarrier completes | 9.7.16.12

What: the module has tcgen05.mma, cp or shift, and no tcgen05.commit.
Why: only an mbarrier that tcgen05.commit names tells when this work is complete.
Example:
    .version 9.0
    .target sm_100a
    .address_size 64
    .entry k() {
        .reg .b32 %r<9>; .reg .b64 %d<3>; .reg .pred %p<3>; .shared .align 8 .b64 bar; .shared .b32 at;
        tcgen05.mma.cta_group::1.kind::f16 [%r1], %d1, %d2, %r2, %p1;
        ret;
    }
Better:
    .version 9.0
    .target sm_100a
    .address_size 64
    .entry k() {
        .reg .b32 %r<9>; .reg .b64 %d<3>; .reg .pred %p<3>; .shared .align 8 .b64 bar; .shared .b32 at;
        tcgen05.mma.cta_group::1.kind::f16 [%r1], %d1, %d2, %r2, %p1;
        mov.b32 %r3, bar;
        tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%r3];
        ret;
    }
"""

from __future__ import annotations

from ptxtools.ir.positions import parts_of

from ..context import LintContext
from ..presence import unmet
from ..registry import modules_with

CODE = "PTX585"


@modules_with("tcgen05")
def check(context: LintContext) -> None:
    line = unmet(context, r"tcgen05\.(mma|cp|shift)\.", r"tcgen05\.commit")
    if line is not None:
        message = f"nothing tells when '{line.item.opcode}' is complete: the module has no tcgen05.commit"
        context.warn(CODE, message, parts_of(line.item).opcode, section="9.7.16.12")
