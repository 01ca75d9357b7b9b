"""PTX559 | activemask as the mask of a collective | 9.7.9.7

What: the result of activemask is the member mask of a shfl.sync from lanes that the program names, or of a .sync
instruction behind a branch or label. Whoever happens to be together may well vote, match or reduce at once: that is not
reported.
Why: activemask tells which lanes happen to be together, and orders nothing: lanes that belong to the group may be
missing. The mask has to come from what the program knows, or from a vote.
Example:
    activemask.b32 %r4;
    shfl.sync.idx.b32 %r5, %r1, 0, 31, %r4;
Better:
    shfl.sync.idx.b32 %r5, %r1, 0, 31, -1;
"""

from __future__ import annotations

from ptxtools.ir.nodes import Immediate, Name
from ptxtools.ir.positions import part_span

from ..context import LintContext
from ..facts import FunctionFacts, Line
from ..lanes import only_write
from ..masks import mask_operand
from ..registry import bodies_with

CODE = "PTX559"


@bodies_with("activemask")
def check(context: LintContext, facts: FunctionFacts) -> None:
    for run in facts.runs:
        fresh: set[str] = set()
        for line in run:
            if line.plan.family == "activemask" and isinstance(into := line.item.operands[0], Name):
                fresh.add(into.name)
            elif line.item.guard is not None and line.plan.family in ("bra", "exit", "ret"):
                fresh.clear()
            place = mask_operand(line)
            mask = line.item.operands[place] if place is not None else None
            written = only_write(facts, line, mask.name) if isinstance(mask, Name) else None
            if place is None or written is None or written.plan.family != "activemask":
                continue
            if isinstance(mask, Name) and mask.name in fresh and not _names_lanes(line):
                continue
            message = f"the mask of '{line.item.opcode}' is what activemask happens to find"
            context.warn(CODE, message, part_span(line.item, place), section="9.7.9.7")


def _names_lanes(line: Line) -> bool:
    """Whether a shfl reads from lanes that the program fixes, though they may not be in the mask."""
    op, operands = line.plan.op, line.item.operands
    return op is not None and op.family == "shfl" and len(operands) > 2 and isinstance(operands[2], Immediate)
