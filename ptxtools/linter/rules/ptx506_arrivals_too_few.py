"""PTX506 | mbarrier that expects other arrivals than come | 9.7.13.15.9

What: an mbarrier is initialised with a count that all arrivals of the module, each by all threads of the CTA, do not
reach; or with a count that some warps reach without the others, which arrive in the same phase without knowing of them;
or arrivals with .noComplete are as many as it takes.
Certain: the kernel declares its number of threads, and all mbarriers are known variables; and of those that too few
reach, no arrival is in a loop.
Why: the phase never completes: whoever waits for it waits forever. Or it completes before all have arrived, and what
the others did before is not known to those who wait.
Example:
    .version 8.0
    .target sm_90
    .address_size 64
    .entry k() .reqntid 32 {
        .reg .pred %p<2>; .shared .align 8 .b64 bar;
        mbarrier.init.shared.b64 [bar], 33;
        bar.sync 0;
        mbarrier.arrive.shared.b64 _, [bar];
        W: mbarrier.try_wait.parity.shared.b64 %p1, [bar], 0;
        @!%p1 bra W;
        ret;
    }
Better:
    .version 8.0
    .target sm_90
    .address_size 64
    .entry k() .reqntid 32 {
        .reg .pred %p<2>; .shared .align 8 .b64 bar;
        mbarrier.init.shared.b64 [bar], 32;
        bar.sync 0;
        mbarrier.arrive.shared.b64 _, [bar];
        W: mbarrier.try_wait.parity.shared.b64 %p1, [bar], 0;
        @!%p1 bra W;
        ret;
    }
"""

from __future__ import annotations

from math import prod

from ptxtools.ir.nodes import Directive, Function
from ptxtools.ir.positions import part_span, parts_of

from ..arrivals import surplus
from ..constants import constant
from ..context import LintContext
from ..facts import FunctionFacts
from ..loops import innermost_loop_of
from ..mbarriers import Word, words
from ..memory import Step
from ..registry import bodies_with
from ..walk import tell

CODE = "PTX506"

#: Instructions that may arrive at an mbarrier besides.
_OTHERS = frozenset({"call", "cp", "tcgen05", "red", "mapa"})


@bodies_with("mbarrier")
def check(context: LintContext, facts: FunctionFacts) -> None:
    threads = _threads(facts.function)
    if not threads or _OTHERS & facts.families or len(context.facts.bodies) > 1:
        return
    loops = innermost_loop_of(facts)
    begun: dict[Word, tuple[Step, int]] = {}
    arrivals: dict[Word, int] = {}
    for step, word, place in words(facts):
        if word is None:
            return
        item = step.line.item
        if step.has("init"):
            count = constant(facts, step.line, item.operands[place + 1]) if len(item.operands) > place + 1 else None
            if count is None or word in begun:
                return
            begun[word] = step, count
        elif step.has("arrive") or step.has("arrive_drop"):
            own = item.operands[place + 1] if len(item.operands) > place + 1 else None
            each = 1 if own is None or step.has("expect_tx") else constant(facts, step.line, own)
            if id(item) in loops or each is None:
                return
            arrivals[word] = arrivals.get(word, 0) + each * threads
    for word, (step, count) in begun.items():
        if 0 < arrivals.get(word, 0) < count:
            message = f"'{word.name}' expects {count} arrivals, and there are at most {arrivals[word]}"
            context.warn(CODE, message, part_span(step.line.item, 1), section="9.7.13.15.9")


def _threads(function: Function) -> int:
    """The threads of a CTA, if they are declared exactly; else 0."""
    for item in function.directives:
        if isinstance(item, Directive) and item.name == ".reqntid":
            return prod(number for number in item.args if isinstance(number, int))
    return 0


@bodies_with("mbarrier")
def check_surplus(context: LintContext, facts: FunctionFacts) -> None:
    tell(context, facts, CODE, "phase of fewer", "9.7.13.15.9")
    if facts.function.kind != "entry":
        return
    for found in surplus(facts):
        spans = [line.item.span for line in found.lines]
        if any(one.code == CODE and start <= one.span[0] < end for one in context.diagnostics for start, end in spans):
            continue  # a walk has found it
        message = (
            f"{found.come} arrivals come before any thread waits, and the phase is over with {found.takes}: those of "
            "others may have been enough"
        )
        context.warn(CODE, message, parts_of(found.line.item).opcode, section="9.7.13.15.9")
