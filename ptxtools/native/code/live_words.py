"""Which words of a frame are read later: what runs need not write to slots."""

from __future__ import annotations

from ptxtools.program.operations import ENDINGS
from ptxtools.program.program import SLOT_BYTES, Block, Op, Program, Slot, Terminator

#: Slot and storage class.
Key = tuple[Slot, str]
#: All words of any frame.
EVERYTHING = -1


def words_of(slot: Slot, storage: str) -> int:
    """The 4-byte words of a slot as a set of bits."""
    return ((1 << SLOT_BYTES[storage] // 4) - 1) << (slot // 4)


def live_before(op: Op, live: int) -> int:
    """Words read at or after an operation, from those read after it."""
    if op.guard is None:
        for ref in op.dst:
            if ref is not None:
                live &= ~words_of(ref.slot, ref.type)
    for ref in (*op.src, op.guard):
        if ref is not None:
            live |= words_of(ref.slot, ref.type)
    return live


def _at_end(end: Terminator, entries: list[int]) -> int:
    """Words read at or after a terminator; `entries`: words read at or after the start of each block."""
    if ENDINGS[end.kind].returns:  # results and arguments are in these slots, or in frames that overlap them
        return EVERYTHING
    live = 0
    for target in (end.target, end.other, *end.targets):
        if target >= 0:
            live |= entries[target]
    if end.op is not None:
        live = live_before(end.op, live)
    for ref in (end.guard, end.index):
        if ref is not None:
            live |= words_of(ref.slot, ref.type)
    return live


def _through(block: Block) -> tuple[int, int]:
    """Words that a block's operations read before they write them, and those that they write before."""
    reads = writes = 0
    for op in reversed(block.ops):
        reads = live_before(op, reads)
        if op.guard is None:
            for ref in op.dst:
                if ref is not None:
                    writes |= words_of(ref.slot, ref.type)
    return reads, writes


def live_ends(program: Program) -> list[int]:
    """For each block, the words read after its operations, its terminator included."""
    blocks = program.blocks
    through = [_through(block) for block in blocks]
    entries, ends = [0] * len(blocks), [0] * len(blocks)
    changed = True
    while changed:
        changed = False
        for number in reversed(range(len(blocks))):
            live = ends[number] = _at_end(blocks[number].terminator, entries)
            reads, writes = through[number]
            live = reads | (live & ~writes)
            if live != entries[number]:
                entries[number], changed = live, True
    return ends
