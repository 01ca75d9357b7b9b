"""PTX701 | generic access to a known space | 6.4.1.1

What: a load or store without a state space names a variable in a known space; or a load, store or atomic operation
without one has an address that cvta has made from one of shared or global memory, or that follows from a variable's.
Why: a generic access determines the space at run time, which is slower, and ptxas 13.0 leaves it generic even where
cvta stands right before it. `--fix` inserts the space where the address is a variable's name, or of global memory.
Example:
    .shared .align 4 .b32 table[4];
    ld.b32 %r1, [table];
Better:
    .shared .align 4 .b32 table[4];
    ld.shared.b32 %r1, [table];
"""

from __future__ import annotations

from ptxtools.check.edits import rewritten, with_word
from ptxtools.diagnostics import Fix
from ptxtools.ir.positions import parts_of

from ..accesses import Access
from ..context import LintContext
from ..facts import FunctionFacts, Line
from ..memory import Step, variable_of
from ..registry import bodies_with, variable_accesses

_SPACES = frozenset({"global", "shared", "local"})
#: Without optimisation, compilers keep each variable in local memory at generic addresses.
_COMPUTED = frozenset({"global", "shared"})

CODE = "PTX701"


@variable_accesses
def check(context: LintContext, line: Line, access: Access) -> None:
    op, symbol = access.op, access.symbol
    if op.space is not None or symbol.space not in _SPACES or op.family not in ("ld", "st"):
        return
    message = f"'{symbol.name}' is in .{symbol.space}: a generic '{op.family}' determines the space at run time"
    help, fix = (f"write {op.family}.{symbol.space}…",), _fix(context, line, symbol.space)
    context.warn(CODE, message, parts_of(line.item).opcode, help=help, section=op.section, fix=fix)


@bodies_with("ld", "st", "atom", "red")
def check_computed(context: LintContext, facts: FunctionFacts) -> None:
    for step in facts.accesses:
        op = step.line.plan.op
        space = _space(step) if step.access is not None and not step.access.space and step.indirect else ""
        if space and op is not None:
            message = f"the address is one of .{space}: a generic '{op.family}' determines the space at run time"
            help, fix = (f"use {op.family}.{space} with the address that cvta has made this one from",), None
            if space == "global":  # where both addresses are the same number
                help, fix = (f"write {op.family}.global…",), _fix(context, step.line, space)
            context.warn(CODE, message, parts_of(step.line.item).opcode, help=help, section=op.section, fix=fix)


def _fix(context: LintContext, line: Line, space: str) -> Fix | None:
    opcode = with_word(line.item.opcode, space)
    return rewritten(context.source.text, line.item, opcode) if opcode else None


def _space(step: Step) -> str:
    """The space that a generic address certainly lies in."""
    address = step.access.address if step.access is not None else None
    if address is None:
        return ""
    marks = [(name.removeprefix("cvta."), count) for name, count in address.terms if name.startswith("cvta.")]
    if marks:
        return marks[0][0] if len(marks) == 1 and marks[0][1] == 1 and marks[0][0] in _COMPUTED else ""
    variables = [name for name, _ in address.terms if name[0] == "&"]
    symbol = variable_of(step.line, address._replace(terms=((variables[0], 1),))) if len(variables) == 1 else None
    return "global" if symbol is not None and symbol.space == "global" else ""
