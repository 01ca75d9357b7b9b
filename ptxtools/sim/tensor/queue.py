"""Asynchronous tcgen05 work of a CTA (9.7.16.6): done in the order of issue, at once or, in a shuffled run, later."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from ptxtools.engine.events import View

_KEY = "tcgen05 queue"


def issue(view: View, work: Callable[[], None], text: str) -> None:
    """Do the work after all that this CTA has issued before: mma, cp, shift and commit stay in order."""
    if view.schedule.random is None:
        work()
        return
    queue: deque[Callable[[], None]] = view.cta.state.setdefault(_KEY, deque())
    queue.append(work)
    view.cluster.later(lambda: queue.popleft()(), text)
