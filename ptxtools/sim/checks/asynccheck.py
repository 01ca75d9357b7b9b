"""asynccheck: nobody may touch what asynchronous work still reads or writes, and work needs what it reads in its proxy.

Work completes as late as it may (`Launch.late`), so that everything that no wait, group or mbarrier has completed is
outstanding when another instruction comes. Its spans of memory are kept until then.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from ptxtools.machine.residents import Cta
from ptxtools.program.program import OFFSET_MASK, RANK_SHIFT

from .proxies import WORD, Proxies

if TYPE_CHECKING:
    from ptxtools.machine.events import View

    from ..context import LaunchContext
    from .looks import Access
    from .session import Session

Numbers: TypeAlias = npt.NDArray[Any]

_NAME = "asynccheck"
_ALL_LANES = (1 << 128) - 1


@dataclass(frozen=True, slots=True)
class Span:
    """Bytes from `start` up to `end`: of a CTA's shared memory, of global memory (owner None), or columns of tensor
    memory (`tensor`), there only of some lanes. kind: "read", "write" or "reduce". rows: only the `row` bytes from each
    of these places on (sorted, without overlap). generic: of the generic proxy, which needs no fence."""

    owner: Cta | None
    start: int
    end: int
    kind: str
    tensor: bool = False
    lanes: int = _ALL_LANES
    rows: Numbers | None = None
    row: int = 0
    generic: bool = False

    def meets(self, other: Span) -> bool:
        """Whether the order of two accesses matters."""
        return (
            self.owner is other.owner
            and self.tensor == other.tensor
            and self.start < other.end
            and other.start < self.end
            and bool(self.lanes & other.lanes)
            and (self.kind != other.kind or self.kind == "write")
            and bool(self.touches(*other.pieces()).any())
        )

    def pieces(self) -> tuple[Numbers, int]:
        """Where its pieces begin, and bytes of each."""
        if self.rows is None:
            return np.array([self.start]), self.end - self.start
        return self.rows, self.row

    def touches(self, starts: Numbers, size: int) -> Numbers:
        """Which of some pieces of `size` bytes have bytes of this span."""
        mine, width = self.pieces()
        before = np.searchsorted(mine, starts + size) - 1  # the last of its rows that begins before a piece ends
        found: Numbers = (before >= 0) & (mine[before] + width > starts)
        return found

    def words(self) -> Numbers:
        """Numbers of the 4-byte words that it has bytes of."""
        starts, size = self.pieces()
        first = starts // WORD
        count = -(-(size + (WORD - 1 if len(starts) > 1 else int(starts[0]) % WORD)) // WORD)
        words: Numbers = np.unique((first[:, None] + np.arange(count)).reshape(-1))
        return words[(words >= self.start // WORD) & (words < -(-self.end // WORD))]


@dataclass(slots=True, eq=False)
class Claim:
    """Outstanding work. pipe: work of the same pipe is done in order, None: of no order."""

    check: AsyncCheck
    view: View
    lane: int
    text: str
    spans: tuple[Span, ...]
    pipe: object

    @property
    def reads(self) -> bool:
        """Whether it changes nothing."""
        return all(span.kind == "read" for span in self.spans)

    def end(self) -> None:
        """The work is done."""
        self.check.end(self)


class AsyncCheck:
    """What is outstanding in a launch, which runs on one worker."""

    def __init__(self, session: Session) -> None:
        self._session: Session = weakref.proxy(session)  # which holds this: a cycle would keep the device's memory
        self._claims: dict[Claim, None] = {}
        self.proxies = Proxies()

    # --- work ---------------------------------------------------------------------------------------------------------

    def begin(self, view: View, lane: int, text: str, spans: Iterable[Span], pipe: object = None) -> Claim:
        """Note work that begins, and report what it should have waited for."""
        claim = Claim(self, view, lane, text, tuple(spans), pipe)
        self.touch(view, lane, text, claim.spans, pipe)
        self._claims[claim] = None
        return claim

    def end(self, claim: Claim) -> None:
        """The work is done."""
        self._claims.pop(claim, None)

    def touch(self, view: View, lane: int, text: str, spans: Iterable[Span], pipe: object = None) -> None:
        """Report outstanding work that an operation should have waited for."""
        spans = tuple(spans)
        reads = all(span.kind == "read" for span in spans)
        others = [c for c in self._claims if (pipe is None or c.pipe != pipe) and not (reads and c.reads)]
        for span in spans:
            for claim in others:
                if any(span.meets(other) for other in claim.spans):
                    self._report(view, lane, f"{text} {_VERBS[span.kind]} memory", claim)
            if not (span.tensor or span.generic):
                self._check_proxy(view, lane, text, span)

    def forgotten(self, claim: Claim, what: str) -> None:
        """The CTA has ended, and nobody waited for this work."""
        if claim in self._claims:
            view = claim.view
            message = f"{claim.text}: the CTA ends without {what} for it"
            self._session.report(view, claim.lane, _NAME, message, (view.op.where, "forgotten"))
            self.end(claim)

    # --- accesses of threads ------------------------------------------------------------------------------------------

    def access(self, view: View, access: Access) -> None:
        """Loads, stores and atomics against outstanding work; stores are of the generic proxy."""
        if access.space not in ("shared", "global") or access.action == "copy":
            return
        for owner, lanes, offsets in self._by_owner(view, access):
            self._access_to(view, access, owner, lanes, offsets)
            if access.writes:
                self.proxies.store(view, owner, lanes, offsets, access.size)
            if access.strong or access.action == "atomic":
                self.proxies.flags(view, owner, lanes, offsets, access.action)

    def _access_to(self, view: View, access: Access, owner: Cta | None, lanes: Numbers, offsets: Numbers) -> None:
        for claim in self._claims:
            for span in claim.spans:
                if span.owner is not owner or span.tensor or (span.kind == "read" and not access.writes):
                    continue
                hit = np.flatnonzero((offsets < span.end) & (offsets + access.size > span.start))
                if span.rows is not None and len(hit):
                    hit = hit[span.touches(offsets[hit], access.size)]
                if len(hit):
                    place = int(offsets[hit[0]])
                    what = f"{access.space} {access.action} of {access.size} bytes at {place:#x}"
                    self._report(view, int(lanes[hit[0]]), what, claim)

    def _by_owner(self, view: View, access: Access) -> Iterator[tuple[Cta | None, Numbers, Numbers]]:
        """Lanes and their offsets for each CTA whose shared memory is meant; None for global memory."""
        places = access.addresses.astype(np.int64)
        if access.space == "global":
            yield None, access.lanes, places
        elif not view.launch.program.clustered:
            yield view.cta, access.lanes, places
        else:
            ranks = places >> RANK_SHIFT
            for cta in view.cluster.ctas:
                mine = ranks == cta.rank
                if mine.any():
                    yield cta, access.lanes[mine], places[mine] & OFFSET_MASK

    def _report(self, view: View, lane: int, what: str, claim: Claim) -> None:
        program, there = view.launch.program, claim.view.op.where
        _, line, text = self._session.place(program, there)
        origin = self._session.source_of(view.launch.program, there)
        where = f"line {line}{f' ({origin})' if origin else ''}: " if line is not None else ""
        message = f"{what}, but {claim.text} has not completed: nobody waited for it"
        details = (f"outstanding: {where}{' '.join(text.split())}",)
        self._session.report(view, lane, _NAME, message, (view.op.where, there), details)

    def generic(self, view: View, places: Iterable[tuple[int, Cta, int, int]]) -> None:
        """Stores of the generic proxy to shared memory: lane, CTA, offset and bytes of each."""
        for lane, cta, offset, size in places:
            self.proxies.store(view, cta, np.array([lane]), np.array([offset]), size)

    # --- proxies ------------------------------------------------------------------------------------------------------

    def _check_proxy(self, view: View, lane: int, text: str, span: Span) -> None:
        there = self.proxies.unfenced(view, lane, span.owner, span.words())
        if there is None:
            return
        _, line, source = self._session.place(view.launch.program, there)
        where = f"line {line}: " if line is not None else ""
        message = f"{text} {_VERBS[span.kind]} what was written without fence.proxy.async behind it"
        details = [f"written: {where}{' '.join(source.split())}"]
        if self.proxies.fenced_at_all(view):
            details.append(_ELSEWHERE)
        self._session.report(view, lane, _NAME, message, (view.op.where, there, "proxy"), tuple(details))


_ELSEWHERE = "there are fences, but none after the write in a thread that knew of it and that this one was told by"
_VERBS = {"read": "reads", "write": "writes", "reduce": "changes"}


def checker_of(view: View) -> AsyncCheck | None:
    """The checker, if it is on."""
    context: LaunchContext | None = view.launch.context  # none in a launch that no device makes
    session = None if context is None else context.checks
    return None if session is None else session.outstanding


def span_at(
    view: View, lane: int, address: int, size: int, space: str, kind: str, *, generic: bool = False
) -> list[Span]:
    """The span of an address operand; none for memory of the thread's own."""
    found, place = view.resolve(address, space)
    if found == "shared":
        offset = place & OFFSET_MASK
        return [Span(view.shared_owner(place, lane=lane), offset, offset + size, kind, generic=generic)]
    return [Span(None, place, place + size, kind, generic=generic)] if found in ("global", "const") else []


