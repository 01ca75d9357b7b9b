"""Asynchronous work that has not completed, by the memory that it reads and writes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from ptxtools.machine.claims import Claim, Span
    from ptxtools.machine.residents import Cta

#: Spans that a list has room for at first.
_ROOM = 64


class Outstanding:
    """The claims of a launch. What lies near some bytes is found by comparing all spans of that memory at once."""

    def __init__(self) -> None:
        self._claims: dict[Claim, None] = {}
        self._spans: dict[tuple[Cta | None, bool], _Spans] = {}  # by the memory that they are in

    def add(self, claim: Claim) -> None:
        """The work begins."""
        self._claims[claim] = None
        for span in claim.spans:
            where = span.owner, span.tensor
            if where not in self._spans:
                self._spans[where] = _Spans()
            self._spans[where].add(claim, span)

    def remove(self, claim: Claim) -> None:
        """It is done."""
        if claim not in self._claims:
            return
        del self._claims[claim]
        for where in {(span.owner, span.tensor): None for span in claim.spans}:
            spans = self._spans[where]
            spans.remove(claim)
            if not spans.live:
                del self._spans[where]  # and with it the CTA

    def near(self, owner: Cta | None, tensor: bool, start: int, end: int) -> Iterator[tuple[Claim, Span]]:
        """Spans that begin before `end` and end behind `start`, in the order in which their work began."""
        spans = self._spans.get((owner, tensor))
        return iter(()) if spans is None else spans.near(start, end)


class _Spans:
    """Those of one memory. bounds: starts and ends; those of finished work are empty, and lie nowhere."""

    def __init__(self) -> None:
        self._bounds = np.zeros((2, _ROOM), np.int64)
        self._items: list[tuple[Claim, Span]] = []
        self._places: dict[Claim, list[int]] = {}

    @property
    def live(self) -> int:
        """Claims that are left."""
        return len(self._places)

    def add(self, claim: Claim, span: Span) -> None:
        if len(self._items) == self._bounds.shape[1]:
            self._make_room()
        place = len(self._items)
        self._items.append((claim, span))
        self._bounds[:, place] = span.start, span.end
        self._places.setdefault(claim, []).append(place)

    def remove(self, claim: Claim) -> None:
        self._bounds[:, self._places.pop(claim)] = 0

    def _make_room(self) -> None:
        """Forget what has finished; if that was little, take more room."""
        kept = [item for item in self._items if item[0] in self._places]
        bounds = np.zeros((2, max(_ROOM, 2 * len(kept))), np.int64)
        self._items, self._bounds, self._places = [], bounds, {}
        for claim, span in kept:
            self.add(claim, span)

    def near(self, start: int, end: int) -> Iterator[tuple[Claim, Span]]:
        starts, ends = self._bounds[:, : len(self._items)]
        return (self._items[place] for place in np.flatnonzero((starts < end) & (ends > start)).tolist())
