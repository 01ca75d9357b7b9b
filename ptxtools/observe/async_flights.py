"""asynccheck's first look at work that mbarriers and bulk groups complete: that of tcgen05, bulk and tensor copies.

All work of a CTA is numbered, plane by plane (`machine.residents.PIPE`). A chunk of shared memory has the number of the
last work that reads or writes it, and so has a cell of tensor memory: who touches it must know that work to be complete
(`async_knowledge`). In global memory, nothing may write what copies read or write, in the whole grid.
"""

from __future__ import annotations

from collections import defaultdict
from functools import cache
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from ptxtools.machine.observers import Doubt
from ptxtools.machine.residents import BULK, CHUNK, COPY, PIPE, PLANES, Cta
from ptxtools.program.details import Groups
from ptxtools.program.operations import OPERATIONS
from ptxtools.program.program import LANES, OFFSET_MASK

from .async_knowledge import Knowledge, Known
from .async_planes import Planes
from .tensor import rows_of

if TYPE_CHECKING:
    from ptxtools.machine.claims import Claim, Span
    from ptxtools.machine.events import View
    from ptxtools.machine.observers import Access, Array

_KEY = "asynccheck's first look"
#: Parts of 32 lanes of tensor memory, which are told apart, and columns.
_SHAPE = (4, 512)


_LAST = (1 << 64) - 1
#: A plane, and a number in it.
_Item: TypeAlias = tuple[int, int]


