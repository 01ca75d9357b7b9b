"""Contents of slots that blocks of a kernel in unison take over in registers (`unison`): stored vectors take long to be
loaded again."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from ptxtools.native.code.handler import ELEMENT
from ptxtools.native.code.live_words import Key
from ptxtools.native.code.unison import Stage, grouped, runs_of
from ptxtools.program.details import Run

#: Slots that a block takes over from the blocks before it, at most: each is two registers or more.
MOST = 6


def kind(storage: str) -> str:
    """The type of a slot's contents, "" of those that are never at hand."""
    return "i32" if storage == "pred" else f"<32 x {ELEMENT[storage]}>" if storage in ELEMENT else ""


def next_blocks(stage: Stage) -> set[int]:
    """The blocks that lanes go on at without a look at others."""
    if stage.kind == "branch":
        return {stage.target, stage.other}
    return {stage.target} if stage.kind == "jump" else {stage.other} if stage.kind == "warpsync" else set()


def carried(stages: Sequence[Stage], constants: Collection[Key]) -> list[list[Key]]:
    """For each block, the slots that it reads first and that a block before it has just written. Blocks without parts
    hand on what they are given."""
    after = [next_blocks(stage) for stage in stages]
    before = [{at for at, blocks in enumerate(after) if number in blocks} for number in range(len(stages))]

    def ends(number: int, seen: set[int], near: list[set[int]], *, first: bool) -> list[Run]:
        """What the first or the last part of a block does; of one without parts, those of the blocks near it."""
        parts = stages[number].parts
        if parts:
            return list(runs_of(next(grouped(parts))[:1] if first else parts[-1:]))
        fresh = near[number] - seen
        seen |= fresh
        return [run for other in sorted(fresh) for run in ends(other, seen, near, first=first)]

    found: list[list[Key]] = []
    for number in range(len(stages)):
        read = {key[1:] for run in ends(number, {number}, after, first=True) for key in run.read}
        seen = {number}
        written = {
            key[1:]
            for block in sorted(before[number])
            for run in ends(block, seen | {block}, before, first=False)
            for key in run.kept
            if kind(key[2])
        }
        found.append(sorted((read & written) - set(constants))[:MOST])
    return found
