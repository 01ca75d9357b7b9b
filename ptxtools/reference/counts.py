"""Counts of who comes to instructions: the definition of `Program.counters`."""

from __future__ import annotations

import numpy as np

from ptxtools.program.details import Counted
from ptxtools.program.program import COUNTER_WORDS, Op

from .machine import Machine
from .registry import Threads, executes


@executes("count")
def count(m: Machine, op: Op, threads: Threads) -> None:
    assert m.launch.counts is not None
    row = m.launch.counts[op.imm // (8 * COUNTER_WORDS)]
    came = np.bincount(m.warp_of[threads])
    row[0] += np.uint64((came > 0).sum())
    row[1] += np.uint64(len(threads))
    if op.of(Counted).what == "held":
        running = np.bincount(m.warp_of[m.together], minlength=len(came))
        row[2] += np.uint64(((came > 0) & (came == running[: len(came)])).sum())
