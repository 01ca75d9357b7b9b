"""PTX576 | mbarrier that is used after mbarrier.inval | 9.7.13.15.10

What: an operation on an mbarrier behind its mbarrier.inval, without a new mbarrier.init; or an mbarrier.inval while
another warp may still wait, as nothing tells that it has gone on.
Why: the word is no mbarrier any more: the operation is undefined.
Example:
    .shared .align 8 .b64 bar;
    mbarrier.init.shared.b64 [bar], 32;
    mbarrier.inval.shared.b64 [bar];
    mbarrier.arrive.shared.b64 %rd3, [bar];
Better:
    .shared .align 8 .b64 bar;
    mbarrier.init.shared.b64 [bar], 32;
    mbarrier.arrive.shared.b64 %rd3, [bar];
    mbarrier.inval.shared.b64 [bar];
"""

from __future__ import annotations

from ptxtools.ir.positions import parts_of

from ..context import LintContext
from ..facts import FunctionFacts
from ..mbarriers import life
from ..registry import bodies_with
from ..walk import tell

CODE = "PTX576"


@bodies_with("mbarrier")
def check(context: LintContext, facts: FunctionFacts) -> None:
    for step, state in life(facts):
        if state == "over":
            message = "this mbarrier was invalidated above"
            context.warn(CODE, message, parts_of(step.line.item).opcode, section="9.7.13.15.10")
    tell(context, facts, CODE, "mbarrier in use", "9.7.13.15.10")
