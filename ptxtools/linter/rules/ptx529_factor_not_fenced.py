"""PTX529 | matrix in shared memory that is stored without a proxy fence | 9.7.13.4

What: st.shared, stmatrix or cp.async, and behind it a wgmma or tcgen05.mma that reads matrices from shared memory, with
no fence.proxy.async in between (possible: the store may be to other memory; no label stands between the two); or with
fences only of threads that do not know of the store.
Why: these instructions read shared memory through the asynchronous proxy, and may see what was there before the store.
Example:
    .version 9.0
    .target sm_90a
    .address_size 64
    .entry k(.param .b64 x) {
        .reg .f32 %f<5>; .reg .b64 %d<3>; .reg .b32 %r<3>; .shared .align 128 .b8 s[1024];
        ld.param.b64 %d1, [x]; mov.b32 %r1, s;
        st.shared.b32 [%r1], 1;
        bar.sync 0;
        wgmma.fence.sync.aligned;
        wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f1, %f2, %f3, %f4}, %d1, %d1, 0, 1, 1, 0, 0;
        wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;
        ret;
    }
Better:
    .version 9.0
    .target sm_90a
    .address_size 64
    .entry k(.param .b64 x) {
        .reg .f32 %f<5>; .reg .b64 %d<3>; .reg .b32 %r<3>; .shared .align 128 .b8 s[1024];
        ld.param.b64 %d1, [x]; mov.b32 %r1, s;
        st.shared.b32 [%r1], 1;
        fence.proxy.async;
        bar.sync 0;
        wgmma.fence.sync.aligned;
        wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f1, %f2, %f3, %f4}, %d1, %d1, 0, 1, 1, 0, 0;
        wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;
        ret;
    }
"""

from __future__ import annotations

from ptxtools.ir.positions import parts_of

from ..context import LintContext
from ..facts import FunctionFacts, Line
from ..registry import bodies_with
from ..walk import tell

CODE = "PTX529"


@bodies_with("wgmma", "tcgen05")
def check(context: LintContext, facts: FunctionFacts) -> None:
    for run in facts.runs:
        stored: Line | None = None
        for line in run:
            op = line.plan.op
            if op is None:
                continue
            copied = line.item.opcode.startswith(("cp.async.ca", "cp.async.cg"))
            if copied or op.family == "stmatrix" or (op.family == "st" and (op.space or "").startswith("shared")):
                stored = line
            elif op.family == "call" or (op.family == "fence" and op.has("proxy")):
                stored = None
            elif stored is not None and op.name.startswith(("wgmma.mma_async", "tcgen05.mma")):
                number = context.source.line_of(stored.item.span[0])
                message = (
                    f"this may read what was there before the store in line {number}: no fence.proxy.async between"
                )
                context.warn(CODE, message, parts_of(line.item).opcode, section="9.7.13.4")
                return


@bodies_with("wgmma", "tcgen05")
def check_walks(context: LintContext, facts: FunctionFacts) -> None:
    tell(context, facts, CODE, "proxy of a matrix", "9.7.13.4")
