"""What the native engine keeps beside a CTA's shared memory for asynccheck's first look (`native.loop.filter_matrices`
does the same natively): marks of what copies write, when bytes were stored, and which products read them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ptxtools.machine.issued import WARPS
from ptxtools.machine.observers import Doubt
from ptxtools.machine.residents import MARKS_HEAD, STORED_SHIFT, Cta

if TYPE_CHECKING:
    from ptxtools.machine.events import View
    from ptxtools.machine.observers import Array

_WORD, _CHUNK = 4, 16
#: Where the clocks of the CTA and of its warps are in the head, in words (`native.code.structures.MARKED`).
_BEGAN, _FENCED, _LAST, _BEFORE, _WARPS = 9, 80, 112, 144, 32
_WARP = (1 << STORED_SHIFT) - 1


class Planes:
    """Those of a CTA."""

    def __init__(self, cta: Cta) -> None:
        self._marks: Array = cta.marks[MARKS_HEAD:]
        self._head: Array = cta.marks[:MARKS_HEAD].view(np.uint32)
        self._stores: Array = cta.stores
        self._reads: list[Array] = cta.reads

    def multiplies(self, at: View, starts: Array) -> None:
        """A warp's next product reads chunks at these places; raises `Doubt` if it should not yet."""
        self.reads(at.warp, starts)
        self._reads[at.warp // WARPS][starts // _CHUNK] = at.issued_by(at.warp).issued + 1

    def reads(self, warp: int, starts: Array) -> None:
        """Work that a warp starts reads chunks."""
        if (starts[:, None] + np.arange(_CHUNK) >= len(self._marks)).any():
            raise Doubt
        if self._marks[starts[:, None] + np.arange(_CHUNK)].any():
            raise Doubt
        words = self._stores[starts[:, None] // _WORD + np.arange(_CHUNK // _WORD)]
        if not (words >> STORED_SHIFT <= self._fenced(warp, words & _WARP)).all():
            raise Doubt

    def _fenced(self, warp: int, stored: Array) -> Array:
        """Until when stores of some warps are fenced, for a warp that reads now."""
        head = self._head
        last, before = head[_LAST : _LAST + _WARPS], head[_BEFORE : _BEFORE + _WARPS]
        own = np.where(last <= head[_BEGAN], last, before)
        found: Array = np.maximum(own, head[_FENCED + warp])[stored]
        return found


__all__ = ["Planes"]
