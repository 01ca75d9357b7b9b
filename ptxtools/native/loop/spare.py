"""The memory of workers, kept from launch to launch."""

from __future__ import annotations

import mmap
import sys
import threading

PAGE = 4096
_UNIT = 1 << 16
#: Memory for later launches, with how many of its bytes have been used.
_spare: list[tuple[mmap.mmap, int]] = []
_spare_lock = threading.Lock()


def resident_memory(slot: int, slots: int, cluster: int) -> tuple[mmap.mmap, int, int]:
    """Memory for a worker and so many CTAs, or for fewer clusters where the address space is limited; how much of it
    has been used before, and for how many CTAs it is."""
    while True:
        try:
            return *_memory(PAGE + slot * slots), slots
        except OSError:
            from . import team

            with _spare_lock:
                if team.forget() or _spare:
                    _spare.clear()
                    continue
            if slots == cluster:
                raise MemoryError(f"no memory for one CTA: {slot} bytes") from None
            slots = max(1, slots // cluster // 2) * cluster


def _memory(size: int) -> tuple[mmap.mmap, int]:
    """Zeroed or used pages; what was used before is cleared where that matters."""
    with _spare_lock:
        for index, (memory, _) in enumerate(_spare):
            if size <= len(memory) <= 8 * size + (1 << 20):
                return _spare.pop(index)
    if sys.platform == "win32":  # which keeps pages for all of it
        return mmap.mmap(-1, -(-size // _UNIT) * _UNIT), size
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | getattr(mmap, "MAP_NORESERVE", 0)
    return mmap.mmap(-1, -(-size // _UNIT) * _UNIT, flags=flags), 0


#: Memory kept for later launches: at most so many bytes that have been used, and so many addresses.
_SPARE_BYTES, _SPARE_ADDRESSES = 64 << 20, 4 << 30
#: Memory of so many bytes counts as used.
SMALL = 1 << 18


def release(memory: mmap.mmap, used: int) -> None:
    """Keep memory that nobody needs now, of which so many bytes have been used, within limits."""
    with _spare_lock:
        addresses, pages = len(memory), used
        for other, more in _spare:
            addresses += len(other)
            pages += more
        if addresses <= _SPARE_ADDRESSES and pages <= _SPARE_BYTES:
            _spare.append((memory, used))
