"""Relations over the events of one execution, each as one integer.

An event is a number below n, a set of events an integer with the bits of its members, a relation an integer of n rows
of n bits: bit a * n + b is set if (a, b) is in it. So union, intersection and difference are single operations on
integers, and composition and closure take n steps.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TypeAlias

#: A set of events: bit e is event e.
Events: TypeAlias = int
#: A relation: n rows of n bits.
Relation: TypeAlias = int


def members(events: Events) -> Iterator[int]:
    """The events of a set, in order."""
    while events:
        low = events & -events
        yield low.bit_length() - 1
        events ^= low


class Universe:
    """The events 0 to n - 1, and the operations on relations over them."""

    __slots__ = ("diagonal", "first", "full", "n", "row")

    def __init__(self, n: int) -> None:
        self.n = n
        self.row = (1 << n) - 1
        #: The first column, and all pairs (a, a).
        self.first = sum(1 << a * n for a in range(n))
        self.diagonal = sum(1 << a * n + a for a in range(n))
        self.full = (1 << n * n) - 1

    # --- from and to pairs ---

    def relation(self, pairs: Iterable[tuple[int, int]]) -> Relation:
        found = 0
        for a, b in pairs:
            found |= 1 << a * self.n + b
        return found

    def packed(self, rows: Sequence[Events]) -> Relation:
        """The relation with these successors of each event."""
        return sum(row << a * self.n for a, row in enumerate(rows))

    def rows(self, relation: Relation) -> list[Events]:
        """The successors of each event."""
        return [relation >> a * self.n & self.row for a in range(self.n)]

    def pairs(self, relation: Relation) -> Iterator[tuple[int, int]]:
        """The pairs of a relation, in order."""
        for place in members(relation):
            yield divmod(place, self.n)

    def after(self, relation: Relation, a: int) -> Events:
        """The successors of an event."""
        return relation >> a * self.n & self.row

    def holds(self, relation: Relation, a: int, b: int) -> bool:
        return bool(relation >> a * self.n + b & 1)

    # --- operations ---

    def identity(self, events: Events) -> Relation:
        """[S] of the cat language: each event of the set to itself."""
        return self.relation((a, a) for a in members(events))

    def product(self, left: Events, right: Events) -> Relation:
        """Every event of `left` to every event of `right`."""
        return sum(right << a * self.n for a in members(left))

    def chain(self, a: Relation, b: Relation) -> Relation:
        """The composition a;b: (x, z) when some y has (x, y) in a and (y, z) in b."""
        found, first, row, n = 0, self.first, self.row, self.n
        y = 0
        while b:
            empty = ((b & -b).bit_length() - 1) // n
            if empty:
                b >>= empty * n
                y += empty
            # The column of y in a, as bits at the starts of rows: times a row, it puts that row where each is set.
            found |= (a >> y & first) * (b & row)
            b >>= n
            y += 1
        return found

    def closure(self, a: Relation) -> Relation:
        """a+: the smallest transitive relation that contains a."""
        first, row, n = self.first, self.row, self.n
        for y in range(n):
            after = a >> y * n & row
            if after:
                a |= (a >> y & first) * after
        return a

    def inverse(self, a: Relation) -> Relation:
        n, found = self.n, 0
        for place in members(a):
            x, y = divmod(place, n)
            found |= 1 << y * n + x
        return found

    def is_irreflexive(self, a: Relation) -> bool:
        return not a & self.diagonal

    def is_acyclic(self, a: Relation) -> bool:
        return not self.closure(a) & self.diagonal

    # --- paths ---

    def shortest(self, a: Relation, start: int, goal: int) -> list[int]:
        """The events of a shortest path of one step or more from start to goal, both included; empty without one."""
        before: dict[int, int] = {}
        queue, seen = [start], 0
        for x in queue:
            for y in members(self.after(a, x) & ~seen):
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

    def cycle(self, a: Relation) -> list[int]:
        """A shortest cycle: its events, the first one again at the end; empty if the relation is acyclic."""
        found = [self.shortest(a, x, x) for x in members(self.first_of(a))]
        return min((path for path in found if path), key=len, default=[])

    def first_of(self, a: Relation) -> Events:
        """The events that have successors."""
        return sum(1 << x for x, row in enumerate(self.rows(a)) if row)
