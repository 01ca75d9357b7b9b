"""The memory map of the process, for kernels that work on host addresses (`ptx_run`)."""

from __future__ import annotations

import errno
import struct
from bisect import bisect_right
from collections.abc import Callable
from functools import partial
from typing import TypeAlias

_MAPS = "/proc/self/maps"
#: Linux's PROCMAP_QUERY (6.11): its number, and its structure: size, flags, address; start, end, rights; others.
_QUERY, _QUERIED = 0xC068_6611, struct.Struct("<6Q56x")
_MAY_READ, _MAY_WRITE = 1, 2
#: What a kernel without it, or a sandbox, answers.
_UNKNOWN = (errno.ENOTTY, errno.EINVAL, errno.ENOSYS, errno.EPERM, errno.EACCES)
#: Neighbours with the same rights that are looked at on each side of a mapping.
_NEIGHBOURS = 16

#: Start, end, whether it can be written.
Range: TypeAlias = tuple[int, int, bool]
#: The readable mapping that contains an address, or None.
Look: TypeAlias = Callable[[int], Range | None]


class HostMap:
    """The process's memory map during a launch, as far as it was asked for; an address that is not in what is known is
    looked up again. The next launch needs a new one: what was writable may be so no more."""

    def __init__(self) -> None:
        #: Starts, and the readable ranges, sorted; replaced as one, since several workers ask.
        self._known: tuple[list[int], list[Range]] = ([], [])

    def allows(self, address: int, size: int, write: bool) -> bool:
        """Whether the process may read, or write, `size` bytes at `address`."""
        if self._covers(address, size, write):
            return True
        self.read(address, size)
        return self._covers(address, size, write)

    def read(self, address: int, size: int = 1) -> None:
        """Look up what is around some bytes. Neighbouring ranges with the same rights become one."""
        with open(_MAPS, "rb", buffering=0) as file:
            look: Look = partial(_query, file.fileno())
            try:
                look(address)
            except OSError as error:
                if error.errno not in _UNKNOWN:
                    raise
                look = partial(_in_text, b"".join(iter(partial(file.read, 1 << 20), b"")))
            at, end = address, address + size
            while at < end:
                found = _around(look, at, back=at == address)
                self._note(found or (at, at, False))
                at = found[1] if found else end

    def _note(self, found: Range) -> None:
        """Know a range instead of all that touches it."""
        first, last, _ = found
        ranges = [known for known in self._known[1] if known[1] <= first or known[0] >= max(last, first + 1)]
        ranges += [found] if first < last else []
        ranges.sort()
        self._known = [start for start, _, _ in ranges], ranges

    def _covers(self, address: int, size: int, write: bool) -> bool:
        starts, ranges = self._known
        end = address + size
        while True:
            place = bisect_right(starts, address) - 1
            if place < 0:
                return False
            _, last, writable = ranges[place]
            if address >= last or (write and not writable):
                return False
            if end <= last:
                return True
            address = last  # goes on into the next range, if that is adjacent

    def range_of(self, address: int) -> tuple[int, int] | None:
        """The writable range that contains `address`, as (start, end)."""
        starts, ranges = self._known
        place = bisect_right(starts, address) - 1
        if place < 0:
            return None
        start, end, writable = ranges[place]
        return (start, end) if writable and address < end else None


def _query(file: int, address: int) -> Range | None:
    """Ask Linux for one mapping. Raises OSError where it does not know the question."""
    from fcntl import ioctl

    if address >> 64:
        return None
    answer = bytearray(_QUERIED.pack(_QUERIED.size, 0, address, 0, 0, 0))
    try:
        ioctl(file, _QUERY, answer)
    except FileNotFoundError:
        return None
    _, _, _, start, end, rights = _QUERIED.unpack(answer)
    return (start, end, bool(rights & _MAY_WRITE)) if rights & _MAY_READ else None


def _in_text(text: bytes, address: int) -> Range | None:
    """Find one mapping in the text of the map, whose lines are sorted."""
    low, high = 0, len(text)  # starts of lines: the first that ends behind the address lies between them
    while low < high:
        middle = text.rfind(b"\n", 0, (low + high) // 2) + 1
        _, end, _ = _line(text, middle)
        if end <= address:
            low = text.index(b"\n", middle) + 1
        else:
            high = middle
    if low == len(text):
        return None
    start, end, rights = _line(text, low)
    return (start, end, rights[1:2] == b"w") if start <= address and rights[:1] == b"r" else None


def _line(text: bytes, at: int) -> tuple[int, int, bytes]:
    """Start, end and rights of the mapping in the line that begins there."""
    place, rights = text[at : at + 48].split(b" ", 2)[:2]
    start, _, end = place.partition(b"-")
    return int(start, 16), int(end, 16), rights


def _around(look: Look, address: int, *, back: bool) -> Range | None:
    """The mapping that contains an address, with neighbours that have the same rights; back: also those before it."""
    found = look(address)
    if found is None:
        return None
    start, end, writable = found
    for _ in range(_NEIGHBOURS):
        after = look(end)
        if after is None or after[2] != writable:
            break
        end = after[1]
    for _ in range(_NEIGHBOURS if back else 0):
        before = look(start - 1) if start else None
        if before is None or before[2] != writable:
            break
        start = before[0]
    return start, end, writable
