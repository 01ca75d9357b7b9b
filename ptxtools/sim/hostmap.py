"""The memory map of the process, for kernels that work on host addresses (`ptx_run`)."""

from __future__ import annotations

import re
from bisect import bisect_right

_MAPS = "/proc/self/maps"
#: Start, end and right to write of the ranges that can be read.
_READABLE = re.compile(rb"^([0-9a-f]+)-([0-9a-f]+) r([w-])", re.M)


class HostMap:
    """The process's memory map during a launch, read on first use and again whenever an address is not in it. The next
    launch needs a new one: what was writable may be so no more."""

    def __init__(self) -> None:
        self._starts: list[int] = []
        self._ranges: list[tuple[int, int, bool]] = []  # start, end, writable; readable ones only, sorted

    def allows(self, address: int, size: int, write: bool) -> bool:
        """Whether the process may read, or write, `size` bytes at `address`."""
        if self._covers(address, size, write):
            return True
        self.read()
        return self._covers(address, size, write)

    def read(self) -> None:
        """Read the map again. Neighbouring ranges with the same rights become one."""
        ranges: list[tuple[int, int, bool]] = []
        with open(_MAPS, "rb") as file:
            data = file.read()
        for first, last, may_write in _READABLE.findall(data):
            start, end, writable = int(first, 16), int(last, 16), may_write == b"w"
            if ranges and ranges[-1][1] == start and ranges[-1][2] == writable:
                ranges[-1] = (ranges[-1][0], end, writable)
            else:
                ranges.append((start, end, writable))
        self._ranges = ranges
        self._starts = [start for start, _, _ in ranges]

    def _covers(self, address: int, size: int, write: bool) -> bool:
        end = address + size
        while True:
            place = bisect_right(self._starts, address) - 1
            if place < 0:
                return False
            _, last, writable = self._ranges[place]
            if address >= last or (write and not writable):
                return False
            if end <= last:
                return True
            address = last  # goes on into the next range, if that is adjacent

    def range_of(self, address: int) -> tuple[int, int] | None:
        """The writable range that contains `address`, as (start, end)."""
        place = bisect_right(self._starts, address) - 1
        if place < 0:
            return None
        start, end, writable = self._ranges[place]
        return (start, end) if writable and address < end else None
