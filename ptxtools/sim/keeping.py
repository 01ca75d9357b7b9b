"""What a grid writes of device memory, kept to be put back: no more than the buffers that it writes through pointers
among its parameters, as far as its program says (`passes.pointers`). A write to anything else is seen before it is
made; then the guess was wrong, and all of memory is kept."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ptxtools.machine.filters import EVERYWHERE, SPACES, Bounds, stretches
from ptxtools.machine.observers import Guessed
from ptxtools.program.details import Look
from ptxtools.program.passes.pointers import places_of, pointers_of

from .kept import Kept

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from ptxtools.machine.events import View
    from ptxtools.machine.launch import Launch
    from ptxtools.machine.observers import Access
    from ptxtools.program.program import Op, Program

    from .device import Device
    from .kept import Bytes

#: With less memory than this allocated it is not worth while to guess.
SMALL = 1 << 20
#: In a program's cache: a guess was wrong.
_WRONG = "wrong guess of what is written"
_ELSEWHERE = frozenset({"shared", "cluster", "local", "const", "param"})


def memory_of(device: Device) -> Bytes:
    """All bytes that a device has allocated."""
    return np.frombuffer(device.arena.view(device.arena.base, device.arena.used), np.uint8)


def keeper_of(device: Device, program: Program, params: bytes) -> Keeper | None:
    """What keeps memory for a launch of a program with events for `Keeper`; None where there is nothing to guess."""
    pointers = pointers_of(program)
    if pointers is None or program.cache.get(_WRONG, False):
        return None
    allocations = device.arena.live()
    places = sorted(places_of(pointers.written, params, allocations))
    return Keeper(device, program, [(allocations[n][0], sum(allocations[n])) for n in places])


class Keeper:
    """An observer of writes to global memory. places: what is kept: first byte, byte behind the last; ascending."""

    BOUNDS = REGIONS = True

    def __init__(self, device: Device, program: Program, places: Iterable[tuple[int, int]]) -> None:
        self._program, self._places = program, list(places)
        parts = (device.arena.view(first, after - first) for first, after in self._places)
        self._parts = [Kept(np.frombuffer(part, np.uint8)) for part in parts]

    @staticmethod
    def concerned(program: Program, device: Any) -> Callable[[Op], bool]:
        """Which events of a program matter: writes that may be to global memory."""
        return lambda op: op.space not in _ELSEWHERE and op.of(Look).action != "read"

    def filter(self, launch: Launch) -> Bounds:
        """Writes to what is kept."""
        known = dict.fromkeys(SPACES, EVERYWHERE)
        return Bounds(known, {**known, "global": stretches(self._places)}, lambda op: False)

    def access(self, at: View, access: Access) -> None:
        """An access is about to be made. Raises `Guessed` where it writes anything else."""
        if access.space == "global" and access.writes:
            for address in access.addresses.tolist():
                self.wrote_global(address, access.size)

    def wrote_global(self, address: int, size: int) -> None:
        """Bytes are about to be written, likewise."""
        if not any(first <= address and address + size <= after for first, after in self._places):
            self._program.cache[_WRONG] = True
            raise Guessed

    def put_back(self) -> None:
        """Write back what is kept."""
        for part in self._parts:
            part.put_back()
