"""PTX705 | setmaxnreg that ptxas ignores | 9.7.20.5

What: a kernel with setmaxnreg has neither .maxnreg nor .minnctapersm.
Why: ptxas cannot tell how many registers a thread begins with, and ignores setmaxnreg (C7508).
Example:
    .version 9.0
    .target sm_90a
    .address_size 64
    .entry k() .maxntid 384 { setmaxnreg.dec.sync.aligned.u32 64; ret; }
Better:
    .version 9.0
    .target sm_90a
    .address_size 64
    .entry k() .maxntid 384 .maxnreg 168 { setmaxnreg.dec.sync.aligned.u32 64; ret; }
"""

from __future__ import annotations

from ptxtools.ir.positions import parts_of

from ..context import LintContext
from ..registry import modules_with

CODE = "PTX705"


@modules_with("setmaxnreg")
def check(context: LintContext) -> None:
    for facts in context.facts.functions:
        names = {getattr(item, "name", "") for item in facts.function.directives}
        if facts.function.kind == "entry" and not names & {".maxnreg", ".minnctapersm"}:
            line = next((line for line in facts.lines if line.plan.family == "setmaxnreg"), None)
            if line is not None:
                message = "ptxas ignores setmaxnreg: it cannot tell how many registers the kernel begins with"
                context.warn(CODE, message, parts_of(line.item).opcode, section="9.7.20.5")
