"""Asynchronous work, and the bulk groups in which threads wait for it (9.7.9.25.1).

Work has steps: reading the source, writing the target. `Cluster.later` decides when a step is taken: at once, unless
asynchronous work is shuffled or late. In a late run, a thread that waits for work completes it; the rest is completed
when its CTA ends.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np

from ptxtools.machine.claims import Claim, Span, announce, heard
from ptxtools.machine.events import View
from ptxtools.machine.residents import Cta
from ptxtools.records import dataclass, field

Step = Callable[[], None]
Spans = Callable[[], list[list[Span]]]


def _no_spans() -> list[list[Span]]:
    return []


@dataclass(slots=True, eq=False)
class Work:
    """One asynchronous operation: its remaining steps."""

    steps: list[Step]
    text: str
    read: bool = False
    claims: list[Claim] = field(default_factory=list)  # one for each step, where somebody listens

    @property
    def done(self) -> bool:
        return not self.steps


@dataclass(slots=True)
class _Groups:
    """Bulk groups of a thread: the open one, and those committed that may be pending, oldest first."""

    open: list[Work] = field(default_factory=list)
    committed: list[list[Work]] = field(default_factory=list)


class Queue:
    """Asynchronous work of one CTA. Threads are (warp, lane)."""

    def __init__(self, cta: Cta) -> None:
        self.cta = cta
        self.pending: dict[Work, list[tuple[int, int]]] = {}  # to the threads that asked for it
        self.groups: dict[tuple[int, int], _Groups] = {}
        cta.at_end.append(self.finish)

    def submit(self, view: View, lane: int, steps: list[Step], text: str, spans: Spans = _no_spans) -> None:
        """Start work for a lane. It belongs to the lane's open group until it is done."""
        self.submit_together(view, [lane], steps, text, spans)

    def submit_together(
        self, view: View, lanes: Iterable[int], steps: list[Step], text: str, spans: Spans = _no_spans, *,
        grouped: bool = True,
    ) -> None:  # fmt: skip
        """Start one piece of work for several lanes; it belongs to the open groups of all of them, or to none.

        spans: what each step reads and writes, asked for where somebody listens.
        """
        threads = [(view.warp, lane) for lane in lanes]
        work = Work(steps, text)
        if heard(view):
            claims = [announce(view, threads[0][1], text, lambda: some) for some in spans()]  # noqa: B023 - at once
            work.claims = [claim for claim in claims if claim is not None]
        self.pending[work] = threads
        if grouped:
            for who in threads:
                self.groups.setdefault(who, _Groups()).open.append(work)
        self._later(work)

    def _later(self, work: Work) -> None:
        self.cta.cluster.later(lambda: self._step(work), work.text)

    def _step(self, work: Work) -> None:
        if work.done:
            return  # somebody waited for it, or the CTA ended
        self._take_step(work)
        if not work.done:
            self._later(work)

    def _take_step(self, work: Work) -> None:
        threads = self.pending[work]
        work.steps.pop(0)()
        if work.claims:
            claim = work.claims.pop(0)
            claim.end()
        work.read = True
        if work.done:
            self.pending.pop(work, None)
        for who in threads:
            self.cta.cluster.wake(self.key(who))

    def force(self, work: Work, *, read: bool = False) -> None:
        """Complete some work; read: only until its source has been read."""
        while not (work.done or (read and work.read)):
            self._take_step(work)

    def finish(self) -> None:
        """Complete all remaining work."""
        for work in list(self.pending):
            if work.claims and not work.read and any(span.owner is self.cta for span in work.claims[0].spans):
                work.claims[0].abandon("a wait")
            self.force(work)

    # --- groups -------------------------------------------------------------------------------------------------------

    def key(self, who: tuple[int, int]) -> tuple[str, int, int, int]:
        """The wait key of a thread that waits for its groups."""
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
        older = committed[: max(0, len(committed) - most)]
        return [work for group in older for work in group if not (work.done or (read and work.read))]

    def open_of(self, who: tuple[int, int]) -> list[Work]:
        """The work that a thread has not committed to a group."""
        groups = self.groups.get(who)
        return [] if groups is None else [work for work in groups.open if not work.done]


def queue_of(view: View, which: str = "async") -> Queue:
    """The queue of the CTA that runs an operation: bulk and tensor copies, or another kind with groups of its own."""
    queue = view.cta.state.get(which)
    if queue is None:
        queue = view.cta.state[which] = Queue(view.cta)
    assert isinstance(queue, Queue)
    return queue


def tell_of_groups(view: View, lanes: Iterable[int]) -> None:
    """Tell who listens of lanes that go on behind this."""
    listeners = view.launch.observers
    if listeners is not None and listeners.hear("bulk_grouped"):
        listeners.tell("bulk_grouped", view, np.array(list(lanes), np.int64))
