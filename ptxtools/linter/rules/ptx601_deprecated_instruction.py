"""PTX601 | deprecated instruction | 9.7.9.5, 9.7.13.8

What: shfl or vote without .sync, if the declared version and target still have them.
Why: they assume that a warp runs in lockstep. PTX 6.4 removed them for sm_70 and later.
Example:
    .version 6.0
    .target sm_60
    .address_size 64
    .entry k() { .reg .b32 r; mov.b32 r, 0; shfl.idx.b32 r, r, 0, 31; ret; }
Better:
    .version 6.0
    .target sm_60
    .address_size 64
    .entry k() { .reg .b32 r; mov.b32 r, 0; shfl.sync.idx.b32 r, r, 0, 31, -1; ret; }
"""

from __future__ import annotations

from ptxtools.ir.positions import parts_of
from ptxtools.isa.targets import describe, provides_any, version_text

from ..context import LintContext
from ..facts import FunctionFacts, Line
from ..registry import instructions

_REPLACEMENTS = {"shfl": "shfl.sync", "vote": "vote.sync"}

CODE = "PTX601"


@instructions("shfl", "vote")
def check(context: LintContext, facts: FunctionFacts, line: Line) -> None:
    op = line.plan.op
    if op is None or "deprecated" not in op.marks:
        return
    gone = op.removals[0] if op.removals else None
    when = ""
    if gone is not None:
        declared = context.declared
        if declared.version >= gone.ptx and declared.target and provides_any(declared.target, gone.targets):
            return  # already an error
        where = f" for {describe(gone.targets)}" if gone.targets else ""
        when = f": PTX ISA {version_text(gone.ptx)} removed it{where}"
    opcode, help = parts_of(line.item).opcode, (f"use {_REPLACEMENTS[op.family]}",)
    context.warn(CODE, f"'{op.name}' is deprecated{when}", opcode, help=help, section=op.section)
