"""synccheck: barriers as the manual wants them (9.7.13.1): all threads of a warp at one instruction, whole warps;
mbarriers that are initialised and touched by nothing else; shared memory of CTAs that still run.

Whether a warp met as a whole is judged when it goes on: the simulator lets lanes come to a barrier one after another.
"""

from __future__ import annotations

import weakref
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from ptxtools.program.program import LANES

from . import mbarriers

if TYPE_CHECKING:
    from ptxtools.machine.events import View
    from ptxtools.machine.observers import Access, Array
    from ptxtools.sim.device import Grid

    from .session import Session

_NAME = "synccheck"


@dataclass(slots=True)
class _Warp:
    """A warp at a barrier: how often each lane has passed it, and who came to each phase from which instruction."""

    passes: Array = field(default_factory=lambda: np.zeros(LANES, np.int64))
    came: dict[int, dict[int, int]] = field(default_factory=dict)  # phase -> place -> mask of lanes


class SyncCheck:
    """What came to barriers hangs on the CTA."""

    def __init__(self, session: Session, grid: Grid) -> None:
        self._session: Session = weakref.proxy(session)  # which outlives this

    def arrive(self, at: View, what: str, lanes: Array) -> None:
        """Lanes come to a barrier or do something to mbarriers."""
        if what.startswith("mbarrier "):
            mbarriers.operation(self._session, at, what.partition(" ")[2], lanes)
        if what not in ("bar", "arrive"):
            return
        self._counts(at, lanes)
        for lane, number in zip(lanes.tolist(), at.source(0)[lanes].tolist(), strict=True):
            warp = _warp(at, number)
            warp.passes[lane] += 1
            places = warp.came.setdefault(int(warp.passes[lane]), {})
            places[at.op.where] = places.get(at.op.where, 0) | 1 << lane

    def leave(self, at: View, what: str, lanes: Array) -> None:
        """Lanes go on behind a barrier: all of their warp must have come to it, at the same instruction."""
        if what != "bar" or not _aligned(at):
            return
        threads = _threads(at)
        for lane, number in zip(lanes.tolist(), at.source(0)[lanes].tolist(), strict=True):
            warp = _warp(at, number)
            places = warp.came.pop(int(warp.passes[lane]), None)
            if places is None:
                continue  # judged already, for another lane
            mask = 0
            for part in places.values():
                mask |= part
            missing = [n for n in range(threads) if not mask >> n & 1]
            key = (tuple(sorted(places)), "divergent")
            if missing:
                message = f"{len(missing)} of {threads} threads of the warp did not come to this aligned barrier"
                detail = f"not there: lanes {', '.join(map(str, missing[:8]))}{', …' if len(missing) > 8 else ''}"
                self._session.report(at, lane, _NAME, message, key, (detail,))
            elif len(places) > 1:
                others = [self._session.place(at.launch.program, where)[1:] for where in places if where != at.op.where]
                details = tuple(f"line {line}: {' '.join(text.split())}" for line, text in others)
                message = "threads of the warp met at this aligned barrier from different instructions"
                self._session.report(at, lane, _NAME, message, key, details)

    def access(self, at: View, access: Access) -> None:
        """Lanes access shared memory."""
        if access.space == "shared":
            mbarriers.access(self._session, at, access)

    def _counts(self, view: View, lanes: Array) -> None:
        session = self._session
        if view.op.src[1] is None:
            return
        x, y, z = view.launch.block
        for count in np.unique(view.source(1)[lanes]).tolist():
            if count % LANES or count == 0:
                message = f"a thread count of {count} is no multiple of {LANES}"
                session.report(view, int(lanes[0]), _NAME, message, (view.op.where, count))
            elif count > -(-x * y * z // LANES) * LANES:
                message = f"{count} threads are to meet, but the CTA has {x * y * z}"
                session.report(view, int(lanes[0]), _NAME, message, (view.op.where, count))


def _aligned(view: View) -> bool:
    opcode = view.op.opcode
    return opcode is None or opcode.family == "bar" or opcode.has("aligned")


def _warp(view: View, number: int) -> _Warp:
    state: dict[Any, _Warp] = view.cta.state.setdefault(_NAME, {})
    return state.setdefault((number, view.warp), _Warp())


def _threads(view: View) -> int:
    """Threads of the warp; fewer than 32 in the last one of a CTA."""
    x, y, z = view.launch.block
    return min(LANES, x * y * z - LANES * view.warp)
