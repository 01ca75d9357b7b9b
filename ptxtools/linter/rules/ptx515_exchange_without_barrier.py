"""PTX515 | threads exchange data without a barrier | 8.5, 9.7.13.1

What: a thread stores what another one reads or stores, and nothing orders the two accesses. Certain for the threads
that the message names, if the CTA has both (a warp, if no directive says more); their addresses follow from %tid.x. Possible if
the way to it depends on something unknown; the finding says which.
Why: the other thread may come first, or at the same time: a race.
Example:
    .shared .align 1024 .b32 s[64];
    mov.u32 %r4, %tid.x; shl.b32 %r4, %r4, 2; mov.u32 %r5, s; add.u32 %r5, %r5, %r4; xor.b32 %r6, %r5, 64;
    st.shared.b32 [%r5], %r1;
    ld.shared.b32 %r7, [%r6];
Better:
    .shared .align 1024 .b32 s[64];
    mov.u32 %r4, %tid.x; shl.b32 %r4, %r4, 2; mov.u32 %r5, s; add.u32 %r5, %r5, %r4; xor.b32 %r6, %r5, 64;
    st.shared.b32 [%r5], %r1;
    bar.sync 0;
    ld.shared.b32 %r7, [%r6];
"""

from __future__ import annotations

from ptxtools.ir.positions import part_span

from ..context import LintContext
from ..facts import FunctionFacts
from ..memory import WARP, Step, meeting_threads
from ..registry import bodies_with
from ..walk import tell

CODE = "PTX515"


#: How many earlier accesses are looked at.
_MOST = 16


@bodies_with("st", "cp", "tcgen05")
def check(context: LintContext, facts: FunctionFacts) -> None:
    for steps in facts.steps:
        _check(context, steps)
    tell(context, facts, CODE, "race", "8.5")


def _check(context: LintContext, steps: list[Step]) -> None:
    earlier: list[tuple[Step, bool]] = []  # with whether a barrier of the warp came after it
    for step in steps:
        if step.active is None:
            return
        if step.line.item.opcode.startswith(("bar.warp", "barrier.warp")):
            earlier = [(before, True) for before, _ in earlier]
        elif step.family in ("bar", "barrier", "mbarrier", "call", "cp", "wgmma", "tcgen05"):
            earlier = []
        access = step.access
        if access is None or access.space not in ("shared", "global") or step.strong:
            continue
        for before, synchronised in earlier:
            if not (before.writes or step.writes) or _same(before, step):
                continue
            pair = meeting_threads(before, step, WARP if synchronised else 1)
            if pair is not None:
                number = context.source.line_of(before.line.item.span[0])
                message = (
                    f"thread {pair[1]} {'stores' if step.writes else 'reads'} what thread {pair[0]} "
                    f"{'stores' if before.writes else 'reads'} in line {number}: no "
                    f"barrier orders the two"
                )
                context.warn(CODE, message, part_span(step.line.item, access.operand), section="8.5")
                return
        earlier = [*earlier[-_MOST:], (step, False)]


def _same(a: Step, b: Step) -> bool:
    """Whether a store is of one value that all threads have, and the other access changes nothing of that."""
    access = a.access
    if a.stored is None or not a.stored.uniform or (b.writes and b.stored != a.stored):
        return False
    return b.writes or (access is not None and access.address.uniform)
