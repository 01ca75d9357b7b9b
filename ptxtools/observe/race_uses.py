"""Uses of mbarriers, which come again and again: arrivals and waits are reads of the word for racecheck.

Where the same lanes of a warp use an mbarrier once more, and nobody has written to its word since, there is nothing new
to compare: what a warp knows only grows. So no more than the time of the read is noted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ptxtools.program.program import OFFSET_MASK, RANK_SHIFT

if TYPE_CHECKING:
    from collections.abc import Callable

    from ptxtools.machine.events import View
    from ptxtools.machine.observers import Access
    from ptxtools.machine.residents import Cta

    from .clocks import Array, Warp
    from .race_accesses import Strength
    from .race_pages import Pages
    from .race_shadow import Shadow
    from .race_verdict import Deciders
    from .session import Session


class Uses:
    """Those of a grid. strength: of such a read."""

    def __init__(self, session: Session, deciders: Deciders, strength: Strength) -> None:
        self._session, self._deciders, self._strength = session, deciders, strength
        self._seen: dict[Any, tuple[Any, ...]] = {}  # by lanes of a warp and mbarrier what has been written to its word

    def look(
        self, at: View, access: Access, warp: Warp, pages: Pages, shadow_of: Callable[[Cta], Shadow | None],
        judge: Callable[[], None],
    ) -> None:  # fmt: skip
        """Lanes use mbarriers; judge: compares that with what others have done."""
        place = self._place(at, access)
        shadow = None if place is None else shadow_of(place[0])
        if place is None or shadow is None or shadow.messages or not self._deciders.calm:
            judge()
            return
        owner, offset = place
        key = owner.number, offset, warp.agent, access.lanes.tobytes()
        ((_, page, inside, _),) = shadow.pieces(np.array([offset]), access.size)
        state = self._state(page, inside)
        if self._seen.get(key) == state and self._again(at, access, warp, page, inside, pages):
            return
        told = self._session.told
        judge()
        late = any(pages.late(warp, page.writes, np.full(len(access.lanes), one), access.lanes).any() for one in inside)
        if told == self._session.told and not late:
            self._seen[key] = self._state(page, inside)

    @staticmethod
    def _place(at: View, access: Access) -> tuple[Cta, int] | None:
        """The mbarrier that all lanes use."""
        first = int(access.addresses[0])
        rank, offset = first >> RANK_SHIFT, first & OFFSET_MASK
        ctas = at.cluster.ctas
        if rank >= len(ctas) or (access.addresses != access.addresses[0]).any():
            return None
        owner = ctas[rank]
        return (owner, offset) if offset % access.size == 0 and offset + access.size <= len(owner.shared) else None

    @staticmethod
    def _state(page: Any, inside: Array) -> tuple[Any, ...]:
        writes = page.writes
        return page.grain, writes["written"][inside].tolist(), writes["writer"][inside].tolist()

    def _again(self, at: View, access: Access, warp: Warp, page: Any, inside: Array, pages: Pages) -> bool:
        """Note the read, if it stands for the one before; whether it does."""
        row, reads = page.row(warp.agent), page.reads
        scope, unit = self._strength
        if (reads["scope"][row, inside] != scope).any() or (reads["unit"][row, inside] != unit).any():
            return False
        reads["time"][row, inside], reads["where"][row, inside] = warp.time, at.op.where
        stays = reads["since"][row, inside] > warp.known_reads().min() if pages.lanes_race else np.False_
        old = np.where(stays, reads["lanes"][row, inside], np.uint32(0))
        reads["since"][row, inside] = np.where(stays, reads["since"][row, inside], warp.time)
        reads["lanes"][row, inside] = old | np.bitwise_or.reduce(np.uint32(1) << access.lanes.astype(np.uint32))
        return True
