"""memcheck: every access must lie in one allocation, at a multiple of its size."""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING, Any

import numpy as np

from ptxtools.program.program import OFFSET_MASK, RANK_SHIFT

if TYPE_CHECKING:
    from ptxtools.machine.events import View

    from ..device import Device
    from ..image import Image
    from .looks import Access, Array
    from .session import Session


class MemCheck:
    """The exact map of global memory at the launch: buffers, variables of the module, and blocks of the heap."""

    def __init__(self, device: Device, image: Image) -> None:
        self._device = device
        self._names: dict[int, str] = {}
        heap = device.runtime.used_heap
        pending = device.runtime.used_pending
        pools = {pool.base for pool in (heap, pending) if pool is not None}
        ranges = {start: size for start, size in device.arena.live() if start not in pools and start != image.const[0]}
        for name, storage in image.variables.items():
            start = image.addresses[name]
            ranges[start] = storage.size
            self._names[start] = f"variable '{name}'"
        self._starts = sorted(ranges)
        self._sizes = [ranges[start] for start in self._starts]
        self._first = np.array(self._starts, np.uint64)
        self._after = self._first + np.array(self._sizes, np.uint64)
        self._pools = [pool for pool in (heap, pending) if pool is not None]

    def access(self, session: Session, view: View, access: Access) -> None:
        """Raises a `Trap` of kind "memcheck" for the first lane whose access is bad."""
        misaligned = access.addresses % np.uint64(access.size) != 0 if access.size & (access.size - 1) == 0 else None
        if misaligned is not None and misaligned.any():
            lane, address = _first(access, misaligned)
            message = f"{access.space} {access.action} at {address:#x} is not aligned to {access.size} bytes"
            raise session.trap(view, lane, "memcheck", message, _how_many(misaligned))
        bad = getattr(self, f"_bad_{access.space}")(view, access)
        if bad.any():
            lane, address = _first(access, bad)
            near = self.nearest(address) if access.space == "global" else self._extent(view, access.space)
            message = f"{access.space} {access.action} of {access.size} bytes at {address:#x} is out of bounds"
            raise session.trap(view, lane, "memcheck", message, (near, *_how_many(bad)))

    def _bad_global(self, view: View, access: Access) -> Array:
        size = np.uint64(access.size)
        place = np.searchsorted(self._first, access.addresses, "right") - 1
        inside = (place >= 0) & (access.addresses + size <= self._after[place]) if len(self._first) else place >= 0
        for number in np.flatnonzero(~inside):
            inside[number] = self._in_pools(int(access.addresses[number]), access.size) or self._host(
                view, int(access.addresses[number]), access
            )
        bad: Array = ~inside
        return bad

    def allowed(self, address: int, size: int) -> bool:
        """Whether bytes of global memory lie in one allocation."""
        place = bisect_right(self._starts, address) - 1
        inside = place >= 0 and address + size <= self._starts[place] + self._sizes[place]
        return inside or self._in_pools(address, size)

    def _in_pools(self, address: int, size: int) -> bool:
        return any(pool.holds(address, size) for pool in self._pools)

    def _host(self, view: View, address: int, access: Access) -> bool:
        """Whether it is host memory that is open to the kernel (`ptx_run`)."""
        memory = view.launch.memory
        if not memory.open_host or memory.base <= address < memory.base + memory.size or memory.readable is None:
            return False
        return memory.readable(address, access.size, access.writes)

    def _bad_shared(self, view: View, access: Access) -> Array:
        addresses = access.addresses.astype(np.int64)
        offsets, ranks = addresses & OFFSET_MASK, addresses >> RANK_SHIFT
        owners = view.cluster.ctas
        limits = np.array([len(cta.shared) for cta in owners])
        bad: Array = (ranks >= len(owners)) | (offsets + access.size > limits[np.minimum(ranks, len(owners) - 1)])
        return bad

    def _bad_local(self, view: View, access: Access) -> Array:
        bad: Array = access.addresses + np.uint64(access.size) > np.uint64(view.local_bytes)
        return bad

    def _extent(self, view: View, space: str) -> str:
        if space == "local":
            return f"a thread has {view.local_bytes:,} bytes of local memory"
        program = view.launch.program
        static, dynamic = program.static_shared, view.launch.dynamic_shared
        return f"the CTA has {static + dynamic:,} bytes of shared memory ({static:,} static, {dynamic:,} dynamic)"

    def nearest(self, address: int) -> str:
        """Where an address lies, told by the nearest allocation."""
        candidates: list[tuple[int, int, str]] = []
        place = bisect_right(self._starts, address)
        for number in (place - 1, place):
            if 0 <= number < len(self._starts):
                start, size = self._starts[number], self._sizes[number]
                candidates.append((start, size, self._names.get(start, "allocation")))
        for pool in self._pools:
            if address in pool:
                candidates += [(b.address, b.size, "block of the heap") for b in pool.live()]
        if not candidates:
            return "there is no allocation"
        start, size, name = min(candidates, key=lambda c: _distance(address, c[0], c[1]))
        distance = _distance(address, start, size)
        side = "before" if address < start else "behind" if address >= start + size else "inside"
        far = f"{distance:,} bytes {side}" if distance else side
        return f"{far} the nearest {name}: {size:,} bytes at {start:#x}"


def _distance(address: int, start: int, size: int) -> int:
    """Bytes between an address and an allocation; 0 inside of it, and for the first byte behind it."""
    return start - address if address < start else max(0, address - (start + size))


def _first(access: Access, bad: Array) -> tuple[int, int]:
    number = int(np.flatnonzero(bad)[0])
    return int(access.lanes[number]), int(access.addresses[number])


def _how_many(bad: Array) -> tuple[Any, ...]:
    count = int(bad.sum())
    return (f"{count} threads of the warp do so",) if count > 1 else ()
