"""PTX722 | barrier of a cluster that orders one CTA | 9.7.14.3

What: barrier.cluster in a kernel whose clusters have one CTA; or in one that reaches no other CTA of its cluster, and
has not written global memory before.
Why: there is nothing to order but the threads of the CTA, which bar.sync does in less time: a barrier of a cluster
needs an exchange between SMs.
Example:
    .version 8.0
    .target sm_90
    .address_size 64
    .entry k() .reqntid 64 .reqnctapercluster 1 {
        barrier.cluster.arrive;
        barrier.cluster.wait;
        ret;
    }
Better:
    .version 8.0
    .target sm_90
    .address_size 64
    .entry k() .reqntid 64 .reqnctapercluster 1 {
        bar.sync 0;
        ret;
    }
"""

from __future__ import annotations

from math import prod

from ptxtools.ir.nodes import Directive, Function
from ptxtools.ir.positions import parts_of

from ..context import LintContext
from ..facts import FunctionFacts, Line
from ..registry import bodies_with

CODE = "PTX722"

#: Instructions that may reach another CTA, or of which that is not known.
_REACHING = frozenset(
    {"mapa", "call", "tcgen05", "clusterlaunchcontrol", "multimem", "wgmma", "getctarank", "isspacep"}
)
_WORDS = ("cluster", "multicast", "async")
_WRITING = frozenset({"st", "atom", "red", "cp", "surf", "sust", "sured"})


@bodies_with("barrier")
def check(context: LintContext, facts: FunctionFacts) -> None:
    barriers = [line for line in facts.of("barrier") if line.item.opcode.startswith("barrier.cluster.arrive")]
    if not barriers or facts.function.kind != "entry":
        return
    if _cluster(facts.function) == 1:
        why = "a cluster of this kernel has one CTA"
    elif not any(_reaches(line) for line in facts.lines):
        written = {id(line.item): place for place, line in enumerate(facts.lines) if _writes(line)}
        first = min(written.values(), default=len(facts.lines))
        early = {id(line.item) for line in facts.lines[:first]}
        looping = {
            id(line.item)
            for loop in facts.loops
            if any(id(line.item) in written for line in loop.lines)
            for line in loop.lines
        }
        barriers = [line for line in barriers if id(line.item) in early and id(line.item) not in looping]
        why = "the kernel reaches no other CTA, and has written no global memory before"
    else:
        return
    for line in barriers:
        section = line.plan.op.section if line.plan.op is not None else None
        message = f"bar.sync would order as much: {why}"
        context.warn(CODE, message, parts_of(line.item).opcode, section=section)


def _cluster(function: Function) -> int | None:
    """How many CTAs a cluster has; None if that is decided at the launch."""
    for item in function.directives:
        if isinstance(item, Directive) and item.name == ".reqnctapercluster":
            return prod(number for number in item.args if isinstance(number, int))
    return None


def _reaches(line: Line) -> bool:
    opcode = line.item.opcode
    if line.plan.family in ("barrier", "bar"):
        return False
    return line.plan.op is None or line.plan.family in _REACHING or any(word in opcode for word in _WORDS)


def _writes(line: Line) -> bool:
    """Whether an instruction writes memory that other CTAs may see."""
    op = line.plan.op
    return line.plan.family in _WRITING and (
        op is None or (op.space or "").partition("::")[0] not in ("shared", "local")
    )
