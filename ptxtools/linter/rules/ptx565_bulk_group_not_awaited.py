"""PTX565 | nothing waits for bulk copies out of shared memory | 9.7.9.25.4

What: the module has bulk copies with .bulk_group, and no cp.async.bulk.wait_group.
Why: shared memory may be overwritten, or its CTA may end, before it has been read.
Example:
    .version 9.0
    .target sm_90
    .address_size 64
    .entry k(.param .b64 x) {
        .reg .b32 %r<9>; .reg .b64 %d<5>; .reg .pred %p<3>; .shared .align 128 .b8 s[1024]; .shared .align 8 .b64 bar;
        mov.b32 %r1, s; mov.b32 %r2, bar; ld.param.b64 %d1, [x];
        cp.async.bulk.global.shared::cta.bulk_group [%d1], [%r1], 64;
        cp.async.bulk.commit_group;
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
        cp.async.bulk.wait_group.read 0;
        ret;
    }
"""

from __future__ import annotations

from ptxtools.ir.positions import parts_of

from ..context import LintContext
from ..presence import unmet
from ..registry import modules_with

CODE = "PTX565"


@modules_with("cp")
def check(context: LintContext) -> None:
    line = unmet(context, r"cp\.(reduce\.)?async\.bulk\..*\.bulk_group", r"cp\.async\.bulk\.wait_group")
    if line is not None:
        message = f"nothing in the module waits for '{line.item.opcode}'"
        context.warn(CODE, message, parts_of(line.item).opcode, section="9.7.9.25.4")
