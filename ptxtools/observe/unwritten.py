"""initcheck's: which bytes of buffers from `Device.alloc` have been written."""

from __future__ import annotations

from bisect import bisect_right, insort
from typing import TYPE_CHECKING, Any, TypeAlias

from ptxtools.diagnostics import TrapKind
from ptxtools.machine.filters import FLAGS_BEHIND

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    import numpy.typing as npt

    from ptxtools.sim.device import Device

    Array: TypeAlias = npt.NDArray[Any]


class Unwritten:
    """Flags of such buffers, from launch to launch."""

    def __init__(self) -> None:
        self._starts: list[int] = []
        self._flags: dict[int, Array] = {}

    def __bool__(self) -> bool:
        return bool(self._starts)

    def add(self, address: int, size: int, *, written: bool = False) -> None:
        """A buffer that nobody has written, or one that may come to be so."""
        import numpy as np

        insort(self._starts, address)
        self._flags[address] = np.full(size + FLAGS_BEHIND, written, np.bool_)[:size]

    def know(self, buffers: Iterable[tuple[int, int]]) -> None:
        """Keep flags of all of these, which are written as far as nothing else is known. (address, bytes)"""
        for address, size in buffers:
            if address not in self._flags:
                self.add(address, size, written=True)

    def saved(self) -> Callable[[], None]:
        """What puts all flags back as they are now; of buffers that come to be known since then all are set."""
        from ptxtools.sim.kept import Kept

        before = {address: Kept(some.view("u1")) for address, some in self._flags.items()}

        def put_back() -> None:
            for address, some in self._flags.items():
                if address in before:
                    before[address].put_back()
                else:
                    some[:] = True

        return put_back

    def places(self) -> list[tuple[int, int, int]]:
        """Of each such buffer, ascending: first byte, the one behind the last, host address of the flags."""
        found = ((start, self._flags[start]) for start in self._starts)
        return [(start, start + len(flags), flags.__array_interface__["data"][0]) for start, flags in found]

    def remove(self, address: int) -> None:
        """A buffer is freed."""
        if self._flags.pop(address, None) is not None:
            self._starts.remove(address)

    def find(self, address: int) -> tuple[Array, int] | None:
        """Flags of the buffer that an address lies in, and its place there."""
        place = bisect_right(self._starts, address) - 1
        if place < 0:
            return None
        start = self._starts[place]
        flags = self._flags[start]
        return (flags, address - start) if address < start + len(flags) else None

    def discarded(self, address: int, size: int) -> None:
        """Bytes have no value any more."""
        found = self.find(address)
        if found is not None:
            found[0][found[1] : found[1] + size] = False

    def begins(self, first: int, last: int) -> bool:
        """Whether such a buffer begins behind the first of two addresses, up to the last."""
        return bisect_right(self._starts, first) != bisect_right(self._starts, last)

    def written(self, address: int, size: int) -> None:
        """Bytes have been written."""
        found = self.find(address)
        if found is not None:
            found[0][found[1] : found[1] + size] = True


def unwritten_of(device: Device) -> Unwritten:
    """Those of a device on which initcheck is on."""
    found = device.runtime.state.setdefault(TrapKind.INITCHECK, Unwritten())
    assert isinstance(found, Unwritten)
    return found
