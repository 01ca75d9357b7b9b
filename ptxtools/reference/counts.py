"""Counts of who comes to instructions: the definition of `Program.counters`."""

from __future__ import annotations

import numpy as np

from ptxtools.machine.measures import passes, sectors
from ptxtools.program.details import Counted, Measured
from ptxtools.program.program import COUNTER_BYTES, LANES, SHARED_WINDOW, Op

from .machine import Machine
from .memory import addresses
from .registry import Threads, executes


@executes("measure")
def measure(m: Machine, op: Op, threads: Threads) -> None:
    """Warp by warp, in the order of their numbers."""
    assert m.launch.counts is not None and m.launch.cache is not None
    detail = op.of(Measured)
    row = m.launch.counts[detail.row // COUNTER_BYTES]
    address = addresses(m, op, threads)
    lanes = m.thread_of[threads] % LANES
    mine = lanes < detail.lanes
    if op.space == "generic":
        mine &= address >> np.uint64(56) == np.uint64(SHARED_WINDOW >> 56 if detail.space == "shared" else 0)
    for warp in np.unique(m.warp_of[threads[mine]]):
        here = mine & (m.warp_of[threads] == warp)
        if detail.space == "shared":
            found = passes(lanes[here], address[here], detail.size)
        else:
            touched = sectors(address[here])
            found = len(touched), m.launch.cache.look_up(touched, detail.writes)
        row += np.array([1, here.sum(), *found], np.uint64)


@executes("count")
def count(m: Machine, op: Op, threads: Threads) -> None:
    assert m.launch.counts is not None
    row = m.launch.counts[op.of(Counted).row // COUNTER_BYTES]
    came = np.bincount(m.warp_of[threads])
    row[0] += np.uint64((came > 0).sum())
    row[1] += np.uint64(len(threads))
    if op.of(Counted).what == "held":
        running = np.bincount(m.warp_of[m.together], minlength=len(came))
        row[2] += np.uint64(((came > 0) & (came == running[: len(came)])).sum())
