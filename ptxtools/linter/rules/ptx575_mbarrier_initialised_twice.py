"""PTX575 | mbarrier that is initialised twice | 9.7.13.15.9

What: mbarrier.init at an address where one stands already, without mbarrier.inval between the two.
Why: the behaviour is undefined: arrivals and waits of the first may be under way.
Example:
    .shared .align 8 .b64 bar;
    mbarrier.init.shared.b64 [bar], 32;
    mbarrier.init.shared.b64 [bar], 32;
Better:
    .shared .align 8 .b64 bar;
    mbarrier.init.shared.b64 [bar], 32;
    mbarrier.inval.shared.b64 [bar];
    mbarrier.init.shared.b64 [bar], 32;
"""

from __future__ import annotations

from ptxtools.ir.positions import part_span

from ..context import LintContext
from ..facts import FunctionFacts
from ..mbarriers import life
from ..registry import bodies_with

CODE = "PTX575"


@bodies_with("mbarrier")
def check(context: LintContext, facts: FunctionFacts) -> None:
    for step, state in life(facts):
        if state == "again":
            message = "an mbarrier is initialised here already"
            context.warn(CODE, message, part_span(step.line.item, 0), section="9.7.13.15.9")
