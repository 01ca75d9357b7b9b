"""PTX705 | setmaxnreg that ptxas ignores | 9.7.20.5

What: a kernel with setmaxnreg, itself or in a function that it calls, has neither .maxnreg nor .minnctapersm beside
.maxntid or .reqntid; or it has a call that is known only when it runs, or of a function that calls itself; or its
module has to be linked with another, because it calls functions without a body; or is for a debugger.
Why: ptxas cannot tell how many registers a thread begins with (C7508), or has to keep to what other functions or
modules expect (C7504, C7506) or a debugger does (C7505), and ignores setmaxnreg.
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
from ptxtools.ir.references import is_runtime_function

from ..calls import callee_of, calls_of, reached_from, why_it_stays
from ..context import LintContext
from ..facts import FunctionFacts
from ..registry import modules_with

CODE = "PTX705"


@modules_with("setmaxnreg")
def check(context: LintContext) -> None:
    outside = next(filter(None, map(_outside, context.facts.functions)), None)
    calls = calls_of(context.facts.functions)
    using = {id(facts.function): line for facts in context.facts.functions for line in facts.of("setmaxnreg")[:1]}
    for facts in context.facts.functions:
        function = facts.function
        users = [one for one in (function, *reached_from(function, calls)) if id(one) in using]
        if not users or function.kind != "entry":
            continue
        stays = next(filter(None, (why_it_stays(line, calls, runtime=False) for line in facts.of("call"))), "")
        if "debug" in context.module.target_options:
            why = "the module is compiled for a debugger"
        elif not _begins_with(facts):
            why = "it cannot tell how many registers the kernel begins with"
        elif outside is not None:
            why = f"the module is to be linked with the one that has '{outside}'"
        elif stays:
            why = stays.replace("it calls", f"'{function.name}' calls")
        else:
            continue
        line = using[id(users[0])]
        context.warn(CODE, f"ptxas ignores setmaxnreg: {why}", parts_of(line.item).opcode, section="9.7.20.5")


def _begins_with(facts: FunctionFacts) -> bool:
    """Whether directives say how many registers a thread begins with; .minnctapersm alone is ignored (11.4.4)."""
    names = {getattr(item, "name", "") for item in facts.function.directives}
    return ".maxnreg" in names or (".minnctapersm" in names and bool(names & {".maxntid", ".reqntid"}))


def _outside(facts: FunctionFacts) -> str | None:
    """A function of another module that this one calls."""
    for line in facts.of("call"):
        callee = callee_of(line)
        if callee is not None and callee.body is None and not is_runtime_function(callee.name):
            return callee.name
    return None
