"""Which words of a frame are read later: what runs need not write to slots."""

from __future__ import annotations

from ptxtools.program.operations import ENDINGS
from ptxtools.program.program import SLOT_BYTES, Op, Program, Slot, Terminator

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


def live_ends(program: Program) -> list[int]:
    """For each block, the words read after its operations, its terminator included."""
    blocks = program.blocks
    entries, ends = [0] * len(blocks), [0] * len(blocks)
    changed = True
    while changed:
        changed = False
        for number in reversed(range(len(blocks))):
            live = ends[number] = _at_end(blocks[number].terminator, entries)
            for op in reversed(blocks[number].ops):
                live = live_before(op, live)
            if live != entries[number]:
                entries[number], changed = live, True
    return ends
