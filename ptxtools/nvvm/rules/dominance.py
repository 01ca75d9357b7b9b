"""Which blocks come before which on all ways (LLVM's "Well-Formedness")."""

from __future__ import annotations

from ptxtools.ir.dominators import NONE, DominatorTree, dominators

#: Sets of bits are worth it for so many blocks.
_MOST = 4096


def dominators_of(before: list[list[int]]) -> DominatorTree:
    """The dominators of the blocks of a body. before: the predecessors of each; the first one has none."""
    after: list[list[int]] = [[] for _ in before]
    for number, each in enumerate(before):
        for one in each:
            after[one].append(number)
    return dominators(after)


def dominators_in_order(before: list[list[int]]) -> list[int] | None:
    """For each block, a set of bits: the blocks that are on all ways to it, and itself. None if that takes more than
    one look at each block: where one has no predecessor that stands before it, where the blocks are many, or where a
    way back goes into the middle of a loop. before: the predecessors of each; the first one has none."""
    if len(before) > _MOST:
        return None
    found, back = [1], []
    for number, each in enumerate(before[1:], 1):
        common = -1
        for one in each:
            if one < number:
                common &= found[one]
            else:
                back.append((one, number))
        if common < 0:
            return None
        found.append(common | 1 << number)
    fits = all(found[number] & ~(found[one] | 1 << number) == 0 for one, number in back)
    return found if fits else None


def comes_before(tree: DominatorTree, home: int, block: int) -> bool:
    """Whether a block is on all ways to another one, which every block is if that is not reached."""
    if block and tree.parent[block] == NONE:
        return True
    return home != block and tree.dominates(home, block)
