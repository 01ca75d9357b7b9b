"""PTX519 | flag that is read with acquire, and written without release | 8.8, 8.10.6 (Causality)

What: a load with .acquire, whose address the kernel also stores to, but only with relaxed or volatile stores, before
which no fence and no release stands.
Why: an acquire orders something only if it reads what a release wrote: what was stored before the flag may be seen
after it.
Example:
    .version 8.0
    .target sm_80
    .address_size 64
    .entry k(.param .b64 a) {
        .reg .b64 %d<2>; .reg .b32 %r<3>; .reg .pred %p<3>;
        ld.param.b64 %d1, [a]; mov.u32 %r1, %ctaid.x; setp.eq.u32 %p1, %r1, 0;
        @%p1 bra W;
        st.global.b32 [%d1+4], 7;
        st.relaxed.gpu.global.b32 [%d1], 1;
        ret;
        W: ld.acquire.gpu.global.b32 %r2, [%d1]; setp.eq.u32 %p2, %r2, 0; @%p2 bra W;
        ret;
    }
Better:
    .version 8.0
    .target sm_80
    .address_size 64
    .entry k(.param .b64 a) {
        .reg .b64 %d<2>; .reg .b32 %r<3>; .reg .pred %p<3>;
        ld.param.b64 %d1, [a]; mov.u32 %r1, %ctaid.x; setp.eq.u32 %p1, %r1, 0;
        @%p1 bra W;
        st.global.b32 [%d1+4], 7;
        st.release.gpu.global.b32 [%d1], 1;
        ret;
        W: ld.acquire.gpu.global.b32 %r2, [%d1]; setp.eq.u32 %p2, %r2, 0; @%p2 bra W;
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

CODE = "PTX519"


@bodies_with("st")
def check(context: LintContext, facts: FunctionFacts) -> None:
    if not any(".acquire" in line.item.opcode for line in facts.of("ld")):
        return
    acquired = {step.access.address for step in facts.accesses if step.access is not None and step.has("acquire")}
    if not acquired:
        return
    unordered: dict[Value, Step] = {}
    for steps in facts.steps:
        ordered, stored = False, False
        for step in steps:
            ordered |= step.family in ("fence", "membar", "bar", "barrier", "call") or _releases(step)
            access = step.access
            if access is None or not step.writes:
                continue
            if access.address in acquired and (ordered or step.family != "st" or not step.strong):
                acquired.discard(access.address)
            elif access.address in acquired and stored:
                unordered.setdefault(access.address, step)
            stored = True
    for address, step in unordered.items():
        if address in acquired:
            message = "nothing orders what was stored before this flag; it is read with .acquire, and has no release"
            context.warn(
                CODE,
                message,
                parts_of(step.line.item).opcode,
                help=("use .release",),
                section="8.8, 8.10.6 (Causality)",
            )


def _releases(step: Step) -> bool:
    return step.has("release") or step.has("acq_rel")
