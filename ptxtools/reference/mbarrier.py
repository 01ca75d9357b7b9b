"""mbarrier operations: all lanes are served by event functions (9.7.13.15)."""

from __future__ import annotations

import numpy as np

from ptxtools.program.program import Op

from .machine import Machine
from .registry import Threads, executes


@executes("mbarrier")
def mbarrier(m: Machine, op: Op, threads: Threads) -> None:
    m.write(op.dst[-1], np.ones(len(threads), np.bool_), "pred", threads)


@executes("mbarrier.yield")
def give_way(m: Machine, op: Op, threads: Threads) -> None:
    """The lanes wait in the event that follows."""
