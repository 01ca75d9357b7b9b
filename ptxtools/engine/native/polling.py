"""Lanes that look again and again at what never changes: a deadlock that is no waiting.

Where nobody can move but some waits have a time limit, time jumps from limit to limit; when that has changed nothing
for a while, it never will. Where warps run, but only look, the state of a worker repeats: a state that has been there
before, with the same device memory, comes back for ever. Several workers may look at each other's work, so each says
what memory it found; only when all that have not finished say the same is it over.
"""

from __future__ import annotations

import time
import zlib
from typing import TYPE_CHECKING

from ptxtools.engine.native.structures import CTA, WARP

if TYPE_CHECKING:
    from ptxtools.engine.native.worker import Worker

#: How often lanes that wait with a time limit look again and find the same before that is a deadlock.
_LOOKS = 3
#: Rounds of the resident CTAs in which a state has to come back, and bytes that are looked at in one go.
_ROUNDS, _BYTES = 200, 256 << 20
#: Bytes that are looked at in a second, roughly, and what share of the time may go into that.
_SPEED, _SHARE = 1 << 31, 8
#: Device memory that is compared; kernels that use more are left to time limits.
_MOST_MEMORY = 1 << 30


class Polls:
    """What workers know of each other. live: workers that have not finished; idle: checksum of device memory as those
    saw it that can only look again."""

    def __init__(self) -> None:
        self.live = 1
        self.idle: dict[int, int] = {}

    def settled(self, number: int, memory: int) -> bool:
        """This worker can only look again: whether that holds for all, with one and the same memory."""
        self.idle[number] = memory
        found = list(self.idle.values())
        return len(found) >= self.live and len(set(found)) == 1


class Watch:
    """What one worker has seen of its own state."""

    def __init__(self, worker: Worker, polls: Polls) -> None:
        self.worker, self.polls = worker, polls
        self.seen = self.since = self.looks = 0
        #: Workers that had not finished at the last look: what one wrote before it finished must be looked at anew.
        self.live = 0
        #: Others must act before anything here can change.
        self.rests = False
        #: When the worker began, and when it may look again at what it waits for.
        self.began = self.next = time.monotonic()
        program, shape = worker.launch.program, worker.shape
        local = program.local_bytes or program.takes_stack or not program.max_frames
        self.bytes = shape.slot if local else shape.local_offset  # of a CTA that mean something

    def only_waits(self) -> bool:
        """Nobody here can move, but some look again now and then: whether that never changes anything."""
        worker, began = self.worker, time.monotonic()
        if began < self.next:
            return False
        digest, now = self._digest(), worker.schedule.now()
        ended = time.monotonic()
        self.next = ended + _SHARE * (ended - began)
        live = self.polls.live
        if digest != self.seen or live != self.live:
            self.seen, self.since, self.looks, self.live = digest, now, 0, live
            self.polls.idle.pop(worker.number, None)
            return False
        self.looks += 1
        if self.looks < _LOOKS or now - self.since <= 2 * worker.schedule.longest():
            return False
        if live == 1:
            return True
        self.rests = True
        return self.looks & (self.looks - 1) == 0 and self.polls.settled(worker.number, self._memory())

    def only_looks(self) -> bool:
        """Warps run: whether their state comes back, and so for ever. Runs them for a while to find out."""
        worker = self.worker
        memory = worker.launch.memory
        if worker.launch.seed is not None or memory.open_host or memory.size > _MOST_MEMORY:
            return False
        if worker.schedule.next_time() is not None:  # something will happen by itself
            return False
        used = worker.get("slot_used")
        rounds = min(_ROUNDS, _BYTES // (used * self.bytes))
        cost = (rounds * used * self.bytes + 2 * memory.size) / _SPEED
        if rounds < 2 or time.monotonic() - self.began < _SHARE * cost:
            return False
        states = {self._state()}
        before = self._memory()
        for _ in range(rounds):
            if any(worker.step(1) for _ in range(used)):
                break
            state = self._state()
            if state in states:
                after = self._memory()
                return before == after and self.polls.settled(worker.number, after)
            states.add(state)
        self.polls.idle.pop(worker.number, None)
        return False

    def _memory(self) -> int:
        memory = self.worker.launch.memory
        return zlib.crc32(memory.whole()) if memory.size else 0

    def _running(self) -> list[int]:
        worker = self.worker
        slots = [worker.slot_offset(slot) for slot in range(worker.get("slot_used"))]
        return [at for at in slots if worker.field(at, CTA, "state") == 1]

    def _state(self) -> tuple[int, int, int]:
        """All that decides what this worker does next, but for device memory."""
        worker = self.worker
        digest = 0
        for at in self._running():
            digest = zlib.crc32(worker.view[at : at + self.bytes], digest)
        return digest, worker.get("slot_current"), worker.tables.next.value

    def _digest(self) -> int:
        """A checksum of places, registers and shared memory of all CTAs that run."""
        worker, shape, view = self.worker, self.worker.shape, self.worker.view
        digest = 0
        for at in self._running():
            shared = worker.field(at, CTA, "shared") - worker.ctx
            digest = zlib.crc32(view[shared : shared + shape.shared], digest)
            for number in range(shape.warps):
                warp = at + shape.warps_offset + number * shape.warp_bytes
                digest = zlib.crc32(view[warp + WARP.size : warp + shape.warp_bytes], digest)
                for name in ("pc", "frame"):
                    place = warp + WARP.offset(name)
                    digest = zlib.crc32(view[place : place + 128], digest)
        return digest
