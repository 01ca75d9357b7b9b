"""Dominators of a graph of block numbers (Cooper, Harvey, Kennedy 2001)."""

from __future__ import annotations

from collections.abc import Sequence

from .cfg import reverse_postorder

NONE = -1


class DominatorTree:
    """`parent[b]` is the immediate dominator of block b; NONE for the root and for blocks that it does not reach."""

    __slots__ = ("_enter", "_leave", "parent", "root")

    def __init__(self, parent: list[int], root: int) -> None:
        self.parent = parent
        self.root = root
        self._enter, self._leave = _intervals(parent, root)

    def dominates(self, a: int, b: int) -> bool:
        """Whether each path from the root to b passes a; a block dominates itself. False for unreached blocks."""
        return self._enter[a] <= self._enter[b] and self._leave[b] <= self._leave[a] and self._enter[a] >= 0


def dominators(successors: Sequence[Sequence[int]], entry: int = 0) -> DominatorTree:
    """Dominator tree of the blocks that `entry` reaches."""
    order = reverse_postorder(successors, entry)
    position = [NONE] * len(successors)
    for place, node in enumerate(order):
        position[node] = place
    predecessors: list[list[int]] = [[] for _ in successors]
    for node in order:
        for successor in successors[node]:
            predecessors[successor].append(node)
    parent = [NONE] * len(successors)
    if not order:
        return DominatorTree(parent, entry)
    parent[entry] = entry
    changed = True
    while changed:
        changed = False
        for node in order[1:]:
            best = NONE
            for predecessor in predecessors[node]:
                if parent[predecessor] != NONE:
                    best = predecessor if best == NONE else _meet(predecessor, best, parent, position)
            if parent[node] != best:
                parent[node] = best
                changed = True
    parent[entry] = NONE
    return DominatorTree(parent, entry)


def _meet(a: int, b: int, parent: list[int], position: list[int]) -> int:
    while a != b:
        while position[a] > position[b]:
            a = parent[a]
        while position[b] > position[a]:
            b = parent[b]
    return a


def _intervals(parent: list[int], root: int) -> tuple[list[int], list[int]]:
    """Entry and exit times of a walk over the tree: a dominates b if a's interval holds b's."""
    count = len(parent)
    children: list[list[int]] = [[] for _ in range(count)]
    for node, above in enumerate(parent):
        if above != NONE:
            children[above].append(node)
    enter, leave = [NONE] * count, [NONE] * count
    if not count:
        return enter, leave
    clock, stack = 0, [(root, False)]
    while stack:
        node, done = stack.pop()
        if done:
            leave[node] = clock
        else:
            enter[node] = clock
            stack.append((node, True))
            stack.extend((child, False) for child in children[node])
        clock += 1
    return enter, leave
