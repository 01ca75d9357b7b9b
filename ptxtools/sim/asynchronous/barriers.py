"""mbarriers anywhere in a cluster: the operations that native code does not handle, and waking waiting lanes."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from ptxtools.diagnostics import Cause
from ptxtools.machine.events import View, serves
from ptxtools.machine.polled import phase_text
from ptxtools.machine.residents import Cta
from ptxtools.program import mbarrier as word
from ptxtools.program.details import Action
from ptxtools.program.program import LANES, OFFSET_MASK, SHARED_WINDOW
from ptxtools.records import dataclass

_WORD = struct.Struct("<Q")
#: The most nanoseconds that a try_wait without a limit waits; the manual leaves it open (9.7.13.15.16).
DEFAULT_LIMIT = 1_000_000


@dataclass(frozen=True, slots=True)
class Barrier:
    """The mbarrier at a byte offset of a CTA's shared memory."""

    cta: Cta
    offset: int

    @property
    def word(self) -> int:
        found: int = _WORD.unpack_from(self.cta.shared, self.offset)[0]
        return found

    @property
    def key(self) -> tuple[str, int, int]:
        """What lanes wait for (`Cluster.wake`)."""
        return ("mbarrier", self.cta.rank, self.offset)

    def set(self, new: int) -> None:
        """Change the word, and wake lanes waiting for a phase that is now complete."""
        old = self.word
        turned = (old ^ new) >> word.PHASE_SHIFT & 1
        if turned and new & word.WAITED:
            new &= ~word.WAITED
        _WORD.pack_into(self.cta.shared, self.offset, new)
        if turned and old & word.WAITED:
            self.cta.cluster.wake(self.key)

    def arrive(self, count: int = 1) -> None:
        """An arrive-on operation. Raises `MisuseError`."""
        self.set(word.arrive(self.word, count))

    def complete_tx(self, count: int) -> None:
        """A complete-tx operation of `count` bytes. Raises `MisuseError`."""
        self.set(word.complete_tx(self.word, count))

    def __str__(self) -> str:
        where = f"shared {self.offset:#x}"
        return where if len(self.cta.cluster.ctas) == 1 else f"{where} of CTA rank {self.cta.rank}"


@dataclass(frozen=True, slots=True)
class _Phase:
    """What lanes wait for, described with the barrier's state at the time of the report."""

    barrier: Barrier

    def __str__(self) -> str:
        barrier = self.barrier
        program = barrier.cta.cluster.schedule.launch.program
        return phase_text(program, str(barrier), barrier.offset, barrier.word)


def barrier_at(view: View, address: int, lane: int, space: str = "") -> Barrier:
    """The mbarrier at an address of the shared or (space "") the generic window. Raises `Trap`."""
    view.memory(address, 8, space, lane=lane, write=False, align=8)
    if space == "" and address >> 56 != SHARED_WINDOW >> 56:
        raise view.trap(
            f"there is no mbarrier at {address:#x}: it is not a shared memory address", lane, cause=Cause.OUT_OF_BOUNDS
        )
    return Barrier(view.shared_owner(address & 0xFFFF_FFFF, lane=lane), address & OFFSET_MASK)


def guarded(view: View, lane: int, barrier: Barrier, function: Callable[[], None]) -> None:
    """Run an operation on a barrier; an undefined one is a trap of the lane."""
    try:
        function()
    except word.MisuseError as error:
        raise view.trap(f"mbarrier at {barrier}: {error}", lane, cause=Cause.MBARRIER) from None


# --- the operations of 9.7.13.15 --------------------------------------------------------------------------------------


