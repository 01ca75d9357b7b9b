"""The layout of global memory, by name, for reports of bad accesses."""

from __future__ import annotations

from bisect import bisect_right
from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .device import Device
    from .heap import Block
    from .image import Image
    from .kernel import Kernel


class Allocations:
    """Buffers, module variables and heap blocks at the start of a launch.

    starts, sizes: of all but heap blocks, in address order; pools: heaps, whose blocks count separately.
    """

    def __init__(self, device: Device, image: Image, kernel: Kernel, params: bytes) -> None:
        self._arena = device.arena
        self._image, self._kernel, self._params = image, kernel, params
        heap, pending = device.runtime.used_heap, device.runtime.used_pending
        self.pools = [pool for pool in (heap, pending) if pool is not None]
        hidden = {pool.base for pool in self.pools}
        if image.const[1]:
            hidden.add(image.const[0])  # constants share an allocation
        ranges = {start: size for start, size in device.arena.live() if start not in hidden}
        for name, storage in image.variables.items():
            ranges[image.addresses[name]] = storage.size
        self.starts = sorted(ranges)
        self.sizes = [ranges[start] for start in self.starts]

    @cached_property
    def _names(self) -> dict[int, str]:
        """By first address: names of variables and arguments."""
        found = {self._image.addresses[name]: f"variable '{name}'" for name in self._image.variables}
        for number, parameter in enumerate(self._kernel.parameters):
            if parameter.pointer:
                data = self._params[parameter.offset : parameter.offset + parameter.size]
                place = self.place(int.from_bytes(data, "little"))
                if place is not None:
                    found.setdefault(self.starts[place], f"argument {number} ({parameter.name})")
        return found

    def place(self, address: int, size: int = 1) -> int | None:
        """Number of the allocation that contains these bytes, ignoring heap blocks."""
        place = bisect_right(self.starts, address) - 1
        if place >= 0 and address + size <= self.starts[place] + self.sizes[place]:
            return place
        return None

    def holds(self, address: int, size: int) -> bool:
        """Whether these bytes are in one allocation."""
        return self.place(address, size) is not None or self.in_pools(address, size)

    def in_pools(self, address: int, size: int) -> bool:
        """Whether these bytes are in one heap block."""
        return any(pool.holds(address, size) for pool in self.pools)

    def around(self, address: int) -> str:
        """The allocation that contains a byte, and where in it; "" for none."""
        place = self.place(address)
        found = [] if place is None else [(self.starts[place], self.sizes[place])]
        names = [self._names.get(start, "an allocation") for start, _ in found]
        for pool in self.pools:
            blocks = [b for b in pool.live() if b.address <= address < b.address + b.size] if address in pool else []
            found += [(b.address, b.size) for b in blocks]
            names += ["a heap block"] * len(blocks)
        if not found:
            return ""
        start, size = found[0]
        return f"{names[0]}, byte {address - start:,}: {size:,} bytes at {start:#x}"

    def freed(self, address: int) -> str:
        """The freed allocation that contained an address; "" if there is none, or it was freed long ago."""
        for pool in self.pools:
            block = pool.freed_at(address)
            if block is not None:
                return f"freed heap block: {block}"
        found = self._arena.freed_at(address)
        return "" if found is None else f"freed allocation: {found[1]:,} bytes at {found[0]:#x}"

    def overwritten(self, places: list[tuple[int, int]], blocks: list[tuple[int, Block]]) -> tuple[str, ...]:
        """Lines for writes between allocations: (address, bytes), and (address, heap block)."""
        lines: list[str] = []
        for address, size in places:
            lines.append(f"written: {self.freed(address) or self.nearest(address, size)}")
        for address, block in blocks:
            if block.freed is not None:
                lines.append(f"written: byte {address - block.address} of a freed heap block: {block}")
            else:
                side = beside(address, 1, block.address, block.size)
                lines.append(f"written: a heap block, {side}: {block}")
        return tuple(lines)

    def nearest(self, address: int, size: int) -> str:
        """The location of out-of-bounds bytes, relative to the nearest allocation."""
        candidates: list[tuple[int, int, str]] = []
        place = bisect_right(self.starts, address)
        for number in (place - 1, place):
            if 0 <= number < len(self.starts):
                start = self.starts[number]
                candidates.append((start, self.sizes[number], self._names.get(start, "an allocation")))
        for pool in self.pools:
            if address in pool:
                candidates += [(b.address, b.size, "a heap block") for b in pool.live()]
        if not candidates:
            return "there is no allocation"
        start, extent, name = min(candidates, key=lambda c: _distance(address, c[0], c[1]))
        return f"{name}, {beside(address, size, start, extent)}: {extent:,} bytes at {start:#x}"


def _distance(address: int, start: int, size: int) -> int:
    """Bytes between an address and an allocation; 0 inside of it, and for the first byte after it."""
    return start - address if address < start else max(0, address - (start + size))


def beside(address: int, size: int, start: int, extent: int) -> str:
    """The location of bytes relative to something that does not contain them."""
    end = start + extent
    if address < start:
        return f"{start - address:,} bytes before its start"
    if address < end:
        return f"the last {address + size - end:,} of {size:,} bytes past its end"
    return f"{address - end:,} bytes past its end" if address > end else "right after its end"
