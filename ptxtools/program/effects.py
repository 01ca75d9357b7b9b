"""Reads, writes and successors of operations and terminators, for the passes over a program."""

from __future__ import annotations

from .program import Block, Op, Terminator


def reads(op: Op) -> list[int]:
    """Values that an operation reads, guard included; a guarded write keeps the old value in the other lanes."""
    found: list[int] = [ref.slot for ref in op.src if ref is not None]
    if op.guard is not None:
        found.append(op.guard.slot)
    return found


def writes(op: Op) -> list[int]:
    return [ref.slot for ref in op.dst if ref is not None]


def terminator_reads(end: Terminator) -> list[int]:
    found = reads(end.op) if end.op is not None else []
    if end.guard is not None:
        found.append(end.guard.slot)
    if end.index is not None:
        found.append(end.index.slot)
    return found


def terminator_writes(end: Terminator) -> list[int]:
    return writes(end.op) if end.op is not None else []


def successors(end: Terminator) -> list[int]:
    """Blocks of the same function that may come next (for a call: after its return)."""
    if end.kind == "switch":
        return list(dict.fromkeys(end.targets))
    return [block for block in dict.fromkeys((end.target, end.other)) if block >= 0]


def predecessors(blocks: list[Block]) -> list[list[int]]:
    """For each block, those that may precede it."""
    found: list[list[int]] = [[] for _ in blocks]
    for number, block in enumerate(blocks):
        for following in successors(block.terminator):
            found[following].append(number)
    return found
