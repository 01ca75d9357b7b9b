"""PTX599 | bulk copy of what was just stored | 9.7.13.4

What: a bulk copy reads bytes that the thread stored before, with no fence.proxy.async in between. Certain: no label
stands between the two, and the addresses are the same.
Why: bulk copies go through the asynchronous proxy, and may copy what was there before the store.
Example:
    .version 8.6
    .target sm_90
    .address_size 64
    .entry k(.param .b64 a) {
        .reg .b64 %d<3>; .shared .align 128 .b8 s[128];
        ld.param.b64 %d1, [a];
        st.shared.b32 [s], 1;
        cp.async.bulk.global.shared::cta.bulk_group [%d1], [s], 128;
        cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;
        fence.proxy.async;
        ret;
    }
Better:
    .version 8.6
    .target sm_90
    .address_size 64
    .entry k(.param .b64 a) {
        .reg .b64 %d<3>; .shared .align 128 .b8 s[128];
        ld.param.b64 %d1, [a];
        st.shared.b32 [s], 1;
        fence.proxy.async;
        cp.async.bulk.global.shared::cta.bulk_group [%d1], [s], 128;
        cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;
        ret;
    }
"""

from __future__ import annotations

from ptxtools.ir.positions import part_span

from ..context import LintContext
from ..facts import FunctionFacts
from ..inflight import copied
from ..memory import Reach, Step
from ..registry import bodies_with

CODE = "PTX599"

#: Stores that are remembered.
_MOST = 16


@bodies_with("cp")
def check(context: LintContext, facts: FunctionFacts) -> None:
    if not any(line.item.opcode.startswith("cp.async.bulk") for line in facts.of("cp")):
        return
    for steps in facts.steps:
        stored: list[Reach] = []
        for step in steps:
            if step.family == "call" or (step.family == "fence" and step.has("proxy")):
                stored = []
            elif step.family == "st" and step.access is not None:
                stored = [*stored[-_MOST:], step.access]
            elif stored and _is_bulk(step):
                for reach in copied(step):
                    if any(reach.space == store.space and reach.meets(store) for store in stored):
                        message = "this may copy what was there before the store above: no fence.proxy.async between"
                        context.warn(CODE, message, part_span(step.line.item, reach.operand), section="9.7.13.4")
                        return


def _is_bulk(step: Step) -> bool:
    opcode = step.line.item.opcode
    return opcode.startswith("cp.async.bulk.") and ".prefetch" not in opcode and "_group" not in opcode.split(".")[3]
