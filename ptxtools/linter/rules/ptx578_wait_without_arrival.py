"""PTX578 | wait for an mbarrier at which nothing arrives | 9.7.13.15.16

What: the module waits for mbarriers, and has no instruction that arrives at one or completes its transactions; or all
threads of a CTA have ended or wait for phases that nobody completes; or tcgen05.commit, and nothing else, arrives at
mbarriers, and does not name the CTA of the cluster that waits.
Why: the phase never ends: the wait is for ever.
Example:
    .version 9.0
    .target sm_90
    .address_size 64
    .entry k() {
        .reg .pred %p1; .shared .align 8 .b64 bar;
        mbarrier.init.shared.b64 [bar], 32;
        bar.sync 0;
    L:  mbarrier.try_wait.parity.shared.b64 %p1, [bar], 0;
        @!%p1 bra L;
        ret;
    }
Better:
    .version 9.0
    .target sm_90
    .address_size 64
    .entry k() {
        .reg .pred %p1; .shared .align 8 .b64 bar;
        mbarrier.init.shared.b64 [bar], 32;
        bar.sync 0;
        mbarrier.arrive.shared.b64 _, [bar];
    L:  mbarrier.try_wait.parity.shared.b64 %p1, [bar], 0;
        @!%p1 bra L;
        ret;
    }
"""

from __future__ import annotations

from ptxtools.ir.positions import parts_of

from ..context import LintContext
from ..facts import FunctionFacts
from ..presence import unmet
from ..registry import bodies_with, modules_with
from ..walk import tell, told

CODE = "PTX578"


@modules_with("mbarrier")
def check(context: LintContext) -> None:
    arrives = (
        r"mbarrier\.(arrive|complete_tx)|.*mbarrier::|cp\.async\.mbarrier\.arrive|tcgen05\.commit|clusterlaunchcontrol"
    )
    line = unmet(context, r"mbarrier\.(test|try)_wait", arrives)
    if line is not None:
        message = f"nothing arrives at the mbarrier that '{line.item.opcode}' waits for"
        context.warn(CODE, message, parts_of(line.item).opcode, section="9.7.13.15.16")


@bodies_with("mbarrier")
def check_walks(context: LintContext, facts: FunctionFacts) -> None:
    if not told(context, facts, "PTX506"):
        tell(context, facts, CODE, "wait without end", "9.7.13.15.16")
