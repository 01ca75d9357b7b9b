"""PTX592 | memory of a peer CTA without a barrier of the cluster | 2.2.2

What: the module accesses shared memory of other CTAs of its cluster, and has no barrier.cluster; or none comes
between the begin of a CTA and an access of its memory by a peer, or between such an access and its end.
Why: section 2.2.2 of the manual leaves it to the CTA that accesses a peer's shared memory to see to it that this memory
exists, and that the peer does not exit before the access is complete. CTAs of a cluster are scheduled together, which
does not say that a peer has begun; a barrier of the cluster does.
Example:
    .version 9.0
    .target sm_90
    .address_size 64
    .entry k(.param .b64 x) {
        .reg .b32 %r<9>; .reg .b64 %d<5>; .reg .pred %p<3>; .shared .align 128 .b8 s[1024]; .shared .align 8 .b64 bar;
        mov.b32 %r1, s; mov.b32 %r2, bar; ld.param.b64 %d1, [x];
        mapa.shared::cluster.u32 %r3, %r1, 1;
        ld.shared::cluster.b32 %r4, [%r3];
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
        mapa.shared::cluster.u32 %r3, %r1, 1;
        ld.shared::cluster.b32 %r4, [%r3];
        barrier.cluster.arrive;
        barrier.cluster.wait;
        ret;
    }
"""

from __future__ import annotations

from ptxtools.ir.positions import parts_of

from ..context import LintContext
from ..facts import FunctionFacts
from ..presence import unmet
from ..registry import bodies_with, modules_with
from ..walk import tell

CODE = "PTX592"


@modules_with("mapa")
def check(context: LintContext) -> None:
    line = unmet(context, r"mapa\.", r"barrier\.cluster\.")
    if line is not None:
        message = (
            f"'{line.item.opcode}' gives memory of a CTA that may not have begun, or have ended: no barrier.cluster"
        )
        context.warn(CODE, message, parts_of(line.item).opcode, section="2.2.2")


@bodies_with("mapa")
def check_end(context: LintContext, facts: FunctionFacts) -> None:
    tell(context, facts, CODE, "peer starts", "2.2.2")
    tell(context, facts, CODE, "peer ends", "2.2.2")
