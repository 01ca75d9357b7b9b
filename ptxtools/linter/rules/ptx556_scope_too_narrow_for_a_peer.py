"""PTX556 | scope of the CTA for memory of another CTA | 8.5, 8.10.6 (Causality)

What: an atomic operation, a strong access or an mbarrier operation has the scope .cta, and an address from mapa or in
.shared::cluster. Or a thread waits with the scope .cta, written out, for an mbarrier at which other CTAs arrive behind
plain stores into its memory, and reads that; nothing in the kernel acquires more. The latter is possible.
Why: .cta orders the operation for threads of one CTA only; those of the other CTA race with it.
Example:
    mapa.shared::cluster.u32 %r4, %r1, 1;
    atom.relaxed.cta.shared::cluster.add.u32 %r5, [%r4], 1;
Better:
    mapa.shared::cluster.u32 %r4, %r1, 1;
    atom.relaxed.cluster.shared::cluster.add.u32 %r5, [%r4], 1;
"""

from __future__ import annotations

import re

from ptxtools.check.edits import rewritten
from ptxtools.ir.positions import parts_of

from ..context import LintContext
from ..facts import FunctionFacts, Line
from ..registry import bodies_with, instructions

CODE = "PTX556"

_WIDE = re.compile(r"^(?!.*(proxy|mbarrier_init)).*\.(cluster|gpu|sys)\b(?!::)")
_GIVEN = "possible: the function may be given addresses of its own CTA alone"
_WIDER = re.compile(r"(?<!:)\.cta\b")


@instructions("ld", "st", "atom", "red", "mbarrier")
def check(context: LintContext, facts: FunctionFacts, line: Line) -> None:
    op = line.plan.op
    if op is None or not (op.has("cta") and op.has("shared::cluster")):
        return
    asked = facts.function.kind != "entry" and any("mapa" in one.families for one in context.facts.functions)
    if "mapa" in facts.families or asked:
        message = "the scope .cta does not reach threads of the CTA that this memory belongs to"
        fix = rewritten(context.source.text, line.item, _WIDER.sub(".cluster", line.item.opcode))
        section = "8.5, 8.10.6 (Causality)"
        sure = () if "mapa" in facts.families else (_GIVEN,)
        context.warn(CODE, message, parts_of(line.item).opcode, help=(*sure, "use .cluster"), section=section, fix=fix)


@bodies_with("mapa")
def check_waits(context: LintContext, facts: FunctionFacts) -> None:
    """Waits for what plain stores of other CTAs have written."""
    stores = any(line.item.opcode.startswith("st.shared::cluster") for line in facts.of("st"))
    bars = facts.of("mbarrier")
    remote = any(".arrive" in line.item.opcode and ".release.cluster" in line.item.opcode for line in bars)
    waits = [line for line in bars if "_wait" in line.item.opcode]
    wide = [line for line in (*waits, *facts.of("fence")) if _WIDE.search(line.item.opcode)]
    narrow = next((line for line in waits if ".acquire.cta" in line.item.opcode), None)
    if not stores or not remote or narrow is None or wide or "membar" in facts.families:
        return
    behind = [line for line in facts.lines if line.item.span[0] > narrow.item.span[0]]
    for line in behind:
        if line.item.opcode.startswith(("barrier.cluster.wait", "call")):
            return
        if line.item.opcode.startswith("ld.shared"):
            message = "other CTAs store what this waits for, and the scope .cta does not acquire that"
            help = ("possible: it depends on which mbarrier they arrive at", "use .acquire.cluster")
            context.warn(CODE, message, parts_of(narrow.item).opcode, help=help, section="8.5, 8.10.6 (Causality)")
            return
