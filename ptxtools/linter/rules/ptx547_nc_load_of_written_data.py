"""PTX547 | non-coherent load of data that the kernel writes | 9.7.9.9

What: ld.global.nc at an address that the same stretch of code stores to, or changes by an atomic operation.
Why: .nc promises that the data does not change while the kernel runs; the load may give old data.
Example:
    st.global.b32 [%rd1+4], %r1;
    ld.global.nc.b32 %r4, [%rd1+4];
Better:
    st.global.b32 [%rd1+4], %r1;
    ld.global.b32 %r4, [%rd1+4];
"""

from __future__ import annotations

from ptxtools.ir.positions import parts_of

from ..context import LintContext
from ..facts import FunctionFacts
from ..registry import bodies_with

CODE = "PTX547"


@bodies_with("ld")
def check(context: LintContext, facts: FunctionFacts) -> None:
    for steps in facts.steps:
        loads = [step for step in steps if step.family == "ld" and step.has("nc")]
        for load in loads:
            reach = load.access
            for other in steps if reach is not None else ():
                access = other.access if other.writes else None
                if reach is None or access is None or access.space not in ("global", ""):
                    continue
                if reach.meets(access):
                    message = "the kernel writes what this .nc load reads"
                    context.warn(CODE, message, parts_of(load.line.item).opcode, section="9.7.9.9")
                    break
