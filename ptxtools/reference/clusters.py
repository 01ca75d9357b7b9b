"""The barrier of a cluster (9.7.13.3), and the effect of exiting threads on a cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ptxtools.program.details import Action
from ptxtools.program.program import Op

from .registry import Threads

if TYPE_CHECKING:
    from .machine import Machine


def cluster_barrier(m: Machine, op: Op, threads: Threads) -> None:
    """Arrive; or wait for the completion of the phase in which the threads arrived."""
    if op.of(Action).name == "wait":
        waiting = threads[m.at_cluster_barrier[threads]]
        m.blocked[waiting] = m.cluster_waiting[waiting] = True
        m.cluster_where[waiting] = op.where
        return
    m.at_cluster_barrier[threads] = True
    for group in _clusters(m, threads):
        _complete(m, group)


def leave_clusters(m: Machine, leaving: Threads) -> None:
    """Exited threads are not waited for; notify listeners that a CTA has ended."""
    m.at_cluster_barrier[leaving] = False
    for group in _clusters(m, leaving):
        _complete(m, group)
    for slot in np.unique(m.slot_of[leaving]).tolist():
        if not m.alive(slot):
            m.residents.ended(slot)


def _clusters(m: Machine, threads: Threads) -> list[int]:
    found: list[int] = np.unique(m.slot_of[threads] // m.cluster).tolist()
    return found


def _complete(m: Machine, group: int) -> None:
    """Open the barrier of a cluster if all its live threads have arrived."""
    from .machine import GONE

    width = m.cluster * m.padded
    threads = np.arange(group * width, (group + 1) * width)
    came = m.at_cluster_barrier[threads]
    if came.any() and not ((m.pc[threads] != GONE) & ~came).any():
        m.at_cluster_barrier[threads] = False
        waiting = threads[m.cluster_waiting[threads]]
        m.blocked[waiting] = m.cluster_waiting[waiting] = False


__all__ = ["cluster_barrier", "leave_clusters"]
