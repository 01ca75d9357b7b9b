"""Device memory: one mapping of host memory with fixed device addresses, and its allocator."""

from __future__ import annotations

import ctypes
import mmap
import sys
from bisect import bisect_left, insort
from dataclasses import dataclass

from ptxtools.diagnostics import LaunchError

#: Device address of the arena's first byte. Low enough for modules with 32-bit addresses, high enough that null plus
#: an offset is never mapped.
BASE = 0x1000_0000
ALIGNMENT = 256
#: Default size: what 32-bit addresses reach above BASE. The pages are the system's until something touches them.
DEFAULT_BYTES = 0xE000_0000
LEAST_BYTES = 1 << 26
PAGE = mmap.PAGESIZE
#: Reserve address space only: memory that nothing touches costs nothing. Python names the flag from 3.13 on.
_NORESERVE = getattr(mmap, "MAP_NORESERVE", 0x4000 if sys.platform == "linux" else 0)


class OutOfMemory(LaunchError):  # noqa: N818 - a user-facing name
    """Device memory is exhausted."""


@dataclass(slots=True)
class Allocation:
    """A range of device memory: `address` is a device address, `size` in bytes as asked for."""

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
    """The default size, or as much of it as a limit on the process's address space lets it have."""
    size = DEFAULT_BYTES
    while size > LEAST_BYTES:
        try:
            return _reserve(size)
        except OutOfMemory:
            size //= 2
    return _reserve(LEAST_BYTES)


class Arena:
    """`size` bytes of device memory at device address `BASE`, and a first-fit allocator over them.

    The first allocations of a fresh arena always get the same addresses. Fresh memory reads as zero. host_addresses:
    device addresses are host addresses instead.
    """

    def __init__(self, size: int | None = None, *, host_addresses: bool = False) -> None:
        self._map = _reserve(_round_up(size, PAGE)) if size else _reserve_default()
        self.size = size or len(self._map)
        # Hold a view, so that the mapping cannot be closed while an engine may use its address.
        self._view = (ctypes.c_char * len(self._map)).from_buffer(self._map)
        self.host = ctypes.addressof(self._view)
        self.base = self.host if host_addresses else BASE
        self._live: dict[int, int] = {}  # address -> bytes asked for
        self._starts: list[int] = []  # addresses of live allocations, sorted
        self._holes = False  # there may be free ranges below the last allocation
        self._touched = self.base  # memory from here on was never handed out: it still reads as zero

    @property
    def end(self) -> int:
        """One past the last address in use, rounded to 16 bytes: what lies beyond is not mapped for kernels."""
        return _round_up(self._after_last(), 16)

    def _after_last(self) -> int:
        return self._starts[-1] + self._live[self._starts[-1]] if self._starts else self.base

    def allocate(self, size: int, alignment: int = ALIGNMENT, *, zero: bool = False) -> Allocation:
        """`size` bytes, aligned to at least 256; raises `OutOfMemory`. An allocation of 0 bytes has an address too.

        zero: the bytes read as zero; otherwise they are what was there before.
        """
        alignment = max(alignment, ALIGNMENT)
        address = self._find(max(size, 1), alignment)
        if address + max(size, 1) > self.base + self.size:
            free = self.base + self.size - self.end
            raise OutOfMemory(f"out of device memory: {size:,} bytes asked for, {free:,} of {self.size:,} left")
        self._live[address] = max(size, 1)
        insort(self._starts, address)
        if zero and address < self._touched:
            self.clear(address, min(size, self._touched - address))
        self._touched = max(self._touched, address + size)
        return Allocation(address, size)

    def _find(self, size: int, alignment: int) -> int:
        """The lowest free address for `size` bytes; the end of the last allocation when no gap is large enough."""
        if not self._holes:
            return _round_up(self._after_last(), alignment)
        at = self.base
        for start in self._starts:
            candidate = _round_up(at, alignment)
            if candidate + size <= start:
                return candidate
            at = start + self._live[start]
        return _round_up(at, alignment)

    def free(self, address: int) -> None:
        """Give an allocation back; raises `LaunchError` when there is none at that address."""
        if self._live.pop(address, None) is None:
            raise LaunchError(f"no allocation at device address {address:#x}")
        index = bisect_left(self._starts, address)
        del self._starts[index]
        self._holes = bool(self._starts) and (self._holes or index < len(self._starts))

    def size_at(self, address: int) -> int | None:
        """Bytes of the allocation that starts at `address`, or None."""
        return self._live.get(address)

    def live(self) -> list[tuple[int, int]]:
        """(address, bytes) of every allocation, in address order."""
        return [(start, self._live[start]) for start in self._starts]

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
