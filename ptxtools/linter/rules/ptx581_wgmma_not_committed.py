"""PTX581 | wgmma that no group holds | 9.7.15.7.2

What: the module has wgmma.mma_async, and no wgmma.commit_group.
Why: wgmma.wait_group waits only for committed groups: the accumulator is never known to be complete.
Example:
    .version 9.0
    .target sm_90a
    .address_size 64
    .entry k() {
        .reg .f32 %f<5>; .reg .b64 %d<3>;
        wgmma.fence.sync.aligned;
        wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f1, %f2, %f3, %f4}, %d1, %d2, 1, 1, 1, 0, 0;
        wgmma.wait_group.sync.aligned 0;
        ret;
    }
Better:
    .version 9.0
    .target sm_90a
    .address_size 64
    .entry k() {
        .reg .f32 %f<5>; .reg .b64 %d<3>;
        wgmma.fence.sync.aligned;
        wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f1, %f2, %f3, %f4}, %d1, %d2, 1, 1, 1, 0, 0;
        wgmma.commit_group.sync.aligned;
        wgmma.wait_group.sync.aligned 0;
        ret;
    }
"""

from __future__ import annotations

from ptxtools.ir.positions import parts_of

from ..context import LintContext
from ..presence import unmet
from ..registry import modules_with

CODE = "PTX581"


@modules_with("wgmma")
def check(context: LintContext) -> None:
    line = unmet(context, r"wgmma\.mma_async", r"wgmma\.commit_group")
    if line is not None:
        message = f"no group holds '{line.item.opcode}': the module has no wgmma.commit_group"
        context.warn(CODE, message, parts_of(line.item).opcode, section="9.7.15.7.2")
