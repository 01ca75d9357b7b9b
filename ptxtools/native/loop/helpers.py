"""Threads that run shares of launches, and wait a while for the next: waking one is quicker than starting one."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable

#: Seconds that a thread waits for the next launch before it ends.
IDLE = 1.0

_idle: list[_Helper] = []


class Job:
    """Work on another thread, from `begin` on; it must not raise."""

    def __init__(self, work: Callable[[], None]) -> None:
        self.work = work
        self._begun, self._over = threading.Lock(), threading.Lock()
        self._over.acquire()

    def run(self) -> None:
        """Do it, if it is still wanted."""
        if self._begun.acquire(blocking=False):
            work, self.work = self.work, _nothing
            try:
                work()
            finally:
                del work  # before the end is told: what it refers to may be gone then
                self._over.release()

    def drop(self) -> None:
        """It is wanted no more, if it has not begun."""
        if self._begun.acquire(blocking=False):
            self.work = _nothing
            self._over.release()

    def join(self) -> None:
        """Wait for its end."""
        with self._over:
            pass

    def is_alive(self) -> bool:
        """Whether it is not over."""
        return self._over.locked()


def _nothing() -> None:
    """What is left of work that was done."""


def begin(work: Callable[[], None]) -> Job:
    """Have a function called on a thread that nobody else uses until it returns."""
    job = Job(work)
    try:
        helper = _idle.pop()
    except IndexError:
        helper = _Helper()
    helper.call(job)
    return job


class _Helper:
    def __init__(self) -> None:
        self._job: Job | None = None
        self._called = threading.Lock()
        self._called.acquire()
        threading.Thread(target=self._serve, name="ptxtools worker", daemon=True).start()

    def call(self, job: Job) -> None:
        """Have a job done; none is at present."""
        self._job = job
        self._called.release()

    def _serve(self) -> None:
        while True:
            if not self._called.acquire(timeout=IDLE):
                try:
                    _idle.remove(self)
                except ValueError:  # somebody has just taken it
                    self._called.acquire()
                else:
                    return
            job, self._job = self._job, None
            assert job is not None
            job.run()
            del job
            _idle.append(self)


def _forget() -> None:
    """A copy of the process has no such threads."""
    _idle.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
