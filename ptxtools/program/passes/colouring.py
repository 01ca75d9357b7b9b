"""Slots for the values of a function: values that are never live at the same time share one.

Linear scan over live intervals (Poletto, Sarkar 1999). Each storage class has separate slots, so that an operation
which writes while it reads never mixes lanes.
"""

from __future__ import annotations

from heapq import heappop, heappush
from typing import Protocol

from ptxtools.ir.liveness import solve
from ptxtools.program.effects import reads, successors, terminator_reads, terminator_writes, writes
from ptxtools.program.layout import align_up
from ptxtools.program.operations import READ_FIRST
from ptxtools.program.program import SLOT_BYTES, Block, LaunchConstant, Ref, Slot, Terminator
from ptxtools.records import dataclass, field

_CLASSES = ("b128", "b64", "b32", "b16", "pred")


#: The slot of a value that no operation uses.
_UNUSED = Slot(0)


class ValueTable(Protocol):
    """Facts about a function's values, by number."""

    refs: list[Ref]
    fixed: dict[int, Slot]
    outgoing: dict[int, Slot]
    constants: dict[int, int]
    launch: dict[int, tuple[str, str, int]]

    def new(self, storage: str) -> Ref:
        """Add a value."""

    def constant(self, value: int, storage: str) -> Ref:
        """The same bits in every lane."""


@dataclass(slots=True)
class Frame:
    """Bytes of the frame, bytes of its variables alone, and the slots to be filled when a frame is made."""

    size: int = 0
    variables: int = 0
    constants: list[tuple[Slot, str, int]] = field(default_factory=list)
    launch_constants: list[LaunchConstant] = field(default_factory=list)


def assign(blocks: list[Block], values: ValueTable, *, start: int, share: bool) -> Frame:
    """Give each value that occurs a slot, in place. `start`: first free byte after the fixed slots."""
    known = (values.fixed, values.outgoing, values.constants, values.launch)
    used = _used(blocks)
    variables = [n for n in sorted(used) if not any(n in table for table in known)]
    storage = [ref.type for ref in values.refs]
    if share:
        intervals = live_intervals(blocks, set(variables))
        colours = _scan(intervals, storage)
    else:
        colours = {}
        counts: dict[str, int] = {}
        for number in variables:
            colours[number] = counts.get(storage[number], 0)
            counts[storage[number]] = colours[number] + 1
    slots, size = _lay_out(colours, storage, start)
    frame = Frame(variables=size - start)
    for number in sorted(used):
        if number in values.constants or number in values.launch:
            size = align_up(size, min(64, SLOT_BYTES[storage[number]]))
            slots[number] = Slot(size)
            _describe(frame, number, Slot(size), storage[number], values)
            size += SLOT_BYTES[storage[number]]
    frame.size = align_up(size, 64)
    slots.update(values.fixed)
    slots.update((number, Slot(frame.size + slot)) for number, slot in values.outgoing.items())
    for ref in values.refs:
        ref.slot = slots.get(ref.slot, _UNUSED)
    return frame


def _describe(frame: Frame, number: int, slot: Slot, storage: str, values: ValueTable) -> None:
    if number in values.constants:
        frame.constants.append((slot, storage, values.constants[number]))
    else:
        frame.launch_constants.append(LaunchConstant(slot, storage, *values.launch[number]))


def _used(blocks: list[Block]) -> set[int]:
    used: set[int] = set()
    for block in blocks:
        for op in block.ops:
            used.update(ref.slot for ref in op.src if ref is not None)
            used.update(ref.slot for ref in op.dst if ref is not None)
            if op.guard is not None:
                used.add(op.guard.slot)
        used.update(terminator_reads(block.terminator))
        used.update(terminator_writes(block.terminator))
    return used


@dataclass(slots=True)
class Intervals:
    """For each value number: the first and last point at which it is needed (reads at even points, writes at odd ones),
    and the value whose slot it would best share."""

    first: dict[int, int]
    last: dict[int, int]
    wish: dict[int, int]


def live_intervals(blocks: list[Block], variables: set[int]) -> Intervals:
    """One interval a value, holes filled. Points count operations; a terminator counts as one."""
    live_in, live_out = block_liveness(blocks, variables)
    first: dict[int, int] = {}
    last: dict[int, int] = {}
    wish: dict[int, int] = {}
    point = 0

    def touch(number: int, at: int) -> None:
        if number in variables:
            first.setdefault(number, at)
            last[number] = at

    for block, entering, leaving in zip(blocks, live_in, live_out, strict=True):
        for number in bits(entering):
            touch(number, point)
        for op in block.ops:
            for number in reads(op):
                touch(number, point)
            written = point + 1 if op.kind in READ_FIRST else point
            for number in writes(op):
                touch(number, written)
                # A value that is written but never read needs its slot for that moment.
                last[number] = max(last.get(number, 0), point + 1)
            if op.kind == "copy" and op.dst[0] is not None and op.src[0] is not None:
                wish.setdefault(op.dst[0].slot, op.src[0].slot)
            point += 2
        for number in (*terminator_reads(block.terminator), *terminator_writes(block.terminator)):
            touch(number, point)
        for number in bits(leaving):
            touch(number, point + 1)
        point += 2
    return Intervals(first, {n: last[n] for n in first}, wish)


