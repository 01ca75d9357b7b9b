"""synccheck on mbarriers (9.7.13.15): initialised before they are used, once, and touched by nothing else while
in use; and shared memory of other CTAs, which ends with them (9.7.13.2)."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from ptxtools.machine.residents import Cta
from ptxtools.program import mbarrier as word
from ptxtools.program.program import OFFSET_MASK, RANK_SHIFT, SHARED_WINDOW

if TYPE_CHECKING:
    from ptxtools.machine.events import View
    from ptxtools.machine.observers import Access, Array

    from .session import Session

_NAME = "synccheck"
_LIVE = "mbarriers in use"
_WORD = struct.Struct("<Q")


def operation(session: Session, view: View, action: str, lanes: Array) -> None:
    """Lanes initialise, use or invalidate mbarriers."""
    for lane, cta, offset in _places(view, lanes):
        live = cta.state.setdefault(_LIVE, {})
        if cta.ended:
            _tell(session, view, lane, f"mbarrier at shared {offset:#x} of {cta}, which has exited", "ended")
        elif action == "init":
            if offset in live:
                _tell(session, view, lane, f"mbarrier at shared {offset:#x} is initialised while in use", "again")
            live[offset] = view.op.where
        elif not _initialised(cta, offset):
            verb = {"inval": "invalidated"}.get(action, "waited for" if "wait" in action else "used")
            _tell(session, view, lane, f"mbarrier at shared {offset:#x} is {verb}, but not initialised", "fresh")
        elif action == "inval":
            live.pop(offset, None)


def access(session: Session, view: View, access: Access) -> None:
    """Lanes access shared memory by ordinary instructions."""
    places = access.addresses.astype(np.int64)
    ranks = places >> RANK_SHIFT if view.launch.program.clustered else np.full(len(places), view.cta.rank)
    offsets = places & OFFSET_MASK
    for cta in view.cluster.ctas:
        mine = np.flatnonzero(ranks == cta.rank)
        if not len(mine):
            continue
        if cta.ended:
            message = f"shared {access.action} at {int(offsets[mine[0]]):#x} of {cta}, which has exited"
            _tell(session, view, int(access.lanes[mine[0]]), message, "ended")
        for offset in cta.state.get(_LIVE, ()):
            hit = mine[(offsets[mine] < offset + 8) & (offsets[mine] + access.size > offset)]
            if len(hit):
                message = f"shared {access.action} of the mbarrier at {offset:#x}, which is in use"
                _tell(session, view, int(access.lanes[hit[0]]), message, "touched")


def _places(view: View, lanes: Array) -> Iterator[tuple[int, Cta, int]]:
    """A lane for each mbarrier that the operation is on; what is no mbarrier's address traps in the operation."""
    seen = set()
    for lane, address in zip(lanes.tolist(), view.addresses()[lanes].tolist(), strict=True):
        if (view.op.space == "generic" and address >> 56 != SHARED_WINDOW >> 56) or address in seen:
            continue
        seen.add(address)
        rank, offset = (address & 0xFFFF_FFFF) >> RANK_SHIFT, address & OFFSET_MASK
        ctas = view.cluster.ctas
        if rank < len(ctas):
            cta = ctas[rank] if view.launch.program.clustered else view.cta
            if offset + 8 <= len(cta.shared):
                yield lane, cta, offset


def _initialised(cta: Cta, offset: int) -> bool:
    found: int = _WORD.unpack_from(cta.shared, offset)[0]
    return bool(word.pending(found) or word.expected(found))


def _tell(session: Session, view: View, lane: int, message: str, kind: str) -> None:
    session.report(view, lane, _NAME, message, (view.op.where, kind))
