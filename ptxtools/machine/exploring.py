"""What chooses the schedules in which a launch runs again (`RunOptions.explore`)."""

from __future__ import annotations

from typing import Protocol

#: Under this name a device's state (`runtime.state`) has the lines (`Program.lines`) whose weak accesses race.
RACING = "lines that race"


class Frontier(Protocol):
    """The schedules of one launch that have been run, and those that are left."""

    @property
    def count(self) -> int:
        """Orders in which warps have come to the memory through which they learn of one another."""

    @property
    def whole(self) -> bool:
        """Whether all that was run has been looked at."""

    def next(self) -> object | None:
        """An observer (`machine.observers.Observer`) that lets a grid run in the next schedule; None: all have been
        run."""

    def learn(self, observer: object) -> None:
        """Its run is over."""
