"""Which blocks come before which on all ways (LLVM's "Well-Formedness")."""

from __future__ import annotations

from ptxtools.ir.dominators import NONE, DominatorTree, dominators


def dominators_of(before: list[list[int]]) -> DominatorTree:
    """The dominators of the blocks of a body. before: the predecessors of each; the first one has none."""
    after: list[list[int]] = [[] for _ in before]
    for number, each in enumerate(before):
        for one in each:
            after[one].append(number)
    return dominators(after)


def comes_before(tree: DominatorTree, home: int, block: int) -> bool:
    """Whether a block is on all ways to another one, which every block is if that is not reached."""
    if block and tree.parent[block] == NONE:
        return True
    return home != block and tree.dominates(home, block)
