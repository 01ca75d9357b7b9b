"""Operations that count who comes to instructions (`Variant.counts`).

Lanes that come to the first instruction of a block of operations come to the last one, unless it traps in between; so
there is one count for each such block, and one for each instruction with a guard.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ptxtools.program.details import Counted
from ptxtools.program.program import COUNTER_BYTES, Counter, Op

if TYPE_CHECKING:
    from .function import FunctionLowering


def count(f: FunctionLowering) -> None:
    """Count the lanes that come to the instruction at `f.where`, and those for which its guard holds."""
    if f.ops is not f.counted:
        f.counted = f.ops
        f.ops.append(_counter(f, "reached"))
    if f.guard is not None:
        held = _counter(f, "held")
        held.guard, held.negated = f.guard, f.negated
        f.ops.append(held)


def _counter(f: FunctionLowering, what: str) -> Op:
    counters = f.linker.counters
    counters.append(Counter(f.where, what, f.linker.number_of(f.function.name)))
    return Op("count", detail=Counted(what, COUNTER_BYTES * (len(counters) - 1)), where=f.where)
