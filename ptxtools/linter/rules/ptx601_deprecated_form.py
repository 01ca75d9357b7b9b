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

from ptxtools.check.edits import joined, rewritten, with_word
from ptxtools.check.locate import word_span
from ptxtools.diagnostics import Fix
from ptxtools.ir.nodes import Directive, Function
from ptxtools.ir.positions import part_span, parts_of
from ptxtools.isa.directives import DIRECTIVES
from ptxtools.isa.targets import describe, provides_any, version_text

from ..context import LintContext
from ..facts import ENDING, FunctionFacts, Line
from ..registry import directives, instructions

_REPLACEMENTS = {"shfl": "shfl.sync", "vote": "vote.sync"}

#: The version of shfl.sync and vote.sync (9.7.9.6, 9.7.13.9).
_SYNC = (6, 0)
_LEAVING = ENDING | {"call"}

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
    fix = _fix(context, facts, line)
    context.warn(
        CODE, f"{message} removed it{where}", parts_of(line.item).opcode, help=help, section=op.section, fix=fix
    )


def _fix(context: LintContext, facts: FunctionFacts, line: Line) -> Fix | None:
    """wmma with .aligned, which it always was; shfl and vote with all lanes as members, where all of a warp come."""
    item, text = line.item, context.source.text
    opcode = with_word(item.opcode, "aligned" if line.plan.family == "wmma" else "sync")
    if line.plan.family == "wmma":
        return rewritten(text, item, opcode) if opcode else None
    if not opcode or context.declared.version < _SYNC or not _by_all(facts, line) or not parts_of(item).operands:
        return None
    last = len(item.operands) - 1
    return rewritten(text, item, opcode, {last: f"{text[slice(*part_span(item, last))]}, 0xffffffff"})


def _by_all(facts: FunctionFacts, line: Line) -> bool:
    """Whether all lanes of a warp come to an instruction together: a kernel's, whose branches none of them decides."""
    if facts.function.kind != "entry" or line.item.guard is not None:
        return False
    guards = [(one, one.item.guard) for one in facts.lines if one.plan.family in _LEAVING]
    return not any(
        guard is not None and one.registers[guard.name] in {None, *facts.differing} for one, guard in guards
    )  # fmt: skip


@directives
def check_directives(context: LintContext, function: Function) -> None:
    for item in function.directives:
        info = DIRECTIVES.get(item.name) if isinstance(item, Directive) else None
        if info is None or info.deprecated is None or not info.deprecated <= context.declared.version:
            continue
        if info.removed is None or context.declared.version < info.removed:
            message = f"{info.name} is deprecated since PTX ISA {version_text(info.deprecated)}"
            help = (f"use {info.replacement}",) if info.replacement else ()
            text, fix = context.source.text, None
            if info.replacement.startswith("."):
                fix = joined(text, f"use {info.replacement}", (word_span(text, item.span, info.name), info.replacement))
            context.warn(CODE, message, item.span, help=help, section=info.section, fix=fix)
