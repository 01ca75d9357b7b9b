"""Swapped items: one mistake, though neither fits its position."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import combinations
from typing import TypeVar

T = TypeVar("T")


def exchanged(items: Sequence[T], wrong: Iterable[int], fit: Callable[[list[T]], bool]) -> tuple[int, int] | None:
    """The indices of two of the `wrong` items such that everything fits once they are swapped."""
    for one, two in combinations(sorted(set(wrong)), 2):
        swapped = list(items)
        swapped[one], swapped[two] = swapped[two], swapped[one]
        if fit(swapped):
            return one, two
    return None