@dataclass(slots=True)
class Summary:
    """The values that a block reads before it writes them, and those that it writes in all lanes, as bit sets; valid
    while the block has `length` operations and this terminator."""

    length: int
    terminator: Terminator
    uses: int
    kills: int


def summarise(block: Block, variables: set[int]) -> Summary:
    """A guarded write ends no life."""
    read: set[int] = set()
    killed: set[int] = set()
    for op in block.ops:
        for ref in op.src:
            if ref is not None and ref.slot not in killed:
                read.add(ref.slot)
        if op.guard is None:
            for ref in op.dst:
                if ref is not None:
                    killed.add(ref.slot)
        elif op.guard.slot not in killed:
            read.add(op.guard.slot)
    end = block.terminator
    read.update(number for number in terminator_reads(end) if number not in killed)
    killed.update(terminator_writes(end))
    return Summary(len(block.ops), end, _bit_set(read & variables), _bit_set(killed & variables))


def _bit_set(numbers: set[int]) -> int:
    if not numbers:
        return 0
    data = bytearray((max(numbers) >> 3) + 1)
    for number in numbers:
        data[number >> 3] |= 1 << (number & 7)
    return int.from_bytes(data, "little")


def block_liveness(
    blocks: list[Block], variables: set[int], summaries: dict[int, Summary] | None = None
) -> tuple[list[int], list[int]]:
    """Live values at the start and end of each block, as bit sets. `summaries` of blocks, by identity, are kept."""
    found: list[Summary] = []
    for block in blocks:
        known = summaries.get(id(block)) if summaries is not None else None
        if known is None or known.length != len(block.ops) or known.terminator is not block.terminator:
            known = summarise(block, variables)
            if summaries is not None:
                summaries[id(block)] = known
        found.append(known)
    following = [successors(block.terminator) for block in blocks]
    return solve(following, [s.uses for s in found], [s.kills for s in found])


def live_at_lines(blocks: list[Block], variables: set[int]) -> dict[int, set[int]]:
    """Which of these values are needed from the first operation of each line on."""
    found: dict[int, set[int]] = {}
    _, leaving = block_liveness(blocks, variables)
    for block, out in zip(reversed(blocks), reversed(leaving), strict=True):
        live, end = set(bits(out)), block.terminator
        live -= set(terminator_writes(end))
        live |= variables.intersection(terminator_reads(end))
        found[end.where if end.op is None else end.op.where] = set(live)
        for op in reversed(block.ops):
            if op.guard is None:
                live -= set(writes(op))
            live |= variables.intersection(reads(op))
            found[op.where] = set(live)
    return found


def bits(mask: int) -> list[int]:
    """Numbers of the bits that are set."""
    found: list[int] = []
    base = 0
    while mask:
        chunk = mask & 0xFFFF_FFFF_FFFF_FFFF
        while chunk:
            low = chunk & -chunk
            found.append(base + low.bit_length() - 1)
            chunk ^= low
        mask >>= 64
        base += 64
    return found


def _scan(intervals: Intervals, storage: list[str]) -> dict[int, int]:
    """Colours by value number, counted from 0 in each storage class."""
    colours: dict[int, int] = {}
    free: dict[str, list[int]] = {name: [] for name in _CLASSES}
    count = dict.fromkeys(_CLASSES, 0)
    ends: list[tuple[int, int]] = []  # (last point, value)
    order = sorted(intervals.first, key=lambda n: intervals.first[n])
    for number in order:
        at = intervals.first[number]
        while ends and ends[0][0] < at:
            done = heappop(ends)[1]
            heappush(free[storage[done]], colours[done])
        name = storage[number]
        wished = colours.get(intervals.wish.get(number, -1), -1)
        pool = free[name]
        if wished >= 0 and wished in pool and storage[intervals.wish[number]] == name:
            pool.remove(wished)
            pool.sort()
            colours[number] = wished
        elif pool:
            colours[number] = heappop(pool)
        else:
            colours[number] = count[name]
            count[name] += 1
        heappush(ends, (intervals.last[number], number))
    return colours


def _lay_out(colours: dict[int, int], storage: list[str], start: int) -> tuple[dict[int, Slot], int]:
    """Slots from colours: one run of slots for each storage class, wide ones first."""
    count = dict.fromkeys(_CLASSES, 0)
    for number, colour in colours.items():
        count[storage[number]] = max(count[storage[number]], colour + 1)
    base: dict[str, int] = {}
    size = align_up(start, 64)
    for name in _CLASSES:
        base[name] = size
        size = align_up(size + count[name] * SLOT_BYTES[name], 64)
    return {n: Slot(base[storage[n]] + SLOT_BYTES[storage[n]] * c) for n, c in colours.items()}, size
