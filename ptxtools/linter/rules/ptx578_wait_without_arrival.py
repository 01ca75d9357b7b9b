"""PTX578 | wait for an mbarrier at which nothing arrives | 9.7.13.15.16

What: the module waits for mbarriers, and has no instruction that arrives at one or completes its transactions; or a
kernel's arrivals are all at mbarriers that are known, and a wait for the first phase is at another one; or all threads
of a CTA have ended or wait for phases that nobody completes; or tcgen05.commit, and nothing else, arrives at mbarriers,
and does not name the CTA of the cluster that waits.
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

from ptxtools.ir.nodes import Immediate, Variable
from ptxtools.ir.positions import parts_of

from ..context import LintContext
from ..facts import FunctionFacts
from ..mbarriers import Word, word_of
from ..memory import Step
from ..presence import unmet
from ..registry import bodies_with, modules_with
from ..walk import tell, told

CODE = "PTX578"

#: Families of what may arrive at an mbarrier, and words of those that do; and what others may arrive by.
_ARRIVING, _ARRIVES = ("mbarrier", "cp", "tcgen05", "st", "red"), (".arrive", ".complete_tx", "mbarrier::")
_FOREIGN = frozenset({"call", "mapa", "clusterlaunchcontrol"})
_ELSEWHERE = (".multicast", "cta_group::2", "arrive.shared::cluster")


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
def check_places(context: LintContext, facts: FunctionFacts) -> None:
    here = context.facts.whole and facts.function.kind == "entry" and _FOREIGN.isdisjoint(facts.families)
    if not here or any(word in line.item.opcode for line in facts.of(*_ARRIVING) for word in _ELSEWHERE):
        return
    waits: list[tuple[Step, Word]] = []
    arrived: set[Word] = set()
    for steps in facts.steps:
        for step in steps:
            opcode = step.line.item.opcode
            waited = _waits_first(step)
            if waited or (step.family in _ARRIVING and any(word in opcode for word in _ARRIVES)):
                word = word_of(step)
                if word is not None and waited:
                    waits.append((step, word))
                elif word is not None:
                    arrived.add(word)
                elif not waited:
                    return  # it may be any of them
    for step, word in waits:
        symbol = step.line.names.lookup(word.name)
        extern = isinstance(symbol, Variable) and symbol.linkage == "extern"  # such variables are all at one place
        if word not in arrived and not (extern and any(other.base != word.base for other in arrived)):
            message = f"nothing arrives at the mbarrier at '{word.name}+{word.offset}' that this waits for"
            context.warn(CODE, message, parts_of(step.line.item).opcode, section="9.7.13.15.16")
            return


def _waits_first(step: Step) -> bool:
    """Whether an instruction waits for the first phase of an mbarrier."""
    operands = step.line.item.operands
    waits = step.family == "mbarrier" and "_wait.parity" in step.line.item.opcode and len(operands) > 2
    return waits and isinstance(operands[2], Immediate) and not operands[2].value & 1


@bodies_with("mbarrier")
def check_walks(context: LintContext, facts: FunctionFacts) -> None:
    if not told(context, facts, "PTX506"):
        tell(context, facts, CODE, "wait without end", "9.7.13.15.16")