class Flights:
    """Those of a CTA. counts: work that has begun, by plane."""

    def __init__(self, cta: Cta, ground: Ground) -> None:
        self._cta, self._ground = cta, ground
        self.planes, self.knowledge = Planes(cta, ground.marked), Knowledge(cta)
        self.counts = [0] * PLANES
        self._issuers: dict[tuple[int, int], int] = {}  # warp and lane: the last work of tcgen05 that it has begun
        self._cells: Array = np.zeros((2, *_SHAPE), np.uint32)  # numbers of what reads them, and of what writes them
        #: Spans of a warp's loads and stores of tensor memory that it has not waited for.
        self._loads: defaultdict[int, list[Span]] = defaultdict(list)
        self._stores: defaultdict[int, list[Span]] = defaultdict(list)
        #: Of each warp, in this epoch: those that it has waited for, with the number of its wait; and how many waits.
        self._finished: defaultdict[int, dict[tuple[Any, ...], tuple[int, Span]]] = defaultdict(dict)
        self._waits: defaultdict[int, int] = defaultdict(int)
        self._finished_in = 0
        self._open: dict[Claim, list[_Item]] = {}  # of copies to shared memory that are being made
        self._groups: defaultdict[tuple[int, int], list[list[_Item]]] = defaultdict(lambda: [[]])
        self._since: dict[int, int] = {}  # by warp: the epoch in which it began the first of those loads and stores
        cta.at_end.append(self.ended)

    def issued(self, claim: Claim) -> None:
        """Work begins."""
        kind, warp = claim.view.op.kind, claim.view.warp
        row = OPERATIONS[kind]
        if any(span.owner is not None and span.owner is not self._cta for span in claim.spans):
            raise Doubt
        if row.warp:
            self._by_warp(claim)
        elif kind.startswith("tcgen05."):
            self.counts[PIPE] += 1
            self._issuers[warp, claim.lane] = self.counts[PIPE]
            self._piped(claim, self.counts[PIPE])
            chunks = self._ground.chunks([span for span in claim.spans if not span.tensor])
            if len(chunks):
                known = self.knowledge.of(warp, claim.lane)
                self.planes.reads(warp, chunks, known.until[COPY], fenced=row.asynchronous, fences=known.fences)
                self._cta.flights[PIPE][chunks] = self.counts[PIPE]
        else:
            self._copied(claim)

    def access(self, at: View, access: Access) -> None:
        """Lanes access shared memory."""
        places = access.addresses.astype(np.int64) & OFFSET_MASK
        for lane, place in zip(access.lanes.tolist(), places.tolist(), strict=True):
            chunks = np.arange(place // CHUNK, (place + access.size - 1) // CHUNK + 1)
            known = self.knowledge.of(at.warp, lane)
            self.planes.reads(at.warp, chunks, known.until[COPY], fenced=False)
            if access.writes:
                self._write(at, chunks, known)
                self.planes.store(at.warp, place, access.size)

    # --- tensor memory ------------------------------------------------------------------------------------------------

    def _by_warp(self, claim: Claim) -> None:
        """tcgen05.ld and st; alloc and dealloc, which write memory at once."""
        warp = claim.view.warp
        known = self.knowledge.of(warp)
        until = known.until
        for span in claim.spans:
            if not span.tensor:
                self._write(claim.view, _chunks(span), known)
                continue
            reads = span.kind == "read"
            if (self._cells[1 if reads else slice(None)][..., *_place(span)] > until[PIPE]).any():
                raise Doubt
            lists = [*self._stores.items()] if reads else [*self._stores.items(), *self._loads.items()]
            own = () if reads else self._stores[warp]
            if any(spans is not own and any(map(span.meets, spans)) for _, spans in lists):
                raise Doubt
            self._others_told(warp, span, known)
            if claim.view.op.kind == "tcgen05.dealloc":
                continue
            if not self._loads[warp] and not self._stores[warp]:
                self._since[warp] = self._epoch
            (self._loads if reads else self._stores)[warp].append(span)

    def waited(self, at: View, *, stores: bool) -> None:
        """A warp has come to tcgen05.wait: it has told nobody anything since it began what it waits for."""
        spans, warp = (self._stores if stores else self._loads).pop(at.warp, ()), at.warp
        if not spans:
            return
        if self._since[warp] != self._epoch:
            raise Doubt
        self._forget_finished()
        number = self._waits[warp] = self._waits[warp] + 1
        self._finished[warp].update({(one.kind, one.start, one.end, one.lanes): (number, one) for one in spans})
        self.knowledge.has_waited(warp, number)

    def _forget_finished(self) -> None:
        """A barrier of the CTA has told all warps."""
        if self._finished_in != self._epoch:
            self._finished_in = self._epoch
            self._finished.clear()

    def _others_told(self, warp: int, span: Span, known: Known) -> None:
        """Whether a warp that touches tensor memory has been told of the waits of others for what they did there."""
        self._forget_finished()
        for other, finished in self._finished.items():
            told = known.waits.get(other, 0)
            if other == warp or told == self._waits[other]:
                continue
            if any(number > told and span.meets(one) for number, one in finished.values()):
                raise Doubt

    @property
    def _epoch(self) -> int:
        return int(self._cta.owners[1])

    def arrive(self, at: View, what: str, lanes: Array) -> None:
        """Lanes are about to do something with mbarriers, or come to a named barrier. Who is told by it may come before
        the end of work for which the warp has yet to wait."""
        if what.startswith("mbarrier"):
            self.knowledge.arrive(at, what, lanes)
            if " arrive" not in what:
                return
        else:
            self.knowledge.come(at, lanes, stays=what == "bar")
        if self._loads[at.warp] or self._stores[at.warp] or self.planes.copies_pending(at.warp):
            raise Doubt
        self.planes.tells(at.warp)

    def _piped(self, claim: Claim, number: int) -> None:
        """What products and copies of tensor memory do, in the order in which they begin."""
        known = self.knowledge.of(claim.view.warp, claim.lane)
        for span in claim.spans:
            if not span.tensor:
                continue
            self._others_told(claim.view.warp, span, known)
            reads = span.kind == "read"
            flying = [*self._stores.values()] if reads else [*self._stores.values(), *self._loads.values()]
            if any(any(map(span.meets, others)) for others in flying):
                raise Doubt
            self._cells[0 if reads else 1][_place(span)] = number

    # --- copies -------------------------------------------------------------------------------------------------------

    def _copied(self, claim: Claim) -> None:
        """Bulk and tensor copies."""
        warp, items = claim.view.warp, list[_Item]()
        loads = any(span.owner is not None and span.kind != "read" for span in claim.spans)
        known = self.knowledge.of(warp, claim.lane)
        until = known.until
        for span in claim.spans:
            if span.owner is None:
                self._ground.touch(span)
                continue
            chunks = _chunks(span)
            self.planes.reads(warp, chunks, until[COPY], fenced=True, fences=known.fences)
            plane = BULK if span.kind == "read" else COPY
            if plane == COPY:
                self._write(claim.view, chunks, known)
            self.counts[plane] += 1
            self._cta.flights[plane][chunks] = self.counts[plane]
            items.append((plane, self.counts[plane]))
        if loads:
            self._open[claim] = items
        else:
            self._groups[warp, claim.lane][-1] += items

    def _write(self, view: View, chunks: Array | slice, known: Known) -> None:
        """Chunks are written: nobody may be using them."""
        planes = zip(self._cta.flights, known.until, strict=True)
        if any(int(flights[chunks].max(initial=0)) > number for flights, number in planes):
            raise Doubt
        self.planes.unread(view, chunks, known.products)

    def completed(self, claim: Claim) -> None:
        """It has been made, which is no news to anybody."""
        self._open.pop(claim, None)

    def transacted(self, at: View, cta: Cta, offset: int) -> None:
        """The copy that is being made signals an mbarrier."""
        for claim, items in self._open.items():
            news = _news(items)
            news.join(self.knowledge.of(claim.view.warp, claim.lane))
            self.knowledge.tell(cta, offset, news)

    def grouped(self, at: View, lanes: Array, groups: Groups) -> None:
        """Lanes close bulk groups, or have waited for some."""
        for lane in lanes.tolist():
            mine = self._groups.get((at.warp, lane))
            if mine is None:
                continue
            if groups.pending is None:
                mine.append([])
                continue
            done = max(0, len(mine) - 1 - groups.pending)
            items = [item for group in mine[:done] for item in group]
            del mine[:done]
            if items:
                self.knowledge.learn(at, np.array([lane]), _news(items))

    def signalled(self, at: View, cta: Cta, offset: int) -> None:
        """tcgen05.commit signals an mbarrier when all work of the thread before it is done (9.7.16.12.1), and what that
        comes behind (9.7.16.5.4.3)."""
        lanes = list(at.lanes())
        news = Known()
        news.join(self.knowledge.of(at.warp, lanes[0] if len(lanes) == 1 else None))
        mine = max(self._issuers.get((at.warp, lane), 0) for lane in lanes)
        if any(number > max(mine, news.until[PIPE]) for number in self._issuers.values()):
            raise Doubt
        news.until[PIPE] = self.counts[PIPE]
        self.knowledge.tell(cta, offset, news)

    def ended(self) -> None:
        """The CTA ends: somebody must have waited for all."""
        if self.knowledge.anybody.until != self.counts or any(self._loads.values()) or any(self._stores.values()):
            raise Doubt


class Ground:
    """Global memory (first byte, and the byte behind the last), in chunks: which copies of a worker's CTAs read, write
    and change; reads and reductions may come beside their like (`claims.Span.meets`). marked: how many bytes of shared
    memory cp.async writes now; and the lowest and the highest byte of global memory that threads have stored.
    reads_apart, apart: gaps in what threads may read, and in what they may write of it: of no bytes at first."""

    def __init__(self, memory: tuple[int, int]) -> None:
        self._first = memory[0]
        chunks = (memory[1] - memory[0]) // CHUNK + 1
        self._touched = {kind: np.zeros(chunks, np.bool_) for kind in ("read", "write", "reduce")}
        self.marked: Array = np.array([0, _LAST, 0], np.uint64)
        self.reads_apart, self.apart = np.array([[(0, _LAST, 0), (0, _LAST, 0)]] * 2, np.uint64)
        self._chunks: dict[tuple[int, ...], tuple[list[Array | None], Array]] = {}  # of matrices, by their rows

    def chunks(self, spans: list[Span]) -> Array:
        """Numbers of the chunks of shared memory that spans touch."""
        if any(span.rows is None for span in spans):
            return np.concatenate([_numbers(span) for span in spans])
        key = tuple(id(span.rows) for span in spans)
        known = self._chunks.get(key)
        if known is None:
            found = [_numbers(span) for span in spans]
            chunks = np.unique(np.concatenate(found)) if found else np.zeros(0, np.int64)
            known = self._chunks[key] = [span.rows for span in spans], chunks
        return known[1]

    def touch(self, span: Span) -> None:
        """A copy reads or writes some."""
        if span.start < int(self.marked[2]) and int(self.marked[1]) < span.end:
            raise Doubt
        starts, size = span.pieces()
        first = (starts - self._first) // CHUNK
        last = (starts + (size - 1 - self._first)) // CHUNK
        chunks = first[:, None] + np.arange(int((last - first).max()) + 1)
        if int(first[0]) < 0 or int(chunks[-1, -1]) >= len(self._touched["read"]):
            raise Doubt
        if any(touched[chunks].any() for touched in self._unlike(span.kind)):
            raise Doubt
        self._touched[span.kind][chunks] = True
        for rows in (self.apart,) if span.kind == "read" else (self.reads_apart, self.apart):
            rows[0, 1] = min(int(rows[0, 1]), span.start)
            rows[1, 0] = max(int(rows[1, 0]), span.end)

    def meets(self, other: Ground) -> bool:
        """Whether copies write what those of another worker read or write, or threads store anywhere near it."""
        if int(self.marked[1]) < int(other.apart[1, 0]) and int(other.apart[0, 1]) < int(self.marked[2]):
            return True
        if int(self.reads_apart[1, 0]) <= int(self.reads_apart[0, 1]):
            return False  # they write nothing
        return any(
            bool((self._touched[kind] & theirs).any()) for kind in ("write", "reduce") for theirs in other._unlike(kind)
        )

    def _unlike(self, kind: str) -> list[Array]:
        """The chunks touched in ways that must not come beside this one."""
        return [touched for other, touched in self._touched.items() if other != kind or kind == "write"]


def flights_of(cta: Cta, ground: Ground) -> Flights:
    found: Flights = cta.state.get(_KEY) or cta.state.setdefault(_KEY, Flights(cta, ground))
    return found


def _news(items: list[_Item]) -> Known:
    """That some work is complete."""
    news = Known()
    for plane, number in items:
        news.more[plane].add(number)
    return news


def _chunks(span: Span) -> Array | slice:
    """The chunks of shared memory that a span touches."""
    if span.rows is None or span.row != CHUNK:
        return slice(span.start // CHUNK, -(-span.end // CHUNK))
    found: Array = span.rows // CHUNK
    return found


def _numbers(span: Span) -> Array:
    """Their numbers."""
    found = _chunks(span)
    return np.arange(found.start, found.stop) if isinstance(found, slice) else found


def _place(span: Span) -> tuple[Any, slice]:
    """Parts of 32 lanes and columns of tensor memory."""
    return _parts(span.lanes), slice(span.start, span.end)


@cache
def _parts(lanes: int) -> Any:
    parts = np.unique(rows_of(lanes) // LANES)
    return slice(None) if len(parts) == _SHAPE[0] else parts


__all__ = ["Flights", "Ground", "flights_of"]
