"""Lanes that look again and again at what never changes: a deadlock that is no waiting.

Where nobody can move but some waits have a time limit, time jumps from limit to limit; when that has changed nothing
for a while, it never will. Where warps run, but only look, the state of a worker repeats: a state that has been there
before, with the same device memory, comes back for ever. Several workers may look at each other's work, so each says
what memory it found; only when all that have not finished say the same is it over.

Who sleeps or has a time limit while others run does not keep that from being found: how much of it is left belongs to
the state. Once those that run only repeat themselves, time jumps to where all limits are over; when that has led to the
same several times, it always will. Where somebody reads a clock nothing is concluded: what comes back then may depend
on the time.

Looking at all states all the time would cost too much: first one CTA has to come back, which those that work never do,
then all have to. For as long as that takes all have turns of the same length, one after the other, even in shuffled
runs; and they have to come back with turns of several lengths, so that another order would not help. In a shuffled run,
and in one that a debugger repeats, it depends on what has been executed, never on the clock, when that is done: the
same seed still gives the same run.
"""

from __future__ import annotations

import math
import time
import zlib
from collections import Counter
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING

from ptxtools.native.code.structures import CTA, WARP
from ptxtools.program.program import LANES

if TYPE_CHECKING:
    from .pool import Seat
    from .worker import Worker

#: How often lanes that wait with a time limit look again and find the same before that is a deadlock.
_LOOKS = 3
#: Rounds of the resident CTAs in which the state of one has to come back; times, at least and at most, that all are
#: looked at then, and bytes that are looked at beyond the least.
_ROUNDS = 200
_LEAST, _MOST, _BYTES = 4, 64, 256 << 20
#: Bytes that are looked at in a second, and seconds that one turn of a CTA takes, roughly; and what share of the time
#: may go into that.
_SPEED, _TURN, _SHARE = 1 << 30, 5e-6, 4
#: Seconds that a quantum of a shuffled run counts as.
_QUANTUM_SECONDS = 0.04
#: Records of a warp's turn, with each of which everything has to come back; of one: until the next branch.
_SLICES = (1, 61, 509)
#: Times at most that all are looked at where there are time limits.
_LIMITS = 256
#: Rounds in which those that look again fall asleep again.
_DOZE = 48
#: Frames that are reckoned with where nobody knows how deep calls go.
_FRAMES = 16


class Hang(Exception):  # noqa: N818 - no error of ours
    """A run cannot, or may not, go on. When all workers have stopped `hangs.report` makes a trap of it.

    loops: threads that run only look at what never changes.
    """

    def __init__(self, kind: str, reason: str, *, loops: bool = False) -> None:
        self.kind, self.reason, self.loops = kind, reason, loops
        super().__init__(reason)


def stuck() -> Hang:
    """Nobody in a cluster can move, and nothing is pending there."""
    return Hang("deadlock", "no thread can go on")


def looping() -> Hang:
    """Warps run, but all they do is to look at what never changes."""
    return Hang("deadlock", "no thread can go on: all wait or look again", loops=True)


def interrupted(reason: str) -> Hang:
    """A limit was reached."""
    return Hang("timeout", reason)


class Polls:
    """What workers know of each other. count: how many there are; seats: of those that finish without Python; idle:
    checksum of device memory as those saw it that can only look again."""

    def __init__(self, count: int) -> None:
        self.count, self.finished = count, 0
        self.seats: list[Seat] = []
        self.idle: dict[int, int] = {}

    def renew(self, seats: list[Seat]) -> None:
        """All have something to do again."""
        self.finished, self.seats, self.idle = 0, seats, {}

    @property
    def live(self) -> int:
        """Workers that have not finished."""
        return self.count - self.finished - sum(seat.ended_natively for seat in self.seats)

    def finish(self, number: int) -> None:
        """A worker has."""
        self.finished += 1
        self.idle.pop(number, None)

    def settled(self, number: int, memory: int, live: int) -> bool:
        """This worker can only look again: whether that holds for all, with one and the same memory.

        live: workers that had not finished before the worker looked at the memory; one that has since may have left an
        answer there.
        """
        self.idle[number] = memory
        found = list(self.idle.values())
        return live == self.live and len(found) >= live and len(set(found)) == 1


