"""racecheck's first look, at the end of a grid: whether what several workers have noted of global memory goes together.

Each has words of its own (`machine.filters.Bounds.owners`). Where two have noted something of the same word, both have
only read it, or only atomics of one sort have changed it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from ptxtools.machine.residents import SEVERAL_GLOBAL, WRITTEN_GLOBAL
from ptxtools.sim.kept import touched

if TYPE_CHECKING:
    import numpy.typing as npt

    Array = npt.NDArray[Any]

#: Words that are looked at together.
_MOST = 1 << 16


def together(words: Iterable[Array]) -> bool:
    """Whether nobody has touched what somebody else has written; each array is changed."""
    found = list(words)
    return all(_joined(found[0], other) for other in found[1:])


def _joined(first: Array, other: Array) -> bool:
    """Whether two go together; the first has then what both have noted."""
    for start, after in touched(other.view(np.uint8)):
        for place in range(start // 4, after // 4, _MOST):
            part = slice(place, min(place + _MOST, after // 4))
            if not _joined_part(first[part], other[part]):
                return False
    return True


def _joined_part(first: Array, other: Array) -> bool:
    apart = (first != other) & (first != 0) & (other != 0)
    if apart.any():
        mine, yours = first[apart], other[apart]
        if ((mine | yours) >= WRITTEN_GLOBAL).any():
            return False
        first[apart] = SEVERAL_GLOBAL
        first[~apart] |= other[~apart]
    else:
        first |= other
    return True


__all__ = ["together"]
