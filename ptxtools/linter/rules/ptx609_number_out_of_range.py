"""PTX609 | number for which nothing is defined | 9.7.9.25, 9.7.14.1, 9.7.14.16

What: a register that certainly holds a number outside of what its operand allows: the count of an mbarrier, the bytes
of a bulk copy, the number of a barrier, the columns of an allocation and others of which a constant would be an error;
more bytes that cp.async reads than it writes; or more bytes than an mbarrier can expect (2^20 - 1). A barrier that some
warp names by a number above 15, and memory of a CTA that a cluster of the declared size does not have, too. Certain.
Why: nothing says what happens. What one chip does, another need not do.
Example:
    .shared .align 8 .b64 bar; .reg .b32 %count;
    mov.b32 %count, 0;
    mbarrier.init.shared.b64 [bar], %count;
Better:
    .shared .align 8 .b64 bar; .reg .b32 %count;
    mov.b32 %count, 32;
    mbarrier.init.shared.b64 [bar], %count;
"""

from __future__ import annotations

from ptxtools.ir.nodes import Immediate, Name
from ptxtools.ir.positions import part_span
from ptxtools.isa.patterns import OperandSpec

from ..constants import constant
from ..context import LintContext
from ..facts import FunctionFacts, Line
from ..limits import cluster_sizes
from ..registry import bodies_with, instructions
from ..walk import tell

CODE = "PTX609"

#: Bytes that an mbarrier can expect (9.7.14.16.5).
_MOST_BYTES = (1 << 20) - 1


@instructions("mbarrier", "cp", "bar", "barrier", "tcgen05", "st")
def check(context: LintContext, facts: FunctionFacts, line: Line) -> None:
    op, family, operands = line.plan.op, line.plan.family, line.item.operands
    if op is None or (family == "st" and not op.name.startswith("st.bulk")):
        return
    wanted = ""
    for place, (spec, operand) in enumerate(zip(line.plan.specs, operands, strict=False)):
        if type(operand) is Name and (spec.range or spec.choices or spec.multiple > 1):
            wanted = _allowed(spec, constant(facts, line, operand))
        elif family == "mbarrier" and spec.name == "txCount":
            number = constant(facts, line, operand)
            wanted = f"{number}: an mbarrier can expect {_MOST_BYTES} bytes" if (number or 0) > _MOST_BYTES else ""
        if wanted:
            message = f"operand '{spec.name}' of '{op.text}' is {wanted}"
            context.warn(CODE, message, part_span(line.item, place), section=op.section)
            return
    if op.name == "cp.async" and len(operands) > 3 and type(operands[3]) is Name:
        number, size = constant(facts, line, operands[3]), operands[2]
        if number is not None and isinstance(size, Immediate) and not 0 <= number <= size.value:
            message = f"{number} bytes are to be read, and {size.value} are written"
            context.warn(CODE, message, part_span(line.item, 3), section=op.section)


@instructions("mapa")
def check_ranks(context: LintContext, facts: FunctionFacts, line: Line) -> None:
    operands = line.item.operands
    rank = constant(facts, line, operands[2]) if len(operands) == 3 else None
    for item, total in cluster_sizes(facts.function) if rank is not None else ():
        if item.name == ".reqnctapercluster" and total and (rank or 0) >= total:
            message = f"there is no CTA {rank} in a cluster of {total}"
            context.warn(CODE, message, part_span(line.item, 2), section="9.7.9.23")


@bodies_with("bar", "barrier")
def check_barriers(context: LintContext, facts: FunctionFacts) -> None:
    tell(context, facts, CODE, "barrier number", "9.7.14.1")


def _allowed(spec: OperandSpec, number: int | None) -> str:
    """What is wrong with a number; "" if nothing is, or it is not known."""
    if number is None:
        return ""
    if spec.choices and number not in spec.choices:
        return f"{number}; it must be {' or '.join(map(str, spec.choices))}"
    if spec.range is not None and not spec.range[0] <= number <= spec.range[1]:
        return f"{number}; it must be {spec.range[0]} to {spec.range[1]}"
    return f"{number}; it must be a multiple of {spec.multiple}" if number % spec.multiple else ""


@bodies_with("mapa")
def check_walks(context: LintContext, facts: FunctionFacts) -> None:
    tell(context, facts, CODE, "cluster rank", "9.7.9.23")
