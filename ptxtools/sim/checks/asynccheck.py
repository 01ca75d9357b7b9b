"""asynccheck: nobody may touch what asynchronous work still reads or writes, and work needs what it reads in its proxy.

Work completes as late as it may (`Launch.late`), so that everything that no wait, group or mbarrier has completed is
outstanding when another instruction comes. Its spans of memory are kept until then.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from ptxtools.engine.residents import OFFSET_MASK, RANK_SHIFT, Cta

if TYPE_CHECKING:
    from ptxtools.engine.events import View

    from .looks import Access
    from .session import Session

Numbers: TypeAlias = npt.NDArray[Any]

_NAME = "asynccheck"
_ALL_LANES = (1 << 128) - 1


@dataclass(frozen=True, slots=True)
class Span:
    """Bytes from `start` up to `end`: of a CTA's shared memory, of global memory (owner None), or columns of tensor
    memory (`tensor`), there only of some lanes. kind: "read", "write" or "reduce"."""

    owner: Cta | None
    start: int
    end: int
    kind: str
    tensor: bool = False
    lanes: int = _ALL_LANES

    def meets(self, other: Span) -> bool:
        """Whether the order of two accesses matters."""
        return (
            self.owner is other.owner
            and self.tensor == other.tensor
            and self.start < other.end
            and other.start < self.end
            and bool(self.lanes & other.lanes)
            and (self.kind != other.kind or self.kind == "write")
        )


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
        self._session = session
        self._claims: dict[Claim, None] = {}

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
            if span.kind == "read" and span.owner is not None and not span.tensor:
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
        """Loads, stores and atomics against outstanding work; stores to shared memory are of the generic proxy."""
        if access.space not in ("shared", "global") or access.action == "copy":
            return
        for owner, lanes, offsets in self._by_owner(view, access):
            self._access_to(view, access, owner, lanes, offsets)
            if owner is not None and access.writes:
                note_generic(owner, offsets, access.size, view.op.where)

    def _access_to(self, view: View, access: Access, owner: Cta | None, lanes: Numbers, offsets: Numbers) -> None:
        for claim in self._claims:
            for span in claim.spans:
                if span.owner is not owner or span.tensor or (span.kind == "read" and not access.writes):
                    continue
                hit = np.flatnonzero((offsets < span.end) & (offsets + access.size > span.start))
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
        where = f"line {line}: " if line is not None else ""
        message = f"{what}, but {claim.text} has not completed: nobody waited for it"
        details = (f"outstanding: {where}{' '.join(text.split())}",)
        self._session.report(view, lane, _NAME, message, (view.op.where, there), details)

    def generic(self, view: View, places: Iterable[tuple[Cta, int, int]]) -> None:
        """Stores of the generic proxy: CTA, offset and bytes of each."""
        for cta, offset, size in places:
            note_generic(cta, np.array([offset]), size, view.op.where)

    # --- proxies ------------------------------------------------------------------------------------------------------

    def fence(self, view: View) -> None:
        """fence.proxy.async: what generic stores wrote so far can be read by the asynchronous proxy (9.7.13.4)."""
        for cta in view.cluster.ctas:
            cta.state.pop(_GENERIC, None)

    def _check_proxy(self, view: View, lane: int, text: str, span: Span) -> None:
        assert span.owner is not None
        lines = span.owner.state.get(_GENERIC)
        if lines is None:
            return
        found = lines[span.start // 4 : -(-span.end // 4)]
        written = np.flatnonzero(found)
        if len(written):
            there = int(found[written[0]]) - 1
            _, line, source = self._session.place(view.launch.program, there)
            where = f"line {line}: " if line is not None else ""
            message = f"{text} reads what was written without fence.proxy.async behind it"
            details = (f"written: {where}{' '.join(source.split())}",)
            self._session.report(view, lane, _NAME, message, (view.op.where, there, "proxy"), details)


_VERBS = {"read": "reads", "write": "writes", "reduce": "changes"}
_GENERIC = "generic stores"


def checker_of(view: View) -> AsyncCheck | None:
    """The checker, if it is on."""
    session = view.launch.extra.get("checks")
    found: AsyncCheck | None = None if session is None else session.outstanding
    return found


def note_generic(cta: Cta, offsets: Numbers, size: int, where: int) -> None:
    """Generic stores of `size` bytes each at offsets of a CTA's shared memory, by a place in the program."""
    lines = cta.state.get(_GENERIC)
    if lines is None:
        lines = cta.state[_GENERIC] = np.zeros(-(-len(cta.shared) // 4), np.int32)
    for part in range(0, size, 4):
        words = (offsets + part) // 4
        lines[words[words < len(lines)]] = where + 1


def span_at(view: View, lane: int, address: int, size: int, space: str, kind: str) -> list[Span]:
    """The span of an address operand; none for memory of the thread's own."""
    found, place = view.resolve(address, space)
    if found == "shared":
        offset = place & OFFSET_MASK
        return [Span(view.shared_owner(place, lane=lane), offset, offset + size, kind)]
    return [Span(None, place, place + size, kind)] if found in ("global", "const") else []


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
    """Spans of 16-byte chunks of shared memory, by their numbers."""
    some = np.unique(numbers)
    starts = some[np.flatnonzero(np.diff(some, prepend=-2) != 1)]
    ends = some[np.flatnonzero(np.diff(some, append=some[-1] + 2) != 1)] + 1
    if len(starts) > _MOST_RUNS:
        starts, ends = starts[:1], ends[-1:]
    return [Span(cta, 16 * int(a), 16 * int(b), kind) for a, b in zip(starts, ends, strict=True)]


_MOST_RUNS = 64
