"""PTX605 | lanes of a warp that are taken to run in step | 8.5, 9.7.14.2

What: a lane reads with ld.volatile what another one of its warp has just stored with st.volatile, and no barrier of the
warp stands between the two. The addresses follow from %tid.x or %laneid.
Why: from sm_70 on the threads of a warp run independently; volatile does not make one wait for another. Older programs
were written so.
Example:
    .shared .align 256 .b32 s[64];
    mov.u32 %r4, %laneid; shl.b32 %r4, %r4, 2; mov.u32 %r5, s; add.u32 %r5, %r5, %r4;
    st.volatile.shared.b32 [%r5], %r1;
    ld.volatile.shared.b32 %r6, [%r5+64];
Better:
    .shared .align 256 .b32 s[64];
    mov.u32 %r4, %laneid; shl.b32 %r4, %r4, 2; mov.u32 %r5, s; add.u32 %r5, %r5, %r4;
    st.volatile.shared.b32 [%r5], %r1;
    bar.warp.sync 0xffffffff;
    ld.volatile.shared.b32 %r6, [%r5+64];
"""

from __future__ import annotations

from ptxtools.ir.positions import part_span

from ..context import LintContext
from ..facts import FunctionFacts
from ..memory import WARP, Reach, Step
from ..registry import bodies_with

CODE = "PTX605"

#: Stores that are remembered.
_MOST = 8


@bodies_with("st")
def check(context: LintContext, facts: FunctionFacts) -> None:
    if not any(".volatile" in line.item.opcode for line in facts.of("st")):
        return
    for steps in facts.steps:
        stores: list[Reach] = []
        for step in steps:
            if step.family in ("bar", "barrier", "call", "mbarrier"):
                stores = []
            access = _shared(step)
            if access is None:
                continue
            if step.writes:
                stores = [*stores[-_MOST:], access]
            elif any(_of_another_lane(store, access) for store in stores):
                message = "another lane of the warp stored this, and nothing makes this one wait for it"
                context.warn(CODE, message, part_span(step.line.item, access.operand), section="8.5")
                stores = []


def _shared(step: Step) -> Reach | None:
    access = step.access
    if access is None or access.space != "shared" or not step.has("volatile") or isinstance(access.address.each, int):
        return None
    return access


def _of_another_lane(store: Reach, load: Reach) -> bool:
    """Whether lanes of the first warp read what other lanes store, and all lanes' words are apart."""
    if store.address.terms != load.address.terms or store.size != load.size:
        return False
    written, read = store.address.numbers[:WARP], load.address.numbers[:WARP]
    return len(set(written)) == WARP and any(
        number in written and number != own for own, number in zip(written, read, strict=True)
    )
