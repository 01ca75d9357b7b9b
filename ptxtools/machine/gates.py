"""A gate before the event of instructions: lets an observer hear of few of them, while all are counted.

An observer with `instruction` and an attribute `gate` is told of an instruction only where the gate is open for it: its
line is armed, the count has reached `until`, the warp that is followed comes, or a watched word of host memory has
changed. The native engine does this test without leaving its loop; the Python code here does the same for the reference
engine, and counts what the native one has left to it. All numbers are in one structure, which both read.

A launch with a gate runs alike however often the gate opens: what is counted once is counted so in every run.
"""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    from ptxtools.program.program import Program

    from .events import View

#: Words that can be watched at a time.
WATCHES = 32
#: A count that is never reached.
NEVER = (1 << 63) - 1
#: `GateState.follow`: nobody; note when the warp comes; open when it comes.
FOLLOW_NOBODY, FOLLOW_NOTES, FOLLOW_OPENS = range(3)
_KEY = "armed"


class WatchState(ctypes.Structure):
    """A watched word: the bits in `mask` of 8 bytes at a host address have been `old`."""

    _fields_ = (("address", ctypes.c_uint64), ("mask", ctypes.c_uint64), ("old", ctypes.c_uint64))


class GateState(ctypes.Structure):
    """count: instructions that warps have come to; until: open from this count on; seen: count of the last one of the
    followed warp. follow: FOLLOW_*; x, y, z, warp, lanes: which warp that is (any of the lanes). watches: rows of
    `WatchState` in use; last_*: with watches, the instruction before."""

    _fields_ = (
        ("count", ctypes.c_uint64),
        ("until", ctypes.c_uint64),
        ("seen", ctypes.c_uint64),
        ("rows", ctypes.c_uint64),
        ("follow", ctypes.c_uint32),
        ("x", ctypes.c_uint32),
        ("y", ctypes.c_uint32),
        ("z", ctypes.c_uint32),
        ("warp", ctypes.c_uint32),
        ("lanes", ctypes.c_uint32),
        ("watches", ctypes.c_uint32),
        ("last_where", ctypes.c_uint32),
        ("last_x", ctypes.c_uint32),
        ("last_y", ctypes.c_uint32),
        ("last_z", ctypes.c_uint32),
        ("last_warp", ctypes.c_uint32),
    )


class Gate:
    """The state of a gate, and the lines that are armed."""

    def __init__(self) -> None:
        self.state = GateState(until=NEVER)
        self.rows = (WatchState * WATCHES)()
        self.state.rows = ctypes.addressof(self.rows)

    @property
    def address(self) -> int:
        """Where the state lies in host memory."""
        return ctypes.addressof(self.state)

    def armed(self, program: Program) -> npt.NDArray[np.uint8]:
        """A flag for each line of a program (`Op.where`): not 0 opens the gate there. Change it in place."""
        found: Any = program.cache.get(_KEY)
        if found is None:
            found = program.cache[_KEY] = np.zeros(max(1, len(program.lines)), np.uint8)
        flags: npt.NDArray[np.uint8] = found
        return flags

    def follow(self, how: int, cta: tuple[int, int, int] = (0, 0, 0), warp: int = 0, lanes: int = 0) -> None:
        """Follow some lanes of a warp (`FOLLOW_NOTES`, `FOLLOW_OPENS`), or nobody."""
        state = self.state
        state.follow, state.warp, state.lanes, state.seen = how, warp, lanes, 0
        state.x, state.y, state.z = cta

    def watch(self, words: list[tuple[int, int]]) -> None:
        """Watch words of host memory, each an address and a mask of 64 bits, from what they are now."""
        for row, (address, mask) in zip(self.rows, words, strict=False):
            row.address, row.mask, row.old = address, mask, _word(address) & mask
        self.state.watches = len(words)

    def comes(self, at: View) -> bool:
        """Count an instruction that a warp comes to; whether the gate is open for it."""
        state = self.state
        state.count += 1
        follows = bool(
            state.follow and at.mask & state.lanes and at.warp == state.warp
            and at.cta.place == (state.x, state.y, state.z)
        )  # fmt: skip
        changed = any(self.changed())
        opens = bool(
            self.armed(at.launch.program)[at.op.where] or state.count >= state.until or changed
            or (follows and state.follow == FOLLOW_OPENS)
        )  # fmt: skip
        if not opens:
            if follows:
                state.seen = state.count
            self.passed(at)
        return opens

    def passed(self, at: View) -> None:
        """Whoever the gate opened for has seen the instruction before, and goes on."""
        state = self.state
        if state.watches:
            state.last_where, state.last_warp = max(at.op.where, 0), at.warp
            state.last_x, state.last_y, state.last_z = at.cta.place

    def changed(self) -> list[bool]:
        """Which of the watched words are no longer what they were."""
        rows = self.rows[: self.state.watches]
        return [_word(row.address) & row.mask != row.old for row in rows]


def _word(address: int) -> int:
    return int.from_bytes(ctypes.string_at(address, 8), "little")
