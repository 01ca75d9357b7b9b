"""Device memory: one mapping of host memory with fixed device addresses, and its allocator."""

from __future__ import annotations

import ctypes
import mmap
import sys
from bisect import bisect_left, bisect_right
from contextlib import suppress

from ptxtools.diagnostics import LaunchError
from ptxtools.records import dataclass

from .poison import ZONE, differs, poison

#: Device address of the arena's first byte. Low enough for modules with 32-bit addresses, high enough that null plus
#: an offset is never mapped.
BASE = 0x1000_0000
ALIGNMENT = 256
#: Default size: the range of 32-bit addresses above BASE. Untouched pages take no memory.
DEFAULT_BYTES = 0xE000_0000
LEAST_BYTES = 1 << 26
#: Freed allocations are not reused at once: the limits on their number and total size, larger when
#: memcheck reports uses of freed memory.
_KEPT, _KEPT_BYTES = 64, 16 << 20
_KEPT_CHECKED, _KEPT_BYTES_CHECKED = 4096, 256 << 20
#: Bytes at each end of a freed allocation that are poisoned, and checked after each launch while it is kept.
_FREED_ENDS = 4096
PAGE = mmap.PAGESIZE
#: Allocations of so many bytes are in pages as large as that, where the system has them, and what lies before them.
LARGE_PAGE = 2 << 20
_HUGE = getattr(mmap, "MADV_HUGEPAGE", 0)
#: Reserve only address space: untouched memory costs nothing. Python names the flag from 3.13 on.
_NORESERVE = getattr(mmap, "MAP_NORESERVE", 0x4000 if sys.platform == "linux" else 0)


class OutOfMemory(LaunchError):  # noqa: N818 - a user-facing name
    """Device memory is exhausted."""


@dataclass(slots=True)
class Allocation:
    """A range of device memory: `address` is a device address, `size` the requested bytes."""

    address: int
    size: int


