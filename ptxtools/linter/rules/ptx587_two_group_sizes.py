"""PTX587 | functions of one kernel name two sizes of CTA groups | 9.7.16.5

What: a kernel, together with the functions that it calls, has tcgen05 instructions of .cta_group::1 and of
.cta_group::2. In one function, that is an error (PTX113).
Why: all tcgen05 instructions of a kernel must name the same group, or the behaviour is undefined.
Example:
    .version 9.0
    .target sm_100a
    .address_size 64
    .func give_back() {
        tcgen05.relinquish_alloc_permit.cta_group::2.sync.aligned;
        ret;
    }
    .entry k() {
        .shared .b32 slot; .reg .b32 %r<2>;
        tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [slot], 32;
        ld.shared.b32 %r1, [slot];
        tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r1, 32;
        call give_back;
        ret;
    }
Better:
    .version 9.0
    .target sm_100a
    .address_size 64
    .func give_back() {
        tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;
        ret;
    }
    .entry k() {
        .shared .b32 slot; .reg .b32 %r<2>;
        tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [slot], 32;
        ld.shared.b32 %r1, [slot];
        tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r1, 32;
        call give_back;
        ret;
    }
"""

from __future__ import annotations

from ptxtools.ir.positions import parts_of

from ..context import LintContext
from ..facts import FunctionFacts, Line
from ..registry import bodies_with
from ..walk.calls import followed

CODE = "PTX587"
_GROUP = "cta_group::"


@bodies_with("tcgen05", "call")
def check(context: LintContext, facts: FunctionFacts) -> None:
    if facts.function.kind != "entry":
        return
    known = dict.fromkeys(_groups(facts), "the kernel")
    for one in followed(facts):
        groups = _groups(one)
        other = next((group for group in known if groups and group not in groups), None)
        if other is not None:
            name, group = one.function.name, next(iter(groups))
            message = (
                f"'{name}', which this kernel calls, names .cta_group::{group}, and {known[other]} .cta_group::{other}"
            )
            mine = _groups(facts).get(other)
            context.warn(CODE, message, parts_of((mine or facts.of("call")[0]).item).opcode, section="9.7.16.5")
            return
        known = dict.fromkeys(groups, f"'{one.function.name}'") | known


def _groups(facts: FunctionFacts) -> dict[str, Line]:
    """The first instruction of each .cta_group that a function names."""
    found: dict[str, Line] = {}
    for line in facts.of("tcgen05"):
        if _GROUP in line.item.opcode:
            found.setdefault(line.item.opcode.partition(_GROUP)[2][:1], line)
    return found
