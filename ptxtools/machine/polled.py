"""mbarriers polled by loops, for reports about threads that run or sleep in such a loop."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeAlias

from ptxtools.diagnostics import shown
from ptxtools.program import effects
from ptxtools.program import mbarrier as word
from ptxtools.program.details import Action
from ptxtools.program.program import LANES, OFFSET_MASK, RANK_SHIFT, SHARED_WINDOW, SLOT_BYTES, Op, Program, Ref
from ptxtools.records import dataclass

#: The content of a 32- or 64-bit slot for a lane.
Content: TypeAlias = Callable[[Ref, int], int]
#: The 64-bit word at an offset of the shared memory of the CTA with a rank in the cluster; None: there is none.
Word: TypeAlias = Callable[[int, int], int | None]


def phase_text(program: Program, place: str, offset: int, value: int) -> str:
    """An mbarrier and its state: "the mbarrier at shared 0x40 (full), phase 0: 3 of 4 arrivals came, 1 missing".

    place: where it is, as in "shared 0x40"; offset: the same as a number.
    """
    for name, at, size in program.shared:
        if at <= offset < at + size:
            place += f" ({shown(name)}{f'+{offset - at}' if offset > at else ''})"
    return f"the mbarrier at {place}, {word.describe(value)}"


@dataclass(frozen=True, slots=True)
class Look:
    """Lanes that poll an mbarrier with an incomplete phase; where: line of the operation."""

    lanes: int
    text: str
    where: int


def looks(
    program: Program, block: int, lanes: int, rank: int | None, content: Content, read: Word
) -> tuple[list[Look], int]:
    """The mbarriers that lanes at a block poll in the surrounding loops, and the lanes that poll none.

    Only waits whose address and phase the loop does not change are used: their slots then keep the values from the
    start of the loop, wherever in it the lanes are. rank: of their CTA in its cluster, or None where there are no
    clusters.
    """
    found: dict[tuple[str, int], int] = {}
    for op in _waits_around(program, block):
        for lane in range(LANES):
            if lanes >> lane & 1:
                text = _missing(program, op, lane, rank, content, read)
                if text:
                    found[text, op.where] = found.get((text, op.where), 0) | 1 << lane
                    lanes &= ~(1 << lane)
    return [Look(who, text, where) for (text, where), who in found.items()], lanes


def _missing(program: Program, op: Op, lane: int, rank: int | None, content: Content, read: Word) -> str:
    """The mbarrier that a lane's wait is for, if its phase is not complete."""
    base, wanted = op.src[:2]
    address = op.imm + (content(base, lane) if base is not None else 0)
    if op.space == "generic" and address >> 56 != SHARED_WINDOW >> 56:
        return ""
    offset, owner = address & OFFSET_MASK, (address & 0xFFFF_FFFF) >> RANK_SHIFT
    if not program.clustered:
        owner = rank or 0
    value = read(owner, offset) if offset % 8 == 0 else None
    assert wanted is not None
    phase = content(wanted, lane) >> (0 if op.of(Action).name.endswith("parity") else word.PHASE_SHIFT) & 1
    if value is None or word.phase(value) != phase:
        return ""
    place = f"shared {offset:#x}"
    return phase_text(program, place if rank is None else f"{place} of CTA rank {owner}", offset, value)


def _waits_around(program: Program, block: int) -> list[Op]:
    """Waits in the loops around a block, innermost loop first."""
    known: dict[int, list[Op]] = program.cache.setdefault("polled", {})
    if block not in known:
        known[block] = [op for loop in reversed(_loops(program, block)) for op in _waits(program, loop)]
    return known[block]


def _waits(program: Program, loop: set[int]) -> Iterator[Op]:
    """Waits for mbarriers in a loop that does not change their operands."""
    blocks = [program.blocks[number] for number in sorted(loop)]
    changed = [ref for block in blocks for op in block.ops for ref in op.dst if ref is not None]
    changed += [ref for block in blocks if block.terminator.op is not None for ref in block.terminator.op.dst if ref]
    for block in blocks:
        for op in block.ops:
            if op.kind != "mbarrier" or "_wait" not in op.of(Action).name:
                continue
            if not any(_overlap(ref, other) for ref in op.src[:2] if ref is not None for other in changed):
                yield op


def _overlap(one: Ref, other: Ref) -> bool:
    return one.slot < other.slot + SLOT_BYTES[other.type] and other.slot < one.slot + SLOT_BYTES[one.type]


def _loops(program: Program, block: int) -> list[set[int]]:
    """The loops around a block, as sets of blocks, the outermost first."""
    following = [effects.successors(one.terminator) for one in program.blocks]
    before = effects.predecessors(program.blocks)
    found: list[set[int]] = []
    inside = set(range(len(program.blocks)))
    while True:
        loop = _reached(block, following, inside) & _reached(block, before, inside)
        if not loop:
            return found
        found.append(loop)
        entries = {number for number in loop if not loop.issuperset(before[number])}
        if block in entries or not entries:
            return found
        inside = loop - entries


def _reached(block: int, edges: list[list[int]], inside: set[int]) -> set[int]:
    """Blocks that one or more edges lead to."""
    found: set[int] = set()
    queue = [block]
    while queue:
        for number in edges[queue.pop()]:
            if number in inside and number not in found:
                found.add(number)
                queue.append(number)
    return found
