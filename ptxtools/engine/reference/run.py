"""The loop: load CTAs, choose threads, run a block; fairness, time limits, deadlock (9.7.12, 3.1)."""

from __future__ import annotations

import time

import numpy as np

from ptxtools.diagnostics import Trap

from ..grid import Launch, Outcome
from ..program import Op
from . import compute, control, memory, warp
from .algebra import quiet
from .machine import GONE, Machine
from .registry import ENDINGS, EXECUTORS, Threads

_LOADED = (compute, control, memory, warp)

#: Backward jumps of one group of threads after which others get their turn: a thread may wait for another in a loop.
_TURN = 64
#: Blocks between two looks at the clock.
_CLOCK = 64


def run(launch: Launch) -> Outcome:
    """Run a grid. Raises `Trap`."""
    machine = Machine(launch)
    with quiet():
        _Loop(machine).run()
    return Outcome(machine.instructions)


class _Loop:
    """Threads of the deepest frame go first, and of those the ones at the lowest block: so divided threads meet.

    With a seed, the threads of a random block go first.
    """

    def __init__(self, machine: Machine) -> None:
        self.m = machine
        self.next_cta = 0
        self.backward = 0
        self.steps = 0
        seed = machine.launch.seed
        self.random = None if seed is None else np.random.default_rng(seed)

    def run(self) -> None:
        self.load()
        while True:
            threads = self.choose()
            if threads is None:
                if not self.load():
                    break
                continue
            self.step(threads)

    def load(self) -> bool:
        """Put waiting CTAs into free slots; whether any thread is there to run."""
        m = self.m
        alive = (m.pc != GONE).reshape(m.slots, -1).any(1)
        for slot in np.flatnonzero(~alive):
            if self.next_cta == m.ctas:
                break
            m.cta_of_slot[slot] = self.next_cta
            self.next_cta += 1
            start = slot * m.padded
            threads = slice(start, start + m.block_threads)
            m.pc[threads] = m.program.functions[0].first
            m.frame[threads] = m.depth[threads] = 0
            m.blocked[threads] = m.parked[threads] = m.resting[threads] = False
            m.stack_pointer(0)[threads] = 0
            for key in [key for key in m.barriers if key[0] == slot]:
                del m.barriers[key]
            alive[slot] = True
        return bool(alive.any())

    def choose(self) -> Threads | None:
        """Threads of one block and frame; None when nobody can run."""
        m = self.m
        able = (m.pc != GONE) & ~m.blocked & ~m.parked
        ready = able & ~m.resting
        if not ready.any():
            if able.any():
                m.resting[:] = False
                ready = able
                self._refill()
            else:
                if self.next_cta < m.ctas and self._free():
                    return None
                if (m.pc != GONE).any():
                    raise self._deadlock()
                return None
        if self.random is not None:
            first = int(self.random.choice(np.flatnonzero(ready)))
        else:
            first = int(np.where(ready, m.pc - (m.depth << 32), np.iinfo(np.int64).max).argmin())
        chosen = ready & (m.pc == m.pc[first]) & (m.frame == m.frame[first])
        return np.flatnonzero(chosen)

    def _free(self) -> bool:
        m = self.m
        return bool((m.pc == GONE).reshape(m.slots, -1).all(1).any())

    def _refill(self) -> None:
        if self.next_cta < self.m.ctas and self._free():
            self.load()

    def step(self, threads: Threads) -> None:
        """Run one block."""
        m = self.m
        number = int(m.pc[threads[0]])
        block = m.program.blocks[number]
        m.enter(number, int(m.frame[threads[0]]))
        for op in block.ops:
            chosen = self._guarded(op, threads)
            if len(chosen):
                EXECUTORS[op.kind](m, op, chosen)
        end = block.terminator
        m.instructions += len(threads) * (len(block.ops) + (end.kind != "jump" or end.target <= number))
        ENDINGS[end.kind](m, end, threads)
        self._take_turns(number, threads)
        self.steps += 1
        if self.steps % _CLOCK == 0:
            self._check_limits(threads[0], end.where)

    def _guarded(self, op: Op, threads: Threads) -> Threads:
        if op.guard is None:
            return threads
        flags = self.m.read(op.guard, threads)
        chosen: Threads = threads[~flags] if op.negated else threads[flags]
        return chosen

    def _take_turns(self, number: int, threads: Threads) -> None:
        m = self.m
        after = m.pc[threads]
        if (after <= number).any():
            self.backward += 1
            if self.backward >= _TURN:
                self.backward = 0
                m.resting[threads[after <= number]] = True

    def _check_limits(self, thread: int, where: int) -> None:
        m = self.m
        limit = m.launch.max_instructions
        if limit is not None and m.instructions > limit:
            raise m.trap(f"more than {limit} instructions", thread, where, kind="timeout")
        if m.launch.deadline is not None and time.monotonic() > m.launch.deadline:
            raise m.trap("the time limit is over", thread, where, kind="timeout")

    def _deadlock(self) -> Trap:
        """Everybody waits at barriers, or for lanes of a warp."""
        m = self.m
        details: list[str] = []
        where = -1
        for (slot, number), barrier in sorted(m.barriers.items()):
            came = sum(len(arrival.threads) for arrival in barrier.arrivals)
            alive = int((m.pc[slot * m.padded : (slot + 1) * m.padded] != GONE).sum())
            expected = barrier.count or alive
            cta = ",".join(map(str, m.cta_coordinates(slot)))
            details.append(f"CTA ({cta}): {came} of {expected} threads came to barrier {number}")
            where = barrier.arrivals[0].op.where if where < 0 else where
        waiting = np.flatnonzero((m.pc != GONE) & (m.blocked | m.parked))
        parked = np.flatnonzero((m.pc != GONE) & m.parked)
        if len(parked):
            details.append(f"{len(parked)} threads wait for other lanes of their warp")
            where = m.program.blocks[int(m.pc[parked[0]])].terminator.where if where < 0 else where
        return m.trap("no thread can go on", int(waiting[0]), where, kind="deadlock", details=tuple(details))
