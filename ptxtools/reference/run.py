"""The loop: load CTAs, choose threads, run a block; fairness, time limits, deadlock (9.7.12, 3.1)."""

from __future__ import annotations

import time
import zlib
from collections import Counter
from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING

import numpy as np

from ptxtools.diagnostics import Trap
from ptxtools.machine.arrays import quiet
from ptxtools.machine.deadlock import above
from ptxtools.machine.launch import Launch, Outcome
from ptxtools.program.operations import weight
from ptxtools.program.program import Op

from . import clusters, compute, control, counts, events, matrix, mbarrier, memory, warp
from .deadlocks import deadlock, interrupted, looping
from .machine import GONE, Machine
from .registry import ENDINGS, EXECUTORS, Array, Threads
from .reordered import ORDERED, is_local, reordered

if TYPE_CHECKING:
    from ptxtools.machine.guides import Guide

_LOADED = (clusters, compute, control, counts, events, matrix, mbarrier, memory, warp)

#: Backward jumps of a group of threads before others get a turn: a thread may wait for another in a loop.
_TURN = 64
#: The same while checking whether the state recurs; it must recur with each of them.
_TURNS = (1, 5, 17)
#: How often lanes with a time limit may poll without a change before that is a deadlock.
_POLLS = 3
#: Rounds of turns before the first check whether the state recurs, and rounds within which it must.
_FIRST_LOOK, _STATES = 8, 24
#: The second number with time limits.
_STATES_LIMITS = 256
_STOPPED = "stopped"
#: Ends of blocks at which threads may have synchronised otherwise than through memory.
_SYNCHRONISING = ("event", "warpsync")
#: Blocks between two checks of the clock.
_CLOCK = 64


def run(launch: Launch) -> Outcome:
    """Run a grid. Raises `Trap`."""
    if launch.guide is not None:
        outcome = _followed(launch, launch.guide)
        if outcome is not None:
            return outcome
    if launch.weak:
        from .weak import WeakMemory

        launch.program = reordered(launch.program, launch.seed or 0)
        machine = Machine(launch)
        machine.weak = WeakMemory(machine, launch.seed or 0)
        return _run(machine, _Loop(machine), machine.weak.settle)
    machine = Machine(launch)
    return _run(machine, _Loop(machine))


def _followed(launch: Launch, guide: Guide) -> Outcome | None:
    """Run along an execution; None if that does not lead to an end, and then nothing has happened."""
    from .guided import Departure, Guided

    machine = Machine(launch)
    guided = Guided(machine, guide)
    loop = _Loop(machine)
    loop.executors, loop.endings = guided.executors, guided.endings
    try:
        return _run(machine, loop, guided.settle)
    except Departure as departure:
        guide.departure = str(departure)
    except Trap as trap:
        if trap.kind.is_limit:
            raise
        guide.departure = trap.reason
    return None


def _run(machine: Machine, loop: _Loop, settle: Callable[[], None] | None = None) -> Outcome:
    launch = machine.launch
    if launch.observers is not None:
        from .inspection import Inspection

        launch.inspector = Inspection(machine)
    size = machine.cluster
    launch.begun = lambda: int(getattr(machine, "started", 0)) * size  # asked by another thread while the run ends
    launch.summary = lambda: interrupted("running", machine)
    try:
        with quiet():
            loop.run()
        if settle is not None:
            settle()
        return Outcome(machine.instructions)
    except Trap:
        launch.unfinished = len(np.unique(machine.warp_of[machine.together]))
        raise
    except KeyboardInterrupt as error:  # Ctrl-C: its cause reports where all threads were
        if error.__cause__ is not None:  # a report that was being made
            raise
        raise error from interrupted(_STOPPED, machine, kind="interrupted")
    finally:
        launch.inspector = launch.begun = launch.summary = None
        machine.schedule.release()
        vars(machine).clear()  # cycles would keep the device's memory until the next garbage collection


