"""PTX601 | deprecated form | 9.7.9.5, 9.7.13.8, 9.7.15.4.5, 11.4.5

What: shfl or vote without .sync, or another form that the declared version and target still have, and a later version
has no longer; .maxnctapersm.
Why: the module cannot go to that version or target. Without .sync, shfl and vote assume that a warp runs in lockstep:
PTX 6.4 removed them for sm_70 and later.
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

from ptxtools.ir.nodes import Directive, Function
from ptxtools.ir.positions import parts_of
from ptxtools.isa.directives import DIRECTIVES
from ptxtools.isa.targets import describe, provides_any, version_text

from ..context import LintContext
from ..facts import FunctionFacts, Line
from ..registry import directives, instructions

_REPLACEMENTS = {"shfl": "shfl.sync", "vote": "vote.sync"}

CODE = "PTX601"


@instructions("shfl", "vote", "wmma", "red", "st")
def check(context: LintContext, facts: FunctionFacts, line: Line) -> None:
    op = line.plan.op
    if op is None or not op.removals:
        return
    gone, declared = op.removals[0], context.declared
    if declared.version >= gone.ptx and declared.target and provides_any(declared.target, gone.targets):
        return  # already an error
    where = f" for {describe(gone.targets)}" if gone.targets else ""
    message = f"'{op.name if 'deprecated' in op.marks else op.text}' is deprecated: PTX ISA {version_text(gone.ptx)}"
    better = _REPLACEMENTS.get(op.family)
    help = (f"use {better}",) if better else ()
    context.warn(CODE, f"{message} removed it{where}", parts_of(line.item).opcode, help=help, section=op.section)


@directives
def check_directives(context: LintContext, function: Function) -> None:
    for item in function.directives:
        info = DIRECTIVES.get(item.name) if isinstance(item, Directive) else None
        if info is None or info.deprecated is None or not info.deprecated <= context.declared.version:
            continue
        if info.removed is None or context.declared.version < info.removed:
            message = f"{info.name} is deprecated since PTX ISA {version_text(info.deprecated)}"
            help = (f"use {info.replacement}",) if info.replacement else ()
            context.warn(CODE, message, item.span, help=help, section=info.section)
