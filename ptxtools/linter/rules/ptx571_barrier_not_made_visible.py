"""PTX571 | initialisation of an mbarrier that nothing makes visible | 9.7.13.15.9

What: the module initialises an mbarrier, and has neither a barrier nor a fence; or a thread uses it before a barrier
has told it that another one has initialised it. Or a kernel copies to all CTAs of a
cluster (.multicast::cluster), and no barrier of the cluster stands between the initialisation and the copy.
Why: other threads, and the async proxy, may use the mbarrier's word before it is initialised.
Example:
    .version 9.0
    .target sm_90
    .address_size 64
    .entry k(.param .b64 x) {
        .reg .b32 %r<9>; .reg .b64 %d<5>; .reg .pred %p<3>; .shared .align 128 .b8 s[1024]; .shared .align 8 .b64 bar;
        mov.b32 %r1, s; mov.b32 %r2, bar; ld.param.b64 %d1, [x];
        mbarrier.init.shared.b64 [%r2], 1;
        mbarrier.arrive.shared.b64 %d2, [%r2];
        ret;
    }
Better:
    .version 9.0
    .target sm_90
    .address_size 64
    .entry k(.param .b64 x) {
        .reg .b32 %r<9>; .reg .b64 %d<5>; .reg .pred %p<3>; .shared .align 128 .b8 s[1024]; .shared .align 8 .b64 bar;
        mov.b32 %r1, s; mov.b32 %r2, bar; ld.param.b64 %d1, [x];
        mbarrier.init.shared.b64 [%r2], 1;
        bar.sync 0;
        mbarrier.arrive.shared.b64 %d2, [%r2];
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

CODE = "PTX571"


@modules_with("mbarrier")
def check(context: LintContext) -> None:
    line = unmet(context, r"mbarrier\.init", r"(bar|barrier|fence|membar)\.")
    if line is not None:
        message = "nothing makes this initialisation visible to other threads"
        context.warn(CODE, message, parts_of(line.item).opcode, section="9.7.13.15.9")


@bodies_with("mbarrier")
def check_threads(context: LintContext, facts: FunctionFacts) -> None:
    """Threads that use an mbarrier which another one initialises, without a barrier in between."""
    tell(context, facts, CODE, "mbarrier not visible", "9.7.13.15.9")


@bodies_with("cp")
def check_multicast(context: LintContext, facts: FunctionFacts) -> None:
    """Copies that complete at mbarriers of all CTAs of a cluster."""
    made = None
    if facts.function.kind != "entry" or "call" in facts.families:
        return
    for line in facts.of("mbarrier", "barrier", "cp"):
        opcode = line.item.opcode
        if opcode.startswith("mbarrier.init"):
            made = made or line
        elif opcode.startswith("barrier.cluster.wait"):
            return
        elif ".multicast::cluster" in opcode and made is not None:
            message = "the copy reaches mbarriers of other CTAs, which nothing has waited for to be initialised"
            context.warn(CODE, message, parts_of(line.item).opcode, section="9.7.13.15.9")
            return
