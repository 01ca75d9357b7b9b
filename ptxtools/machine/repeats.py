"""What an observer need not be told of again (`machine.filters.Bounds.repeats`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from ptxtools.program.program import LANES

from .residents import REPEAT_FACTOR, REPEAT_ROWS, REPEAT_SHIFT, REPEAT_WORDS

if TYPE_CHECKING:
    import numpy.typing as npt

    from ptxtools.program.program import Program

    from .events import View

Array: TypeAlias = "npt.NDArray[Any]"

_MASK64 = (1 << 64) - 1


class Repeats:
    """What an observer would say nothing about if a warp did just the same again, until it forgets it: accesses of some
    lanes to some addresses, and waits of lanes for one phase of an mbarrier. A place in the table may be taken by
    another one, so that what is noted is forgotten sooner.

    table: rows of `REPEAT_WORDS` words of 8 bytes: key (0: none), mask of the lanes; addresses of the lanes, or address
    of the mbarrier and the parity that is waited for."""

    def __init__(self, program: Program) -> None:
        self.table: Array = np.zeros((REPEAT_ROWS, REPEAT_WORDS), np.uint64)
        self._numbers = numbers_of(program)

    def access(self, at: View, lanes: Array) -> int:
        """Note an access of these lanes, all that make it; the row."""
        row, key = self._row(at)
        entry = self.table[row]
        entry[2:] = at.addresses()
        entry[1] = int((np.uint64(1) << lanes.astype(np.uint64)).sum())
        entry[0] = key
        return row

    def wait(self, at: View, lanes: Array, parity: int) -> int:
        """Note the wait of these lanes for a phase of the mbarrier that all of them are at; the row."""
        row, key = self._row(at)
        entry = self.table[row]
        entry[1], entry[2] = int((np.uint64(1) << lanes.astype(np.uint64)).sum()), at.addresses()[lanes[0]]
        entry[3], entry[0] = parity, key
        return row

    def forget(self, row: int) -> None:
        self.table[row, 0] = 0

    def _row(self, at: View) -> tuple[int, int]:
        key = (at.cta.number * LANES + at.warp << REPEAT_SHIFT) + self._numbers[id(at.op)]
        return (key * REPEAT_FACTOR & _MASK64) >> 64 - REPEAT_ROWS.bit_length() + 1, key


def numbers_of(program: Program) -> dict[int, int]:
    """Numbers of a program's operations, from 1 on, by their identities."""
    found: dict[int, int] | None = program.cache.get("numbers")
    if found is None:
        found = program.cache["numbers"] = {id(op): number for number, op in enumerate(program.operations(), 1)}
    return found
