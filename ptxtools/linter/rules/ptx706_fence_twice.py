"""PTX706 | fence or barrier directly behind itself | 9.7.13

What: the same fence twice, with no instruction in between; the same barrier of a CTA or warp twice, with nothing but
arithmetic in between, in a kernel whose threads all come to the same barriers; or fence.acq_rel.cta beside a barrier of
all threads of a CTA.
Why: the second orders nothing that the first did not, and a barrier orders what a fence for the CTA would.
Example:
    membar.gl;
    membar.gl;
Better:
    membar.gl;
"""

from __future__ import annotations

from functools import cache

from ptxtools.check.edits import removed
from ptxtools.ir.positions import parts_of

from ..context import LintContext
from ..facts import FunctionFacts, Line
from ..parting import parted
from ..registry import bodies_with, instructions

CODE = "PTX706"

#: Between two barriers, these can be neither seen by another thread nor depend on one.
_ALONE = frozenset({
    "add", "sub", "mul", "mad", "fma", "and", "or", "xor", "not", "shl", "shr", "shf", "lop3", "setp", "selp", "min",
    "max", "neg", "abs", "cvt", "cvta", "bfe", "bfi", "prmt",
})  # fmt: skip
_CTA_FENCE = "fence.acq_rel.cta"


@instructions("fence", "membar")
def check(context: LintContext, facts: FunctionFacts, line: Line) -> None:
    op, item = line.plan.op, line.item
    before = facts.before(line)
    if op is not None and before is not None and before.item.opcode == item.opcode and before.item == item:
        _warn(context, line, f"the same '{op.text}' stands directly before this")


@bodies_with("bar", "barrier")
def check_barriers(context: LintContext, facts: FunctionFacts) -> None:
    apart = cache(lambda: parted(facts))
    for run in facts.runs:
        last: Line | None = None
        for line in run:
            item = line.item
            if line.plan.family not in ("bar", "barrier"):
                if line.plan.family not in _ALONE:
                    last = None
                continue
            if last is not None and last.item == item and not apart():
                number = context.source.line_of(last.item.span[0])
                _warn(context, line, f"nothing stands between this and the same barrier in line {number}")
            last = line if _synchronises(line) else None
    for line in facts.of("fence"):
        if line.item.opcode == _CTA_FENCE and line.item.guard is None and _beside(facts, line):
            _warn(context, line, "a barrier of all threads stands directly beside this, and orders as much")


def _warn(context: LintContext, line: Line, message: str) -> None:
    section = line.plan.op.section if line.plan.op is not None else None
    fix = removed(context.source.text, line.item.span, f"remove this {line.plan.family}")
    context.warn(CODE, message, parts_of(line.item).opcode, section=section, fix=fix)


def _synchronises(line: Line) -> bool:
    """Whether an instruction only waits for threads that come to the same barrier: all of a CTA, or those of a warp.
    Those that wait for a number of threads may each be there for the arrivals of others."""
    op = line.plan.op
    everybody = op is not None and (op.has("warp") or len(line.item.operands) == 1)
    return op is not None and everybody and line.item.guard is None and op.has("sync") and not op.has("cluster")


def _beside(facts: FunctionFacts, line: Line) -> bool:
    """Whether the instruction before or behind is a barrier of a CTA that names no number of threads."""
    beside = (facts.before(line), facts.behind(line))
    return any(
        one is not None and one.plan.family in ("bar", "barrier") and _synchronises(one)
        and one.plan.op is not None and not one.plan.op.has("warp") and len(one.item.operands) == 1
        for one in beside
    )  # fmt: skip
