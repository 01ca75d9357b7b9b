"""Operands of an asynchronous operation by name, and the memory they refer to."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from ptxtools.diagnostics import Cause
from ptxtools.machine.events import View
from ptxtools.machine.residents import Cta
from ptxtools.program.details import SourceNames
from ptxtools.program.program import OFFSET_MASK

Array = npt.NDArray[Any]


class Operands:
    """The sources of `view.op`, by name."""

    def __init__(self, view: View) -> None:
        self.view = view
        self.places: dict[str, list[int]] = {}
        self.spaces: dict[str, str] = {}
        for number, (name, space) in enumerate(view.op.of(SourceNames).names):
            self.places.setdefault(name, []).append(number)
            self.spaces.setdefault(name, space)
        self._values: dict[int, Any] = {}

    def has(self, name: str) -> bool:
        return name in self.places

    def _source(self, place: int) -> Any:
        if place not in self._values:
            self._values[place] = self.view.source(place)
        return self._values[place]

    def vector(self, name: str, lane: int, *, signed: bool = False) -> list[int]:
        """All elements of an operand for a lane, as unsigned or as signed 32-bit numbers."""
        found = [self._number(place, lane) for place in self.places.get(name, ())]
        return [(x & 0xFFFF_FFFF ^ 1 << 31) - (1 << 31) for x in found] if signed else found

    def _number(self, place: int, lane: int) -> int:
        """A source of a lane; of 128 bits its halves are apart."""
        value = self._source(place)
        return int(value[1][lane]) << 64 | int(value[0][lane]) if isinstance(value, tuple) else int(value[lane])

    def one(self, name: str, lane: int) -> int:
        return int(self._source(self.places[name][0])[lane])

    def distinct(self, lanes: Iterable[int]) -> list[int]:
        """Lanes without those all of whose operands are as in a lane before: a store that several lanes of a warp make
        at once, as CUTLASS has it, stores once."""
        found: dict[tuple[int, ...], int] = {}
        places = [place for some in self.places.values() for place in some]
        for lane in lanes:
            found.setdefault(tuple(self._number(place, lane) for place in places), lane)
        return list(found.values())

    def memory(self, name: str, lane: int, size: int, *, write: bool, align: int) -> Array:
        """Bytes that an address operand means. Raises `Trap`."""
        return self.at(name, self.one(name, lane), lane, size, write=write, align=align)

    def at(
        self, name: str, address: int, lane: int, size: int, *, align: int, write: bool = True, told: bool = True
    ) -> Array:
        """The same for an address that the operand stands for; told: as in `View.memory`."""
        found = self.view.memory(address, size, self.spaces[name], lane=lane, write=write, align=align, told=told)
        return np.frombuffer(found, np.uint8)

    def shared(self, name: str, lane: int, size: int, *, align: int, write: bool = True) -> tuple[Cta, int]:
        """CTA and offset of an address in shared memory, with `size` bytes there that a copy reads or writes. Raises
        `Trap`."""
        view, address = self.view, self.one(name, lane)
        view.memory(address, size, self.spaces[name], lane=lane, align=align, write=write)
        cta, offset = view.shared_owner(address & 0xFFFF_FFFF, lane=lane), address & OFFSET_MASK
        listeners = view.launch.observers
        if listeners is not None:
            listeners.tell("copies", view, lane, cta, offset, size)
        return cta, offset


def targets(view: View, operands: Operands, lane: int, cta: Cta) -> list[Cta]:
    """The CTAs that receive a copy: the address's, or with .multicast::cluster those in the mask. Raises `Trap`."""
    if not operands.has("ctaMask"):
        return [cta]
    mask, ctas = operands.one("ctaMask", lane), view.cluster.ctas
    if mask >> len(ctas):
        raise view.trap(f"multicast to CTAs {mask:#x} of a cluster of {len(ctas)}", lane, cause=Cause.OUT_OF_BOUNDS)
    return [one for one in ctas if mask >> one.rank & 1]


def bytes_of(cta: Cta, offset: int, size: int) -> Array:
    """Shared memory of a CTA, about to be written; shorter where it ends."""
    listeners = cta.cluster.schedule.launch.observers
    if listeners is not None:
        listeners.tell("wrote_shared", cta, offset, size)
    return np.frombuffer(cta.shared[offset : offset + size], np.uint8)


def tell_of_sending(view: View, lane: int, cta: Cta, pick: Callable[[Array], Array]) -> None:
    """Tell who listens which bytes of shared memory a copy takes to global memory (`Observer.sent`)."""
    listeners = view.launch.observers
    if listeners is not None and listeners.hear("sent"):
        listeners.tell("sent", view, lane, cta, pick)
