"""The device heap: what `malloc` and `free` of kernels, and `new` and `delete`, take from and give back."""

from __future__ import annotations

import threading
from bisect import bisect_right, insort
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

from ptxtools.diagnostics import shown

if TYPE_CHECKING:
    from ptxtools.diagnostics.origin import Origin

    from .arena import Arena

#: Bytes of the heap unless a launch says otherwise, as CUDA has it (cudaLimitMallocHeapSize).
DEFAULT_HEAP = 8 << 20
#: Every block begins at a multiple of this.
ALIGNMENT = 16


#: Who asks for a block, for reports: kernel, CTA, thread, file and line of its PTX, and what finds the line's origin.
Owner: TypeAlias = (
    "tuple[str, tuple[int, int, int], tuple[int, int, int], str, int | None, Callable[[], Origin | None]]"
)


def _room(size: int) -> int:
    return -(-max(size, 1) // ALIGNMENT) * ALIGNMENT


@dataclass(frozen=True, slots=True)
class Block:
    """A block in use: bytes as asked for, and who asked: kernel, CTA and thread, at a line of its program."""

    address: int
    size: int
    kernel: str
    cta: tuple[int, int, int]
    thread: tuple[int, int, int]
    file: str = ""
    line: int | None = None
    find_source: Callable[[], Origin | None] = field(default=lambda: None, compare=False)

    def __str__(self) -> str:
        where = "" if self.line is None else f" at line {self.line}"
        cta, thread = (f"({x},{y},{z})" for x, y, z in (self.cta, self.thread))
        what = f"{self.size:,} byte{'' if self.size == 1 else 's'} at {self.address:#x}"
        return f"{what}, allocated by {shown(self.kernel)}{where}, CTA {cta} thread {thread}"


class Heap:
    """`size` bytes of device memory, given out first fit. Its methods may be called from several threads.

    The blocks outlive the launch that asked for them, as on a device.
    """

    def __init__(self, arena: Arena, size: int = DEFAULT_HEAP) -> None:
        self.size = size
        self.base = arena.allocate(size, zero=True).address
        self._blocks: dict[int, Block] = {}
        self._free: list[tuple[int, int]] = [(self.base, size)] if size else []  # (address, bytes), in address order
        self._lock = threading.Lock()
        self.flags: dict[Block, Any] = {}  # initcheck's: which bytes of a block have been written

    def allocate(self, size: int, owner: Owner, alignment: int = ALIGNMENT) -> int:
        """Address of a new block, aligned to at least 16; 0 when there is no room. 0 bytes have an address too."""
        room = _room(size)
        with self._lock:
            for number, (start, bytes_) in enumerate(self._free):
                address = -(-start // alignment) * alignment
                if address + room <= start + bytes_:
                    rest = [(start, address - start), (address + room, start + bytes_ - address - room)]
                    self._free[number : number + 1] = [part for part in rest if part[1]]
                    self._blocks[address] = Block(address, size, *owner)
                    return address
        return 0

    def free(self, address: int) -> Block | None:
        """Give a block back; None if no block in use begins there."""
        with self._lock:
            block = self._blocks.pop(address, None)
            if block is not None:
                self.flags.pop(block, None)
                self._insert(address, _room(block.size))
        return block

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
        """Blocks in use, in address order."""
        with self._lock:
            return sorted(self._blocks.values(), key=lambda block: block.address)

    def block_at(self, address: int) -> Block | None:
        """The block in use that an address lies in."""
        with self._lock:
            starts = sorted(self._blocks)
            place = bisect_right(starts, address)
            block = self._blocks[starts[place - 1]] if place else None
        return block if block is not None and address < block.address + block.size else None

    def holds(self, address: int, size: int) -> bool:
        """Whether these bytes lie in one block in use."""
        block = self.block_at(address) if address in self else None
        return block is not None and address + size <= block.address + block.size

    def __contains__(self, address: int) -> bool:
        return self.base <= address < self.base + self.size
