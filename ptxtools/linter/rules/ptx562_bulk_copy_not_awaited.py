"""PTX562 | nothing waits for a bulk copy's mbarrier | 9.7.9.25.4

What: the module has bulk copies that complete on an mbarrier, and never tests one.
Why: the data may not be there when it is read.
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
from ..presence import unmet
from ..registry import modules_with

CODE = "PTX562"


@modules_with("cp")
def check(context: LintContext) -> None:
    line = unmet(context, r"cp\..*mbarrier::complete_tx", r"mbarrier\.(try_wait|test_wait)")
    if line is not None:
        message = f"nothing in the module waits for an mbarrier on which '{line.item.opcode}' completes"
        context.warn(CODE, message, parts_of(line.item).opcode, section="9.7.9.25.4")
