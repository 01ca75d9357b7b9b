"""PTX564 | bulk copies that no group holds | 9.7.9.25.4

What: the module has bulk copies with .bulk_group, and no cp.async.bulk.commit_group.
Why: cp.async.bulk.wait_group waits only for committed groups, so that nothing can wait for these copies.
Example:
    .version 9.0
    .target sm_90
    .address_size 64
    .entry k(.param .b64 x) {
        .reg .b32 %r<9>; .reg .b64 %d<5>; .reg .pred %p<3>; .shared .align 128 .b8 s[1024]; .shared .align 8 .b64 bar;
        mov.b32 %r1, s; mov.b32 %r2, bar; ld.param.b64 %d1, [x];
        cp.async.bulk.global.shared::cta.bulk_group [%d1], [%r1], 64;
        cp.async.bulk.wait_group 0;
        ret;
    }
Better:
    .version 9.0
    .target sm_90
    .address_size 64
    .entry k(.param .b64 x) {
        .reg .b32 %r<9>; .reg .b64 %d<5>; .reg .pred %p<3>; .shared .align 128 .b8 s[1024]; .shared .align 8 .b64 bar;
        mov.b32 %r1, s; mov.b32 %r2, bar; ld.param.b64 %d1, [x];
        cp.async.bulk.global.shared::cta.bulk_group [%d1], [%r1], 64;
        cp.async.bulk.commit_group;
        cp.async.bulk.wait_group 0;
        ret;
    }
"""

from __future__ import annotations

from ptxtools.ir.positions import parts_of

from ..context import LintContext
from ..presence import unmet
from ..registry import modules_with

CODE = "PTX564"


@modules_with("cp")
def check(context: LintContext) -> None:
    line = unmet(context, r"cp\.(reduce\.)?async\.bulk\..*\.bulk_group", r"cp\.async\.bulk\.commit_group")
    if line is not None:
        message = f"no group holds '{line.item.opcode}': the module has no cp.async.bulk.commit_group"
        context.warn(CODE, message, parts_of(line.item).opcode, section="9.7.9.25.4")
