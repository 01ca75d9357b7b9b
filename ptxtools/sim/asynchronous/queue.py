"""Work that goes on behind a thread's back, and the bulk groups in which threads wait for it (9.7.9.25.1).

Work has steps: reading the source, writing the target. `Cluster.later` decides when a step is taken: at once, unless
asynchronous work is shuffled. What is left when a CTA ends is done then.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from ptxtools.engine.events import View
from ptxtools.engine.residents import Cta

Step = Callable[[], None]


@dataclass(slots=True, eq=False)
class Work:
    """One asynchronous operation: the steps that are left of it."""

    steps: list[Step]
    text: str
    read: bool = False

    @property
    def done(self) -> bool:
        return not self.steps


@dataclass(slots=True)
class _Groups:
    """Bulk groups of a thread: the open one, and those committed that may be pending, oldest first."""

    open: list[Work] = field(default_factory=list)
    committed: list[list[Work]] = field(default_factory=list)


class Queue:
    """Asynchronous work of one CTA."""

    def __init__(self, cta: Cta) -> None:
        self.cta = cta
        self.pending: dict[Work, tuple[int, int]] = {}  # to the thread that asked for it
        self.groups: dict[tuple[int, int], _Groups] = {}
        cta.at_end.append(self.finish)

    def submit(self, view: View, lane: int, steps: list[Step], text: str) -> None:
        """Start work for a lane. It belongs to the lane's open bulk group until it is done."""
        who = (view.warp, lane)
        work = Work(steps, text)
        self.pending[work] = who
        self.groups.setdefault(who, _Groups()).open.append(work)
        self._later(work)

    def _later(self, work: Work) -> None:
        self.cta.cluster.later(lambda: self._step(work), work.text)

    def _step(self, work: Work) -> None:
        if work.done:
            return  # the CTA ended before
        work.steps.pop(0)()
        work.read = True
        who = self.pending[work]
        if work.done:
            del self.pending[work]
        else:
            self._later(work)
        self.cta.cluster.wake(self.key(who))

    def finish(self) -> None:
        """Do all that is left."""
        for work in list(self.pending):
            while not work.done:
                work.steps.pop(0)()
        self.pending.clear()

    # --- groups -------------------------------------------------------------------------------------------------------

    def key(self, who: tuple[int, int]) -> tuple[str, int, int, int]:
        """What a thread that waits for its groups waits for."""
        return ("bulk", self.cta.rank, *who)

    def commit(self, who: tuple[int, int]) -> None:
        groups = self.groups.setdefault(who, _Groups())
        groups.committed.append([work for work in groups.open if not work.done])
        groups.open.clear()

    def unfinished(self, who: tuple[int, int], most: int, *, read: bool) -> list[Work]:
        """What a thread still waits for when only its `most` latest groups may be pending."""
        groups = self.groups.get(who)
        if groups is None:
            return []
        committed = groups.committed
        while committed and all(work.done for work in committed[0]):
            committed.pop(0)
        older = committed[: len(committed) - most] if most else committed
        return [work for group in older for work in group if not (work.done or (read and work.read))]


def queue_of(view: View) -> Queue:
    """The queue of the CTA that runs an operation."""
    queue = view.cta.state.get("async")
    if queue is None:
        queue = view.cta.state["async"] = Queue(view.cta)
    assert isinstance(queue, Queue)
    return queue
