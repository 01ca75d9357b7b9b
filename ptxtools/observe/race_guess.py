"""Which buffers a grid only reads, as far as its program says: a guess that racecheck's first look makes, and its
closer one.

Nothing has to be noted of reads of memory that nobody writes, through whatever proxy. So a look lets reads of such
buffers pass, and is told of each write to them, before it is made: with the first one the guess was wrong, and the look
begins again without it.

Whatever is written through a pointer of which it is not known what it was made of (`passes.pointers`) leaves nothing to
guess.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

import numpy as np

from ptxtools.machine.filters import stretches
from ptxtools.machine.observers import Guessed
from ptxtools.program.passes.pointers import places_of, pointers_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from ptxtools.machine.launch import Launch
    from ptxtools.machine.observers import Access, Array
    from ptxtools.program.program import Program

#: In a program's cache: a guess was wrong.
_WRONG = "wrong guess of what is only read"
#: Whole pieces of memory, whatever accesses have for their sizes.
_UNIT = 16


class ReadOnly:
    """The guess of one look. stretches: of memory that is only read, ascending: first byte, and the byte behind the
    last; none before it is made."""

    def __init__(self, program: Program, *, possible: bool = True) -> None:
        self._program = program
        self.open = possible and not program.cache.get(_WRONG, False)
        self.stretches: list[tuple[int, int]] = []

    def make(self, launch: Launch, live: Iterable[tuple[int, int]], constants: tuple[int, int]) -> None:
        """live: allocations, and their sizes; constants: where those of the module are."""
        if not self.open:
            return
        found = only_read(launch, live)
        first, after = constants[0], _up(constants[1])
        if first < after and first % _UNIT == 0 and not any(a < after and first < b for a, b in found):
            found = sorted([*found, (first, after)])
        self.stretches = found

    def rows(self, memory: tuple[int, int], word_of: Callable[[int], int]) -> tuple[Array, Array]:
        """Stretches of global memory for reads and for writes (`machine.filters.Bounds`). word_of: where the words of a
        byte are."""
        noted, at = [], memory[0]
        for first, after in [*self.stretches, (memory[1], 0)]:
            noted.append((at, first, word_of(at)))
            at = after
        return stretches(sorted([*noted, *((*one, 0) for one in self.stretches)])), stretches(noted)

    def touched(self, starts: Array, size: int) -> bool:
        """Whether any access from some addresses (u64) on, of `size` bytes each, touches what is only read."""
        first, after = self._ends()
        return bool(((starts[:, None] + np.uint64(size) > first) & (starts[:, None] < after)).any())

    def holds(self, access: Access) -> bool:
        """Whether all lanes access what is only read."""
        first, after = self._ends()
        start = access.addresses[:, None]
        return bool(((start >= first) & (start + np.uint64(access.size) <= after)).any(axis=1).all())

    def check(self, access: Access) -> None:
        """An access to global memory is about to be made. Raises `Guessed` where it writes what is only read."""
        if access.writes and self.touched(access.addresses, access.size):
            self.wrong()

    def _ends(self) -> Array:
        ends: Array = np.array(self.stretches, np.uint64).reshape(-1, 2).T
        return ends

    def wrong(self) -> NoReturn:
        self._program.cache[_WRONG] = True
        raise Guessed


def only_read(launch: Launch, live: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Stretches of memory that a grid probably reads and does not write, ascending: first byte, and the byte after the
    last. live: allocations, and their sizes."""
    pointers = pointers_of(launch.program)
    if pointers is None:
        return []
    allocations = sorted(live)
    read, written = (places_of(one, launch.params, allocations) for one in pointers)
    chosen = sorted(read - written)
    found = [(allocations[place][0], _up(sum(allocations[place]))) for place in chosen]
    return [one for one in found if one[0] % _UNIT == 0]


def _up(address: int) -> int:
    return -(-address // _UNIT) * _UNIT
