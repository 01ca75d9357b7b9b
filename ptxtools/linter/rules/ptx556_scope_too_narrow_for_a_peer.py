"""PTX556 | scope of the CTA for memory of another CTA | 8.5

What: an atomic operation, a strong access or an mbarrier operation has the scope .cta, and an address from mapa or in
.shared::cluster.
Why: .cta orders the operation for threads of one CTA only; those of the other CTA race with it.
Example:
    mapa.shared::cluster.u32 %r4, %r1, 1;
    atom.relaxed.cta.shared::cluster.add.u32 %r5, [%r4], 1;
Better:
    mapa.shared::cluster.u32 %r4, %r1, 1;
    atom.relaxed.cluster.shared::cluster.add.u32 %r5, [%r4], 1;
"""

from __future__ import annotations

from ptxtools.ir.positions import parts_of

from ..context import LintContext
from ..facts import FunctionFacts, Line
from ..registry import instructions

CODE = "PTX556"


@instructions("ld", "st", "atom", "red", "mbarrier")
def check(context: LintContext, facts: FunctionFacts, line: Line) -> None:
    op = line.plan.op
    if op is None or not (op.has("cta") and op.has("shared::cluster")):
        return
    if "mapa" in facts.families:
        message = "the scope .cta does not reach threads of the CTA that this memory belongs to"
        context.warn(
            CODE, message, parts_of(line.item).opcode, help=("use .cluster",), section="8.5, 8.10.6 (Causality)"
        )