class Watch:
    """What one worker has seen of its own state."""

    def __init__(self, worker: Worker, polls: Polls) -> None:
        self.worker, self.polls = worker, polls
        self.seen = self.since = self.looks = 0
        #: Workers that had not finished at the last look: what one wrote before it finished must be looked at anew.
        self.live = 0
        #: Others must act before anything here can change.
        self.rests = False
        #: Since the last look at warps that run, nobody could and nothing had changed.
        self.quiet = False
        #: It is just being looked whether everything comes back; and clusters that had started when that began.
        self.looking = False
        self.started = 0
        #: Clusters that had started when it was last asked.
        self.begun = 0
        #: When the worker began, and when it may look again at what it waits for; and where no clock may decide that,
        #: after how many more times that it could.
        self.began = self.next = worker.began
        #: Until when a state that comes back is looked for; none has to where that takes longer than it should.
        self.until = math.inf
        self.skips = 0

    @cached_property
    def has_local(self) -> bool:
        """Whether local memory means something."""
        from .worker import has_local

        return has_local(self.worker.launch.program)

    @cached_property
    def biggest(self) -> int:
        """Bytes of the biggest frame."""
        return max(function.frame_bytes for function in self.worker.launch.program.functions)

    @cached_property
    def bytes(self) -> int:
        """Bytes of a CTA that mean something, roughly."""
        shape = self.worker.shape
        frames = min(shape.frames, _FRAMES * self.biggest)
        return shape.warps_offset + shape.warps * (WARP.size + frames + self.has_local * shape.local_warp)

    @property
    def timed(self) -> bool:
        """Whether the clock may decide when to look."""
        return self.worker.launch.seed is None and not self.worker.gated

    def only_waits(self) -> bool:
        """Nobody here can move, but some look again now and then: whether that never changes anything."""
        worker, began = self.worker, time.monotonic()
        if self.looking:
            return False
        if began < self.next if self.timed else self.skips:
            self.skips -= not self.timed
            return False
        live = self.polls.live
        digest, now = self._digest(), worker.schedule.now()
        ended = time.monotonic()
        self.next = ended + _SHARE * (ended - began)
        self.skips = int(_SHARE * worker.get("slot_used") * self.bytes / _SPEED / _TURN)
        if digest != self.seen or live != self.live or worker.get("timed"):
            worker.set("timed", 0)
            self.seen, self.since, self.looks, self.live = digest, now, 0, live
            self.polls.idle.pop(worker.number, None)
            return False
        self.looks += 1
        self.quiet = True
        if self.looks < _LOOKS or now - self.since <= 2 * worker.schedule.longest():
            return False
        if live == 1:
            return True
        self.rests = True
        return self.looks & (self.looks - 1) == 0 and self.polls.settled(worker.number, self._memory(), live)

    def only_looks(self, quanta: int, check: Callable[[], bool]) -> bool:
        """Warps run: whether their state comes back, and so for ever. Runs them for a while to find out.

        quanta: what the worker has executed; check: called now and then, true to give up.
        """
        worker, live = self.worker, self.polls.live
        memory = worker.launch.memory
        quiet, self.quiet = self.quiet, False
        if quiet or memory.open_host or worker.schedule.works():  # `only_waits` will tell; something will happen
            return False
        ctas, begun, self.begun = worker.get("slot_used"), self.begun, self._started()
        if self.begun > max(begun, ctas // worker.shape.cluster):  # some came after others had left: a round is dear
            return False
        everything = ctas * self.bytes + memory.size
        looks = max(_LEAST, min(_MOST, _BYTES // everything))
        cost = (_ROUNDS * self.bytes + _LEAST * everything) / _SPEED + _ROUNDS * ctas * _TURN
        spent = time.monotonic() - self.began if self.timed else quanta * _QUANTUM_SECONDS
        if spent < _SHARE * cost:
            return False
        if worker.schedule.next_time() is not None:
            looks = max(looks, min(_LIMITS, int(spent * _SPEED / _SHARE) // everything))
        found: int | None = None
        self.until = time.monotonic() + spent / _SHARE if self.timed else math.inf
        with self._in_order():
            for length in _SLICES:
                worker.set("warp_slice", length)
                found = self._comes_back(looks, check)
                if found is None:
                    self.polls.idle.pop(worker.number, None)
                    return False
            self._fall_asleep(check)
        return found is not None and self.polls.settled(worker.number, found, live)

    def _fall_asleep(self, check: Callable[[], bool]) -> None:
        """Nothing will ever change: go on to where as many wait as ever, so that the report can tell what for."""
        sleepers, most = self.worker.schedule.sleepers, 0
        for _ in range(_DOZE):
            most = max(most, len(sleepers()))
            if self._round(check):
                return
        for _ in range(_DOZE):
            if len(sleepers()) >= most or self._round(check):
                return

    @contextmanager
    def _in_order(self) -> Iterator[None]:
        """CTAs have one turn after the other, and so have their warps, whatever the seed."""
        worker = self.worker
        kept = {name: worker.get(name) for name in ("random", "warp_slice", "cta_slice")}
        worker.set("random", 0)
        worker.set("cta_slice", 1)
        self.looking, self.started = True, self._started()
        try:
            yield
        finally:
            self.looking = False
            for name, value in kept.items():
                worker.set(name, value)

    def _comes_back(self, looks: int, check: Callable[[], bool]) -> int | None:
        """Run until the state of everything has been there before: checksum of device memory; None if it never is."""
        period = None if self._round(check) else self._period(check)  # the round ends where all CTAs have had a turn
        if period is None:
            return None
        worker, schedule = self.worker, self.worker.schedule
        worker.set("timed", 0)
        known: set[tuple[Hashable, ...]] = set()
        expired: Counter[tuple[Hashable, ...]] = Counter()
        for _ in range(looks):
            if schedule.works():
                return None
            memory = self._memory()
            now = (memory, *self._state())
            state = (*now, "for", *schedule.limits())
            if state in known:
                return None if worker.get("timed") else memory
            known.add(state)
            asleep = (*now, "while", *schedule.sleepers())
            if asleep in known:
                expired[now] += 1
                if expired[now] > _LOOKS:
                    return None if worker.get("timed") else memory
                schedule.expire()
            known.add(asleep)
            if any(self._round(check) for _ in range(period)):
                return None
        return None

    def _period(self, check: Callable[[], bool]) -> int | None:
        """Rounds after which the first CTA that can move is as it was, or None."""
        running = self._running()
        if not running:
            return None
        first = next((at for at in running if self.worker.field(at, CTA, "ready")), running[0])
        seen = {self._cta_state(first): 0}
        for number in range(1, _ROUNDS):
            if self._round(check) or time.monotonic() > self.until:
                return None
            before = seen.setdefault(self._cta_state(first), number)
            if before != number:
                return number - before
        return None

    def _round(self, check: Callable[[], bool]) -> bool:
        """Give every CTA that can move a turn; true when there is no use in going on, as work still starts."""
        worker = self.worker
        while True:
            before = worker.get("slot_current")
            if worker.step(1) or check():
                return True
            if worker.get("slot_current") <= before:
                return self._started() != self.started

    def _started(self) -> int:
        """Clusters that some worker has taken, but for those that this one has claimed and not begun."""
        worker = self.worker
        return worker.tables.parts.taken - worker.claimed

    def _memory(self) -> int:
        memory = self.worker.launch.memory
        return zlib.crc32(memory.whole()) if memory.size else 0

    def _running(self) -> list[int]:
        worker = self.worker
        slots = [worker.slot_offset(slot) for slot in range(worker.get("slot_used"))]
        return [at for at in slots if worker.field(at, CTA, "state") == 1]

    def _warps(self, at: int) -> Iterator[int]:
        shape = self.worker.shape
        return (at + shape.warps_offset + number * shape.warp_bytes for number in range(shape.warps))

    def _state(self) -> tuple[int, ...]:
        """All that decides what this worker does next, but for device memory and time limits."""
        worker = self.worker
        ctas = (self._cta_state(at) for at in self._running())
        woken = zlib.crc32(repr([(warp, [w.left for w in waits]) for warp, waits in worker.woken.items()]).encode())
        return worker.get("slot_current"), self._started(), woken, *ctas

    def _cta_state(self, at: int) -> int:
        """Checksum of a CTA: barriers, shared memory, places and frames of its warps, and their local memory."""
        shape, view = self.worker.shape, self.worker.view
        digest = zlib.crc32(view[at : at + shape.warps_offset])
        for warp in self._warps(at):
            digest = zlib.crc32(view[warp : self._end(warp)], digest)
        if self.has_local:
            local = at + shape.local_offset
            digest = zlib.crc32(view[local : local + shape.warps * shape.local_warp], digest)
        return digest

    def _end(self, warp: int) -> int:
        """Where the deepest frame of a warp ends."""
        start = warp + WARP.offset("frame")
        frames = self.worker.view[start : start + 4 * LANES].cast("I")
        return warp + WARP.size + min(max(frames) + self.biggest, self.worker.shape.frames)

    def _digest(self) -> int:
        """A checksum of places, registers and shared memory of all CTAs that run."""
        worker, shape, view = self.worker, self.worker.shape, self.worker.view
        digest = 0
        for at in self._running():
            shared = worker.field(at, CTA, "shared") - worker.ctx
            digest = zlib.crc32(view[shared : shared + shape.shared], digest)
            for warp in self._warps(at):
                digest = zlib.crc32(view[warp + WARP.size : self._end(warp)], digest)
                for name in ("pc", "frame"):
                    place = warp + WARP.offset(name)
                    digest = zlib.crc32(view[place : place + 4 * LANES], digest)
        return digest