def _round_up(value: int, unit: int) -> int:
    return -(-value // unit) * unit


def _reserve(size: int) -> mmap.mmap:
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _NORESERVE
    try:
        return mmap.mmap(-1, size, flags=flags)
    except (OSError, ValueError, OverflowError) as error:
        raise OutOfMemory(f"cannot reserve {size:,} bytes of device memory: {error}") from None


def _reserve_default() -> mmap.mmap:
    """The default size, or as much as a limit on the process's address space allows."""
    size = DEFAULT_BYTES
    while size > LEAST_BYTES:
        try:
            return _reserve(size)
        except OutOfMemory:
            size //= 2
    return _reserve(LEAST_BYTES)


class Arena:
    """`size` bytes of device memory at device address `BASE`, and a first-fit allocator over them.

    The first allocations of a fresh arena always get the same addresses. Fresh memory reads as zero. Between two
    allocations are at least `ZONE` bytes of poison (`overwritten`), and freed memory stays unused for a time.
    host_addresses: device addresses are host addresses instead; checked: keep more freed memory.
    """

    def __init__(self, size: int | None = None, *, host_addresses: bool = False, checked: bool = False) -> None:
        self._map = _reserve(_round_up(size, PAGE)) if size else _reserve_default()
        self.size = size or len(self._map)
        # Hold a view, so that the mapping cannot be closed while an engine may use its address.
        self._view = (ctypes.c_char * len(self._map)).from_buffer(self._map)
        self.host = ctypes.addressof(self._view)
        self.base = self.host if host_addresses else BASE
        self._sizes: dict[int, int] = {}  # address -> bytes asked for: live allocations, and freed ones that are kept
        self._starts: list[int] = []  # their addresses, sorted
        self._freed: dict[int, int] = {}  # the freed ones among them, oldest first
        self._most = (_KEPT_CHECKED, _KEPT_BYTES_CHECKED) if checked else (_KEPT, _KEPT_BYTES)
        self._keep_all = checked
        self._own: set[int] = set()  # the freed ones whose addresses only kernels have known
        self._holes = False  # there may be free ranges below the last allocation
        self._watched: list[tuple[int, int, bytes]] | None = None  # what `overwritten` compares, while nothing changes
        self._end: int | None = None  # likewise
        self._large = 0  # offset behind the memory that was asked for in large pages
        self._touched = self.base  # memory from here on was never handed out: it still reads as zero

    @property
    def end(self) -> int:
        """One past the last address in use, rounded to 16 bytes; memory beyond is not mapped for kernels."""
        if self._end is None:
            live = (start for start in reversed(self._starts) if start not in self._freed)
            self._end = next((_round_up(start + self._sizes[start], 16) for start in live), self.base)
        return self._end

    def _after_last(self) -> int:
        return self._starts[-1] + self._sizes[self._starts[-1]] if self._starts else self.base

    @property
    def used(self) -> int:
        """Bytes from the first one to the end of the last allocation, and the poison behind it."""
        return min(_round_up(self._after_last() + ZONE - self.base, PAGE), self.size)

    def _ask_for_large_pages(self, end: int) -> None:
        """Ask Linux for pages of 2 MB up to an offset: of small ones, chance decides where in the caches they lie."""
        start = _round_up(self.host + self._large, LARGE_PAGE) - self.host
        end = (self.host + end) // LARGE_PAGE * LARGE_PAGE - self.host
        if start < end and _HUGE:
            self._large = end
            with suppress(OSError):
                self._map.madvise(_HUGE, start, end - start)

    def allocate(self, size: int, alignment: int = ALIGNMENT, *, zero: bool = False) -> Allocation:
        """`size` bytes, aligned to at least 256; raises `OutOfMemory`. An allocation of 0 bytes has an address too.

        zero: the bytes read as zero; otherwise they keep their previous content.
        """
        alignment, room = max(alignment, ALIGNMENT), max(size, 1)
        address = self._find(room, alignment)
        while address + room > self.base + self.size:
            if not self._freed:
                free = self.base + self.size - self.end
                raise OutOfMemory(f"out of device memory: {size:,} bytes requested, {free:,} of {self.size:,} free")
            self._forget(next(iter(self._freed)))
            address = self._find(room, alignment)
        place = bisect_left(self._starts, address)
        before = self._ends(place - 1) if place else self.base
        after = self._starts[place] if place < len(self._starts) else _round_up(address + room, 16)
        self._watched = self._end = None
        if size >= LARGE_PAGE:
            self._ask_for_large_pages(address - self.base + size)
        self._sizes[address] = room
        self._starts.insert(place, address)
        if zero and address < self._touched:
            self.clear(address, min(size, self._touched - address))
        self.poison(before, address)
        self.poison(address + room, min(after, address + room + ZONE))
        self._touched = max(self._touched, address + room + ZONE)
        return Allocation(address, size)

    def _ends(self, place: int) -> int:
        start = self._starts[place]
        return start + self._sizes[start]

    def _find(self, size: int, alignment: int) -> int:
        """The lowest free address for `size` bytes; after the last allocation if no gap is large enough."""
        if not self._starts:
            return _round_up(self.base, alignment)
        if self._holes:
            at = self.base
            for start in self._starts:
                candidate = _round_up(at, alignment)
                if candidate + size + ZONE <= start:
                    return candidate
                at = start + self._sizes[start] + ZONE
        return _round_up(self._after_last() + ZONE, alignment)

    def free(self, address: int, *, reuse: bool = False) -> None:
        """Free an allocation; raises `LaunchError` if there is none at that address.

        reuse: no host program has known the address, so the memory may be reused at once; where memory is checked, once
        nothing is left in which a kernel can have kept it.
        """
        size = self._sizes.get(address)
        if size is None or address in self._freed:
            again = ": it was freed already" if size is not None else ""
            raise LaunchError(f"no allocation at device address {address:#x}{again}")
        self._freed[address] = size
        self._watched = self._end = None
        most, most_bytes = self._most
        if (reuse and not self._keep_all) or size > most_bytes:
            self._forget(address)
            return
        self.poison(*self._head(address))
        self.poison(*self._tail(address))
        if reuse:
            self._own.add(address)
        if len(self._freed) == len(self._sizes):
            for kept in tuple(self._own):
                self._forget(kept)
        while len(self._freed) > most or sum(self._freed.values()) > most_bytes:
            self._forget(next(iter(self._freed)))

    def _head(self, address: int) -> tuple[int, int]:
        return address, address + min(self._sizes[address], _FREED_ENDS)

    def _tail(self, address: int) -> tuple[int, int]:
        end = address + self._sizes[address]
        return max(self._head(address)[1], end - _FREED_ENDS), end

    def _forget(self, address: int) -> None:
        """Make a freed allocation's memory available again."""
        self._own.discard(address)
        del self._freed[address], self._sizes[address]
        index = bisect_left(self._starts, address)
        del self._starts[index]
        self._holes = bool(self._starts) and (self._holes or index < len(self._starts))

    # --- poison -------------------------------------------------------------------------------------------------------

    def poison(self, start: int, end: int) -> None:
        """Poison a gap between allocations, or between parts of one; for a large freed one, only its ends."""
        if end - start > 2 * ZONE + _FREED_ENDS:
            self.poison(start, start + ZONE)
            self.poison(end - ZONE, end)
        elif end > start:
            self._map[start - self.base : end - self.base] = poison(start, end - start)

    def _zones(self) -> list[tuple[int, int]]:
        """(first, end) of all ranges that must still contain poison: next to allocations, and in freed ones.

        A gap of more than two zones may have held something between them.
        """
        found: list[tuple[int, int]] = []
        at = self.base
        for start in self._starts:
            if start - at <= 2 * ZONE and found:
                found.append((at, start))
            elif found:
                found += (at, at + ZONE), (start - ZONE, start)
            else:  # in front of the first
                found.append((max(at, start - ZONE), start))
            if start in self._freed:
                found += self._head(start), self._tail(start)
            at = start + self._sizes[start]
        if found:
            found.append((at, _round_up(at, 16)))
        return found

    def overwritten(self) -> list[tuple[int, int]]:
        """(first address, bytes up to the last) of forbidden writes; the poison is restored."""
        found: list[tuple[int, int]] = []
        memory, base = self._map, self.base
        if self._watched is None:
            self._watched = [(a - base, b - base, poison(a, b - a)) for a, b in self._zones() if b > a]
        for start, end, whole in self._watched:
            if memory[start:end] != whole:
                first, last = differs(memory[start:end], whole)
                found.append((base + start + first, last - first + 1))
                memory[start:end] = whole
        return found

    # --- what there is ------------------------------------------------------------------------------------------------

    def freed_at(self, address: int) -> tuple[int, int] | None:
        """(address, bytes) of the freed allocation that contains an address, while it is kept."""
        place = bisect_right(self._starts, address) - 1
        start = self._starts[place] if place >= 0 else -1
        size = self._freed.get(start)
        return (start, size) if size is not None and address < start + size else None

    def size_at(self, address: int) -> int | None:
        """Bytes of the allocation that starts at `address`, or None."""
        return None if address in self._freed else self._sizes.get(address)

    def live(self) -> list[tuple[int, int]]:
        """(address, bytes) of every allocation, in address order."""
        return [(start, self._sizes[start]) for start in self._starts if start not in self._freed]

    def freed(self) -> list[tuple[int, int]]:
        """The same of those that are freed, and kept; in any order."""
        return list(self._freed.items())

    def host_address(self, address: int) -> int:
        return self.host + (address - self.base)

    def view(self, address: int, size: int) -> memoryview:
        """The bytes at a device address; writing through the view writes device memory. Raises `LaunchError`."""
        offset = address - self.base
        if offset < 0 or size < 0 or offset + size > self.size:
            raise LaunchError(f"{size:,} bytes at device address {address:#x} are outside device memory")
        return memoryview(self._map)[offset : offset + size]

    def clear(self, address: int, size: int) -> None:
        """Set bytes to zero."""
        self.view(address, size)  # bounds
        ctypes.memset(self.host_address(address), 0, size)
