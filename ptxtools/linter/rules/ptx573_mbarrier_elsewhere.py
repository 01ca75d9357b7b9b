"""PTX573 | mbarrier at an address that nothing initialises | 9.7.13.15

What: an operation on an mbarrier at a variable's offset, where the module initialises others of that variable, all at
constant offsets or in loops whose rounds are known, and not this one.
Why: the word is no mbarrier: the operation is undefined.
Example:
    .shared .align 8 .b64 bars[2];
    mbarrier.init.shared.b64 [bars+8], 32;
    bar.sync 0;
    mbarrier.arrive.shared.b64 %rd3, [bars];
Better:
    .shared .align 8 .b64 bars[2];
    mbarrier.init.shared.b64 [bars], 32;
    bar.sync 0;
    mbarrier.arrive.shared.b64 %rd3, [bars];
"""

from __future__ import annotations

from ptxtools.ir.positions import part_span

from ..context import LintContext
from ..facts import FunctionFacts, Line
from ..mbarriers import Word, words
from ..registry import bodies_with, modules_with
from ..walk import tell

CODE = "PTX573"


@bodies_with("mbarrier")
def check_walk(context: LintContext, facts: FunctionFacts) -> None:
    """mbarriers that loops initialise."""
    tell(context, facts, CODE, "no mbarrier", "9.7.13.15")


@modules_with("mbarrier")
def check(context: LintContext) -> None:
    made: set[Word] = set()
    used: list[tuple[Word, Line, int]] = []
    for facts in context.facts.functions:
        for step, word, place in words(facts):
            if step.line.item.opcode.startswith("mbarrier.init"):
                if word is None:
                    return
                made.add(word)
            elif word is not None:
                used.append((word, step.line, place))
    bases = {word.base for word in made}
    for word, line, place in used:
        if word not in made and word.base in bases and context.facts.whole:
            message = f"nothing initialises an mbarrier at '{word.name}{word.offset:+d}'"
            context.warn(CODE, message, part_span(line.item, place), section="9.7.13.15")