@serves("mbarrier.slow")
def mbarrier(view: View) -> None:
    """src = address, amount, state or parity (and limit)."""
    action = view.op.of(Action).name
    if "_wait" in action:
        _wait(view, action)
        return
    addresses = view.addresses()
    amounts = view.source(1) if len(view.op.src) > 1 else addresses
    states = np.zeros(LANES, np.uint64) if view.op.dst else None
    for lane in view.lanes():
        barrier = barrier_at(view, int(addresses[lane]), lane, _space(view))
        if states is not None:
            states[lane] = barrier.word & ~word.WAITED
        amount = int(amounts[lane])
        guarded(view, lane, barrier, lambda: _change(barrier, action, amount))  # noqa: B023 - called at once
    if states is not None:
        view.result(0, states)


def _space(view: View) -> str:
    return "" if view.op.space == "generic" else view.op.space


def _change(barrier: Barrier, action: str, amount: int) -> None:
    now = barrier.word
    if action == "init":
        _WORD.pack_into(barrier.cta.shared, barrier.offset, word.fresh(amount))
    elif action == "inval":
        _WORD.pack_into(barrier.cta.shared, barrier.offset, 0)
    elif action == "expect_tx":
        barrier.set(word.expect_tx(now, amount))
    elif action == "complete_tx":
        barrier.set(word.complete_tx(now, amount))
    else:
        if action.endswith(".expect_tx"):
            now, amount = word.expect_tx(now, amount), 1
        kept = action.endswith(".noComplete")
        barrier.set(word.arrive(now, amount, drop=action.startswith("arrive_drop"), completes=not kept))


# --- waiting ----------------------------------------------------------------------------------------------------------


def _wait(view: View, action: str) -> None:
    """Lanes whose phase is complete continue with True; others of try_wait stay, or eventually continue with False:
    where work ends late and something goes on without the phase, at once, once before each success."""
    addresses, wanted = view.addresses(), view.source(1)
    limits = view.source(2) if len(view.op.src) > 2 else np.full(LANES, DEFAULT_LIMIT)
    if not action.endswith("parity"):
        wanted = wanted >> np.uint64(word.PHASE_SHIFT)
    wanted = wanted & wanted.dtype.type(1)
    results = np.zeros(LANES, np.bool_)
    leaving, staying = 0, []
    hurries = view.launch.late and view.op.where in view.launch.program.cache.get(word.HASTY, ())
    hurried: dict[tuple[int, int], int] | None = view.cta.state.setdefault(word.HASTY, {}) if hurries else None
    key = view.warp, view.op.where
    for lane, lanes in _alike(view, addresses, wanted, limits):
        barrier = barrier_at(view, int(addresses[lane]), lane, _space(view))
        over = word.phase(barrier.word) != wanted[lane]
        if over:
            results |= _FLAGS & np.uint32(lanes) != 0
        stay = 0 if over or action.startswith("test") else lanes & ~_expired(view, lanes)
        if hurried is not None:
            had = hurried.get(key, 0)
            hurried[key] = had & ~lanes if over else had | lanes
            stay &= had
        leaving |= lanes & ~stay
        if stay:
            staying.append((barrier, int(limits[lane]), stay))
    view.result(0, results, leaving)
    for barrier, limit, lanes in staying:
        _WORD.pack_into(barrier.cta.shared, barrier.offset, barrier.word | word.WAITED)
        view.wait(barrier.key, _Phase(barrier), lanes=lanes, limit=limit)


_FLAGS = np.uint32(1) << np.arange(LANES, dtype=np.uint32)


def _alike(view: View, *operands: npt.NDArray[Any]) -> list[tuple[int, int]]:
    """The first lane, and all lanes, of those with the same operands."""
    left, found = view.mask, []
    while left:
        lead = (left & -left).bit_length() - 1
        same = np.logical_and.reduce([operand == operand[lead] for operand in operands])
        lanes = int(_FLAGS[same].sum(dtype=np.uint64)) & left
        found.append((lead, lanes))
        left &= ~lanes
    return found


def _expired(view: View, lanes: int) -> int:
    """The lanes whose time to wait has expired."""
    return sum(1 << lane for lane in range(LANES) if lanes >> lane & 1 and view.expired(lane))
