"""PTX526 | lock that a plain store gives back | 8.8, 8.10.6 (Causality)

What: an address that atom.cas takes as a lock, the same for all threads, gets a plain store, or a relaxed one or a
relaxed exchange if the atom acquires, and no fence stands directly before that. Or a plain store that follows the one
that gives the lock back, with no branch between, is to what was accessed under the lock (possible).
Why: such a store orders nothing: what was stored under the lock may be seen after the lock is free. Beside the atomic
operations of others it is a race, too. What is stored when the lock is free is not under the lock.
Example:
    .version 8.0
    .target sm_80
    .address_size 64
    .entry k(.param .b64 a) {
        .reg .b64 %d<2>; .reg .b32 %r<3>; .reg .pred %p<3>;
        ld.param.b64 %d1, [a];
        L: atom.acquire.gpu.global.cas.b32 %r1, [%d1], 0, 1; setp.ne.u32 %p1, %r1, 0; @%p1 bra L;
        st.global.b32 [%d1+4], 7;
        st.global.b32 [%d1], 0;
        ret;
    }
Better:
    .version 8.0
    .target sm_80
    .address_size 64
    .entry k(.param .b64 a) {
        .reg .b64 %d<2>; .reg .b32 %r<3>; .reg .pred %p<3>;
        ld.param.b64 %d1, [a];
        L: atom.acquire.gpu.global.cas.b32 %r1, [%d1], 0, 1; setp.ne.u32 %p1, %r1, 0; @%p1 bra L;
        st.global.b32 [%d1+4], 7;
        st.release.gpu.global.b32 [%d1], 0;
        ret;
    }
"""

from __future__ import annotations

from ptxtools.ir.positions import parts_of

from ..context import LintContext
from ..facts import FunctionFacts
from ..memory import Step
from ..registry import bodies_with
from ..values import Value

CODE = "PTX526"

#: What may order other accesses behind a lock.
_ORDERING = ("fence", "membar", "bar", "barrier", "call")
_FREE = "possible: others may not take the lock any more"


@bodies_with("atom")
def check(context: LintContext, facts: FunctionFacts) -> None:
    locks: set[Value] = set()
    acquired: set[Value] = set()
    fenced = False  # also behind a branch: blocks are in the order of the text
    under: set[Value] = set()  # what has been accessed plainly since a lock was taken
    for steps in facts.steps:
        left: set[Value] = set()  # what was, when a lock was given back in this run
        for step in steps:
            access = step.access
            if step.family in _ORDERING:
                left = set()
            if access is not None and access.space in ("", "global") and access.address.uniform and not step.strong:
                if step.writes and access.address in left:
                    message = "this is stored under no lock: it was accessed under one that has been given back above"
                    context.warn(CODE, message, parts_of(step.line.item).opcode, help=(_FREE,), section="8.8")
                elif locks and not left:
                    under.add(access.address)
            if access is not None and access.address.uniform and access.address.terms:
                if access.address in locks and under and (_stores(step) and step.has("release", "acq_rel")):
                    left, under = under - locks, set()
                if step.family == "atom" and step.has("cas"):
                    locks.add(access.address)
                    left, under = set(), set()
                    if step.has("acquire") or step.has("acq_rel"):
                        acquired.add(access.address)
                elif _stores(step) and not fenced and _is_given_back(step, access.address, locks, acquired):
                    kind = "plain" if step.family == "st" and not step.strong else "relaxed"
                    what = "store" if step.family == "st" else "exchange"
                    message = f"a {kind} {what} gives back a lock that atom.cas takes: it orders nothing"
                    help = ("use st.release or atom.exch with .release",)
                    context.warn(
                        CODE, message, parts_of(step.line.item).opcode, help=help, section="8.8, 8.10.6 (Causality)"
                    )
            fenced = step.family in ("fence", "membar", "bar", "barrier") or (fenced and not step.writes)


def _is_given_back(step: Step, address: Value, locks: set[Value], acquired: set[Value]) -> bool:
    """Whether a store without a release is one to a lock."""
    strong = step.strong or step.family == "atom"
    orders = step.has("release") or step.has("acq_rel") or step.has("acquire")
    return address in (acquired if strong else locks) and not orders


def _stores(step: Step) -> bool:
    """Whether an instruction stores what does not depend on what was there."""
    return step.family == "st" or (step.family == "atom" and step.has("exch"))
