"""PTX513 | shared or local memory that nothing uses | 5.1.7

What: a variable in .shared or .local memory that no instruction names. Not those that launches size.
Why: it takes memory of every CTA or thread all the same, which can limit how many run at a time.
Example:
    .shared .align 4 .b32 spare[256];
    add.u32 %r3, %r1, %r2;
Better:
    .shared .align 4 .b32 spare[256];
    st.shared.b32 [spare], %r1;
"""

from __future__ import annotations

from ptxtools.ir.nodes import Variable

from ..context import LintContext
from ..registry import modules

CODE = "PTX513"


@modules
def check(context: LintContext) -> None:
    used = set().union(*(facts.targets for facts in context.facts.functions))
    variables = [item for item in context.module.variables if item.space == "shared"]
    for facts in context.facts.functions:
        variables += [item for item in facts.others if isinstance(item, Variable) and item.space in ("shared", "local")]
    for variable in variables:
        if variable.name not in used and not variable.linkage and variable.dims != (None,):
            message = f"nothing uses the .{variable.space} variable '{variable.name}'"
            context.warn(CODE, message, variable.name_span, section="5.1.7")
