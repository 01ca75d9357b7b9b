"""Relations over the events of one execution, as rows of bits.

An event is a number below n, a set of events an integer with the bits of its members, a relation a list of n such sets:
`rows[a]` has bit b when (a, b) is in it. All functions return new lists.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from operator import and_, or_
from typing import TypeAlias

#: A set of events: bit e is event e.
Events: TypeAlias = int
#: A relation: the successors of each event.
Rows: TypeAlias = list[int]


def members(events: Events) -> Iterator[int]:
    """The events of a set, in order."""
    while events:
        low = events & -events
        yield low.bit_length() - 1
        events ^= low


def identity(events: Events, n: int) -> Rows:
    """[S] of the cat language: each event of the set to itself."""
    return [events & (1 << a) for a in range(n)]


def product(left: Events, right: Events, n: int) -> Rows:
    """Every event of `left` to every event of `right`."""
    return [right if left >> a & 1 else 0 for a in range(n)]


def union(a: Rows, b: Rows) -> Rows:
    return list(map(or_, a, b))


def common(a: Rows, b: Rows) -> Rows:
    return list(map(and_, a, b))


def without(a: Rows, b: Rows) -> Rows:
    return [x & ~y for x, y in zip(a, b, strict=True)]


def chain(a: Rows, b: Rows) -> Rows:
    """The composition a;b: (x, z) when some y has (x, y) in a and (y, z) in b."""
    found = []
    for row in a:
        reached = 0
        while row:
            low = row & -row
            reached |= b[low.bit_length() - 1]
            row ^= low
        found.append(reached)
    return found


def inverse(a: Rows) -> Rows:
    found = [0] * len(a)
    for x, row in enumerate(a):
        bit = 1 << x
        while row:
            low = row & -row
            found[low.bit_length() - 1] |= bit
            row ^= low
    return found


def closure(a: Rows) -> Rows:
    """a+: the smallest transitive relation that contains a."""
    found = list(a)
    for y, bit in enumerate([1 << y for y in range(len(a))]):
        through = found[y]
        if through:
            for x, row in enumerate(found):
                if row & bit:
                    found[x] = row | through
            # The row of y itself may have grown, but only by what `through` held already.
    return found


def is_empty(a: Rows) -> bool:
    return not any(a)


def is_irreflexive(a: Rows) -> bool:
    return not any(row >> x & 1 for x, row in enumerate(a))


def is_acyclic(a: Rows) -> bool:
    """Whether no event reaches itself. Events without successors are removed until none is left or none can be."""
    left = [x for x, row in enumerate(a) if row]
    alive = 0
    for x in left:
        alive |= 1 << x
    while left:
        kept = [x for x in left if a[x] & alive]
        if len(kept) == len(left):
            return False
        alive = 0
        for x in kept:
            alive |= 1 << x
        left = kept
    return True


def pairs(a: Rows) -> Iterator[tuple[int, int]]:
    """The pairs of a relation, in order."""
    for x, row in enumerate(a):
        for y in members(row):
            yield x, y


def shortest(a: Rows, start: int, goal: int) -> list[int]:
    """The events of a shortest path of at least one step from start to goal, both included; empty if there is none."""
    before: dict[int, int] = {}
    queue, seen = [start], 0
    for x in queue:
        for y in members(a[x] & ~seen):
            seen |= 1 << y
            before[y] = x
            if y == goal:
                path = [goal]
                while True:
                    path.append(before[path[-1]])
                    if path[-1] == start:
                        return path[::-1]
            queue.append(y)
    return []


def cycle(a: Rows) -> list[int]:
    """A shortest cycle: its events, the first one again at the end; empty if the relation is acyclic."""
    best: list[int] = []
    for x, row in enumerate(a):
        if row and (not best or len(best) > 2):
            path = shortest(a, x, x)
            if path and (not best or len(path) < len(best)):
                best = path
    return best


def relation(pairs_: Sequence[tuple[int, int]], n: int) -> Rows:
    """The relation that consists of these pairs."""
    rows = [0] * n
    for x, y in pairs_:
        rows[x] |= 1 << y
    return rows
