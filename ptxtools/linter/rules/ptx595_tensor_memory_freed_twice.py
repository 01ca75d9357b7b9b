"""PTX595 | tensor memory that is freed wrongly | 9.7.16.7.1

What: two tcgen05.dealloc of the same register, one behind the other, and nothing writes the register in between; or
a tcgen05.dealloc of another number of columns than its tcgen05.alloc has.
Why: the second frees what is free, or what another CTA has got since: undefined behaviour.
Example:
    .version 8.6
    .target sm_100a
    .address_size 64
    .entry k() {
        .reg .b32 %r<2>; .shared .align 4 .b32 s;
        tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [s], 32;
        ld.shared.b32 %r1, [s];
        tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r1, 32;
        tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r1, 32;
        tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;
        ret;
    }
Better:
    .version 8.6
    .target sm_100a
    .address_size 64
    .entry k() {
        .reg .b32 %r<2>; .shared .align 4 .b32 s;
        tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [s], 32;
        ld.shared.b32 %r1, [s];
        tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r1, 32;
        tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;
        ret;
    }
"""

from __future__ import annotations

from ptxtools.ir.nodes import Name
from ptxtools.ir.positions import parts_of
from ptxtools.ir.symbols import RegisterKey

from ..context import LintContext
from ..facts import FunctionFacts
from ..inflight import accessed
from ..registry import bodies_with
from ..walk import tell

CODE = "PTX595"


@bodies_with("tcgen05")
def check(context: LintContext, facts: FunctionFacts) -> None:
    tell(context, facts, CODE, "columns freed", "9.7.16.7.1")
    if sum(line.item.opcode.startswith("tcgen05.dealloc") for line in facts.of("tcgen05")) < 2:
        return
    for run in facts.runs:
        freed: set[RegisterKey] = set()
        for line in run:
            operand = line.item.operands[0] if line.item.operands else None
            if line.item.opcode.startswith("tcgen05.dealloc") and isinstance(operand, Name) and line.item.guard is None:
                key = line.registers[operand.name]
                if key in freed:
                    message = f"'{operand.name}' was freed before"
                    context.warn(CODE, message, parts_of(line.item).opcode, section="9.7.16.7.1")
                if key is not None:
                    freed.add(key)
            elif freed:
                for name, write in accessed(line):
                    if write:
                        freed.discard(line.registers[name] or (0, ""))
