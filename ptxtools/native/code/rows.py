"""Which words of a frame may depend on a lane's place in its row of threads (%tid.x): a guess where accesses go.

What depends on nothing of the sort is mostly the same in half a warp or more, as indices of rows of a matrix are.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce

from ptxtools.program.details import Run, SpecialRegister
from ptxtools.program.operations import LANE_ACCESS, LANEWISE
from ptxtools.program.program import Op, Program

from .live_words import words_of

#: Special registers that differ along a row.
_ALONG = ("%tid.x", "%laneid", "%lanemask")


def along(op: Op, words: int) -> int:
    """The words behind an operation, from those in front of it."""
    if op.kind == "sreg":
        depends = op.of(SpecialRegister).name.startswith(_ALONG)
    elif op.kind in LANEWISE or op.kind in LANE_ACCESS:
        refs = (*op.src[:1], op.guard) if op.kind in LANE_ACCESS else (*op.src, op.guard)
        depends = any(ref is not None and words_of(ref.slot, ref.type) & words for ref in refs)
    else:
        depends = True
    for ref in op.dst:
        if ref is not None and depends:
            words |= words_of(ref.slot, ref.type)
        elif ref is not None and op.guard is None:
            words &= ~words_of(ref.slot, ref.type)
    return words


def behind(ops: Iterable[Op], words: int) -> int:
    """The words behind several operations."""
    return reduce(lambda so_far, op: along(op, so_far), ops, words)


def along_rows(program: Program) -> list[int]:
    """Such words at the start of each block; what lanes do in different blocks is left out."""
    blocks = program.blocks
    entries = [0] * len(blocks)
    todo = list(range(len(blocks)))
    while todo:
        number = todo.pop()
        words = behind(blocks[number].ops, entries[number])
        end = blocks[number].terminator
        for target in (end.target, end.other, *end.targets):
            if target >= 0 and words & ~entries[target]:
                entries[target] |= words
                todo.append(target)
    return entries


def likely_points(run: Run) -> set[int]:
    """Numbers of a run's operands that are mostly the same in half a warp."""
    points = set(run.points)
    for step in run.steps:
        if step.space or (step.kind == "sreg" and step.detail.name.startswith(_ALONG)):
            continue
        if all(number in points or number < 0 for number, _, _ in step.sources):
            points |= {number for number, _, _ in step.targets}
    return points
