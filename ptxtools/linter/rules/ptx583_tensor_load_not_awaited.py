"""PTX583 | nothing waits for tcgen05.ld | 9.7.16.8.5

What: the module has tcgen05.ld, and no tcgen05.wait::ld.
Why: the loaded registers hold nothing until the load is known to be complete.
Example:
    .version 9.0
    .target sm_100a
    .address_size 64
    .entry k() {
        .reg .b32 %r<9>; .reg .b64 %d<3>; .reg .pred %p<3>; .shared .align 8 .b64 bar; .shared .b32 at;
        tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r2}, [%r1];
        ret;
    }
Better:
    .version 9.0
    .target sm_100a
    .address_size 64
    .entry k() {
        .reg .b32 %r<9>; .reg .b64 %d<3>; .reg .pred %p<3>; .shared .align 8 .b64 bar; .shared .b32 at;
        tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r2}, [%r1];
        tcgen05.wait::ld.sync.aligned;
        ret;
    }
"""

from __future__ import annotations

from ptxtools.ir.positions import parts_of

from ..context import LintContext
from ..presence import unmet
from ..registry import modules_with

CODE = "PTX583"


@modules_with("tcgen05")
def check(context: LintContext) -> None:
    line = unmet(context, r"tcgen05\.ld\.", r"tcgen05\.wait::ld")
    if line is not None:
        message = f"nothing in the module waits for '{line.item.opcode}'"
        context.warn(CODE, message, parts_of(line.item).opcode, section="9.7.16.8.5")
