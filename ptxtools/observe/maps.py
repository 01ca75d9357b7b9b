"""memcheck on tensor maps in global memory: behind a change by a thread, a fence.proxy.tensormap::generic.acquire is
needed before a copy uses the map (8.6, 9.7.13.4), or the copy may see the old one.

A fence of any thread of the cluster counts: who told whom is not followed here.
"""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any

import numpy as np

from ptxtools.machine.observers import Anew
from ptxtools.sim.tensormap.descriptor import BYTES as MAP_BYTES

if TYPE_CHECKING:
    from ptxtools.isa import Opcode
    from ptxtools.machine.events import View
    from ptxtools.machine.observers import Access, Array
    from ptxtools.program.program import Program
    from ptxtools.sim.device import Grid

    from .session import Session

_NAME = "memcheck"
#: Under this name a device has the kernels with maps in global memory.
_IN_GLOBAL = "tensor maps in global memory"


def is_fence(opcode: Opcode | None) -> bool:
    """Whether an instruction lets copies see changed maps."""
    return opcode is not None and opcode.has("acquire") and opcode.has("tensormap::generic")


def copies_tensors(program: Program) -> bool:
    """Whether a kernel copies tensors, or prefetches some."""
    return any("bulk.tensor" in text or "prefetch.tensor" in text for *_, text in program.lines)


def in_global(device: Any) -> set[str]:
    """Kernels that a run has seen use maps in global memory, which stores can change."""
    found: set[str] = device.runtime.state.setdefault(_IN_GLOBAL, set())
    return found


class Maps:
    """Of one grid: where each stretch of 128 bytes was last changed, and when. wanted: stores are told of: the kernel
    copies tensors, by maps in global memory. Most are parameters: a grid that can run again is guessed to have no other
    ones."""

    def __init__(self, session: Session, grid: Grid) -> None:
        self._session: Session = weakref.proxy(session)
        self._kernel, known = grid.program.kernel, in_global(session.device)
        self._copies = grid.program.found(copies_tensors)  # else there is nothing that a change could come too late for
        self.wanted = self._copies and (not grid.again or grid.program.kernel in known)
        self._changes: dict[int, tuple[int, int]] = {}  # number of the stretch -> time, place
        self._fences: dict[tuple[int, int], int] = {}  # number of the stretch, and of the cluster -> time
        self._now = 0

    def access(self, at: View, access: Access) -> None:
        """A store to global memory."""
        if self.wanted and access.writes and access.space == "global":
            self._change(at, np.unique(access.addresses.astype(np.int64) // MAP_BYTES))

    def _change(self, at: View, stretches: Array) -> None:
        self._now += 1
        for number in stretches.tolist():
            self._changes[number] = self._now, at.op.where

    def fence(self, at: View, lanes: Array) -> None:
        """A fence of any sort. One that lets copies see a map does so in its own cluster."""
        if not is_fence(at.op.opcode):
            return
        self._now += 1
        for address in np.unique(at.addresses()[lanes]).tolist():
            space, place = at.resolve(address, at.op.space)
            if space == "global":
                self._fences[place // MAP_BYTES, at.cluster.number] = self._now

    def used(self, at: View, lane: int, address: int, what: str) -> None:
        """A copy uses the map at a generic address, or an instruction changes it."""
        space, place = at.resolve(address, "generic")
        if space != "global" or not self._copies:
            return
        if not self.wanted:
            in_global(self._session.device).add(self._kernel)
            raise Anew
        if what == "changed":
            self._change(at, np.array([place // MAP_BYTES]))
            return
        found = self._changes.get(place // MAP_BYTES)
        if found is not None and found[0] > self._fences.get((place // MAP_BYTES, at.cluster.number), 0):
            program = at.launch.program
            self._session.report(
                at, lane, _NAME, f"the tensor map at {address:#x} was changed, and the copy may use what it was before",
                (at.op.where, found[1], "map"), kind="stale-map", address=address, space="global",
                others=(self._session.site(program, found[1], at.cta.place),),
                help="fence.proxy.tensormap::generic.acquire on the map between the two",
            )  # fmt: skip
