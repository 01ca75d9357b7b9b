"""Filters: what lets an engine pass events by that an observer would have nothing to say about.

An observer that decides about accesses may have one method more, `filter(at)`, which gives `Bounds`: where accesses lie
that it would allow without a word, and without noting anything. An engine may then make those without telling it. The
observer is told of all others, and of all where somebody else listens to accesses as well.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    from ptxtools.program.program import Op

Array: TypeAlias = "npt.NDArray[Any]"

#: State spaces in which accesses can be bounded.
SPACES = ("global", "shared", "local")


@dataclass(frozen=True, slots=True)
class Bounds:
    """Accesses that nobody has to be told of: aligned to their size where that is a power of two, and each lane inside
    one of the stretches.

    reads, writes: by state space (`SPACES`) the stretches of addresses, `stretches`; of shared memory offsets in any
    CTA of the cluster. An atomic counts as a write. asks: whether all accesses of an operation are told of; it depends
    on nothing but the program.
    """

    reads: dict[str, Array]
    writes: dict[str, Array]
    asks: Callable[[Op], bool]


def stretches(places: Iterable[tuple[int, int]]) -> Array:
    """Stretches (first byte, byte after the last), ascending, as an array of n x 2 (u64). Each ends where the next
    begins, if not before; empty ones are left out."""
    rows = [(first, after) for first, after in places if first < after]
    found = np.array(rows, np.uint64).reshape(-1, 2)
    found[:-1, 1] = np.minimum(found[:-1, 1], found[1:, 0])
    return found
