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

from ptxtools.ir.cfg import control_flow
from ptxtools.ir.dominators import dominators
from ptxtools.ir.positions import part_span

from ..context import LintContext
from ..facts import FunctionFacts, Line
from ..mbarriers import Word, life, words
from ..registry import bodies_with

CODE = "PTX575"


@bodies_with("mbarrier")
def check(context: LintContext, facts: FunctionFacts) -> None:
    twice = {id(step.line): step.line for step, state in life(facts) if state == "again"}
    for line in twice.values() or _always_twice(facts):
        message = "an mbarrier is initialised here already"
        context.warn(CODE, message, part_span(line.item, 0), section="9.7.13.15.9")


def _always_twice(facts: FunctionFacts) -> list[Line]:
    """Initialisations that no thread comes to without an earlier one of the same mbarrier, in functions that end none
    of them."""
    first: dict[tuple[Word, object], Line] = {}
    pairs = []
    if "call" in facts.families:
        return []
    for step, word, _ in words(facts):
        if step.has("inval"):
            return []
        guard = step.line.item.guard
        if word is None or not step.has("init") or (guard is not None and _changes(facts, step.line)):
            continue
        key = word, guard and (guard.name, guard.negated)
        if first.setdefault(key, step.line) is not step.line:
            pairs.append((first[key], step.line))
    if not pairs:
        return []
    flow = control_flow(facts.function, facts.names)
    blocks = {id(item): block.index for block in flow.blocks for item in block.instructions}
    tree = dominators(flow.successors)
    return [line for before, line in pairs if tree.dominates(blocks[id(before.item)], blocks[id(line.item)])]


def _changes(facts: FunctionFacts, line: Line) -> bool:
    """Whether a guard is written more than once."""
    guard = line.item.guard
    return guard is None or line.registers[guard.name] in facts.rewritten
