"""Tensor memory of a CTA: 128 lanes x 512 columns of 32-bit cells, and the allocation of columns (9.7.16.1)."""

from __future__ import annotations

import numpy as np

from ptxtools.diagnostics import Cause
from ptxtools.machine.events import View
from ptxtools.machine.residents import Cta
from ptxtools.records import dataclass, field

from .layout import COLUMNS, LANES
from .numbers import Array

#: Where a CTA keeps its tensor memory.
KEY = "tensor memory"
#: Columns are allocated in units of this many.
UNIT = 32


@dataclass(slots=True, eq=False)
class TensorMemory:
    """Cells, and allocations by their first column, with the tcgen05.alloc that made each (`makers`); limit: columns
    that the next allocation may have; relinquished: no further allocation is allowed; group: the .cta_group of its
    operations; watched: leaks are reported at the end."""

    cells: Array = field(default_factory=lambda: np.zeros((LANES, COLUMNS), np.uint32))
    allocations: dict[int, int] = field(default_factory=dict)
    makers: dict[int, View] = field(default_factory=dict)
    limit: int = COLUMNS
    relinquished: bool = False
    group: int = 0
    watched: bool = False
    stamp: Array = field(default_factory=lambda: np.zeros(1, np.uint32))

    def changed(self) -> None:
        """What was allowed may be wrong now."""
        self.stamp += np.uint32(1)

    def free(self, count: int, other: TensorMemory | None = None) -> int | None:
        """The lowest multiple of `count` at which that many columns are free, in both CTAs of a pair."""
        for first in range(0, COLUMNS, count):
            if not self.taken(first, count) and not (other is not None and other.taken(first, count)):
                return first
        return None

    def taken(self, first: int, count: int) -> bool:
        """Whether some of these columns are allocated."""
        return any(first < start + size and start < first + count for start, size in self.allocations.items())

    def covers(self, first: int, count: int) -> bool:
        """Whether all of these columns are allocated."""
        while count > 0:
            for start, size in self.allocations.items():
                if start <= first < start + size:
                    first, count = start + size, count - (start + size - first)
                    break
            else:
                return False
        return True


def allocated_columns(cta: Cta) -> int:
    """Columns that a CTA has allocated."""
    memory: TensorMemory | None = cta.state.get(KEY)
    return 0 if memory is None else sum(memory.allocations.values())


def of(cta: Cta) -> TensorMemory:
    """The tensor memory of a CTA, created on first use."""
    memory: TensorMemory | None = cta.state.get(KEY)
    if memory is None:
        memory = cta.state[KEY] = TensorMemory()
        cta.at_end.append(memory.changed)
    return memory


def check_columns(view: View, cta: Cta, column: int, count: int, what: str, lane: int | None = None) -> Array:
    """The cells, if the CTA has allocated these columns. Raises `Trap`."""
    memory = of(cta)
    if column + count > COLUMNS:
        reason = f"{what} extends to column {column + count - 1} of tensor memory; 511 is the last"
        raise view.trap(reason, lane, cause=Cause.TENSOR_MEMORY)
    if not memory.covers(column, count):
        columns = f"column {column}" if count == 1 else f"columns {column} to {column + count - 1}"
        reason = f"{what} uses {columns} of tensor memory, not all of which {cta} has allocated"
        raise view.trap(reason, lane, cause=Cause.TENSOR_MEMORY)
    return memory.cells


def cells_of(view: View, cta: Cta, column: int, count: int, what: str, lane: int | None = None) -> Array:
    """The cells that work uses now. If it may be late, the CTA had these columns when it was issued, and asynccheck has
    reported whoever has freed them since. Raises `Trap` without it."""
    memory, listeners = of(cta), view.launch.observers
    if not memory.covers(column, count) and view.schedule.delays:
        if listeners is None or not listeners.hear("abandoned"):
            reason = f"{what} uses tensor memory that was freed before it completed"
            raise view.trap(reason, lane, cause=Cause.TENSOR_MEMORY)
        return memory.cells
    return check_columns(view, cta, column, count, what, lane)


def split(address: int) -> tuple[int, int]:
    """Lane and column of an address in tensor memory (9.7.16.1.1)."""
    return address >> 16 & 0xFFFF, address & 0xFFFF


def partners(view: View, ctas: int, what: str, lane: int | None = None, *, alive: bool = True) -> tuple[Cta, ...]:
    """The CTAs that an operation with .cta_group works on: this one, or the pair, the even one first. alive: both must
    still run. Raises `Trap`."""
    cta, cluster = view.cta, view.cluster
    memory = of(cta)
    if memory.group not in (0, ctas):
        reason = f"{what} with .cta_group::{ctas} in a kernel that has used .cta_group::{memory.group}"
        raise view.trap(reason, lane, cause=Cause.COLLECTIVE)
    memory.group = ctas
    if ctas == 1:
        return (cta,)
    even = cta.rank & ~1
    if even + 1 >= len(cluster.ctas):
        raise view.trap(
            f"{what} with .cta_group::2 requires a pair of CTAs; {cta} of the cluster has no peer",
            lane,
            cause=Cause.COLLECTIVE,
        )
    pair = (cluster.ctas[even], cluster.ctas[even + 1])
    for other in pair:
        if alive and other.ended:
            reason = f"{what} with .cta_group::2 when the peer {other} has exited"
            raise view.trap(reason, lane, cause=Cause.COLLECTIVE)
    return pair
