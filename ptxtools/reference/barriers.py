"""CTA barriers: bar and barrier with numbers, thread counts, arrive and reductions (9.7.13.1)."""

from __future__ import annotations

import numpy as np

from ptxtools.program.details import Action
from ptxtools.program.program import LANES, Op
from ptxtools.records import dataclass, field

from .machine import GONE, Machine
from .registry import Array, Threads
from .views import View

BARRIERS = 16


@dataclass(slots=True)
class Arrival:
    """Threads that arrived with one instruction, in one frame; flags: their predicates for a reduction; views: what
    they publish, if memory is weak."""

    op: Op
    frame: int
    function: int
    threads: Threads
    flags: Array | None
    views: list[View]


@dataclass(slots=True)
class Barrier:
    """A barrier with arrivals. count: threads expected, or 0 for all remaining threads of the CTA; came: threads that
    have arrived or are counted with a whole warp; counted: these threads."""

    count: int
    counted: Array
    came: int = 0
    arrivals: list[Arrival] = field(default_factory=list)


def arrive(m: Machine, op: Op, threads: Threads) -> None:
    """Threads arrive at their barriers; those of sync and red wait until it is complete."""
    number_ref, count_ref, predicate = op.src
    assert number_ref is not None
    numbers = m.read(number_ref, threads).astype(np.int64)
    counts = m.read(count_ref, threads).astype(np.int64) if count_ref is not None else np.zeros(len(threads), np.int64)
    flags = m.read(predicate, threads) if predicate is not None else None
    if op.of(Action).name != "arrive":
        m.blocked[threads] = True
    slots = m.slot_of[threads]
    for slot, number in sorted({(int(s), int(n)) for s, n in zip(slots, numbers, strict=True)}):
        own = (slots == slot) & (numbers == number)
        first = threads[own][0]
        if number >= BARRIERS:
            raise m.trap(f"barrier {number} does not exist; there are {BARRIERS}", first, op.where)
        count = int(counts[own][0])
        if count % LANES or (op.of(Action).name == "arrive" and not count):
            raise m.trap(f"thread count {count} of a barrier is not a multiple of {LANES}", first, op.where)
        barrier = m.barriers.get((slot, number))
        if barrier is None:
            barrier = m.barriers[slot, number] = Barrier(count, np.zeros(m.padded, np.bool_))
        barrier.count = max(barrier.count, count)
        chosen = flags[own] if flags is not None else None
        views = m.weak.published(threads[own]) if m.weak is not None else []
        barrier.arrivals.append(Arrival(op, m.here, m.function, threads[own], chosen, views))
        barrier.came += int(own.sum())
        barrier.counted[m.thread_of[threads[own]]] = True
        _complete(m, slot, number)


def leave_barriers(m: Machine, leaving: Threads) -> None:
    """Threads that have left are not waited for."""
    slots = set(np.unique(m.slot_of[leaving]).tolist())
    for slot, number in [key for key in m.barriers if key[0] in slots]:
        _complete(m, slot, number)


def _complete(m: Machine, slot: int, number: int) -> None:
    """Release all threads if the barrier has all expected arrivals."""
    barrier = m.barriers[slot, number]
    start = slot * m.padded
    late = (m.pc[start : start + m.padded] != GONE) & ~barrier.counted
    if barrier.count:
        # A warp whose live lanes have all arrived counts in full, however many they are (9.7.13.1).
        lanes = barrier.counted.reshape(-1, LANES)
        whole = lanes.any(1) & ~late.reshape(-1, LANES).any(1)
        barrier.came += int((~lanes[whole]).sum())
        lanes[whole] = True
        if barrier.came < barrier.count:
            return
    elif bool(late.any()):
        return
    del m.barriers[slot, number]
    _reduce(m, barrier)
    for arrival in barrier.arrivals:
        if arrival.op.of(Action).name != "arrive":
            m.blocked[arrival.threads] = False
            if m.weak is not None:
                m.weak.released(arrival.threads, [view for other in barrier.arrivals for view in other.views])


def _reduce(m: Machine, barrier: Barrier) -> None:
    flags = [arrival.flags for arrival in barrier.arrivals if arrival.flags is not None]
    if not flags:
        return
    everything = np.concatenate(flags)
    here, function = m.here, m.function
    for arrival in barrier.arrivals:
        op = arrival.op
        if op.of(Action).name in ("sync", "arrive"):
            continue
        m.here, m.function = arrival.frame, arrival.function
        count = len(arrival.threads)
        if op.of(Action).name == "popc":
            m.write(op.dst[0], np.full(count, everything.sum(), np.uint32), "u32", arrival.threads)
        else:
            result = everything.all() if op.of(Action).name == "and" else everything.any()
            m.write(op.dst[0], np.full(count, result), "pred", arrival.threads)
    m.here, m.function = here, function
