"""What the native engine keeps beside a CTA's shared memory for asynccheck's first look (`native.loop.filter_matrices`
does the same natively): marks of what copies write, when bytes were stored, and which products read them."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np

from ptxtools.machine.issued import WARPS
from ptxtools.machine.observers import Doubt
from ptxtools.machine.residents import CHUNK, COPY, MARKED_GROUPS, MARKS_HEAD, STORED_SHIFT, Cta
from ptxtools.program.program import LANES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ptxtools.machine.events import View
    from ptxtools.machine.observers import Array

_WORD = 4
#: Where the clocks of the CTA and of its warps are in the head, in words (`native.code.structures.MARKED`).
_CLOCK, _BEGAN, _COMMITS, _WAITED, _FENCED, _LAST, _BEFORE, _COPIES, _WARPS = 8, 9, 16, 48, 80, 112, 144, 240, 32
_KEPT, _PRODUCTS = 368, 400
_WARP = (1 << STORED_SHIFT) - 1


class Planes:
    """Those of a CTA. marked: how many bytes are, first of an array."""

    def __init__(self, cta: Cta, marked: Array) -> None:
        self._marked = marked
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

    def unread(self, at: View, chunks: Array | slice, told: Mapping[int, int]) -> None:
        """Chunks are written: products of warpgroups must not read them any more, as far as the warp knows. It knows
        what each had waited for when the epoch began; of its own warpgroup, what it has waited for itself, too. told:
        what mbarriers and named barriers have told of others (`async_knowledge.Known`)."""
        x, y, z = at.launch.block
        for group, reads in enumerate(self._reads):
            latest = int(reads[chunks].max(initial=0))
            own = at.issued_by(at.warp).done if at.warp // WARPS == group else 0
            for warp in range(WARPS * group, min(WARPS * (group + 1), -(-x * y * z // LANES)) if latest else 0):
                done = max(own, int(self._head[_PRODUCTS + warp]), told.get(warp, 0))
                if at.issued_by(warp).issued > done < latest:
                    raise Doubt

    def tells(self, warp: int) -> None:
        """A warp tells others that all its groups of cp.async are complete: their marks vanish."""
        first, last = int(self._head[_KEPT + warp]), int(self._head[_WAITED + warp])
        if first == last:
            return
        tags = [1 + MARKED_GROUPS * warp + number % MARKED_GROUPS for number in range(first, last)]
        marks = self._marks.reshape(-1).view(np.uint8)
        mine = np.isin(marks, tags)
        marks[mine] = 0
        self._head[_KEPT + warp] = last
        self._marked[0] -= np.uint64(mine.sum())

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
