"""Memory that is as weak as the memory consistency model allows (8): `--memory weak`.

Each location has a history: its writes in an order that extends coherence order (`coherence.py`), which may differ from
the order in which they were executed. A thread has a view: of each location the writes that it must not look behind,
because they are its own, were observed by it, or precede it in causality order (8.9.5). A read takes any write that
these do not follow; a write goes anywhere behind them. Views travel as the model's synchronisation does: a write
carries messages, the views of the release patterns that it belongs to; who reads it in an acquire pattern of fitting
scopes joins them to its own. A read stays undecided until its register is used (`pending.py`).

Each thread has habits of its own (`views.Habits`), so that what takes a rare choice many times over happens, too.

What other operations do to memory (copies, matrices, mbarriers) is strong: a thread that executes one sees afterwards
all that was written before. That is less than the model allows, never more.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from ptxtools import semantics
from ptxtools.program.details import Action
from ptxtools.program.operations import OPERATIONS, strength
from ptxtools.program.program import Op

from .coherence import forget, put, readable, returned
from .machine import Machine, element_bytes
from .memory import narrow, parts, update
from .pending import Pending, Update
from .registry import Array, Threads
from .undecided import Undecided
from .views import (
    MOST_STEPS,
    Agent,
    Habits,
    Location,
    Message,
    Phase,
    Step,
    View,
    Write,
    chained,
    hidden_by,
    known,
    merged,
    mutual,
    settle,
    strong,
)

if TYPE_CHECKING:
    from .buffers import Buffer

#: Writes of a location that are remembered.
_MOST_WRITES = 16
#: Messages that a fence might still acquire; if there are more, the thread sees everything.
_MOST_MESSAGES = 200
#: Views that a thread knows it has joined; others it joins again, which changes nothing.
_MOST_JOINED = 1000
#: What threads bring to a barrier of a CTA, or it hands on, in locations times threads; beyond that all see everything.
_MOST_HANDED_ON = 10_000
#: How likely a warp changes its speed when it takes a turn, and its speeds.
_CHANGE, _SPEEDS = 1 / 4, (1.0, 1.0, 4.0, 16.0, 64.0)
_SCOPES = ("cta", "cluster", "gpu", "sys")
_GRANULE = 8


def _function(algebra: Any, op: Op, operands: list[Array]) -> Callable[[Array], Array]:
    """What an atomic operation writes, by what it reads."""
    assert op.opcode is not None
    rule = semantics.atomic_rule(op.opcode)
    assert rule is not None
    return lambda old: rule(algebra, op.src_types[1], old, *operands)


class WeakMemory:
    """The histories of a launch. seed: of its choices."""

    def __init__(self, machine: Machine, seed: int) -> None:
        self.m, self.random, self.number = machine, random.Random(seed), 0
        self.histories: dict[Location, list[Write]] = {}
        self.owners: dict[tuple[bool, int], set[Location]] = {}
        self.agents: dict[tuple[int, int], Agent] = {}
        self.phases: dict[int, Phase] = {}  # of each cluster
        self.undecided = Undecided(self)
        self.orders: dict[tuple[int, str], Message] = {}  # the last fence.sc of each CTA and scope
        self.clock = 0  # of steps
        self.fences: deque[tuple[Agent, Step]] = deque(maxlen=MOST_STEPS)  # the last fence.sc of all
        self.turns = np.random.default_rng(seed)
        self.speeds = self.turns.choice(_SPEEDS, 1 + int(machine.warp_of.max(initial=0)))

    def next_of(self, ready: Threads) -> int:
        """Which of these threads goes on: warps differ in speed, and change it."""
        warps = self.m.warp_of[ready]
        at = int((self.turns.random(len(ready)) * self.speeds[warps]).argmax())
        if self.random.random() < _CHANGE:
            self.speeds[warps[at]] = self.random.choice(_SPEEDS)
        return int(ready[at])

    def tick(self) -> int:
        """The time of the next step of a thread."""
        self.clock += 1
        return self.clock

    def agent(self, thread: int) -> Agent:
        m = self.m
        slot = int(m.slot_of[thread])
        key = int(m.cta_of_slot[slot]), int(m.thread_of[thread])
        found = self.agents.get(key)
        if found is None:
            x, y, z = m.cta_coordinates(slot)
            cx, cy, cz = m.launch.cluster
            gx, gy, _ = m.launch.grid
            cluster = x // cx + gx * (y // cy + gy * (z // cz))
            found = self.agents[key] = Agent(key[0], cluster, self._habits())
        return found

    def _habits(self) -> Habits:
        draw = self.random.random
        if draw() < 0.2:
            return Habits()
        last = draw()
        return Habits(last, (1 - last) * draw(), draw(), 1 - draw() / 4, 1 - draw() / 2)

    def serves(self, op: Op) -> bool:
        """Whether an access is one of this memory: 16 bytes at once are strong."""
        types = op.dst_types if op.kind == "ld" else op.src_types[1:]
        return element_bytes(types[0]) in _WORDS

    def synchronise(self, threads: Threads) -> None:
        """These threads see, from their next access on, everything that was written before it."""
        for thread in threads:
            self.agent(int(thread)).all = True

    def cluster_barrier(self, op: Op, threads: Threads) -> None:
        """An arrival publishes what its thread has seen, a relaxed one only what fences in front of it have; a wait
        joins what was published in the phase in which its thread arrived (9.7.13.3)."""
        assert op.opcode is not None
        waits, relaxed = op.of(Action).name == "wait", op.opcode.has("relaxed")
        for thread in threads:
            agent = self.agent(int(thread))
            if waits:
                agent.awaited = agent.phase
                continue
            phase = self.phases.setdefault(agent.cluster, Phase())
            if int(thread) in phase.arrivals:
                phase = self.phases[agent.cluster] = Phase()
            self._raise_floor(agent)
            fences = [view for scope, view in agent.fences.items() if scope != "cta"]
            phase.arrivals[int(thread)] = fences if relaxed else [agent.seen(self.tick())]
            agent.phase = phase

    def published(self, threads: Threads) -> list[View]:
        """What these threads have seen when they arrive at a barrier of their CTA."""
        found = []
        for thread in threads:
            agent = self.agent(int(thread))
            self._raise_floor(agent)
            found.append(agent.seen(self.tick()))
        return found

    def released(self, threads: Threads, views: list[View]) -> None:
        """A barrier lets these threads go on, which know now what was published (8.9.4)."""
        view = merged(views) if sum(len(view.writes) for view in views) <= _MOST_HANDED_ON else None
        if view is None or len(view.writes) * len(threads) > _MOST_HANDED_ON:
            self.synchronise(threads)
            return
        for thread in threads:
            self._join(self.agent(int(thread)), view)

    def settle(self) -> None:
        """The launch has ended: of writes that race, any may be the last (8.9.6)."""
        for (shared, offset, size), history in self.histories.items():
            at = np.array([offset])
            if shared or self.m.memory.load(at, size)[0] != history[-1].value[0]:
                continue
            followed = hidden_by(history)
            last = self.random.choice([write for write in history if write not in followed])
            if last is not history[-1]:
                self.m.memory.store(at, size, last.value)

    # --- executors ---

    def load(self, m: Machine, op: Op, threads: Threads) -> None:
        count, size = len(op.dst), element_bytes(op.dst_types[0])
        assert op.opcode is not None
        (order, scope), generic = _ordered(op), not op.opcode.has("nc")
        values = [np.zeros(len(threads), _WORDS[size]) for _ in range(count)]
        late: list[Pending] = []
        for part in parts(m, op, threads, size * count, write=False):
            for place, offset in zip(part.places, part.offsets, strict=True):
                thread = int(threads[place])
                agent = self.agent(thread)
                for number in range(count):
                    at = int(offset) + size * number
                    if not self._is_weak(part.buffer):
                        values[number][place] = part.buffer.load(np.array([at]), size)[0]
                        continue
                    location, history = self._history(part.buffer, at, size)
                    time = self.tick()
                    read = Pending(agent, thread, op.dst[number], op.dst_types[number], m.here, location, history,
                                   frozenset(), history[0], scope, generic, time)  # fmt: skip
                    followed: list[Pending] = []
                    if generic:
                        followed = self._read(read, order)
                    else:  # nothing orders a load through the texture proxy (8.6)
                        read.returned = self.random.choice(history)
                        settle(read.returned, agent, None, observed=False)
                    values[number][place] = read.returned.value[0]
                    late.append(read)
                    for other in followed:
                        other.followed.append(read)
        for number in range(count):
            m.write(op.dst[number], narrow(m, values[number], op.dst_types[number]), op.dst_types[number], threads)
        for read in late:
            self.undecided.postpone(read)

    def store(self, m: Machine, op: Op, threads: Threads) -> None:
        size = element_bytes(op.src_types[1])
        order, scope = _ordered(op)
        values = {
            number: m.source(ref, op.src_types[number + 1], threads)
            for number, ref in enumerate(op.src[1:]) if ref is not None
        }  # fmt: skip
        for part in parts(m, op, threads, size * (len(op.src) - 1), write=True):
            for place, offset in zip(part.places, part.offsets, strict=True):
                agent = self.agent(int(threads[place]))
                for number, value in values.items():
                    at = int(offset) + size * number
                    one = value[place : place + 1]
                    if self._is_weak(part.buffer):
                        location, history = self._history(part.buffer, at, size)
                        write = Write(np.array(one), agent, scope)
                        seen, followed = self._seen(agent, location, history)
                        agent.steps.append(Step(self.tick(), write, location, history))
                        write.messages = self._published(agent, location, order, scope)
                        self.place(write, history, seen)
                        for read in followed:
                            read.followed.append(write)
                        write.after = agent.undecided()
                        self.written(write, location, history)
                    else:
                        part.buffer.store(np.array([at]), size, one)

    def atomic(self, m: Machine, op: Op, threads: Threads) -> None:
        """One element of one thread after the other."""
        assert op.opcode is not None
        type_name = op.src_types[1]
        size, rule = element_bytes(type_name), semantics.atomic_rule(op.opcode)
        assert rule is not None
        sources = zip(op.src[1:], op.src_types[1:], strict=True)
        operands = [m.source(ref, t, threads) for ref, t in sources if ref is not None]
        vector = max(1, len(op.dst) if op.kind == "atom" else len(operands))
        vector = vector if any(op.opcode.has(width) for width in ("v2", "v4", "v8")) else 1
        olds = [np.zeros(len(threads), _WORDS[size]) for _ in range(vector)]
        late: list[Pending] = []
        for part in parts(m, op, threads, size * vector, write=True):
            if not self._is_weak(part.buffer):
                update(m, part, size, operands, olds, type_name, rule)
                continue
            for at, offset in zip(part.places, part.offsets, strict=True):
                for number in range(vector):
                    own = [operands[number]] if vector > 1 else operands
                    location, history = self._history(part.buffer, int(offset) + size * number, size)
                    read = self._update(op, int(threads[at]), location, history,
                                        [value[at : at + 1] for value in own])  # fmt: skip
                    olds[number][at] = read.returned.value[0]
                    read.done |= vector > 1
                    late.append(read)
        for ref, t, old in zip(op.dst, op.dst_types, olds, strict=False):
            m.write(ref, old, t, threads)
        for read in late:
            self.undecided.postpone(read)

    def _update(self, op: Op, thread: int, location: Location, history: list[Write], operands: list[Array]) -> Pending:
        """What an atomic operation of one thread has read, and for the time being returns. A cas that fails is a read
        operation and no more."""
        assert op.opcode is not None
        agent, (order, scope), type_name = self.agent(thread), _ordered(op), op.src_types[1]
        expected = operands[0] if op.opcode.has("cas") else None
        time = self.tick()
        seen, followed = self._seen(agent, location, history)
        new = _function(self.m.algebra, op, operands)
        patterns = self._patterns(agent, location, order, scope)
        for read in self._candidates(agent, readable(agent, scope, history, seen), history):
            own = (
                None if expected is not None and read.value[0] != expected[0] else Write(new(read.value), agent, scope)
            )
            if own is None:
                break
            own.behind = read
            own.messages = patterns + chained(own)
            before = seen | {read} if mutual(agent, scope, read.agent, read.scope) else seen
            if self.place(own, history, before):
                break
        ref = op.dst[0] if op.dst else None
        found = Pending(agent, thread, ref, type_name, self.m.here, location, history, frozenset(seen), read, scope,
                        True, time, Update(new, expected, op.opcode.has("exch"), op.kind == "atom",
                                          order in ("release", "acq_rel")))  # fmt: skip
        for other in followed:
            other.followed.append(found)
        agent.steps.append(Step(time, found))
        returned(agent, scope if own is None else "", history, seen, read)
        if op.kind == "atom":
            self._observe(found, order)
        else:
            settle(
                read, agent, time, observed=mutual(agent, scope, read.agent, read.scope)
            )  # 8.9.2, though it is no read
        agent.steps.append(Step(self.tick(), found, order="update"))  # behind what it acquires itself
        assert found.update is not None
        found.update.after = agent.undecided()
        agent.reads.add(found)  # what it publishes itself is behind it
        publishes = self._published if own is not None else self._patterns
        found.update.messages = publishes(agent, location, order, scope)
        if own is not None:
            found.update.own, own.pending, own.after = own, found, found.update.after
            own.messages = found.update.messages + chained(own)
            self.written(own, location, history)
        return found

    def fence(self, op: Op, threads: Threads) -> None:
        assert op.opcode is not None
        if op.opcode.has("proxy"):
            self.synchronise(threads)
            return
        order, scope = _fenced(op)
        for thread in threads:
            self._fence(self.agent(int(thread)), order, scope)

    # --- one thread ---

    def _fence(self, agent: Agent, order: str, scope: str) -> None:
        self._raise_floor(agent)
        if order != "release":
            self._acquire(agent, scope)
        if order == "sc":
            for message in self.orders.values():
                if mutual(agent, scope, message.agent, message.scope):
                    self._join(agent, message.view)
            step = Step(self.tick(), None, None, None, scope, order)
            agent.steps.append(step)
            self.fences.append((agent, step))
            self.orders[agent.cta, scope] = Message(agent, scope, agent.seen(self.tick()))
        if order != "acquire":
            agent.fences[scope] = agent.seen(self.tick())

    def _acquire(self, agent: Agent, scope: str, location: Location | None = None) -> None:
        """Join what strong reads, of this location or of any, have found in messages of fitting scopes."""
        agent.steps.append(Step(self.tick(), None, location, None, scope))
        for key, (where, message) in list(agent.read.items()):
            if location in (None, where) and mutual(agent, scope, message.agent, message.scope):
                self._join(agent, message.view)
                del agent.read[key]

    def _read(self, read: Pending, order: str) -> list[Pending]:
        """Let a load return something for the time being; the undecided reads of its thread that it follows."""
        agent, scope, history = read.agent, read.scope, read.history
        seen, followed = self._seen(agent, read.location, history)
        read.seen = frozenset(seen)
        read.returned = self._candidates(agent, readable(agent, scope, history, seen), history)[0]
        agent.steps.append(Step(read.time, read))
        returned(agent, scope, history, seen, read.returned)
        self._observe(read, order)
        return followed

    def _candidates(self, agent: Agent, found: list[Write], history: list[Write]) -> list[Write]:
        """These, in an order that its thread tends to; the last one of the history is always there."""
        choice, habits = self.random.random(), agent.habits
        if choice < habits.last:
            return found[::-1]
        if choice < habits.last + habits.first:
            return [*found]
        return self.random.sample(found, len(found))

    def _observe(self, read: Pending, order: str) -> None:
        """Observation order (8.9.2), and synchronisation with what the write carries (8.9.4); an acquire operation
        acquires, too, what strong reads of this location in front of it have observed (8.8)."""
        agent, location, scope, found = read.agent, read.location, read.scope, read.returned
        observed = mutual(agent, scope, found.agent, found.scope)
        settle(found, agent, read.time, observed=observed)
        if observed:
            agent.learns(location, (found,))
            for message in found.messages:
                if message.view not in agent.joined:
                    agent.read[id(message)] = (location, message)
        if order in ("acquire", "acq_rel"):
            self._acquire(agent, scope, location)
        if len(agent.read) > _MOST_MESSAGES:
            agent.read.clear()
            agent.all = True

    def place(
        self,
        write: Write,
        history: list[Write],
        seen: set[Write],
        start: int = 0,
        end: int = -1,
        displaces: bool = True,
    ) -> bool:
        """Put a write behind those that precede it, where nothing forbids it. start: of the places; end: of these, or
        -1; displaces: whether it may come in front of an undecided atomic operation that then reads it."""
        assert write.agent is not None
        low = max((at for at, other in enumerate(history) if other in seen), default=0)
        low = max(low, start - 1)
        fellows = {other for other in history if strong(write, other)}
        high = len(history) if end < 0 else end
        if write.behind in fellows:  # none of these between it and what an atomic operation has read (8.10.3)
            later = (at for at in range(low, high) if history[at] in fellows)
            high = min(high, next((at for at in later if write.behind in history[at].earlier), high))
        places = list(range(high, low, -1))
        if self.random.random() >= write.agent.habits.behind:
            self.random.shuffle(places)
        return any(
            put(write, history, at, seen, fellows)
            or (displaces and self.undecided.displaces(write, history, at, seen, fellows))
            for at in places
        )

    def written(self, write: Write, location: Location, history: list[Write]) -> None:
        """What a write that has its place is for its own thread."""
        assert write.agent is not None
        self.undecided.finish(write)
        self.number += 1
        write.number = self.number
        write.agent.learns(location, (write,))
        if write is history[-1]:
            self.write_back(location, write)
        if len(history) > _MOST_WRITES:  # one between the oldest and the newest is forgotten
            forget(history, self.random.randrange(1, len(history) - 1))

    def write_back(self, location: Location, write: Write) -> None:
        """The last write of a history is what is in memory."""
        buffer = self.m.shared if location[0] else self.m.memory
        buffer.store(np.array([location[1]]), location[2], write.value)

    def _published(self, agent: Agent, location: Location, order: str, scope: str) -> tuple[Message, ...]:
        """The release patterns that end with this write (8.8), if it is strong, of its thread's later ones as well."""
        if order in ("release", "acq_rel"):
            agent.released.setdefault(location, {})[scope] = agent.seen(self.tick())
        return self._patterns(agent, location, "", scope)

    def _patterns(self, agent: Agent, location: Location, order: str, scope: str) -> tuple[Message, ...]:
        """The release patterns that a write ends; of an operation with an order, as far as it is known in front of
        it."""
        if not scope:
            return ()
        released = agent.released.get(location, {})
        if order in ("release", "acq_rel"):
            released = {**released, scope: agent.seen(self.tick())}
        return tuple(Message(agent, *item) for item in (*agent.fences.items(), *released.items()))

    # --- views and histories ---

    def _raise_floor(self, agent: Agent) -> None:
        if agent.all:
            self.undecided.decide_all()
            agent.floor, agent.all = self.number, False
        if agent.awaited is not None:
            phase, agent.awaited = agent.awaited, None
            self._take_over(agent, phase)

    def _take_over(self, agent: Agent, phase: Phase) -> None:
        """What the arrivals of a complete phase have published."""
        if phase.whole is None:
            phase.whole = merged([view for views in phase.arrivals.values() for view in views])
        if len(phase.whole.writes) * len(phase.arrivals) > _MOST_HANDED_ON:
            agent.all = True
            self._raise_floor(agent)
            return
        self._join(agent, phase.whole)

    def _seen(self, agent: Agent, location: Location, history: list[Write]) -> tuple[set[Write], list[Pending]]:
        """The writes of a location that precede what a thread does now, and its own undecided reads of the location.
        Those of others that precede it observe nothing from now on."""
        self._raise_floor(agent)
        for read in [read for read in agent.pending if read.overlaps(location) and read.location != location]:
            self.undecided.decide(read)
        own = []
        for read in agent.reads:
            if read.overlaps(location):
                if read.agent is agent and read.location == location:
                    own.append(read)
                else:
                    read.touched = True
        found: set[Write] = set()
        for write in agent.view.get(location, ()):
            found |= known(write)
        return {write for write in history if write in found or write.number <= agent.floor}, own

    def _join(self, agent: Agent, view: View) -> None:
        if view in agent.joined:
            return  # what an undecided read of it has observed since, `_observe_late` has told
        if len(agent.joined) > _MOST_JOINED:
            agent.joined.clear()
        view.joined.append((agent, self.tick()))
        self.learn(agent, view)

    def learn(self, agent: Agent, view: View) -> None:
        """From now on a thread knows a view, which it has joined."""
        agent.joined.add(view)
        agent.floor = max(agent.floor, view.floor)
        for read in view.reads:
            if not read.done:
                read.known |= read.agent is not agent
                agent.reads.add(read)
            if read.observed is not None:
                agent.learns(read.location, (read.observed,))
        own = agent.view
        for location, writes in view.writes.items():
            mine = own.get(location)
            if mine is None:
                own[location] = writes
            elif mine is not writes and not writes <= mine:
                agent.learns(location, writes)

    def _is_weak(self, buffer: Buffer) -> bool:
        return buffer is self.m.memory or buffer is self.m.shared

    def _history(self, buffer: Buffer, offset: int, size: int) -> tuple[Location, list[Write]]:
        """The writes of a location. It begins anew if something else has written there, or accesses of another size."""
        location: Location = (buffer is self.m.shared, offset, size)
        now = np.array(buffer.load(np.array([offset]), size))
        found = self.histories.get(location)
        if found is not None and found[-1].value[0] == now[0]:
            return location, found
        granules = [(location[0], at) for at in range(offset // _GRANULE, (offset + size - 1) // _GRANULE + 1)]
        for granule in granules:
            for other in list(self.owners.get(granule, ())):
                if other[1] < offset + size and offset < other[1] + other[2]:
                    self.histories.pop(other, None)
                    self.owners[granule].discard(other)
            self.owners.setdefault(granule, set()).add(location)
        self.histories[location] = history = [Write(now)]
        return location, history


_WORDS: dict[int, Any] = {1: np.uint16, 2: np.uint16, 4: np.uint32, 8: np.uint64}


def _ordered(op: Op) -> tuple[str, str]:
    """Order and scope of an access (8.4): "" for a weak one."""
    order = strength(op.opcode)
    assert op.opcode is not None
    if OPERATIONS[op.kind].access == "atomic":
        order = order or "relaxed"
    if order in ("volatile", "mmio"):
        return "relaxed", "sys"
    if not order:
        return "", ""
    return order, next((scope for scope in _SCOPES if op.opcode.has(scope)), "gpu")


def _fenced(op: Op) -> tuple[str, str]:
    """Order and scope of a memory fence; membar is fence.sc (9.7.13.4)."""
    assert op.opcode is not None
    scope = next((scope for scope in _SCOPES if op.opcode.has(scope)), "gpu" if op.opcode.has("gl") else "sys")
    if op.opcode.text.startswith("membar"):
        return "sc", scope
    return next((order for order in ("sc", "acquire", "release") if op.opcode.has(order)), "acq_rel"), scope
