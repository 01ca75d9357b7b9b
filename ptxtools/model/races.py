"""Data races (8.7.1): conflicting operations that are not morally strong, and that causality order does not relate."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeAlias

from .relations import Relation
from .structures import Skeleton
from .terms import Structure

#: Two operations, as the pair and its inverse, and whether they overlap completely.
Conflict: TypeAlias = tuple[Relation, bool]


def conflicts(found: Skeleton, strong: Sequence[int]) -> Iterator[Conflict]:
    """The pairs of operations that race if causality order does not relate them. strong: for each event those that it
    is morally strong with."""
    x = found.structure
    for a, b in x.universe.pairs(x.given["overlap"]):
        if found.nodes[a].thread < 0 or found.nodes[b].thread < 0 or not x.sets["W"] >> a & 1:
            continue
        if not (strong[a] >> b & 1 or (found.follow(a, b) and _one_way(x, a, b))):
            yield x.universe.relation(((a, b), (b, a))), x.universe.holds(x.given["overlap-completely"], a, b)


def _one_way(x: Structure, a: int, b: int) -> bool:
    """Whether two operations use one proxy and one address, so that program order relates them."""
    return x.universe.holds(x.given["same-proxy"], a, b) and x.universe.holds(x.given["overlap-at-address"], a, b)


def races(cause: Relation, pairs: Sequence[Conflict]) -> tuple[bool, bool]:
    """Whether two conflicting operations race, and whether two of different sizes do (8.7.2)."""
    race = False
    for pair, same in pairs:
        if not cause & pair:
            race = True
            if not same:
                return True, True
    return race, False
