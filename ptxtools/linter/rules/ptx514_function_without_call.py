"""PTX514 | function that nothing calls | 11.2.2

What: a .func that is neither .visible nor .weak, and that no call, table, alias or initialiser names.
Why: nothing can reach it. `ptx-as --gc` drops it.
Example:
    .version 9.0
    .target sm_90
    .address_size 64
    .func lost() { ret; }
    .visible .entry k() { ret; }
Better:
    .version 9.0
    .target sm_90
    .address_size 64
    .func called() { ret; }
    .visible .entry k() { call called; ret; }
"""

from __future__ import annotations

from ptxtools.ir.nodes import Alias, CallTargets, Variable
from ptxtools.ir.references import initializer_names

from ..context import LintContext
from ..registry import modules

CODE = "PTX514"


@modules
def check(context: LintContext) -> None:
    lost = {f.name: f for f in context.module.functions if f.kind == "func" and f.body is not None and not f.linkage}
    if not lost or not any(f.kind == "entry" for f in context.module.functions):
        return
    for facts in context.facts.functions:
        for name in facts.targets:
            lost.pop(name, None)
        for item in facts.others:
            for name in item.targets if isinstance(item, CallTargets) else ():
                lost.pop(name, None)
            for name in initializer_names(item.init) if isinstance(item, Variable) else ():
                lost.pop(name, None)
    for item in context.module.items:
        for name in initializer_names(item.init) if isinstance(item, Variable) else ():
            lost.pop(name, None)
        if isinstance(item, Alias):
            lost.pop(item.target, None)
    for function in lost.values():
        context.warn(CODE, f"nothing calls '{function.name}'", function.name_span, section="11.2.2")
