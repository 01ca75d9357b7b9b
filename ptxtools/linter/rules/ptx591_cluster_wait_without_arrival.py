"""PTX591 | barrier.cluster.wait without an arrival | 9.7.13.3

What: the module waits at the barrier of the cluster, and never arrives there; or a thread certainly waits that has not
arrived since it last waited.
Why: the barrier completes when all threads of the cluster have arrived: it never does.
Example:
    .version 9.0
    .target sm_90
    .address_size 64
    .entry k(.param .b64 x) {
        .reg .b32 %r<9>; .reg .b64 %d<5>; .reg .pred %p<3>; .shared .align 128 .b8 s[1024]; .shared .align 8 .b64 bar;
        mov.b32 %r1, s; mov.b32 %r2, bar; ld.param.b64 %d1, [x];
        barrier.cluster.wait;
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
from ..facts import FunctionFacts
from ..presence import first, unmet
from ..registry import bodies_with, modules_with
from ..walk import tell

CODE = "PTX591"


@modules_with("barrier")
def check(context: LintContext) -> None:
    line = unmet(context, r"barrier\.cluster\.wait", r"barrier\.cluster\.arrive")
    if line is not None:
        message = "nothing in the module arrives at the barrier of the cluster: this waits for ever"
        context.warn(CODE, message, parts_of(line.item).opcode, section="9.7.13.3")


@bodies_with("barrier")
def check_walks(context: LintContext, facts: FunctionFacts) -> None:
    if first(context, r"barrier\.cluster\.arrive") is not None:
        tell(context, facts, CODE, "cluster wait", "9.7.13.3")
