"""PTX526 | lock that a plain store gives back | 8.8, 8.10.6 (Causality)

What: an address that atom.cas takes as a lock, the same for all threads, gets a plain store, or a relaxed one or a
relaxed exchange if the atom acquires, and no fence stands directly before that.
Why: such a store orders nothing: what was stored under the lock may be seen after the lock is free. Beside the atomic
operations of others it is a race, too.
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


@bodies_with("atom")
def check(context: LintContext, facts: FunctionFacts) -> None:
    locks: set[Value] = set()
    acquired: set[Value] = set()
    fenced = False  # also behind a branch: blocks are in the order of the text
    for steps in facts.steps:
        for step in steps:
            access = step.access
            if access is not None and access.address.uniform and access.address.terms:
                if step.family == "atom" and step.has("cas"):
                    locks.add(access.address)
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
