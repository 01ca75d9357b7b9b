"""PTX606 | setmaxnreg to more registers than there are | 9.7.20.5

What: setmaxnreg.dec names more registers than .maxnreg gives to a thread, and than any setmaxnreg.inc of the kernel; or
setmaxnreg.inc more than .maxnreg gives, in a kernel that has no setmaxnreg.dec; or all
setmaxnreg.inc together more than all setmaxnreg.dec give back, where comparisons of %tid.x say how many threads come.
Why: there is nothing to release, so the behaviour is undefined; ptxas 13.0 refuses the module (C7406). An increase
waits until others have released as many, which nobody does.
Example:
    .version 9.0
    .target sm_90a
    .address_size 64
    .entry k() .maxntid 384 .maxnreg 64 { setmaxnreg.dec.sync.aligned.u32 72; ret; }
Better:
    .version 9.0
    .target sm_90a
    .address_size 64
    .entry k() .maxntid 384 .maxnreg 64 { setmaxnreg.dec.sync.aligned.u32 24; ret; }
"""

from __future__ import annotations

from ptxtools.ir.nodes import Directive, Immediate
from ptxtools.ir.positions import part_span

from ..coming import coming_to
from ..context import LintContext
from ..facts import FunctionFacts, Line
from ..registry import bodies_with
from ..walk.shapes import declared_shape

CODE = "PTX606"


@bodies_with("setmaxnreg")
def check(context: LintContext, facts: FunctionFacts) -> None:
    most = next(
        (item.args[0] for item in facts.function.directives if isinstance(item, Directive) and item.name == ".maxnreg"),
        None,
    )
    if not isinstance(most, int):
        return
    lines = facts.of("setmaxnreg")
    if "call" not in facts.families and not any(".dec" in line.item.opcode for line in lines):
        for line in lines:
            if _count(line) > most:
                message = (
                    f"a thread has {most} registers, and nothing in the kernel gives back any: this waits for ever"
                )
                context.warn(CODE, message, part_span(line.item, 0), section="9.7.20.5")
        return
    _look_at_balance(context, facts, most)
    most = max([most, *(_count(line) for line in lines if ".inc" in line.item.opcode)])
    for line in lines:
        if ".dec" in line.item.opcode and _count(line) > most:
            message = f"a thread never has more than {most} registers, so it cannot go down to {_count(line)}"
            context.warn(CODE, message, part_span(line.item, 0), section="9.7.20.5")


def _look_at_balance(context: LintContext, facts: FunctionFacts, most: int) -> None:
    """Whether all decreases give back less than the increases need, where it is known which threads come to each."""
    shape = declared_shape(facts.function)
    numbered = "%tid.y" in facts.targets or "%tid.z" in facts.targets
    if shape is None or shape.size != shape.x or numbered or {"call", "brx"} & facts.families:
        return
    given, wanted, changed = 0, 0, 0
    increases = []
    for line, coming in coming_to(facts, ("setmaxnreg",), shape.size):
        if not coming.exact or coming.threads & changed or not _count(line):
            return
        changed |= coming.threads
        more = (_count(line) - most) * coming.threads.bit_count()
        given, wanted = given + max(-more, 0), wanted + max(more, 0)
        increases += [line] if more > 0 else []
    if wanted > given:
        message = f"the increases need {wanted} registers, and the decreases give back {given}: this waits for ever"
        context.warn(CODE, message, part_span(increases[0].item, 0), section="9.7.20.5")


def _count(line: Line) -> int:
    operand = line.item.operands[0] if line.item.operands else None
    return operand.value if isinstance(operand, Immediate) else 0
