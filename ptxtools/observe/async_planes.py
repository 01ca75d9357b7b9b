"""What the native engine keeps beside a CTA's shared memory for asynccheck's first look (`native.loop.filter_matrices`
does the same natively): marks of what copies write, when bytes were stored, and which products read them."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np

from ptxtools.machine.issued import WARPS
from ptxtools.machine.observers import Doubt
from ptxtools.machine.residents import CHUNK, COPY, MARKS_HEAD, STORED_SHIFT, Cta
from ptxtools.program.program import LANES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ptxtools.machine.events import View
    from ptxtools.machine.observers import Array

_WORD = 4
#: Where the clocks of the CTA and of its warps are in the head, in words (`native.code.structures.MARKED`).
_CLOCK, _BEGAN, _COMMITS, _WAITED, _FENCED, _LAST, _BEFORE, _COPIES, _WARPS = 8, 9, 16, 48, 80, 112, 144, 240, 32
_WARP = (1 << STORED_SHIFT) - 1


class Planes:
    """Those of a CTA."""

    def __init__(self, cta: Cta) -> None:
        self._marks: Array = cta.marks[MARKS_HEAD:].view(np.uint64).reshape(-1, 2)
        self._head: Array = cta.marks[:MARKS_HEAD].view(np.uint32)
        self._stores = cta.stores.reshape(-1, CHUNK // _WORD)
        self._copies: Array | None = None if cta.flights is None else cta.flights[COPY]
        self._reads: list[Array] = cta.reads

    def multiplies(self, at: View, starts: Array, fences: Mapping[int, int]) -> None:
        """A warp's next product reads chunks at these places; raises `Doubt` if it should not yet."""
        self.reads(at.warp, starts // CHUNK, fences=fences)
        self._reads[at.warp // WARPS][starts // CHUNK] = at.issued_by(at.warp).issued + 1

    def reads(
        self, warp: int, chunks: Array | slice, copies: int | None = None, *, fenced: bool = True,
        fences: Mapping[int, int] = MappingProxyType({}),
    ) -> None:  # fmt: skip
        """Work that a warp starts reads chunks, or writes them. copies: up to which number who starts it knows copies
        to be complete, or what the warp knows; fenced: it does so in the asynchronous proxy; fences: what who starts it
        knows of other warps' fences (`async_knowledge.Known`)."""
        if isinstance(chunks, slice):
            last = chunks.stop - 1
        else:
            last = int(chunks[-1]) if len(chunks) else 0
        if last >= len(self._marks):
            raise Doubt
        if self._marks[chunks].any():
            raise Doubt
        if self._copies is not None:
            until = int(self._head[_COPIES + warp]) if copies is None else copies
            if int(self._copies[chunks].max(initial=0)) > until:
                raise Doubt
        words = self._stores[chunks]
        if not fenced or int(words.max(initial=0)) >> STORED_SHIFT <= int(self._head[_FENCED + warp]):
            return
        if not (words >> STORED_SHIFT <= self._fenced(warp, words & _WARP, fences)).all():
            raise Doubt

    def store(self, warp: int, place: int, size: int) -> None:
        """A thread stores some bytes now."""
        words = self._stores.reshape(-1)[place // _WORD : (place + size - 1) // _WORD + 1]
        words[:] = int(self._head[_CLOCK]) + 1 << STORED_SHIFT | warp

    def unread(self, at: View, chunks: Array | slice) -> None:
        """Chunks are written: products of warpgroups must not read them any more."""
        x, y, z = at.launch.block
        for group, reads in enumerate(self._reads):
            latest = int(reads[chunks].max(initial=0))
            for warp in range(WARPS * group, min(WARPS * (group + 1), -(-x * y * z // LANES)) if latest else 0):
                record = at.issued_by(warp)
                if record.issued != record.done < latest:
                    raise Doubt

    def last_product(self, warp: int, chunks: Array | slice) -> int:
        """The last product of a warp's warpgroup that reads some chunks."""
        return int(self._reads[warp // WARPS][chunks].max(initial=0))

    def copies_pending(self, warp: int) -> bool:
        """Whether a warp has groups of cp.async for which it has not waited."""
        return bool(self._head[_COMMITS + warp] > self._head[_WAITED + warp])

    def _fenced(self, warp: int, stored: Array, fences: Mapping[int, int]) -> Array:
        """Until when stores of some warps are fenced, for a warp that reads now."""
        head = self._head
        last, before = head[_LAST : _LAST + _WARPS], head[_BEFORE : _BEFORE + _WARPS]
        own = np.where(last <= head[_BEGAN], last, before)
        for other, time in fences.items():
            own[other] = max(time, int(own[other]))
        found: Array = np.maximum(own, head[_FENCED + warp])[stored]
        return found


__all__ = ["Planes"]
