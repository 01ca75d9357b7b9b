"""asynccheck on tensor maps in global memory: a map must stay as it is until the copies that use it have completed."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING

import numpy as np

from ptxtools.sim.tensormap.descriptor import BYTES as MAP_BYTES

if TYPE_CHECKING:
    from ptxtools.machine.claims import Claim
    from ptxtools.machine.events import View

    from .asynccheck import Numbers
    from .session import Session

_NAME = "asynccheck"


class MapsInUse:
    """Of a launch: the stretches of 128 bytes that copies in flight have their maps in."""

    def __init__(self, session: Session) -> None:
        self._session: Session = weakref.proxy(session)
        self._last: tuple[View | None, int, int] = None, -1, -1  # view, lane and stretch of the last use
        self._used: dict[Claim, int] = {}

    def touched(self, at: View, lane: int, address: int, what: str) -> None:
        """A copy is about to use the map at a generic address, or an instruction changes it."""
        space, place = at.resolve(address, "generic")
        if space == "global" and what == "changed":
            self._changed(at, lane, place // MAP_BYTES)
        self._last = (at, lane, place // MAP_BYTES) if space == "global" and what != "changed" else (None, -1, -1)

    def stored(self, at: View, lanes: Numbers, places: Numbers) -> None:
        """Lanes store to global memory."""
        for stretch in np.unique(places // MAP_BYTES).tolist() if self._used else ():
            self._changed(at, int(lanes[np.flatnonzero(places // MAP_BYTES == stretch)[0]]), stretch)

    def issued(self, claim: Claim) -> None:
        """Work begins: the first of a copy's steps reads the map, and what waits for that with `.read` has waited for
        the map (9.7.9.25.6.2)."""
        view, lane, stretch = self._last
        if view is claim.view and lane == claim.lane:
            self._used[claim] = stretch
            self._last = None, -1, -1

    def completed(self, claim: Claim) -> None:
        self._used.pop(claim, None)

    def _changed(self, at: View, lane: int, stretch: int) -> None:
        for claim, used in self._used.items():
            if used == stretch:
                program, there = at.launch.program, claim.view.op.where
                where = f"the tensor map at {stretch * MAP_BYTES:#x}"
                message = f"{where} changes, but {claim.text}, which uses it, has not completed"
                self._session.report(
                    at, lane, _NAME, message, (at.op.where, there, "map"), kind="map-in-use",
                    others=(self._session.site(program, there, claim.view.cta.place),), space="global",
                    address=stretch * MAP_BYTES, help="wait for the copies that use a map before it changes",
                )  # fmt: skip
                return
