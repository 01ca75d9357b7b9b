"""PTX562 | nothing waits for a bulk copy's mbarrier | 9.7.9.25.4

What: the module has bulk copies that complete on an mbarrier, and never tests one; or all threads of a CTA certainly
end, and none has waited for the mbarrier of a copy.
Why: the data may not be there when it is read, and may be written when the memory belongs to another CTA.
Example:
    .version 9.0
    .target sm_90
    .address_size 64
    .entry k(.param .b64 x) {
        .reg .b32 %r<9>; .reg .b64 %d<5>; .reg .pred %p<3>; .shared .align 128 .b8 s[1024]; .shared .align 8 .b64 bar;
        mov.b32 %r1, s; mov.b32 %r2, bar; ld.param.b64 %d1, [x];
        mbarrier.init.shared.b64 [%r2], 1;
        mbarrier.arrive.expect_tx.shared.b64 %d2, [%r2], 64;
        cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%d1], 64, [%r2];
        bar.sync 0;
        ld.shared.b32 %r3, [%r1];
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
        mbarrier.arrive.expect_tx.shared.b64 %d2, [%r2], 64;
        cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%d1], 64, [%r2];
        L: mbarrier.try_wait.shared.b64 %p1, [%r2], %d2;
        @!%p1 bra L;
        ld.shared.b32 %r3, [%r1];
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

CODE = "PTX562"
_WAIT = r"mbarrier\.(try_wait|test_wait)"


@modules_with("cp")
def check(context: LintContext) -> None:
    line = unmet(context, r"cp\..*mbarrier::complete_tx", _WAIT)
    if line is not None:
        message = f"nothing in the module waits for an mbarrier on which '{line.item.opcode}' completes"
        context.warn(CODE, message, parts_of(line.item).opcode, section="9.7.9.25.4")


@bodies_with("cp")
def check_walks(context: LintContext, facts: FunctionFacts) -> None:
    if first(context, _WAIT) is not None:
        tell(context, facts, CODE, "never awaited", "9.7.9.25.4")
