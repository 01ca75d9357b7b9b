"""What the threads of the reference engine wait for."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ptxtools.diagnostics import Trap
from ptxtools.machine.deadlock import Waiting, missing, pending, report
from ptxtools.program.details import Action
from ptxtools.program.program import LANES

from .machine import GONE, Machine

if TYPE_CHECKING:
    from .registry import Array


def deadlock(m: Machine) -> Trap:
    """Nobody can go on."""
    lines, found = _all_waiting(m)
    return report(m.program, lines, found, "no thread can go on", "deadlock")


def looping(m: Machine) -> Trap:
    """Threads run, but all they do is to look at what never changes."""
    lines, found = _all_waiting(m)
    running = np.flatnonzero((m.pc != GONE) & ~m.blocked & ~m.parked)
    for block in np.unique(m.pc[running]):
        where = m.program.blocks[int(block)].terminator.where
        _note(m, found, running[m.pc[running] == block], "in a loop that changes nothing", where)
    found.sort(key=_order)
    return report(m.program, lines, found, "no thread can go on: all wait or look again", "deadlock")


def _order(one: Waiting) -> tuple[tuple[int, ...], int]:
    return one.cta[::-1], one.warp


def _all_waiting(m: Machine) -> tuple[list[str], list[Waiting]]:
    """What CTAs and pending work have to say, and who waits."""
    lines: list[str] = []
    found: list[Waiting] = []
    for (slot, number), barrier in sorted(m.barriers.items()):
        came = sum(len(arrival.threads) for arrival in barrier.arrivals)
        expected = barrier.count or m.alive(slot)
        cta = ",".join(map(str, m.cta_coordinates(slot)))
        lines.append(f"CTA ({cta}): {came} of {expected} threads came to barrier {number}")
        for arrival in barrier.arrivals:
            if arrival.op.of(Action).name != "arrive":
                _note(m, found, arrival.threads, f"at barrier {number}: {missing(came, expected)}", arrival.op.where)
    parked = np.flatnonzero((m.pc != GONE) & m.parked)
    if len(parked):
        lines.append(f"{len(parked)} threads wait for other lanes of their warp")
        for block in np.unique(m.pc[parked]):
            where = m.program.blocks[int(block)].terminator.where
            _note(m, found, parked[m.pc[parked] == block], "for other lanes of the warp", where)
    _clusters(m, found)
    for wait in m.schedule.waits():
        threads = np.array([wait.frame + lane for lane in range(LANES) if wait.lanes >> lane & 1])
        _note(m, found, threads, f"for {wait.text}", wait.where)
    for slot in range(0, m.slots, m.cluster):
        lines += pending(m.schedule, m.residents.known(slot))
    found.sort(key=_order)
    return lines, found


def _clusters(m: Machine, found: list[Waiting]) -> None:
    width = m.cluster * m.padded
    for group in np.unique(np.flatnonzero(m.cluster_waiting) // width):
        members = np.arange(group * width, (group + 1) * width)
        came = int(m.at_cluster_barrier[members].sum())
        expected = int((m.pc[members] != GONE).sum())
        waiting = members[m.cluster_waiting[members]]
        for block in np.unique(m.cluster_where[waiting]):
            chosen = waiting[m.cluster_where[waiting] == block]
            _note(m, found, chosen, f"at the cluster barrier: {missing(came, expected)}", int(block))


def _note(m: Machine, found: list[Waiting], threads: Array, what: str, where: int) -> None:
    """One entry a warp."""
    for warp in np.unique(threads // LANES):
        mine = threads[threads // LANES == warp]
        lanes = sum(1 << lane for lane in (mine % LANES).tolist())
        slot = int(m.slot_of[mine[0]])
        number = int(m.thread_of[mine[0]]) // LANES
        found.append(Waiting(m.cta_coordinates(slot), number, lanes, what, where, m.thread_coordinates(int(mine[0]))))
