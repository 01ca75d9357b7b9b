"""The device heap for `malloc` and `free` of kernels, and `new` and `delete`."""

from __future__ import annotations

import threading
from bisect import bisect_right, insort
from collections.abc import Callable
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeAlias

from ptxtools.diagnostics import shown
from ptxtools.records import dataclass, field, replace

from .poison import differs, poison

if TYPE_CHECKING:
    from ptxtools.diagnostics.origin import Origin

    from .arena import Arena

#: Bytes of the heap unless a launch says otherwise, as CUDA has it (cudaLimitMallocHeapSize).
DEFAULT_HEAP = 8 << 20
#: Every block begins at a multiple of this.
ALIGNMENT = 16
#: Poison behind every block.
_ZONE = 16
#: The part of the heap, and the number of blocks, that are not reused at once when freed. The most bytes at the start
#: of each that are poisoned, and checked after each launch; likewise the newest blocks in use.
_KEPT_PART, _KEPT, _FREED_BYTES, _LOOKED_AT = 8, 256, 4096, 4096


#: The owner of a block, for reports: kernel, CTA, thread, file and line of its PTX, and a look-up of the line's origin.
Owner: TypeAlias = (
    "tuple[str, tuple[int, int, int], tuple[int, int, int], str, int | None, Callable[[], Origin | None]]"
)


