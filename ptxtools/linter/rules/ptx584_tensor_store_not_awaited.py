"""PTX584 | nothing waits for tcgen05.st | 9.7.16.8.5

What: the module has tcgen05.st, and no tcgen05.wait::st.
Why: a product that reads the stored tensor memory may come first.
Example:
    .version 9.0
    .target sm_100a
    .address_size 64
    .entry k() {
        .reg .b32 %r<9>; .reg .b64 %d<3>; .reg .pred %p<3>; .shared .align 8 .b64 bar; .shared .b32 at;
        tcgen05.st.sync.aligned.32x32b.x1.b32 [%r1], {%r2};
        ret;
    }
Better:
    .version 9.0
    .target sm_100a
    .address_size 64
    .entry k() {
        .reg .b32 %r<9>; .reg .b64 %d<3>; .reg .pred %p<3>; .shared .align 8 .b64 bar; .shared .b32 at;
        tcgen05.st.sync.aligned.32x32b.x1.b32 [%r1], {%r2};
        tcgen05.wait::st.sync.aligned;
        ret;
    }
"""

from __future__ import annotations

from ptxtools.ir.positions import parts_of

from ..context import LintContext
from ..presence import unmet
from ..registry import modules_with

CODE = "PTX584"


@modules_with("tcgen05")
def check(context: LintContext) -> None:
    line = unmet(context, r"tcgen05\.st\.", r"tcgen05\.wait::st")
    if line is not None:
        message = f"nothing in the module waits for '{line.item.opcode}'"
        context.warn(CODE, message, parts_of(line.item).opcode, section="9.7.16.8.5")
