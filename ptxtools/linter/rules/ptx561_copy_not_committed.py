"""PTX561 | cp.async.wait_group without groups | 9.7.9.25.3

What: the module waits for groups of cp.async, and never commits one.
Why: cp.async.wait_group waits only for copies that cp.async.commit_group has made a group of: it returns at once.
Example:
    .version 9.0
    .target sm_90
    .address_size 64
    .entry k(.param .b64 x) {
        .reg .b32 %r<9>; .reg .b64 %d<5>; .reg .pred %p<3>; .shared .align 128 .b8 s[1024]; .shared .align 8 .b64 bar;
        mov.b32 %r1, s; mov.b32 %r2, bar; ld.param.b64 %d1, [x];
        cp.async.ca.shared.global [%r1], [%d1], 4;
        cp.async.wait_group 0;
        bar.sync 0;
        ld.shared.b32 %r3, [%r1];
        st.global.b32 [%d1], %r3;
        ret;
    }
Better:
    .version 9.0
    .target sm_90
    .address_size 64
    .entry k(.param .b64 x) {
        .reg .b32 %r<9>; .reg .b64 %d<5>; .reg .pred %p<3>; .shared .align 128 .b8 s[1024]; .shared .align 8 .b64 bar;
        mov.b32 %r1, s; mov.b32 %r2, bar; ld.param.b64 %d1, [x];
        cp.async.ca.shared.global [%r1], [%d1], 4;
        cp.async.commit_group;
        cp.async.wait_group 0;
        bar.sync 0;
        ld.shared.b32 %r3, [%r1];
        st.global.b32 [%d1], %r3;
        ret;
    }
"""

from __future__ import annotations

from ptxtools.ir.positions import parts_of

from ..context import LintContext
from ..presence import unmet
from ..registry import modules_with

CODE = "PTX561"


@modules_with("cp")
def check(context: LintContext) -> None:
    line = unmet(context, r"cp\.async\.wait_group", r"cp\.async\.commit_group")
    if line is not None:
        message = f"'{line.item.opcode}' waits for no copy: the module has no cp.async.commit_group"
        context.warn(CODE, message, parts_of(line.item).opcode, section="9.7.9.25.3")
