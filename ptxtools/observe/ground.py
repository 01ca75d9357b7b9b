"""Stretches of memory that change while a grid runs, for filters (`machine.filters.Bounds`): all but what is taken."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ptxtools.machine.filters import EVERYWHERE

if TYPE_CHECKING:
    from .clocks import Array

#: Stretches that there is room for. Where more would be needed, nothing is free.
_ROOM = 64
_END = int(EVERYWHERE[0, 1])
_UNUSED = np.array((_END, _END, 0), np.uint64)


class Ground:
    """rows: what is free, ascending. The array stays the same, so that native code sees each change; unused rows, at
    its end, are empty."""

    def __init__(self) -> None:
        self._taken: dict[tuple[int, int], int] = {}
        self._closed: set[object] = set()
        self.rows: Array = np.zeros((_ROOM, 3), np.uint64)
        self._draw()

    def take(self, first: int, after: int) -> None:
        """These bytes are not free, until they have been given back as often."""
        self._taken[first, after] = self._taken.get((first, after), 0) + 1
        if self._taken[first, after] == 1:
            self._draw()

    def give(self, first: int, after: int) -> None:
        """Take them once less."""
        self._taken[first, after] -= 1
        if not self._taken[first, after]:
            del self._taken[first, after]
            self._draw()

    def close(self, why: object) -> None:
        """Nothing is free, until `open` has come for the same reason."""
        self._closed.add(why)
        self._draw()

    def open(self, why: object) -> None:
        """The reason is gone."""
        self._closed.discard(why)
        self._draw()

    def _draw(self) -> None:
        free, at = [], 0
        for first, after in sorted(self._taken):
            if at < first:
                free.append((at, first, 0))
            at = max(at, after)
        free.append((at, _END, 0))
        if self._closed or len(free) > _ROOM:
            free = []
        self.rows[: len(free)] = np.array(free, np.uint64).reshape(-1, 3)
        self.rows[len(free) :] = _UNUSED
