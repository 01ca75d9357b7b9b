"""PTX570 | mbarrier without an initialisation | 9.7.13.15.9

What: the module uses mbarriers, and initialises none.
Why: an mbarrier's word must come from mbarrier.init before any other operation on it.
Example:
    .version 9.0
    .target sm_90
    .address_size 64
    .entry k(.param .b64 x) {
        .reg .b32 %r<9>; .reg .b64 %d<5>; .reg .pred %p<3>; .shared .align 128 .b8 s[1024]; .shared .align 8 .b64 bar;
        mov.b32 %r1, s; mov.b32 %r2, bar; ld.param.b64 %d1, [x];
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
        mbarrier.arrive.shared.b64 %d2, [%r2];
        ret;
    }
"""

from __future__ import annotations

from ptxtools.ir.positions import parts_of

from ..context import LintContext
from ..presence import unmet
from ..registry import modules_with

CODE = "PTX570"


@modules_with("mbarrier")
def check(context: LintContext) -> None:
    line = unmet(context, r"mbarrier\.(arrive|try_wait|test_wait|expect_tx|complete_tx)", r"mbarrier\.init")
    if line is not None:
        message = f"'{line.item.opcode}' needs an mbarrier that mbarrier.init has made: the module has none"
        context.warn(CODE, message, parts_of(line.item).opcode, section="9.7.13.15.9")
