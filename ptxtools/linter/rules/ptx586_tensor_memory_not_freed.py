"""PTX586 | tensor memory that is never freed | 9.7.16.7.1

What: the module has tcgen05.alloc, and no tcgen05.dealloc, or no tcgen05.relinquish_alloc_permit; or a kernel has more
tcgen05.alloc one behind the other than it has tcgen05.dealloc, all outside of loops; or on some way to its end a kernel
does not free what it has allocated; or warps have allocated more columns than there are when they come to a barrier, or
one of a pair of CTAs does not allocate with the other one.
Why: all tensor memory must be freed before a kernel ends; a later kernel may wait for it for ever, as may a warp for
what nobody frees. While a CTA keeps its permit, no other one of its SM can allocate. A warp of each CTA of a pair has
to execute what allocates or frees for both.
Example:
    .version 9.0
    .target sm_100a
    .address_size 64
    .entry k() {
        .reg .b32 %r<9>; .reg .b64 %d<3>; .reg .pred %p<3>; .shared .align 8 .b64 bar; .shared .b32 at;
        tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [at], 32;

        ret;
    }
Better:
    .version 9.0
    .target sm_100a
    .address_size 64
    .entry k() {
        .reg .b32 %r<9>; .reg .b64 %d<3>; .reg .pred %p<3>; .shared .align 8 .b64 bar; .shared .b32 at;
        tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [at], 32;
        ld.shared.b32 %r1, [at];
        tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;
        tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r1, 32;
        ret;
    }
"""

from __future__ import annotations

from ptxtools.ir.positions import parts_of

from ..context import LintContext
from ..facts import FunctionFacts
from ..loops import innermost_loop_of
from ..presence import unmet
from ..registry import bodies_with, modules_with
from ..walk import tell

CODE = "PTX586"

#: What a module with an allocation needs, and what is said where it is missing.
_NEEDS = (
    (r"tcgen05\.dealloc", "the module never frees what '{}' allocates"),
    (r"tcgen05\.relinquish", "the module never gives up the permit to allocate that '{}' takes"),
)


@modules_with("tcgen05")
def check(context: LintContext) -> None:
    for facts in context.facts.functions if context.facts.whole else ():
        _count(context, facts)
    for needs, what in _NEEDS:
        line = unmet(context, r"tcgen05\.alloc", needs)
        if line is None:
            continue
        message = what.format(line.item.opcode)
        context.warn(CODE, message, parts_of(line.item).opcode, section="9.7.16.7.1")
        return


def _count(context: LintContext, facts: FunctionFacts) -> None:
    """Report an allocation if a kernel has more of them than of what frees one, all outside of loops and calls."""
    made = [line for line in facts.of("tcgen05") if line.item.opcode.startswith("tcgen05.alloc")]
    freed = [line for line in facts.of("tcgen05") if line.item.opcode.startswith("tcgen05.dealloc")]
    if facts.function.kind != "entry" or "call" in facts.families or not 0 < len(freed) < len(made):
        return
    if not any(all(line in run for line in made) for run in facts.runs):
        return
    loops = innermost_loop_of(facts)
    if not any(id(line.item) in loops for line in (*made, *freed)):
        message = f"the kernel allocates {len(made)} times and frees {len(freed)} times"
        context.warn(CODE, message, parts_of(made[-1].item).opcode, section="9.7.16.7.1")


@bodies_with("tcgen05")
def check_ways(context: LintContext, facts: FunctionFacts) -> None:
    tell(context, facts, CODE, "never freed", "9.7.16.7.1")
    tell(context, facts, CODE, "columns wanted", "9.7.16.7.1")
