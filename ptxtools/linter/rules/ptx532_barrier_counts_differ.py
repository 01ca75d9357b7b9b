"""PTX532 | thread counts of a barrier differ | 9.7.13.1

What: instructions of one kernel name the same barrier with different thread counts, where these are
constants or registers that hold one. Possible: the barrier
may be used for different groups, one after the other. Or a count that is computed is certainly no multiple of 32; or
more threads than the count certainly come to an instruction (.reqntid says how many there are), or as many only arrive.
Or a reduction meets another operation at its barrier. Or a warp comes again to a barrier at which it has arrived
without waiting, and nothing has told it since what others do.
Why: a barrier completes when the expected number of threads has arrived: those that expect others may wait for ever,
and of more than that, any go on without the others. A warp that arrives twice in one round counts for one that does
not come.
Example:
    bar.arrive 1, 64;
    bar.sync 1, 96;
Better:
    bar.arrive 1, 64;
    bar.sync 1, 64;
"""

from __future__ import annotations

from ptxtools.ir.positions import part_span

from ..coming import barriers_of
from ..constants import constant
from ..context import LintContext
from ..facts import FunctionFacts
from ..memory import WARP
from ..registry import bodies_with
from ..walk import tell
from ..walk.shapes import declared_shape

CODE = "PTX532"


@bodies_with("bar", "barrier")
def check(context: LintContext, facts: FunctionFacts) -> None:
    counts: dict[int, int] = {}
    for line in facts.of("bar", "barrier"):
        op, operands = line.plan.op, line.item.operands
        if op is None or op.has("warp") or op.has("cluster"):
            continue
        start = 1 if op.has("red") else 0  # behind the result
        name, count = (*operands[start : start + 2], None, None)[:2]
        if name is None or count is None:
            continue
        number, threads = constant(facts, line, name), constant(facts, line, count)
        if number is None or threads is None:
            continue
        known = counts.setdefault(number, threads)
        if known != threads:
            message = f"barrier {number} is for {threads} threads here, and for {known} elsewhere"
            context.warn(CODE, message, part_span(line.item, start + 1), section="9.7.13.1")
            counts[number] = threads
    for users in barriers_of(facts).values() if declared_shape(facts.function) is not None else ():
        for user in users:
            come = user.warps.bit_count() * WARP
            message = ""
            if user.exact and not user.arrives and 0 < user.expected < come:
                message = f"{come} threads come to this barrier, and it waits for {user.expected}: any of them"
            elif user.exact and user.arrives and 0 < user.expected <= come:
                message = f"{come} threads arrive, and the barrier is over with {user.expected}: without any that wait"
            if message:
                context.warn(CODE, message, part_span(user.line.item, 1), section="9.7.13.1")
    tell(context, facts, CODE, "barrier count", "9.7.13.1")
