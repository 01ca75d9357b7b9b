"""Earlier moments of a run, kept as processes that wait: how the debugger goes back.

A snapshot is a fork of the process that runs. It waits until somebody goes back to it; then it forks again, so that it
stays, and the new process goes on from there as the present one, with the orders that it was given. The process that
the user started only waits for the status of the last one. Nothing of an engine has to be saved or restored, memory is
copied by the system as it is changed, and the run is the same each time, because it is deterministic.
"""

from __future__ import annotations

import os
import pickle
import select
import signal
import socket
import struct
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from ptxtools.records import dataclass

#: The most snapshots that are kept. When there are more, every second of the older half goes.
MOST = 32
_HEAD = struct.Struct("<Q")
#: What processes tell the first one: kind and number.
_NOTE = struct.Struct("<cq")
_PRESENT, _LEAVING, _STATUS = b"P", b"L", b"S"
#: Status if the process that runs ends without saying one.
LOST = 70


def can_go_back() -> bool:
    """Whether this system can copy a process and wait for it."""
    return hasattr(os, "fork") and hasattr(os, "pidfd_open")


@dataclass(slots=True)
class Snapshot:
    """A process that waits at a moment (the count of the gate); door: where it takes orders."""

    count: int
    door: socket.socket


class Timeline:
    """The snapshots of the present process, oldest first."""

    def __init__(self, notes: int, alive: int) -> None:
        """notes: a pipe to the first process; alive: one that ends when that process ends."""
        self.snapshots: list[Snapshot] = []
        self._notes, self._alive = notes, alive

    # --- going back ---------------------------------------------------------------------------------------------------

    def take(self, count: int) -> Any:
        """Keep this moment. Returns None; in a process that comes back to it later, the orders for it."""
        door, inside = socket.socketpair()
        _flush()
        if os.fork():
            inside.close()
            self.snapshots.append(Snapshot(count, door))
            self._thin()
            return None
        orders = self._wait(inside)  # only a copy returns from here
        inside.close()
        self.snapshots.append(Snapshot(count, door))
        self._note(_PRESENT, os.getpid())
        return orders

    def _wait(self, inside: socket.socket) -> Any:
        handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGCHLD)}
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # copies that end leave nothing behind
        while True:
            ready, _, _ = select.select([inside.fileno(), self._alive], [], [])
            orders = None if self._alive in ready else _receive(inside)
            if orders is None:
                os._exit(0)
            if os.fork() == 0:
                for number, handler in handlers.items():
                    signal.signal(number, handler)
                return orders

    def back(self, count: int, orders: Any) -> None:
        """Go on at the last snapshot that is not later than `count`, in another process: this one ends. Returns only
        if there is none."""
        while self.snapshots and self.snapshots[-1].count > count:
            self._drop(self.snapshots.pop())
        if not self.snapshots:
            return
        _flush()
        self._note(_LEAVING, 0)
        _send(self.snapshots[-1].door, orders)
        os._exit(0)

    def earliest(self) -> int | None:
        """The first moment that can be gone back to."""
        return self.snapshots[0].count if self.snapshots else None

    def before(self, count: int) -> int | None:
        """The last snapshot before a moment."""
        return max((one.count for one in self.snapshots if one.count < count), default=None)

    def _thin(self) -> None:
        if len(self.snapshots) > MOST:
            half = len(self.snapshots) // 2
            for old in self.snapshots[1:half:2]:
                self._drop(old)
            self.snapshots = [self.snapshots[0], *self.snapshots[2:half:2], *self.snapshots[half:]]

    def _drop(self, snapshot: Snapshot) -> None:
        _send(snapshot.door, None)
        snapshot.door.close()

    # --- the first process --------------------------------------------------------------------------------------------

    def _note(self, kind: bytes, number: int) -> None:
        os.write(self._notes, _NOTE.pack(kind, number))

    def finish(self, status: int) -> None:
        """The run is over: tell the first process, and end this one."""
        _flush()
        self._note(_STATUS, status)
        os._exit(0)


def run(body: Callable[[Timeline], int]) -> int:
    """Run `body` in a process of its own, with a timeline; returns the status that it, or the process that it went back
    to last, has returned. `body` must not raise."""
    notes, tell = os.pipe()
    alive, hold = os.pipe()
    _flush()
    child = os.fork()
    if child == 0:
        os.close(notes)
        os.close(hold)
        timeline = Timeline(tell, alive)
        timeline.finish(body(timeline))
    os.close(tell)
    os.close(alive)
    kept = signal.signal(signal.SIGINT, signal.SIG_IGN)  # it is for the process that runs
    try:
        return _status(notes, child)
    finally:
        os.close(hold)  # all snapshots end
        os.close(notes)
        os.waitpid(child, 0)
        signal.signal(signal.SIGINT, kept)


def _status(notes: int, child: int) -> int:
    present: int | None = os.pidfd_open(child)
    while True:
        ready, _, _ = select.select([notes] if present is None else [notes, present], [], [])
        if notes not in ready:
            return LOST
        kind, number = _NOTE.unpack(os.read(notes, _NOTE.size))
        if kind == _STATUS:
            return int(number)
        if present is not None:
            os.close(present)
        present = None
        if kind == _PRESENT:
            try:
                present = os.pidfd_open(number)
            except ProcessLookupError:  # it has ended; what it said is in the pipe
                continue


def _flush() -> None:
    """What a copy would write once more."""
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.flush()


def _send(door: socket.socket, orders: Any) -> None:
    data = b"" if orders is None else pickle.dumps(orders)
    with suppress(OSError):  # it has ended
        door.sendall(_HEAD.pack(len(data)) + data)


def _receive(inside: socket.socket) -> Any:
    """Orders; None for none, and where everybody has gone."""
    (size,) = _HEAD.unpack(_exactly(inside, _HEAD.size) or bytes(_HEAD.size))
    return pickle.loads(_exactly(inside, size)) if size else None


def _exactly(inside: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        part = inside.recv(size - len(data))
        if not part:
            return b""
        data += part
    return data
