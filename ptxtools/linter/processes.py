"""One large module in several processes, each of which takes a share of the functions.

The processes are forks, which have the module in memory already; only findings come back. What a process that ends
early leaves undone is done here.
"""

from __future__ import annotations

import io
import os
import pickle
import signal
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Generic, TypeVar

#: What a process has to do before its share of the functions, as a part of what the rules cost for all functions.
#: Measured with modules of 1 MB: docs/performance.md.
CHECKING = 0.4
MODULE_RULES = 0.2

T = TypeVar("T")


def available() -> int:
    """How many processes can work at once; 1 where a process cannot be forked safely."""
    import sys
    import threading

    if not hasattr(os, "fork") or sys.platform == "darwin" or threading.active_count() > 1:
        return 1
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def shares(sizes: Sequence[int], before: Sequence[float]) -> list[slice]:
    """Split work, in its order, among processes so that all end at about the same time.

    sizes: of each piece; before: what each process does besides, as a part of the work for all pieces.
    """
    left, total = sum(sizes), max(1, sum(sizes))
    found: list[slice] = []
    start = 0
    for number, own in enumerate(before):
        rest = before[number:]
        # The level that this process and those behind it reach; those that begin above it get nothing.
        level = next(
            (left / total + sum(lower)) / len(lower)
            for lower in (sorted(rest)[:count] for count in range(len(rest), 0, -1))
            if (left / total + sum(lower)) / len(lower) >= lower[-1]
        )
        wanted, taken, end = (level - own) * total, 0, start
        while end < len(sizes) and (number + 1 == len(before) or taken + sizes[end] / 2 < wanted):
            taken += sizes[end]
            end += 1
        found.append(slice(start, end))
        start, left = end, left - taken
    return found


def together(works: Sequence[Callable[[], T]], shared: object) -> list[T]:
    """The result of each work; the last is done in this process, the others in one fork each.

    shared: an object that results refer to, which is not sent back.
    """
    children = [_Child(work, shared) for work in works[:-1]]
    try:
        own = works[-1]()
        return [*(child.result() for child in children), own]
    finally:
        for child in children:
            child.end()


class _Child(Generic[T]):
    """A fork that does one work."""

    def __init__(self, work: Callable[[], T], shared: object) -> None:
        self._work, self._shared = work, shared
        self._read, write = os.pipe()
        self._pid = os.fork()
        if not self._pid:
            status = 1
            with suppress(BaseException):  # nothing of it may run on behind here
                signal.signal(signal.SIGINT, signal.SIG_DFL)
                with os.fdopen(write, "wb") as pipe:
                    pipe.write(packed(work(), shared))
                status = 0
            os._exit(status)
        os.close(write)

    def result(self) -> T:
        """What the fork gave; what it did not finish is done here."""
        with os.fdopen(self._read, "rb", closefd=False) as pipe:
            data = pipe.read()
        _, status = os.waitpid(self._pid, 0)
        self._pid = 0
        if status:
            return self._work()
        result: T = unpacked(data, self._shared)
        return result

    def end(self) -> None:
        """Stop the fork if it still runs."""
        os.close(self._read)
        if self._pid:
            with suppress(ProcessLookupError):
                os.kill(self._pid, signal.SIGKILL)
            os.waitpid(self._pid, 0)


class _Pickler(pickle.Pickler):
    """Sends a name in the place of one object."""

    def __init__(self, file: io.BytesIO, shared: object) -> None:
        super().__init__(file, pickle.HIGHEST_PROTOCOL)
        self._shared = shared

    def persistent_id(self, value: object) -> str | None:
        return "shared" if value is self._shared else None


class _Unpickler(pickle.Unpickler):
    """Takes one object for the name that was sent."""

    def __init__(self, file: io.BytesIO, shared: object) -> None:
        super().__init__(file)
        self._shared = shared

    def persistent_load(self, name: object) -> object:
        return self._shared


def packed(result: object, shared: object) -> bytes:
    """A result for another process. shared: an object that it refers to, which is not sent."""
    file = io.BytesIO()
    _Pickler(file, shared).dump(result)
    return file.getvalue()


def unpacked(data: bytes, shared: object) -> Any:
    """A result that another process packed. shared: this process's own object in the place of the one not sent."""
    return _Unpickler(io.BytesIO(data), shared).load()