def span_of_rows(starts: Numbers, row: int, kind: str) -> list[Span]:
    """Pieces of global memory of `row` bytes each, by their addresses."""
    if not len(starts):
        return []
    rows = np.unique(starts)
    return [Span(None, int(rows[0]), int(rows[-1]) + row, kind, rows=rows, row=row)]


def mask_of(lanes: Numbers) -> int:
    """Lanes of tensor memory as a mask."""
    return sum(1 << int(lane) for lane in np.unique(lanes))


def joined(spans: Iterable[Span]) -> list[Span]:
    """The same memory in fewer spans."""
    found: list[Span] = []
    for span in sorted(spans, key=lambda s: (s.kind, s.start)):
        last = found[-1] if found else None
        if last is not None and last.kind == span.kind and last.owner is span.owner and span.start <= last.end:
            found[-1] = replace(last, end=max(last.end, span.end))
        else:
            found.append(span)
    return found


def chunks(cta: Cta, numbers: Numbers, kind: str = "read") -> list[Span]:
    """The span of 16-byte chunks of shared memory, by their numbers."""
    rows = _CHUNK * np.unique(numbers)
    return [Span(cta, int(rows[0]), int(rows[-1]) + _CHUNK, kind, rows=rows, row=_CHUNK)]


_CHUNK = 16