class _Loop:
    """Threads of the deepest frame go first, and among them those at the lowest block, so that diverged threads
    reconverge.

    With a seed, the threads of a random block go first.
    """

    def __init__(self, machine: Machine) -> None:
        self.m = machine
        self.digest = self.same = self.since = 0
        self.rounds = 0
        self.look = _FIRST_LOOK
        #: States since scheduling became ordered, to detect one that recurs.
        self.turns = 0  # the length of turns being tried
        #: How often all time limits have expired in a state.
        self.expired: Counter[tuple[Hashable, ...]] = Counter()
        self.states: set[tuple[Hashable, ...]] | None = None
        self.backward = 0
        self.going: Threads | None = None
        self.steps = 0
        seed = machine.launch.seed
        self.random = None if seed is None else np.random.default_rng(seed)
        self.executors, self.endings = EXECUTORS, ENDINGS

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
        """Put waiting CTAs into free slots; returns whether any thread exists."""
        m = self.m
        alive = (m.pc != GONE).reshape(m.slots, -1).any(1)
        free = ~alive.reshape(-1, m.cluster).any(1)
        for group in np.flatnonzero(free):
            number = m.next_cluster()
            if number is None:
                break
            for rank in range(m.cluster):
                slot = int(group) * m.cluster + rank
                m.cta_of_slot[slot] = m.cta_number(number, rank)
                self._start(slot)
                alive[slot] = True
        return bool(alive.any())

    def _start(self, slot: int) -> None:
        m = self.m
        start = slot * m.padded
        threads = slice(start, start + m.block_threads)
        m.pc[threads] = m.program.functions[0].first
        m.frame[threads] = m.depth[threads] = 0
        m.blocked[threads] = m.parked[threads] = m.resting[threads] = m.at_cluster_barrier[threads] = False
        m.cluster_waiting[threads] = False
        m.stack_pointer(0)[threads] = 0
        m.top[threads] = m.local_bytes
        m.shared.bytes[slot * m.shared_stride : (slot + 1) * m.shared_stride] = 0
        for key in [key for key in m.barriers if key[0] == slot]:
            del m.barriers[key]

    def choose(self) -> Threads | None:
        """Threads of one block and frame; None if none can run."""
        m = self.m
        due = m.schedule.next_time()
        if due is not None and due <= m.now():
            m.schedule.run_due()
        able = self._able()
        if self.going is not None and able[self.going].all():
            return self.going
        while not able.any():
            if self._free() or not (m.pc != GONE).any():
                return None
            if (not m.schedule.works() and self._repeats()) or not m.schedule.jump():
                raise deadlock(m)
            able = self._able()
        ready = able & ~m.resting
        if not ready.any():  # all have had their turn
            m.resting[:] = False
            ready = able
            self._refill()
            if self._comes_back():
                raise looping(m)
        if m.weak is not None:
            first = m.weak.next_of(np.flatnonzero(ready))
        elif self.random is not None and self.states is None:
            first = int(self.random.choice(np.flatnonzero(ready)))
        else:
            first = int(np.where(ready, m.pc - (m.depth << 32), np.iinfo(np.int64).max).argmin())
        # Yielding threads go along: lanes that have met for an operation of the whole warp stay together.
        together = able & (m.pc == m.pc[first]) & (m.frame == m.frame[first])
        if m.weak is not None:  # each warp goes its own way
            together &= m.warp_of == m.warp_of[first]
        return np.flatnonzero(together)

    def _able(self) -> Array:
        """Runnable threads."""
        m = self.m
        able: Array = (m.pc != GONE) & ~m.blocked & ~m.parked
        return able

    def _comes_back(self) -> bool:
        """Whether the complete state recurs, and therefore always will: threads only poll."""
        m = self.m
        self.rounds += 1
        memory = m.launch.memory
        if self.rounds < self.look or memory.open_host or m.weak is not None:
            return False
        most = _STATES if m.schedule.next_time() is None else _STATES_LIMITS
        if self.rounds >= self.look + most or m.schedule.works():
            self.states, self.look, self.turns = None, 2 * self.rounds, 0
            return False
        if self.states is None:
            self.states, m.timed = set(), False
            self.expired.clear()
        digest = zlib.crc32(m.local.bytes.data, m.digest())
        now = zlib.crc32(memory.whole(), digest) if memory.size else digest, self.backward
        state, asleep = (*now, "for", *m.schedule.limits()), (*now, "while", *m.schedule.sleepers())
        known = state in self.states
        if asleep in self.states and not known:  # runnable threads repeat themselves until time limits expire
            self.expired[now] += 1
            known = self.expired[now] > _POLLS
            m.schedule.expire()
        self.states |= {state, asleep}
        if not known or m.timed:
            return False
        self.states, self.look = None, self.rounds
        self.turns += 1
        return self.turns == len(_TURNS)

    def _free(self) -> bool:
        """Whether a cluster can be started."""
        m = self.m
        if m.started * m.cluster >= m.ctas:
            return False
        return bool((m.pc == GONE).reshape(m.slots // m.cluster, -1).all(1).any())

    def _refill(self) -> None:
        if self._free():
            self.load()

    def _repeats(self) -> bool:
        """All threads wait, some with a time limit: whether they have polled several times without a change."""
        digest, now = self.m.digest(), self.m.now()
        if digest != self.digest or self.m.timed:
            self.m.timed = False
            self.digest, self.same, self.since = digest, 0, now
        self.same += 1
        return self.same > _POLLS and now - self.since > 2 * self.m.schedule.longest()

    def step(self, threads: Threads) -> None:
        """Run one block."""
        m = self.m
        number = int(m.pc[threads[0]])
        block = m.program.blocks[number]
        m.running, m.together = number, threads
        m.enter(number, int(m.frame[threads[0]]))
        for op in block.ops:
            if m.weak is not None and m.weak.undecided.threads:
                m.weak.undecided.before(op, threads)
            chosen = self._guarded(op, threads)
            if len(chosen):
                self.executors[op.kind](m, op, chosen)
                if m.weak is not None and op.kind not in ORDERED and not is_local(op):
                    m.weak.synchronise(chosen)
        end = block.terminator
        m.instructions += len(threads) * weight(block, number)
        if m.weak is not None and m.weak.undecided.threads:
            m.weak.undecided.before(end, threads)
        if m.weak is not None and end.op is not None and end.op.kind == "cluster_barrier":
            m.weak.cluster_barrier(end.op, threads)
        elif m.weak is not None and end.kind in _SYNCHRONISING:
            m.weak.synchronise(threads)
        self.endings[end.kind](m, end, threads)
        looked = end.op is not None and end.op.kind == "observe.access" and (m.pc[threads] == m.pc[threads[0]]).all()
        self.going = threads if looked else None  # nobody comes between an access and what is told of it
        self._take_turns(number, threads)
        self.steps += 1
        if self.steps % _CLOCK == 0 or m.launch.max_instructions is not None:
            self._check_limits()

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
            if self.backward >= (_TURN if self.states is None else _TURNS[self.turns]):
                self.backward = 0
                m.resting[threads[after <= number]] = True

    def _check_limits(self) -> None:
        m = self.m
        limit = m.launch.max_instructions
        if limit is not None and m.instructions > limit:
            raise interrupted(above(limit), m)
        if m.launch.deadline is not None and time.monotonic() > m.launch.deadline:
            raise interrupted("the time limit is over", m)
