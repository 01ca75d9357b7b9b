"""Block layout: jumps to jumps, constant branches, blocks that only continue another, unreachable blocks."""

from __future__ import annotations

from collections.abc import Mapping

from ptxtools.program.effects import predecessors, successors
from ptxtools.program.operations import ENDINGS
from ptxtools.program.program import Block, Terminator


def tidy(blocks: list[Block], constants: Mapping[int, int]) -> list[Block]:
    """The same function in as few blocks as possible, in the same order, renumbered. `constants`: by value."""
    _fold_branches(blocks, constants)
    _thread_jumps(blocks)
    _fold_branches(blocks, constants)  # both ways may now lead to one block
    _merge(blocks)
    return renumber(blocks)


def _fold_branches(blocks: list[Block], constants: Mapping[int, int]) -> None:
    """A branch on a constant, or with equal targets, becomes a jump."""
    for block in blocks:
        end = block.terminator
        if end.kind == "branch" and end.guard is not None:
            known = constants.get(end.guard.slot)
            if known is not None:
                taken = bool(known) is not end.negated
                block.terminator = Terminator("jump", target=end.target if taken else end.other, where=end.where)
            elif end.target == end.other:
                block.terminator = Terminator("jump", target=end.target, where=end.where)


def _thread_jumps(blocks: list[Block]) -> None:
    """Skip empty blocks that only jump."""
    final = list(range(len(blocks)))
    for number in range(len(blocks)):
        seen = {number}
        at = number
        while not blocks[at].ops and blocks[at].terminator.kind == "jump":
            at = blocks[at].terminator.target
            if at in seen:  # an endless loop of empty blocks stays
                break
            seen.add(at)
        final[number] = at
    for block in blocks:
        end = block.terminator
        if end.target >= 0:
            end.target = final[end.target]
        if end.other >= 0:
            end.other = final[end.other]
        if end.kind == "switch":
            end.targets = tuple(final[target] for target in end.targets)


def _merge(blocks: list[Block]) -> None:
    """Append a block to its only predecessor that jumps to it. A block where lanes can wait stays empty."""
    incoming = predecessors(blocks)
    reached = _reached(blocks)
    counts = [sum(p in reached for p in sources) for sources in incoming]
    for number in sorted(reached):
        block = blocks[number]
        while block.terminator.kind == "jump":
            following = block.terminator.target
            after = blocks[following]
            if following in (number, 0) or counts[following] != 1 or ENDINGS[after.terminator.kind].waits:
                break
            block.ops.extend(after.ops)
            block.terminator = after.terminator
            after.ops, after.terminator = [], Terminator("exit")
            counts[following] = 0


def _reached(blocks: list[Block]) -> set[int]:
    reached = {0}
    waiting = [0]
    while waiting:
        for following in successors(blocks[waiting.pop()].terminator):
            if following not in reached:
                reached.add(following)
                waiting.append(following)
    return reached


def renumber(blocks: list[Block]) -> list[Block]:
    """Drop unreachable blocks."""
    kept = sorted(_reached(blocks))
    numbers = {old: new for new, old in enumerate(kept)}
    for old in kept:
        end = blocks[old].terminator
        if end.target >= 0:
            end.target = numbers[end.target]
        if end.other >= 0:
            end.other = numbers[end.other]
        if end.kind == "switch":
            end.targets = tuple(numbers[target] for target in end.targets)
    return [blocks[old] for old in kept]
