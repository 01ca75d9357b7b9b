"""synccheck: barriers as the manual wants them (9.7.13.1): all threads of a warp at one instruction, whole warps;
mbarriers that are initialised and touched by nothing else; shared memory of CTAs that still run.

Whether a warp met as a whole is judged when it goes on: the simulator lets lanes come to a barrier one after another.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from ptxtools.program.program import LANES

from . import mbarriers

if TYPE_CHECKING:
    from ptxtools.machine.events import View

    from .looks import Access, Array
    from .session import Session

_NAME = "synccheck"


@dataclass(slots=True)
class _Warp:
    """A warp at a barrier: how often each lane has passed it, and who came to each phase from which instruction."""

    passes: Array = field(default_factory=lambda: np.zeros(LANES, np.int64))
    came: dict[int, dict[int, int]] = field(default_factory=dict)  # phase -> place -> mask of lanes


class SyncCheck:
    """What came to barriers hangs on the CTA."""

    def arrive(self, session: Session, view: View, what: str, lanes: Array) -> None:
        """Lanes come to a barrier or do something to mbarriers."""
        if what.startswith("mbarrier "):
            mbarriers.operation(session, view, what.partition(" ")[2], lanes)
        if what not in ("bar", "arrive"):
            return
        self._counts(session, view, lanes)
        for lane, number in zip(lanes.tolist(), view.source(0)[lanes].tolist(), strict=True):
            warp = _warp(view, number)
            warp.passes[lane] += 1
            places = warp.came.setdefault(int(warp.passes[lane]), {})
            places[view.op.where] = places.get(view.op.where, 0) | 1 << lane

    def leave(self, session: Session, view: View, what: str, lanes: Array) -> None:
        """Lanes go on behind a barrier: all of their warp must have come to it, at the same instruction."""
        if what != "bar" or not _aligned(view):
            return
        threads = _threads(view)
        for lane, number in zip(lanes.tolist(), view.source(0)[lanes].tolist(), strict=True):
            warp = _warp(view, number)
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
                session.report(view, lane, _NAME, message, key, (detail,))
            elif len(places) > 1:
                others = [session.place(view.launch.program, where)[1:] for where in places if where != view.op.where]
                details = tuple(f"line {line}: {' '.join(text.split())}" for line, text in others)
                message = "threads of the warp met at this aligned barrier from different instructions"
                session.report(view, lane, _NAME, message, key, details)

    def access(self, session: Session, view: View, access: Access) -> None:
        """Lanes access shared memory."""
        mbarriers.access(session, view, access)

    def _counts(self, session: Session, view: View, lanes: Array) -> None:
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
