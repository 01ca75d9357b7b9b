"""PTX706 | fence directly behind itself | 9.7.13

What: the same fence twice, with no instruction in between.
Why: the second orders nothing that the first did not.
Example:
    membar.gl;
    membar.gl;
Better:
    membar.gl;
"""

from __future__ import annotations

from ptxtools.ir.positions import parts_of

from ..context import LintContext
from ..facts import FunctionFacts, Line
from ..registry import instructions

CODE = "PTX706"


@instructions("fence", "membar")
def check(context: LintContext, facts: FunctionFacts, line: Line) -> None:
    op, item = line.plan.op, line.item
    before = facts.before(line)
    if op is not None and before is not None and before.item.opcode == item.opcode and before.item == item:
        context.warn(
            CODE, f"the same '{op.text}' stands directly before this", parts_of(item).opcode, section=op.section
        )
