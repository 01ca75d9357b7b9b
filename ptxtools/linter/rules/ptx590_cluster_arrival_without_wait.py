"""PTX590 | barrier.cluster.arrive without a wait | 9.7.13.3

What: the module arrives at the barrier of the cluster, and never waits there.
Why: nothing is ordered: an arrival alone holds nobody back.
Example:
    .version 9.0
    .target sm_90
    .address_size 64
    .entry k(.param .b64 x) {
        .reg .b32 %r<9>; .reg .b64 %d<5>; .reg .pred %p<3>; .shared .align 128 .b8 s[1024]; .shared .align 8 .b64 bar;
        mov.b32 %r1, s; mov.b32 %r2, bar; ld.param.b64 %d1, [x];
        barrier.cluster.arrive;
        ret;
    }
Better:
    .version 9.0
    .target sm_90
    .address_size 64
    .entry k(.param .b64 x) {
        .reg .b32 %r<9>; .reg .b64 %d<5>; .reg .pred %p<3>; .shared .align 128 .b8 s[1024]; .shared .align 8 .b64 bar;
        mov.b32 %r1, s; mov.b32 %r2, bar; ld.param.b64 %d1, [x];
        barrier.cluster.arrive;
        barrier.cluster.wait;
        ret;
    }
"""

from __future__ import annotations

from ptxtools.ir.positions import parts_of

from ..context import LintContext
from ..presence import unmet
from ..registry import modules_with

CODE = "PTX590"


@modules_with("barrier")
def check(context: LintContext) -> None:
    line = unmet(context, r"barrier\.cluster\.arrive", r"barrier\.cluster\.wait")
    if line is not None:
        message = "nothing in the module waits at the barrier of the cluster"
        context.warn(CODE, message, parts_of(line.item).opcode, section="9.7.13.3")
