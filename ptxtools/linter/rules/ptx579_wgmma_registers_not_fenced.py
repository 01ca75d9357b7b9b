"""PTX579 | registers changed between wgmma.fence and a wgmma | 9.7.15.7.1

What: an instruction writes an accumulator or A register behind the last wgmma.fence before the wgmma that uses it.
Certain: no label stands between the two.
Why: without a fence the product may see the register before or after the change.
Example:
    .version 9.0
    .target sm_90a
    .address_size 64
    .entry k() {
        .reg .f32 %f<6>; .reg .b64 %d<3>;
        wgmma.fence.sync.aligned;
        mov.f32 %f1, 0f00000000;
        wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f1, %f2, %f3, %f4}, %d1, %d2, 1, 1, 1, 0, 0;
        wgmma.commit_group.sync.aligned;
        wgmma.wait_group.sync.aligned 0;
        ret;
    }
Better:
    .version 9.0
    .target sm_90a
    .address_size 64
    .entry k() {
        .reg .f32 %f<6>; .reg .b64 %d<3>;
        mov.f32 %f1, 0f00000000;
        wgmma.fence.sync.aligned;
        wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f1, %f2, %f3, %f4}, %d1, %d2, 1, 1, 1, 0, 0;
        wgmma.commit_group.sync.aligned;
        wgmma.wait_group.sync.aligned 0;
        ret;
    }
"""

from __future__ import annotations

from ptxtools.ir.nodes import Vector
from ptxtools.ir.positions import name_span

from ..context import LintContext
from ..facts import FunctionFacts
from ..inflight import accessed
from ..registry import bodies_with
from ..runs import rounds_of

CODE = "PTX579"


@bodies_with("wgmma")
def check(context: LintContext, facts: FunctionFacts) -> None:
    for run in rounds_of(facts):
        changed: set[str] = set()
        for line in run:
            item = line.item
            if item.opcode.startswith("wgmma.fence"):
                changed = set()
            elif not item.opcode.startswith("wgmma.mma_async"):
                changed.update(name for name, write in accessed(line) if write)
            elif changed:
                vectors = [operand for operand in item.operands[:2] if isinstance(operand, Vector)]
                uses = [use for operand in vectors for use in line.registers.uses(operand, False)]
                names = [name for name, _, _ in uses if name in changed]
                if names:
                    message = f"'{names[0]}' was changed behind the last wgmma.fence"
                    context.warn(CODE, message, name_span(item, names[0]), section="9.7.15.7.1")
                    return