def _room(size: int) -> int:
    """Bytes that a block takes, including the poison after it."""
    return -(-max(size, 1) // ALIGNMENT) * ALIGNMENT + _ZONE


@dataclass(frozen=True, slots=True)
class Block:
    """A block: bytes as asked for, and who asked: kernel, CTA and thread, at a line of its program; freed: who gave it
    back."""

    address: int
    size: int
    kernel: str
    cta: tuple[int, int, int]
    thread: tuple[int, int, int]
    file: str = ""
    line: int | None = None
    find_source: Callable[[], Origin | None] = field(default=lambda: None, compare=False)
    freed: Owner | None = field(default=None, compare=False)

    def __str__(self) -> str:
        what = f"{self.size:,} byte{'' if self.size == 1 else 's'} at {self.address:#x}"
        told = f"{what}, allocated by {_who(self.kernel, self.cta, self.thread, self.line)}"
        return told if self.freed is None else f"{told}, freed by {_who(*self.freed[:3], self.freed[4])}"


def _who(kernel: str, cta: tuple[int, int, int], thread: tuple[int, int, int], line: int | None) -> str:
    where = "" if line is None else f" at line {line}"
    return f"{shown(kernel)}{where}, CTA ({','.join(map(str, cta))}) thread ({','.join(map(str, thread))})"


class Heap:
    """`size` bytes of device memory, allocated first fit. Its methods may be called from several threads.

    The blocks outlive the launch that allocated them, as on a device. Poison follows each, and freed blocks are
    kept for a time; keep_all: until there is no other space, so that memcheck knows them.
    """

    def __init__(self, arena: Arena, size: int = DEFAULT_HEAP, *, keep_all: bool = False) -> None:
        self.size = size
        self._arena = arena
        extent = size + _ZONE
        self.base = arena.allocate(extent, zero=True).address
        self.end = self.base + extent
        self._blocks: dict[int, Block] = {}
        self._freed: dict[int, Block] = {}  # those that are kept, oldest first
        self._kept = 0  # their bytes
        self._most = (size, size) if keep_all else (_KEPT, size // _KEPT_PART)
        self._free: list[tuple[int, int]] = [(self.base, extent)] if size else []  # (address, bytes), in address order
        self._lock = threading.Lock()
        self.flags: dict[Block, Any] = {}  # initcheck's: which bytes of a block have been written

    def allocate(self, size: int, owner: Owner, alignment: int = ALIGNMENT) -> int:
        """Address of a new block, aligned to at least 16; 0 if there is no space. 0 bytes have an address too."""
        with self._lock:
            while True:
                address = self._place(_room(size), alignment)
                if address or not self._freed:
                    break
                self._forget()
            if address:
                self._blocks[address] = Block(address, size, *owner)
                self._fill(address + size, address + _room(size))
            return address

    def _place(self, room: int, alignment: int) -> int:
        for number, (start, bytes_) in enumerate(self._free):
            address = -(-start // alignment) * alignment
            if address + room <= start + bytes_:
                rest = [(start, address - start), (address + room, start + bytes_ - address - room)]
                self._free[number : number + 1] = [part for part in rest if part[1]]
                return address
        return 0

    def free(self, address: int, owner: Owner | None = None) -> Block | None:
        """Free a block; None if no allocated block starts there."""
        with self._lock:
            block = self._blocks.pop(address, None)
            if block is not None:
                self.flags.pop(block, None)
                self._freed[address] = replace(block, freed=owner)
                self._kept += _room(block.size)
                self._fill(address, address + min(block.size, _FREED_BYTES))
                while len(self._freed) > self._most[0] or self._kept > self._most[1]:
                    self._forget()
        return block

    def _forget(self) -> None:
        """Make the oldest of the freed blocks available again."""
        address = next(iter(self._freed))
        room = _room(self._freed.pop(address).size)
        self._kept -= room
        self._insert(address, room)

    def _fill(self, start: int, end: int) -> None:
        self._arena.view(start, end - start)[:] = poison(start, end - start)

    def overwritten(self) -> list[tuple[int, Block]]:
        """First address written after an allocated block, or in a freed one; the poison is restored."""
        found: list[tuple[int, Block]] = []
        with self._lock:
            for block in islice(reversed(self._blocks.values()), _LOOKED_AT):
                self._look(block, block.address + block.size, block.address + _room(block.size), found)
            for block in self._freed.values():
                self._look(block, block.address, block.address + min(block.size, _FREED_BYTES), found)
        return found

    def _look(self, block: Block, start: int, end: int, found: list[tuple[int, Block]]) -> None:
        view, wanted = self._arena.view(start, end - start), poison(start, end - start)
        got = bytes(view)
        if got != wanted:
            view[:] = wanted
            found.append((start + differs(got, wanted)[0], block))

    def saved(self) -> Callable[[], None]:
        """What puts back which blocks there are, and their flags, as they are now; not the content of memory."""
        with self._lock:
            blocks, freed, free = dict(self._blocks), dict(self._freed), list(self._free)
            kept, flags = self._kept, {block: some.copy() for block, some in self.flags.items()}

        def put_back() -> None:
            with self._lock:
                self._blocks, self._freed, self._free, self._kept = dict(blocks), dict(freed), list(free), kept
                self.flags = {block: some.copy() for block, some in flags.items()}

        return put_back

    def _insert(self, address: int, size: int) -> None:
        """Add a free range, joined to its neighbours."""
        place = bisect_right(self._free, (address, 0))
        if place < len(self._free) and self._free[place][0] == address + size:
            size += self._free.pop(place)[1]
        if place and sum(self._free[place - 1]) == address:
            address, before = self._free.pop(place - 1)
            size += before
        insort(self._free, (address, size))

    def live(self) -> list[Block]:
        """Allocated blocks, in address order."""
        with self._lock:
            return sorted(self._blocks.values(), key=lambda block: block.address)

    def block_at(self, address: int) -> Block | None:
        """The allocated block that contains an address."""
        with self._lock:
            starts = sorted(self._blocks)
            place = bisect_right(starts, address)
            block = self._blocks[starts[place - 1]] if place else None
        return block if block is not None and address < block.address + block.size else None

    def holds(self, address: int, size: int) -> bool:
        """Whether these bytes are in one allocated block."""
        block = self.block_at(address) if address in self else None
        return block is not None and address + size <= block.address + block.size

    def __contains__(self, address: int) -> bool:
        return self.base <= address < self.end

    def freed_at(self, address: int) -> Block | None:
        """The freed block that contained an address, while it is kept."""
        with self._lock:
            return next((b for b in self._freed.values() if b.address <= address < b.address + b.size), None)
