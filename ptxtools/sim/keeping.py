"""What a grid writes of device memory, kept to be put back. The arguments of a launch are in host arrays, which nobody
changes before it ends: of them nothing is kept. Of the rest, where it is much, no more is kept than the buffers that
the grid writes through pointers among its parameters, as far as its program says (`passes.pointers`). A write to
anything else is seen before it is made; then the guess was wrong, and all of it is kept."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from ptxtools.diagnostics import TrapKind
from ptxtools.machine.filters import EVERYWHERE, SPACES, Bounds, stretches
from ptxtools.machine.observers import Guessed
from ptxtools.program.details import Look
from ptxtools.program.passes.pointers import places_of, pointers_of

from .kept import Kept, touched_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable, Mapping, Sequence

    from ptxtools.machine.events import View
    from ptxtools.machine.launch import Launch
    from ptxtools.machine.observers import Access
    from ptxtools.program.program import Op, Program

    from .device import Device
    from .kept import Bytes

Array: TypeAlias = "np.ndarray[Any, Any]"
#: With less memory than this allocated it is not worth while to guess.
SMALL = 1 << 20
#: In a program's cache: a guess was wrong.
_WRONG = "wrong guess of what is written"
_ELSEWHERE = frozenset({"shared", "cluster", "local", "const", "param"})


def memory_of(device: Device, known: Iterable[tuple[int, int]] = ()) -> list[Bytes]:
    """All bytes of device memory that a grid may change, but for those that are known (address, bytes). With memcheck
    no access to freed memory is made."""
    arena = device.arena
    others = list(known)
    others += arena.freed() if TrapKind.MEMCHECK in device.checks else []
    found, at = [], arena.base
    for address, size in [*sorted(others), (arena.base + arena.used, 0)]:
        if at < address:
            found.append(_view(device, at, address))
        at = max(at, address + size)
    return found


def _view(device: Device, first: int, after: int) -> Bytes:
    return np.frombuffer(device.arena.view(first, after - first), np.uint8)


class Before:
    """Device memory as a grid finds it. sources: host arrays with what lies at some addresses."""

    def __init__(self, device: Device, sources: Mapping[int, Array]) -> None:
        self.device = device
        #: By their addresses on the device, where that costs no copy.
        self.sources = {
            address: source.reshape(-1).view(np.uint8)
            for address, source in sources.items()
            if source.nbytes and source.flags.c_contiguous
        }
        self._rest = memory_of(device, [(address, len(source)) for address, source in self.sources.items()])
        self._kept: Sequence[Kept | Keeper] = ()

    @property
    def much(self) -> bool:
        """Whether it is worth while to guess what is written."""
        return sum(map(len, self._rest)) > SMALL and sum(map(touched_bytes, self._rest)) > SMALL

    def keep(self, keeper: Keeper | None = None) -> None:
        """Keep all, or what a keeper has."""
        self._kept = [Kept(part) for part in self._rest] if keeper is None else [keeper]

    @property
    def keeper(self) -> Keeper | None:
        """What keeps it, if that has to see the grid's writes."""
        return next((one for one in self._kept if isinstance(one, Keeper)), None)

    def put_back(self) -> None:
        """Write it back."""
        for kept in self._kept:
            kept.put_back()
        for address, source in self.sources.items():  # behind the rest, which they may be views of
            _view(self.device, address, address + len(source))[:] = source


def keeper_of(device: Device, program: Program, params: bytes, sources: Container[int]) -> Keeper | None:
    """What keeps memory for a launch of a program with events for `Keeper`; None where there is nothing to guess.
    sources: addresses of what is in host arrays."""
    pointers = pointers_of(program)
    if pointers is None or program.cache.get(_WRONG, False):
        return None
    allocations = device.arena.live()
    places = sorted(places_of(pointers.written, params, allocations))
    return Keeper(device, program, [(allocations[n][0], sum(allocations[n])) for n in places], sources)


class Keeper:
    """An observer of writes to global memory. places: what may be written: first byte, byte behind the last; ascending;
    what is not in host arrays is kept."""

    BOUNDS = REGIONS = True

    def __init__(
        self, device: Device, program: Program, places: Iterable[tuple[int, int]], sources: Container[int]
    ) -> None:
        self._program, self._places = program, list(places)
        self._parts = [Kept(_view(device, *place)) for place in self._places if place[0] not in sources]

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
