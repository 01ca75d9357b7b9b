"""What threads know in hindsight, for `--memory weak`.

A read that is decided late (`undecided.py`) may observe a write, or acquire what that publishes, long after its thread
has gone on. What follows from it must agree with all that has been done since: with the accesses behind the read, or
behind what acquires, and with those of other threads that have synchronised with its thread since (8.9.5). Each thread
remembers its last steps; those concerned are gone through, and nothing is changed if one of them contradicts.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from .coherence import ordered, readable, returned
from .pending import Pending
from .views import MOST_STEPS, Agent, Location, Step, View, Write, hidden_by, known, mutual

if TYPE_CHECKING:
    from .weak import WeakMemory


#: Steps that one late choice looks at; it is not made if there are more.
_MOST_LOOKED_AT = 2000


def _was_read(write: Write, agent: Agent, view: View) -> bool:
    """Whether a read in front of a view may have returned a write of this thread that is behind it (8.10.6)."""
    return any(other is not agent and time < view.time for other, time in write.glances.items())


class Hindsight:
    """What the late choice of one read tells. It is kept or undone in the end, as a whole."""

    def __init__(self, memory: WeakMemory, read: Pending) -> None:
        self.memory, self.read = memory, read
        self.left = _MOST_LOOKED_AT
        self.back: list[Callable[[], None]] = []
        self.learned: list[tuple[Agent, View]] = []

    def observes(self, write: Write) -> bool:
        """Whether the read may observe a write, or be followed by it: that precedes what is behind the read."""
        read = self.read
        return self._tell(read.agent, read.time, View({read.location: frozenset({write})}))

    def acquires(self, write: Write, *, whole: bool = True) -> bool:
        """Whether the thread may have acquired what the write publishes since. whole: its messages are what they will
        be."""
        read = self.read
        for message in write.messages:
            agent = read.agent
            if not agent.remembers(read.time):
                return False
            time = agent.acquiring(read.time, read.location, message)
            if time is None:
                continue
            if not whole or read in message.view.reads or not self._tell(agent, time, message.view):
                return False
        return True

    def undo(self) -> None:
        while self.back:
            self.back.pop()()

    def keep(self) -> None:
        for agent, view in self.learned:
            self.memory.learn(agent, view)

    def _tell(self, agent: Agent, time: int, view: View) -> bool:
        """A thread has known a view since then."""
        if any(other is agent and since <= time for other, since in view.joined):
            return True
        if not agent.remembers(time):
            return False
        joined = (agent, time)
        view.joined.append(joined)
        self.back.append(lambda: view.joined.remove(joined))
        self.learned.append((agent, view))
        return all(self._agrees(agent, step, view) for step in list(agent.steps) if step.time > time)

    def _agrees(self, agent: Agent, step: Step, view: View) -> bool:
        what = step.what
        self.left -= 1
        if self.left < 0:
            return False
        if isinstance(what, Pending):
            if step.order == "update":
                return self._is_update_behind(what, view)
            return self._is_read_behind(what, view)
        if isinstance(what, Write):
            assert step.location is not None and step.history is not None
            return self._is_behind(what, agent, step.location, step.history, view)
        if isinstance(what, View):
            return self._extend(what, view)
        return step.order != "sc" or self._is_fence_behind(agent, step, view)

    def _is_fence_behind(self, agent: Agent, step: Step, view: View) -> bool:
        """Whether no fence.sc in front of the view was executed after one that is behind it now (8.10.2)."""
        fences = self.memory.fences
        if len(fences) == MOST_STEPS and step.time < fences[0][1].time:
            return False
        return not any(
            step.time < other.time <= view.time and mutual(agent, step.scope, owner, other.scope)
            for owner, other in fences
        )

    def _known(self, view: View, location: Location, history: list[Write]) -> set[Write]:
        """The writes of a location that a view tells of."""
        found: set[Write] = set()
        for write in view.writes.get(location, ()):
            found |= known(write)
        for read in view.reads:
            if read.observed is not None and read.location == location:
                found |= known(read.observed)
        return {write for write in history if write in found or write.number <= view.floor}

    def _is_stale(self, view: View, location: Location, history: list[Write]) -> bool:
        """Whether a location has been written in other sizes since, of which the view may tell."""
        if self.memory.histories.get(location) is history:
            return False
        shared, offset, size = location
        return view.floor >= 0 or any(
            shared == other and at < offset + size and offset < at + bytes_ for other, at, bytes_ in view.writes
        )

    def _touch(self, agent: Agent, location: Location, view: View) -> None:
        """An access is behind the undecided reads of a view."""
        for read in view.reads:
            if not (read.done or read.touched or read.agent is agent) and read.overlaps(location):
                read.touched = True
                self.back.append(partial(setattr, read, "touched", False))

    def _is_read_behind(self, read: Pending, view: View) -> bool:
        """Whether a read may follow what the view tells of."""
        history = read.history
        if self._is_stale(view, read.location, history):
            return False
        before = self._known(view, read.location, history)
        self._touch(read.agent, read.location, view)
        if not before:
            return True
        seen, write = read.seen | before, read.returned
        if write not in readable(read.agent, read.scope, history, set(seen)):
            return False
        for owner, name, value in ((read, "seen", read.seen), (write, "never", set(write.never)),
                                   (write, "passed", list(write.passed))):  # fmt: skip
            self.back.append(partial(setattr, owner, name, value))
        read.seen = seen
        returned(read.agent, read.scope if read.own is None else "", history, set(seen), write)
        return True

    def _is_behind(self, write: Write, agent: Agent, location: Location, history: list[Write], view: View) -> bool:
        """Whether a write may follow what the view tells of, and whether nothing in front has read it (8.10.6)."""
        if _was_read(write, agent, view) or self._is_stale(view, location, history):
            return False
        before = self._known(view, location, history)
        if write in before or write in hidden_by(before):
            return False
        moved = ordered(write, history, before)
        if moved is None:
            return False
        self._touch(agent, location, view)
        for other, order in moved.items():
            self.back.append(partial(setattr, other, "earlier", other.earlier))
            other.earlier = order
        self.back.append(partial(setattr, write, "after", write.after))
        write.after = write.after.union(read for read in view.reads if not read.done)
        return True

    def _is_update_behind(self, read: Pending, view: View) -> bool:
        """Whether what an atomic operation writes may follow what the view tells of. That of the read which is being
        decided gets its place later."""
        own, update = read.own, read.update
        assert update is not None
        self.back.append(partial(setattr, update, "after", update.after))
        update.after = update.after.union(other for other in view.reads if not other.done)
        if own is None:
            return True
        if read is not self.read:
            return self._is_behind(own, read.agent, read.location, read.history, view)
        self.back.append(partial(setattr, own, "after", own.after))
        own.after = update.after
        return not (_was_read(own, read.agent, view) or own in self._known(view, read.location, read.history))

    def _extend(self, published: View, view: View) -> bool:
        """What a thread has published since tells of the view, too."""
        writes, floor, reads, time = published.writes, published.floor, published.reads, published.time
        published.writes = {**writes, **{at: writes.get(at, frozenset()) | found for at, found in view.writes.items()}}
        published.floor, published.time = max(floor, view.floor), max(time, view.time)
        published.reads = reads | view.reads
        for name, value in (("writes", writes), ("floor", floor), ("reads", reads), ("time", time)):
            self.back.append(partial(setattr, published, name, value))
        return all(self._tell(agent, since, view) for agent, since in list(published.joined)) and all(
            self._extend(whole, view) for whole in published.part_of
        )
