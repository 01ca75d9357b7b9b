"""How undecided reads are decided (`pending.py`), for `--memory weak`.

A read may come to return a write that was executed after what follows it in its thread. The same holds for atomic
operations, which then take effect where they find what they read: their own write takes another place, or is none if a
cas fails after all, or comes about late if one succeeds. That changes nothing for others as long as nobody has read
that write, and whoever knows it has not accessed the location since.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ptxtools.program.operations import SINGLE_ACCESSES
from ptxtools.program.program import Op, Terminator

from .coherence import is_whole, put, readable, returned
from .hindsight import Hindsight
from .memory import narrow
from .pending import MOST_PENDING, Pending, Update, slots_of
from .registry import Array, Threads
from .reordered import is_local
from .views import Write, chained, mutual, settle, strong, use

if TYPE_CHECKING:
    from .weak import WeakMemory


class Undecided:
    """The undecided reads of a launch."""

    def __init__(self, memory: WeakMemory) -> None:
        self.memory = memory
        self.threads: set[int] = set()  # that may have some
        self.displaced: list[Pending] = []  # those that read the write which is being placed

    def before(self, op: Op | Terminator, threads: Threads) -> None:
        """Decide the reads whose registers an operation or the end of a block uses; before what is strong, all."""
        if op.kind == "event" if isinstance(op, Terminator) else not self._is_ordered(op):
            self.decide_all()
            return
        used = slots_of(op, self.memory.m.here)
        for thread in self.threads.intersection(threads.tolist()):
            agent = self.memory.agent(thread)
            for read in list(agent.pending):
                if used is None or read.slot in used:
                    self.decide(read)
            if not agent.pending:
                self.threads.discard(thread)

    def decide_all(self) -> None:
        for agent in self.memory.agents.values():
            for read in list(agent.pending):
                self.decide(read)
        self.threads.clear()

    def _is_ordered(self, op: Op) -> bool:
        return is_local(op) or op.kind == "fence" or (op.kind in SINGLE_ACCESSES and self.memory.serves(op))

    def postpone(self, read: Pending) -> None:
        """Leave a read undecided that has returned a write for the time being."""
        agent = read.agent
        if read.done or (read.ref is None and read.update is None) or self.memory.random.random() >= agent.habits.late:
            read.done = True
            use(read.returned)
            return
        agent.pending.append(read)
        read.returned.takers.add(read)
        self.threads.add(read.thread)
        if read.generic:
            agent.reads.add(read)
        if len(agent.pending) > MOST_PENDING:
            self.decide(agent.pending[0])

    def decide(self, read: Pending) -> None:
        """Let a read return another write that it may return by now, or leave it at that."""
        agent = read.agent
        if read not in agent.pending:
            return
        agent.pending.remove(read)
        self._choose(read)
        read.returned.takers.discard(read)
        use(read.returned)

    def _choose(self, read: Pending) -> None:
        stale = self.memory.histories.get(read.location) is not read.history
        decided, read.done = read.done or stale, True
        if decided or self.memory.random.random() >= read.agent.habits.otherwise:
            return
        found = self._others(read)
        self.memory.random.shuffle(found)
        write = next((write for write in found if self._returns(read, write)), None)
        if write is None:
            return
        self._write_register(read, write)

    def _write_register(self, read: Pending, write: Write) -> None:
        read.returned.takers.discard(read)
        write.takers.add(read)
        read.returned = write
        if read.ref is None:
            return
        m, threads = self.memory.m, np.array([read.thread])
        here, m.here = m.here, read.frame
        m.write(read.ref, narrow(m, write.value, read.type_name), read.type_name, threads)
        m.here = here

    def _others(self, read: Pending) -> list[Write]:
        """What it may return as well: nothing that it precedes itself (8.10.6)."""
        history = read.history
        found = readable(read.agent, read.scope, history, set(read.seen)) if read.generic else history
        own = read.update.own if read.update is not None else None
        return [write for write in found if write not in (read.returned, own) and read not in write.after]

    def _returns(self, read: Pending, write: Write) -> bool:
        """Let it return a write, if what precedes other operations stays as it was."""
        if not read.generic:
            settle(write, read.agent, None, observed=False)
            return True
        update, strongly = read.update, mutual(read.agent, read.scope, write.agent, write.scope)
        hindsight = Hindsight(self.memory, read)
        if update is None or (update.own is None and update.value(write.value) is None):
            allowed = not strongly or self._may_observe(read, write, hindsight)
        else:
            allowed = self._updates(read, update, write, strongly, hindsight)
        if not allowed:
            hindsight.undo()
            return False
        self._note(read, write, strongly)
        hindsight.keep()
        return True

    def _note(self, read: Pending, write: Write, strongly: bool) -> None:
        """What a read that returns another write is for its thread, and those that it precedes."""
        update, own = read.update, read.own
        observes = strongly and (update is None or update.observes)
        if observes:
            for message in write.messages:
                read.agent.read[id(message)] = (read.location, message)
            self._tell(read, write)
        returned(read.agent, read.scope if own is None else "", read.history, set(read.seen), write)
        settle(write, read.agent, read.time, observed=strongly)
        if own is not None:
            self._tell(read, own)

    def _may_observe(self, read: Pending, write: Write, hindsight: Hindsight) -> bool:
        """Whether a read may observe a write, by all that has happened behind it."""
        return self._is_free(read, write) and hindsight.observes(write) and hindsight.acquires(write)

    def _is_followed(self, read: Pending, write: Write) -> bool:
        """Whether this write is in front of what the accesses behind a read, at its location, have to do with."""
        for other in read.followed:
            ends = (other.returned, other.own) if isinstance(other, Pending) else (other,)
            if any(end is not None and end is not write and write not in end.earlier for end in ends):
                return False
        return True

    def _is_free(self, read: Pending, write: Write) -> bool:
        """Whether no atomic operation that it observes has read what it precedes (8.10.6)."""
        chain: Write | None = write
        while chain is not None and chain.behind is not None:
            if read in chain.behind.after:
                return False
            chain = chain.behind if strong(chain, chain.behind) else None
        return True

    def _tell(self, read: Pending, write: Write) -> None:
        """What a read observes, or an atomic operation writes, precedes at its location all that it precedes itself
        (8.9.5)."""
        read.observed = write
        for agent in self.memory.agents.values() if read.known else (read.agent,):
            if agent is read.agent or read in agent.reads:
                agent.learns(read.location, (write,))

    def _updates(self, read: Pending, update: Update, write: Write, strongly: bool, hindsight: Hindsight) -> bool:
        """Let an atomic operation read a write, and write what follows from that."""
        own, value, history = update.own, update.value(write.value), read.history
        if own is not None and value is not None and not strongly and is_whole(
            read.agent, read.scope, own, write, history
        ):  # fmt: skip
            values = self._values(own, value, write)
            if values is not None:
                own.behind, own.messages = write, update.messages
                self._revalue(read, values)
                return True
        if own is not None and (own not in history or not self._may_change(update, value, strongly)):
            return False
        values = self._values(own, value, write) if own is not None and value is not None else []
        if values is None:
            return False
        if strongly and not (self._may_observe(read, write, hindsight) if update.observes
                             else self._is_free(read, write)):  # fmt: skip
            return False
        kept, last = _Kept(history), history[-1]
        at = history.index(own) if own is not None else 0
        if own is not None:
            self._take_out(own, read)
        if value is None:
            update.own = None
        elif not self._put(read, update, write, value, strongly, at, hindsight):
            kept.restore()
            return False
        else:
            self._revalue(read, values)
        if history[-1] is not last or history[-1] is update.own:
            self.memory.write_back(read.location, history[-1])
        return True

    def _may_change(self, update: Update, value: Array | None, strongly: bool) -> bool:
        """Whether an atomic operation may write this in place of what somebody may have read."""
        assert update.own is not None
        return not update.own.taken or (value is not None and (update.observes or not strongly))

    def _values(self, own: Write, value: Array, write: Write) -> list[tuple[Write, Array]] | None:
        """The values of writes if an atomic operation comes to read this one: of its own, and of those of undecided
        ones that have read that. None if one has been used, or the write is among them (8.10.4)."""
        update = own.pending.update if own.pending is not None else None
        found = [(own, value)] if update is not None and update.depends else []
        for changed, new in found:
            if changed is write:
                return None
            for read in changed.takers:
                if read.done or read not in read.agent.pending:
                    return None
                update = read.update
                after = update.value(new) if update is not None else None
                if (after is None) != (read.own is None):
                    return None
                if update is not None and update.own is not None and after is not None and update.depends:
                    found.append((update.own, after))
        return found

    def _revalue(self, read: Pending, values: list[tuple[Write, Array]]) -> None:
        for write, value in values:
            write.value = value
            for other in list(write.takers):
                self._write_register(other, write)
            if write is read.history[-1]:
                self.memory.write_back(read.location, write)

    def _take_out(self, own: Write, read: Pending) -> None:
        own.instead = read.seen | own.earlier
        read.history.remove(own)
        for other in read.history:
            other.earlier.discard(own)

    def _put(
        self, read: Pending, update: Update, write: Write, value: Array, strongly: bool, at: int, hindsight: Hindsight
    ) -> bool:
        """Give the write of an atomic operation a place, in front of what its thread has stored there since. at: where
        it was, if it was in the history."""
        history, own = read.history, update.own
        new = own or Write(value, read.agent, read.scope)
        before = {write, *read.seen} if strongly else set(read.seen)
        ends = {other.own if isinstance(other, Pending) else other for other in read.followed}
        later = [place for place, other in enumerate(history) if other in ends]
        if own is None and update.releases and ends - {None}:  # what its thread has stored since carries more then
            return False
        behind_was, value_was, messages_was = new.behind, new.value, new.messages
        new.behind, new.value = write, value
        new.messages = update.messages + chained(new)
        start = at if own is not None and own.taken else 0  # who has read it looked behind nothing in front of it
        alone = not (read.touched or read.followed)  # nothing at this location is behind it
        placed = self.memory.place(new, history, before.intersection(history), start, min(later, default=-1), alone)
        new.instead = None if placed else new.instead
        if not placed or not (alone or hindsight.observes(new)):
            new.behind, new.value, new.messages = behind_was, value_was, messages_was
            return False
        new.after = update.after
        self.finish(new)
        if own is None:
            update.own = new
            self.memory.written(new, read.location, history)
        return True

    def displaces(self, write: Write, history: list[Write], at: int, seen: set[Write], fellows: set[Write]) -> bool:
        """Put a write in front of that of an undecided atomic operation, which reads it then (8.10.3)."""
        own = history[at] if at < len(history) else None
        read = own.pending if own is not None else None
        if own is None or read is None or own not in fellows or read not in read.agent.pending or read.done:
            return False
        update = read.update
        assert update is not None
        value = update.value(write.value)
        values = self._values(own, value, write) if value is not None else []
        if values is None or not self._may_change(update, value, strongly=True):
            return False
        if not self._is_free(read, write) or (value is None and read.touched):
            return False
        kept = _Kept(history)
        if value is None:  # what follows it in its thread is behind the write
            self._take_out(own, read)
            fellows = fellows.union(other for other in read.followed if isinstance(other, Write))
        else:
            own.behind = write
        hindsight = Hindsight(self.memory, read)
        placed = put(write, history, at, seen, fellows.intersection(history))
        if not placed or (value is None and not self._is_followed(read, write)) or not (
            not update.observes or hindsight.acquires(write, whole=write.behind is None)
        ):  # fmt: skip
            hindsight.undo()
            kept.restore()
            return False
        hindsight.keep()
        if value is None:
            update.own = None
        self._revalue(read, values)
        self.displaced.append(read)
        return True

    def finish(self, write: Write) -> None:
        """What has been displaced reads this write, whose messages are known by now."""
        displaced, self.displaced = self.displaced, []
        for read in displaced:
            own, update = read.own, read.update
            if own is not None and update is not None:
                own.messages = update.messages + chained(own)
            self._note(read, write, strongly=True)
            self._write_register(read, write)


class _Kept:
    """A history as it is, to be restored."""

    def __init__(self, history: list[Write]) -> None:
        self.history, self.writes = history, [(write, set(write.earlier), write.behind) for write in history]

    def restore(self) -> None:
        self.history[:] = [write for write, _, _ in self.writes]
        for write, earlier, behind in self.writes:
            write.earlier, write.behind, write.instead = earlier, behind, None
