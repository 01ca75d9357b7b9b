"""Reports of what the threads of the reference engine wait for."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from ptxtools.diagnostics import Trap
from ptxtools.machine.deadlock import PARTED, CtaLine, Waiting, asleep, in_loop, is_sleep, missing, pending, told
from ptxtools.machine.polled import Look, looks
from ptxtools.program.details import Action
from ptxtools.program.program import LANES, Ref

from .machine import GONE, Machine

if TYPE_CHECKING:
    from ptxtools.machine.residents import Wait

    from .registry import Array


def deadlock(m: Machine) -> Trap:
    """No thread can continue."""
    return _told(m, "no thread can go on", "deadlock")


def looping(m: Machine) -> Trap:
    """Threads run, but only poll values that never change."""
    return _told(m, "no thread can go on: all wait or look again", "deadlock", loops=True)


def interrupted(reason: str, m: Machine, kind: str = "timeout") -> Trap:
    """A limit was reached, or the user stopped the run."""
    return _told(m, reason, kind)


def gathered(m: Machine) -> tuple[list[CtaLine], list[Waiting]]:
    """Lines about resident CTAs, and where each warp is, of a run that goes on."""
    lines: list[CtaLine] = []
    found: list[Waiting] = []
    _gather(m, False, lines, found)
    return lines, found


def _told(m: Machine, reason: str, kind: str, *, loops: bool = False) -> Trap:
    """The locations of all threads. loops: the runnable ones only poll values that never change."""
    return told(m.program, m.launch.grid, partial(_gather, m, loops), reason, kind)


def _gather(m: Machine, loops: bool, lines: list[CtaLine], found: list[Waiting]) -> None:
    _all_waiting(m, lines, found)
    running_now = (m.pc != GONE) & ~m.blocked & ~m.parked
    for waits in m.woken.values():
        for wait in waits:
            if wait.expired:  # they only poll
                _note_wait(m, found, wait, wait.left)
                running_now[_lanes(wait.frame, wait.left)] = False
    able = np.flatnonzero(running_now)
    for block in np.unique(m.pc[able]):
        _running(m, found, able[m.pc[able] == block], int(block), loops)


def _lanes(first: int, mask: int) -> Array:
    """Threads of a warp, by its first and a mask."""
    return np.array([first + lane for lane in range(LANES) if mask >> lane & 1], np.int64)


def line_of_block(m: Machine, number: int) -> int:
    """The line of the first operation of a block."""
    block = m.program.blocks[number]
    return next((op.where for op in block.ops if op.where >= 0), block.terminator.where)


def _all_waiting(m: Machine, lines: list[CtaLine], found: list[Waiting]) -> None:
    """Add lines about CTAs and pending work, and the waiting threads."""
    for (slot, number), barrier in sorted(m.barriers.items()):
        came, expected = barrier.came, barrier.count or m.alive(slot)
        lines.append((m.cta_coordinates(slot), f"{came} of {expected} threads came to barrier {number}"))
        for arrival in barrier.arrivals:
            if arrival.op.of(Action).name != "arrive":
                what, where = f"at barrier {number}: {missing(came, expected)}", arrival.op.where
                _note(m, found, arrival.threads, what, where, for_all=not barrier.count)
    parked = np.flatnonzero((m.pc != GONE) & m.parked)
    for block in np.unique(m.pc[parked]):
        where = m.program.blocks[int(block)].terminator.where
        _note(m, found, parked[m.pc[parked] == block], PARTED, where)
    _clusters(m, found)
    for wait in m.schedule.waits():
        _note_wait(m, found, wait, wait.lanes)
    for slot in range(0, m.slots, m.cluster):
        lines += [(None, text) for text in pending(m.schedule, m.residents.known(slot))]


def _clusters(m: Machine, found: list[Waiting]) -> None:
    width = m.cluster * m.padded
    for group in np.unique(np.flatnonzero(m.cluster_waiting) // width):
        members = np.arange(group * width, (group + 1) * width)
        came = int(m.at_cluster_barrier[members].sum())
        expected = int((m.pc[members] != GONE).sum())
        waiting = members[m.cluster_waiting[members]]
        for block in np.unique(m.cluster_where[waiting]):
            chosen = waiting[m.cluster_where[waiting] == block]
            what = f"at the cluster barrier: {missing(came, expected)}"
            _note(m, found, chosen, what, int(block), for_all=True)


def _note_wait(m: Machine, found: list[Waiting], wait: Wait, mask: int) -> None:
    """Lanes of a wait of the schedule."""
    if mask and is_sleep(wait):
        seen, mask = _looks(m, wait.frame, mask, int(m.pc[_lanes(wait.frame, mask)[0]]))
        for look in seen:
            _note(m, found, _lanes(wait.frame, look.lanes), asleep(wait, look), look.where)
    _note(m, found, _lanes(wait.frame, mask), f"for {wait.text}", wait.where)


def _running(m: Machine, found: list[Waiting], threads: Array, block: int, loops: bool) -> None:
    """Runnable threads at a block, and the mbarriers that their loops wait for."""
    for warp in np.unique(threads // LANES):
        first, lanes = int(warp) * LANES, threads[threads // LANES == warp] % LANES
        seen, rest = _looks(m, first, sum(1 << lane for lane in lanes.tolist()), block)
        for look in seen:
            _note(m, found, _lanes(first, look.lanes), in_loop(look, stuck=loops), look.where, runs=not loops)
        _note(m, found, _lanes(first, rest), in_loop(None, stuck=loops), line_of_block(m, block), runs=not loops)


def _looks(m: Machine, first: int, mask: int, block: int) -> tuple[list[Look], int]:
    """The mbarriers polled by lanes of a warp at a block, and the lanes that poll none. first: number of lane 0."""
    slot = int(m.slot_of[first])

    def content(ref: Ref, lane: int) -> int:
        m.enter(block, int(m.frame[first + lane]))
        return int(m.read(ref, np.array([first + lane]))[0])

    def word(rank: int, offset: int) -> int | None:
        if rank >= m.cluster or offset + 8 > m.shared_bytes:
            return None
        at = (slot - slot % m.cluster + rank) * m.shared_stride + offset
        return int.from_bytes(m.shared.bytes[at : at + 8].tobytes(), "little")

    rank = slot % m.cluster if m.cluster > 1 else None
    return looks(m.program, block, mask, rank, content, word)


def _note(
    m: Machine, found: list[Waiting], threads: Array, what: str, where: int, *, runs: bool = False,
    for_all: bool = False,
) -> None:  # fmt: skip
    """One entry per warp."""
    for warp in np.unique(threads // LANES):
        mine = threads[threads // LANES == warp]
        lanes = sum(1 << lane for lane in (mine % LANES).tolist())
        slot = int(m.slot_of[mine[0]])
        number = int(m.thread_of[mine[0]]) // LANES
        first = m.thread_coordinates(int(mine[0]))
        found.append(Waiting(m.cta_coordinates(slot), number, lanes, what, where, first, runs, for_all))
