"""A log of events: an engine writes them into rows of memory, and the observer reads these when it is convenient.

An observer with an attribute `log` listens to `logged` instead of the events that the log takes over: those of
`Log.kinds`, if nobody else listens to them. The native engine writes a row for each without leaving its loop; where it
cannot, and on the reference engine, the observer is told as usual. Rows are given to `logged` in order, before anything
else is told or served in Python: what Python knows then is what it knew when the event happened.

The rows of a grid are bounded: further events are only counted.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    from ptxtools.program.program import Op, Program

#: A row. op: number in `Log.ops`; warp: its number; lanes: that come and whose guard holds; mask: all that come;
#: time: of the warp, in virtual nanoseconds (as the engine writes it, in records); key: the first source of the first
#: lane, plus the operation's constant; cta: number of the CTA, cluster by cluster; x, y, z: its place in the grid; sm:
#: its own; rank: in its cluster; external: Python will be told when it ends.
ROW = np.dtype([
    ("op", np.uint32), ("warp", np.uint32), ("lanes", np.uint32), ("mask", np.uint32), ("time", np.uint64),
    ("key", np.uint64), ("cta", np.uint64), ("x", np.uint32), ("y", np.uint32), ("z", np.uint32), ("sm", np.uint32),
    ("rank", np.uint32), ("external", np.uint32),
])  # fmt: skip
assert ROW.itemsize == 64


class LogState(ctypes.Structure):
    """rows: address of the first; used: rows that are written; room: how many there are; lost: events that found no
    room; stride: only CTAs whose number it divides are logged; cost: records that a logged event takes of its warp's
    slice."""

    _fields_ = (
        ("rows", ctypes.c_uint64),
        ("used", ctypes.c_uint64),
        ("room", ctypes.c_uint64),
        ("lost", ctypes.c_uint64),
        ("stride", ctypes.c_uint64),
        ("cost", ctypes.c_uint32),
        ("pad", ctypes.c_uint32),
    )


class Log:
    """kinds: of events in the program ("observe.line" and so on); events: the methods of `Observer` that they stand
    for; most: rows of a grid, 64 bytes each; timed: a logged event takes as much of its warp's
    slice as one that Python serves. ops: the events of the program by `op` of a row."""

    def __init__(self, kinds: frozenset[str], events: frozenset[str], most: int, *, timed: bool = False) -> None:
        self.kinds, self.events, self.most, self.timed = kinds, events, most, timed
        self.state = LogState(stride=1)
        self.ops: list[Op] = []
        self._rows: npt.NDArray[Any] | None = None
        self._left = 0

    @property
    def address(self) -> int:
        """Where the state lies in host memory."""
        return ctypes.addressof(self.state)

    @property
    def lost(self) -> int:
        """Events of the grid that are not in the log."""
        return int(self.state.lost)

    def find(self, program: Program) -> list[Op]:
        """The events of a program that it takes over, as `ops` from now on."""
        known = program.cache.get("logged")
        if known is None:
            known = program.cache["logged"] = [op for op in program.operations() if op.kind in self.kinds]
        self.ops = known
        return self.ops

    def begin(self) -> None:
        """Make room for the rows of a grid."""
        if self._rows is None:
            self._rows = np.empty(self.most, ROW)
            self.state.rows = self._rows.__array_interface__["data"][0]
        self._left = self.state.room = self.most
        self.state.used = self.state.lost = 0

    def taken(self) -> Iterator[npt.NDArray[Any]]:
        """The rows that have been written since the last call, if there are any."""
        used = self.state.used
        if used and self._rows is not None:
            self._left -= used
            self.state.used, self.state.room = 0, self._left
            yield self._rows[:used]


__all__ = ["ROW", "Log", "LogState"]
