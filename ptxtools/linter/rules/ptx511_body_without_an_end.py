"""PTX511 | body without an end | 9.7.12.6, 9.7.12.7

What: control can run past the last instruction of a function.
Why: ptxas ends the function there, as with ret; the manual does not say so.
Example:
    .entry k() { .reg .b32 %r<2>; mov.b32 %r1, 0; }
Better:
    .entry k() { .reg .b32 %r<2>; mov.b32 %r1, 0; ret; }
"""

from __future__ import annotations

from ptxtools.check.edits import at_the_end
from ptxtools.ir.nodes import (
    BranchTargets,
    CallPrototype,
    CallTargets,
    Directive,
    Label,
    Loc,
    Pragma,
    Variable,
)

from ..calls import callee_of
from ..context import LintContext
from ..facts import ENDING, FunctionFacts, Line
from ..registry import bodies

#: Statements that are not executed.
_SILENT = (Loc, Variable, Pragma, BranchTargets, CallPrototype, CallTargets)

CODE = "PTX511"


@bodies
def check(context: LintContext, facts: FunctionFacts) -> None:
    last = next((item for item in reversed(facts.items) if not _silent(item, facts)), None)
    if isinstance(last, Line) and last.plan.family in ENDING and last.item.guard is None:
        return
    if isinstance(last, Line) and _never_returns(last):
        return
    function = facts.function
    message = f"control can run past the end of '{function.name}'"
    end = "exit or ret" if function.kind == "entry" else "ret"
    fix = None
    if function.body is not None and function.body.span[1] > 0:
        brace = function.body.span[1] - 1
        fix = at_the_end(context.source.text, brace, "ret;", "end the body with ret")
    context.warn(CODE, message, function.name_span, help=(f"end the body with {end}",), section="9.7.12.6", fix=fix)


def _silent(item: object, facts: FunctionFacts) -> bool:
    """A statement that does not run; labels that nothing jumps to mark the end for debuggers."""
    return isinstance(item, _SILENT) or (isinstance(item, Label) and item.name not in facts.targets)


def _never_returns(line: Line) -> bool:
    """A call of a `.noreturn` function may stand last."""
    if line.plan.family != "call":
        return False
    callee = callee_of(line)
    return callee is not None and any(isinstance(d, Directive) and d.name == ".noreturn" for d in callee.directives)
