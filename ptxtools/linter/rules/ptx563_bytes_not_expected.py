"""PTX563 | no mbarrier expects the bytes of a bulk copy | 9.7.13.15.5

What: the module has bulk copies that complete on an mbarrier, and none of its mbarriers expects bytes.
Why: the mbarrier's phase may end before the bytes have come: its pending count does not include them, and the
transaction count leaves its range.
Example:
    .version 9.0
    .target sm_90
    .address_size 64
    .entry k(.param .b64 x) {
        .reg .b32 %r<9>; .reg .b64 %d<5>; .reg .pred %p<3>; .shared .align 128 .b8 s[1024]; .shared .align 8 .b64 bar;
        mov.b32 %r1, s; mov.b32 %r2, bar; ld.param.b64 %d1, [x];
        mbarrier.init.shared.b64 [%r2], 1;
        cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%d1], 64, [%r2];
        mbarrier.arrive.shared.b64 %d2, [%r2];
        L: mbarrier.try_wait.shared.b64 %p1, [%r2], %d2;
        @!%p1 bra L;
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
        ret;
    }
"""

from __future__ import annotations

from ptxtools.ir.positions import parts_of

from ..context import LintContext
from ..presence import unmet
from ..registry import modules_with

CODE = "PTX563"


@modules_with("cp")
def check(context: LintContext) -> None:
    line = unmet(context, r"cp\..*mbarrier::complete_tx", r"mbarrier\..*expect_tx")
    if line is not None:
        message = f"no mbarrier expects the bytes of '{line.item.opcode}': the module has no expect_tx"
        context.warn(CODE, message, parts_of(line.item).opcode, section="9.7.13.15.5")
