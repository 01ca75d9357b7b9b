"""PTX525 | threads exchange data across the rounds of a loop without a barrier | 8.5, 9.7.14.1

What: in one round a thread reads or stores what another thread stores, or reads, in the next round, and no barrier is
behind the first or before the second. Certain for the threads that the message names: all threads run the loop
together, and its addresses stay the same.
Why: the other thread may be a round ahead: a race. The usual loop over tiles needs two barriers, one before the tile is
read and one before it is overwritten.
Example:
    .version 8.0
    .target sm_80
    .address_size 64
    .entry k() .reqntid 64 {
        .reg .pred %p<2>; .reg .b32 %r<9>; .shared .align 1024 .b32 s[64];
        mov.u32 %r1, %tid.x; mov.u32 %r7, s; mad.lo.u32 %r2, %r1, 4, %r7; xor.b32 %r3, %r2, 128;
        mov.b32 %r4, 0; mov.b32 %r6, 0;
        L: st.shared.b32 [%r2], %r4;
        bar.sync 0;
        ld.shared.b32 %r5, [%r3]; add.u32 %r6, %r6, %r5;
        add.u32 %r4, %r4, 1; setp.lt.u32 %p1, %r4, 8; @%p1 bra L;
        st.shared.b32 [s], %r6;
        ret;
    }
Better:
    .version 8.0
    .target sm_80
    .address_size 64
    .entry k() .reqntid 64 {
        .reg .pred %p<2>; .reg .b32 %r<9>; .shared .align 1024 .b32 s[64];
        mov.u32 %r1, %tid.x; mov.u32 %r7, s; mad.lo.u32 %r2, %r1, 4, %r7; xor.b32 %r3, %r2, 128;
        mov.b32 %r4, 0; mov.b32 %r6, 0;
        L: st.shared.b32 [%r2], %r4;
        bar.sync 0;
        ld.shared.b32 %r5, [%r3]; add.u32 %r6, %r6, %r5;
        bar.sync 0;
        add.u32 %r4, %r4, 1; setp.lt.u32 %p1, %r4, 8; @%p1 bra L;
        st.shared.b32 [s], %r6;
        ret;
    }
"""

from __future__ import annotations

from itertools import takewhile

from ptxtools.ir.positions import part_span

from ..context import LintContext
from ..facts import FunctionFacts
from ..loops import Loop, simple_loops
from ..memory import WARP, Step, meeting_threads
from ..registry import bodies_with
from ..uniform import Uniform, goes_together
from ..values import THREADS, Value, thread_count
from ..walk import tell

CODE = "PTX525"

#: What may order the accesses of different threads.
_ORDERING = frozenset({"bar", "barrier", "mbarrier", "call", "cp", "wgmma", "tcgen05"})
#: Accesses at the end and at the beginning of a round that are compared.
_MOST = 16


@bodies_with("bar", "barrier")
def check(context: LintContext, facts: FunctionFacts) -> None:
    if not any(line.item.opcode.startswith("st.shared") for line in facts.of("st")):
        return
    tell(context, facts, CODE, "race of rounds", "8.5")
    for place, loop in simple_loops(facts):
        inside = {id(line.item) for line in loop.lines}
        _check(context, facts, loop, [step for step in facts.steps[place] if id(step.line.item) in inside])


def _check(context: LintContext, facts: FunctionFacts, loop: Loop, steps: list[Step]) -> None:
    everybody = tuple(number < thread_count(facts.function) for number in range(THREADS))
    last = list(takewhile(lambda step: step.family not in _ORDERING, reversed(steps)))
    first = list(takewhile(lambda step: step.family not in _ORDERING, steps))
    if len(first) == len(steps):
        return  # no barrier at all: a loop of one warp, perhaps
    for before in [step for step in last if _counts(facts, loop, step)][:_MOST]:
        for after in [step for step in first if _counts(facts, loop, step)][:_MOST]:
            if before.writes or after.writes:
                pair = meeting_threads(before._replace(active=everybody), after._replace(active=everybody), WARP)
                if pair is not None and after.access is not None:
                    if not goes_together(facts, Uniform(facts)):
                        return
                    number = context.source.line_of(before.line.item.span[0])
                    message = (
                        f"in the next round thread {pair[1]} {'stores' if after.writes else 'reads'} what thread "
                        f"{pair[0]} {'stores' if before.writes else 'reads'} in line {number}: no barrier between"
                    )
                    span = part_span(after.line.item, after.access.operand)
                    context.warn(CODE, message, span, section="8.5")
                    return


def _counts(facts: FunctionFacts, loop: Loop, step: Step) -> bool:
    """Whether a step is a plain access of shared memory by all threads, at an address that stays."""
    access = step.access
    if access is None or access.space != "shared" or step.strong or step.line.item.guard is not None:
        return False
    if step.family == "st" and step.stored is not None and step.stored.uniform and access.address.uniform:
        return False
    return _stays(facts, loop, access.address)


def _stays(facts: FunctionFacts, loop: Loop, address: Value) -> bool:
    for term, _ in address.terms:
        if term[0] == "#":
            key = facts.unknown_terms.get(term)
            if key is None or key in loop.written:
                return False
    return True
