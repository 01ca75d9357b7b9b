"""Asynchronous work as observers see it: the bytes it reads and writes, from issue to completion.

Services that start such work announce it (`announce`), and end the claim they get back when the work is done. If nobody
listens, there is no claim, and no spans are computed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from ptxtools.program.operations import ISSUES
from ptxtools.program.program import OFFSET_MASK
from ptxtools.records import dataclass, replace

from .residents import Cta

if TYPE_CHECKING:
    from .events import View
    from .observers import Listeners

Numbers: TypeAlias = npt.NDArray[Any]

#: Bytes of the pieces in which `Span.words` counts.
WORD = 4
_ALL_LANES = (1 << 128) - 1
_CHUNK = 16


@dataclass(frozen=True, slots=True)
class Span:
    """Bytes from `start` up to `end` of a CTA's shared memory, of global memory (owner None), or columns of tensor
    memory (`tensor`) in some lanes. kind: "read", "write" or "reduce". rows: only `row` bytes from each of these
    offsets on (sorted, without overlap)."""

    owner: Cta | None
    start: int
    end: int
    kind: str
    tensor: bool = False
    lanes: int = _ALL_LANES
    rows: Numbers | None = None
    row: int = 0

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
        """Starts of its pieces, and the bytes of each."""
        if self.rows is None:
            return np.array([self.start]), self.end - self.start
        return self.rows, self.row

    def touches(self, starts: Numbers, size: int) -> Numbers:
        """Which of some pieces of `size` bytes overlap this span."""
        mine, width = self.pieces()
        before = np.searchsorted(mine, starts + size) - 1  # the last of its rows that begins before a piece ends
        found: Numbers = (before >= 0) & (mine[before] + width > starts)
        return found

    def words(self) -> Numbers:
        """Numbers of the 4-byte words that it overlaps."""
        starts, size = self.pieces()
        first = starts // WORD
        count = -(-(size + (WORD - 1 if len(starts) > 1 else int(starts[0]) % WORD)) // WORD)
        words: Numbers = np.unique((first[:, None] + np.arange(count)).reshape(-1))
        return words[(words >= self.start // WORD) & (words < -(-self.end // WORD))]


@dataclass(slots=True, eq=False)
class Claim:
    """Outstanding work: who issued it (the warp's view at the instruction, and a lane), its name in messages, and the
    memory that it reads and writes. pipe: work in the same pipe completes in order; None: in any order."""

    view: View
    lane: int
    text: str
    spans: tuple[Span, ...]
    pipe: object
    listeners: Listeners
    over: bool = False

    @property
    def reads(self) -> bool:
        """Whether it only reads."""
        return all(span.kind == "read" for span in self.spans)

    def end(self) -> None:
        """The work is done."""
        if not self.over:
            self.over = True
            self.listeners.tell("completed", self)

    def abandon(self, missing: str) -> None:
        """The CTA ends, and nobody has waited for the work. missing: the wait that should have, such as "a
        tcgen05.wait::ld"."""
        if not self.over:
            self.listeners.tell("abandoned", self, missing)
            self.end()


def heard(view: View) -> bool:
    """Whether anybody listens to asynchronous work."""
    listeners = view.launch.observers
    return listeners is not None and listeners.hear_work


def announce(
    view: View, lane: int, text: str, spans: Callable[[], Iterable[Span]], pipe: object = None
) -> Claim | None:
    """Announce work that a lane issues; None if nobody listens."""
    listeners = view.launch.observers
    if listeners is None or not listeners.hear_work:
        return None
    assert view.op.kind in ISSUES, f"'{view.op.kind}' is not in the table of what issues work"
    claim = Claim(view, lane, text, tuple(spans()), pipe, listeners)
    listeners.tell("issued", claim)
    return claim


def span_at(view: View, lane: int, address: int, size: int, space: str, kind: str) -> list[Span]:
    """The span of an address operand; none for the thread's local memory."""
    found, place = view.resolve(address, space)
    if found == "shared":
        offset = place & OFFSET_MASK
        return [Span(view.shared_owner(place, lane=lane), offset, offset + size, kind)]
    return [Span(None, place, place + size, kind)] if found in ("global", "const") else []


def span_of_rows(starts: Numbers, row: int, kind: str) -> list[Span]:
    """Pieces of `row` bytes at these global addresses, as one span."""
    if not len(starts):
        return []
    rows = starts if (starts[1:] > starts[:-1]).all() else np.unique(starts)
    return [Span(None, int(rows[0]), int(rows[-1]) + row, kind, rows=rows, row=row)]


def mask_of(lanes: Numbers) -> int:
    """Lanes of tensor memory as a mask."""
    return sum(1 << lane for lane in np.flatnonzero(np.bincount(lanes.reshape(-1))).tolist())


def joined(spans: Iterable[Span]) -> list[Span]:
    """Equal memory in fewer spans."""
    found: list[Span] = []
    ends: list[int] = []
    for span in sorted(spans, key=lambda s: (s.kind, s.start)):
        last = found[-1] if found else None
        if last is not None and last.kind == span.kind and last.owner is span.owner and span.start <= ends[-1]:
            ends[-1] = max(ends[-1], span.end)
        else:
            found.append(span)
            ends.append(span.end)
    return [span if span.end == end else replace(span, end=end) for span, end in zip(found, ends, strict=True)]


def chunks(cta: Cta, numbers: Numbers, kind: str = "read") -> list[Span]:
    """The span of 16-byte chunks of shared memory, by their numbers."""
    rows = _CHUNK * np.unique(numbers)
    return [Span(cta, int(rows[0]), int(rows[-1]) + _CHUNK, kind, rows=rows, row=_CHUNK)]
