"""Content of memory that can be put back. Of pages that nobody has touched nothing is kept, where the system says which
those are: they read as zeros."""

from __future__ import annotations

import mmap
from typing import Any

import numpy as np
import numpy.typing as npt

Bytes = npt.NDArray[np.uint8]

_PAGE = mmap.PAGESIZE
#: Linux: for each page of the process a word, whose upper two bits say that it is in memory, or swapped out.
_PAGES, _WORD, _THERE = "/proc/self/pagemap", 8, np.uint64(62)
#: With less memory than this it is not worth asking.
_SMALL = 1 << 20
#: For less than this, no room is kept.
_FEW = 1 << 14
_NO_ROOM: Bytes = np.empty(0, np.uint8)
#: Room for contents, of the last one that went: that of new memory costs more than the copy. And the most of it.
_ROOM: list[Bytes] = []
_MOST_ROOM = 1 << 26


class Kept:
    """The content of an array of bytes as it is now."""

    def __init__(self, memory: Bytes) -> None:
        self._memory = memory
        if len(memory) < _FEW:
            self._room, self._parts = _NO_ROOM, [(0, memory.copy())]
            return
        places = touched(memory)
        self._room = _room(sum(after - first for first, after in places))
        self._parts, at = [], 0
        for first, after in places:
            part = self._room[at : at + after - first]
            part[:] = memory[first:after]
            self._parts.append((first, part))
            at += after - first

    def __del__(self) -> None:
        room = getattr(self, "_room", None)  # None: there was not enough memory
        if room is not None and len(room) and not _ROOM and len(room) <= _MOST_ROOM:
            _ROOM.append(room)

    def put_back(self) -> None:
        """Write it back."""
        at = 0
        for first, content in self._parts:
            self._clear(at, first)
            at = first + len(content)
            self._memory[first:at] = content
        self._clear(at, len(self._memory))

    def _clear(self, first: int, after: int) -> None:
        rest = self._memory[first:after]
        for start, end in touched(rest):
            rest[start:end] = 0


def _room(size: int) -> Bytes:
    """An array of at least so many bytes."""
    try:
        room = _ROOM.pop()
    except IndexError:  # the usual way while somebody has it
        room = np.empty(0, np.uint8)
    return room if len(room) >= size else np.empty(size, np.uint8)


def touched(memory: Bytes) -> list[tuple[int, int]]:
    """Stretches (first byte, byte after the last) of an array that may have other bytes than zeros, ascending."""
    if len(memory) < _SMALL:
        return [(0, len(memory))] if len(memory) else []
    start = memory.__array_interface__["data"][0]
    first, after = start // _PAGE, -(-(start + len(memory)) // _PAGE)
    there = _there(first, after - first)
    if there is None:
        return [(0, len(memory))]
    edges = np.flatnonzero(np.diff(np.concatenate(([False], there, [False]))))
    places = np.clip((edges + first) * _PAGE - start, 0, len(memory))
    return [(int(a), int(b)) for a, b in places.reshape(-1, 2)]


def touched_bytes(memory: Bytes) -> int:
    """How many those are."""
    return sum(after - first for first, after in touched(memory))


def _there(first: int, count: int) -> Any:
    """Of each page whether it has content; None where nobody knows."""
    try:
        with open(_PAGES, "rb", buffering=0) as file:
            file.seek(first * _WORD)
            words = file.read(count * _WORD)
    except OSError:
        return None
    return np.frombuffer(words, np.uint64) >> _THERE != 0 if len(words) == count * _WORD else None
