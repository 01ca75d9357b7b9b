"""PTX566 | bulk copies of ordinary stores without a proxy fence | 9.7.13.4, 8.6

What: the module stores to shared memory and copies shared memory by bulk copies, without fence.proxy.async; or a
thread fences that does not know of what others have stored, or fences global memory alone.
Why: bulk copies access memory through the async proxy: without the fence they may read what was there before the
stores. A fence is for what its thread has stored, and knows of behind a barrier. Possible: the stores may be of other
data.
Example:
    .version 9.0
    .target sm_90
    .address_size 64
    .entry k(.param .b64 x) {
        .reg .b32 %r<9>; .reg .b64 %d<5>; .reg .pred %p<3>; .shared .align 128 .b8 s[1024]; .shared .align 8 .b64 bar;
        mov.b32 %r1, s; mov.b32 %r2, bar; ld.param.b64 %d1, [x];
        st.shared.b32 [%r1], %r2;
        bar.sync 0;
        cp.async.bulk.global.shared::cta.bulk_group [%d1], [%r1], 64;
        cp.async.bulk.commit_group;
        cp.async.bulk.wait_group 0;
        ret;
    }
Better:
    .version 9.0
    .target sm_90
    .address_size 64
    .entry k(.param .b64 x) {
        .reg .b32 %r<9>; .reg .b64 %d<5>; .reg .pred %p<3>; .shared .align 128 .b8 s[1024]; .shared .align 8 .b64 bar;
        mov.b32 %r1, s; mov.b32 %r2, bar; ld.param.b64 %d1, [x];
        st.shared.b32 [%r1], %r2;
        fence.proxy.async.shared::cta;
        bar.sync 0;
        cp.async.bulk.global.shared::cta.bulk_group [%d1], [%r1], 64;
        cp.async.bulk.commit_group;
        cp.async.bulk.wait_group 0;
        ret;
    }
"""

from __future__ import annotations

from ptxtools.ir.positions import parts_of

from ..context import LintContext
from ..facts import FunctionFacts
from ..presence import first, unmet
from ..registry import bodies_with, modules_with
from ..walk import tell

CODE = "PTX566"


@modules_with("cp")
def check(context: LintContext) -> None:
    line = unmet(context, r"cp\.(reduce\.)?async\.bulk\..*\.shared::cta", r"fence\.proxy\.async")
    stored = first(context, r"(st\.(weak\.)?shared|stmatrix)")
    if line is not None and stored is not None:
        message = f"'{line.item.opcode}' may read what was there before '{stored.item.opcode}': no fence.proxy.async"
        context.warn(CODE, message, parts_of(line.item).opcode, section="9.7.13.4")


@bodies_with("cp")
def check_walks(context: LintContext, facts: FunctionFacts) -> None:
    tell(context, facts, CODE, "proxy of a copy", "9.7.13.4")
