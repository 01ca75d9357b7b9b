"""What clusters of a grid know of one another's warps, for asynccheck: strong accesses to global memory carry it.

What one warp has been told, its whole cluster knows, and what anybody has ever told at a place, whoever looks there
learns: it is asked only whether a thread may have been told at all.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from ptxtools.machine.residents import Cluster

Numbers: TypeAlias = npt.NDArray[Any]
#: By cluster: times of its warps, and of what else has clocks there.
_Known: TypeAlias = "dict[Cluster, Numbers]"
#: Places that are told apart; all others carry what anybody has told.
_MOST = 1024
_OTHERS = -1


class Abroad:
    """The clusters of a launch."""

    def __init__(self) -> None:
        self._told: dict[int, _Known] = {}
        self._known: dict[Cluster, _Known] = {}

    def give(self, cluster: Cluster, row: Numbers, places: Iterable[int]) -> None:
        """A warp, which knows of its own cluster what is in `row`, tells those that look at some places."""
        for place in places:
            found = self._told.setdefault(self._key(place), {})
            _learn(found, {cluster: row, **self._known.get(cluster, {})})

    def take(self, cluster: Cluster, places: Iterable[int]) -> None:
        """A warp of a cluster looks at some places."""
        for place in places:
            told = self._told.get(self._key(place))
            if told:
                _learn(self._known.setdefault(cluster, {}), told)

    def knows(self, cluster: Cluster, other: Cluster, moments: Iterable[tuple[int, int]]) -> bool:
        """Whether a cluster knows of any of these times in another one: columns of its clocks, and times."""
        row = self._known.get(cluster, {}).get(other)
        return row is not None and any(column < len(row) and row[column] >= time for column, time in moments)

    def _key(self, place: int) -> int:
        return place if place in self._told or len(self._told) < _MOST else _OTHERS


def _learn(known: _Known, told: Mapping[Cluster, Numbers]) -> None:
    for cluster, row in told.items():
        mine = known.get(cluster)
        if mine is None:
            known[cluster] = row.copy()
        elif mine is not row:
            longer, shorter = (row, mine) if len(row) > len(mine) else (mine, row)
            found = longer.copy()
            found[: len(shorter)] = np.maximum(found[: len(shorter)], shorter)
            known[cluster] = found
