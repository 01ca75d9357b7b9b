"""PTX587 | tcgen05 with two sizes of CTA groups | 9.7.16.5

What: a kernel has tcgen05 instructions of .cta_group::1 and of .cta_group::2.
Why: all tcgen05 instructions of a kernel must name the same group, or the behaviour is undefined.
Example:
    .version 9.0
    .target sm_100a
    .address_size 64
    .entry k() {
        .reg .b32 %r<9>; .reg .b64 %d<3>; .reg .pred %p<3>; .shared .align 8 .b64 bar; .shared .b32 at;
        tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;
        tcgen05.relinquish_alloc_permit.cta_group::2.sync.aligned;
        ret;
    }
Better:
    .version 9.0
    .target sm_100a
    .address_size 64
    .entry k() {
        .reg .b32 %r<9>; .reg .b64 %d<3>; .reg .pred %p<3>; .shared .align 8 .b64 bar; .shared .b32 at;
        tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;
        ret;
    }
"""

from __future__ import annotations

from ptxtools.ir.positions import parts_of

from ..context import LintContext
from ..facts import FunctionFacts, Line
from ..registry import bodies_with

CODE = "PTX587"


@bodies_with("tcgen05")
def check(context: LintContext, facts: FunctionFacts) -> None:
    found: dict[str, Line] = {}
    for line in facts.of("tcgen05"):
        if "cta_group::" in line.item.opcode:
            found.setdefault(line.item.opcode.partition("cta_group::")[2][:1], line)
    if len(found) > 1:
        first, second = found.values()
        message = f"this kernel has '{first.item.opcode}', too: all must name one .cta_group"
        context.warn(CODE, message, parts_of(second.item).opcode, section="9.7.16.5")
