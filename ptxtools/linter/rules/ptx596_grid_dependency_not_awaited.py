"""PTX596 | dependents are launched, and nothing waits for what this depends on | 9.7.13.13

What: the module has griddepcontrol.launch_dependents, and no griddepcontrol.wait; or a thread accesses memory before it
has waited which the kernel both reads and writes. Possible: the grid before may be of another kernel.
Why: in a chain of such kernels, each starts before the one before it has ended, and only the wait makes its results
visible.
Example:
    griddepcontrol.launch_dependents;
    ld.global.b32 %r4, [%rd2];
Better:
    griddepcontrol.launch_dependents;
    griddepcontrol.wait;
    ld.global.b32 %r4, [%rd2];
"""

from __future__ import annotations

from ptxtools.ir.positions import parts_of

from ..context import LintContext
from ..facts import FunctionFacts
from ..presence import first, unmet
from ..registry import bodies_with, modules_with
from ..walk import tell

CODE = "PTX596"


@modules_with("griddepcontrol")
def check(context: LintContext) -> None:
    line = unmet(context, r"griddepcontrol\.launch_dependents", r"griddepcontrol\.wait")
    if line is not None and first(context, r"ld\.(?!param|const|shared|local)") is not None:
        message = "the module reads memory, and nowhere waits for the grids before it"
        context.warn(CODE, message, parts_of(line.item).opcode, section="9.7.13.13")


@bodies_with("griddepcontrol")
def check_early(context: LintContext, facts: FunctionFacts) -> None:
    tell(context, facts, CODE, "before the wait", "9.7.13.13")
