"""racecheck's first look at tensor cores and mbarriers: in Python, instruction by instruction, on the words that the
native engine keeps of who has touched what (`machine.filters.Bounds.owners`).

As there, only barriers of all threads of the CTA count as order. Tensor memory has such words here. An mbarrier must
order nothing, but its phases have to come out alike in every schedule (`race_phases`): whoever arrives knows of the
phase before, and a phase ends only behind all waits for the one before it.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any

import numpy as np

from ptxtools.machine.claims import Span
from ptxtools.machine.observers import Closer
from ptxtools.machine.residents import ALIKE_SHARED, EPOCH_SHIFT, OWNERS_HEAD, SEVERAL_SHARED, WRITTEN_SHARED, Cta
from ptxtools.program import mbarrier as word
from ptxtools.program.program import LANES
from ptxtools.records import dataclass, field
from ptxtools.sim.tensor.wgmma_reads import WarpgroupReads

from .mbarriers import each
from .tensor import rows_of

if TYPE_CHECKING:
    from ptxtools.machine.claims import Claim
    from ptxtools.machine.events import View
    from ptxtools.machine.observers import Array
    from ptxtools.program.program import Program

_CELLS, _PHASES = "racecheck's first look at tensor memory", "racecheck's first look at mbarriers"
_WHO = (1 << EPOCH_SHIFT) - 1
#: In place of a thread: what a warp writes as a whole.
_WARP = SEVERAL_SHARED - 1
_WORD = struct.Struct("<Q")
_SHAPE = (128, 512)


class TensorTrial:
    """owners: bytes of shared memory that have a word."""

    def __init__(self, program: Program, owners: int) -> None:
        self._owners = owners
        self._reads = WarpgroupReads(program)
        self._known: dict[Any, Array] = {}  # words that some chunks are in
        self._rows: dict[int, tuple[Array | None, Array]] = {}  # words of spans with rows, by these
        self._seen: dict[Cta, tuple[int, set[Any]]] = {}  # what was read in an epoch

    # --- shared memory ------------------------------------------------------------------------------------------------

    def issued(self, claim: Claim, lane: int) -> None:
        """Work begins; lane: that issues it, or -1."""
        view = claim.view
        for span in sorted(claim.spans, key=lambda span: span.kind != "read"):
            if span.owner is None:
                continue
            if span.owner is not view.cta:
                raise Closer
            if span.tensor:
                _cells(span.owner).touch(_epoch(view.cta), view.warp, lane, span)
            else:
                who = _WARP if lane < 0 else _thread(view, lane)
                self.touch(view.cta, self._words(span), who, writes=span.kind != "read")

    def multiplies(self, at: View) -> None:
        """A warp is about to execute wgmma.mma_async. What it has read in this epoch needs no second look, since it is
        no single thread's any more."""
        epoch = _epoch(at.cta)
        then, seen = self._seen.get(at.cta, (-1, set[Any]()))
        if then != epoch:
            seen = set()
            self._seen[at.cta] = epoch, seen
        key = self._reads.key(at)
        if key in seen:
            return
        seen.add(key)
        if key not in self._known:
            parts = [self._words(span) for span in self._reads.spans(at)]
            self._known[key] = np.unique(np.concatenate(parts)) if parts else np.zeros(0, np.int64)
        self.touch(at.cta, self._known[key], SEVERAL_SHARED, writes=False)

    def teach(self, at: View) -> None:
        """Let the engine look at what it knows now."""
        self._reads.teach(at)

    def touch(self, cta: Cta, words: Array, who: int, *, writes: bool) -> None:
        """A thread, or several, access words in this epoch."""
        head, epoch = cta.owners[OWNERS_HEAD:], _epoch(cta)
        if len(words) and int(words[-1]) >= len(head):
            raise Closer  # outside of shared memory
        now = head[words]
        found = np.where(now >> np.uint32(EPOCH_SHIFT) == epoch, now & np.uint32(_WHO), np.uint32(0))
        found &= ~np.uint32(ALIKE_SHARED)
        wrote = (found == who | WRITTEN_SHARED) & (who != SEVERAL_SHARED)
        mine = (found == 0) | (found == who) | wrote
        good = mine if writes else mine | (found & np.uint32(WRITTEN_SHARED) == 0)
        if not good.all():
            raise Closer
        if writes:
            new: Any = who | WRITTEN_SHARED
        else:
            new = np.where(wrote, found, np.where((found == 0) | (found == who), who, SEVERAL_SHARED))
        head[words] = np.uint32(epoch << EPOCH_SHIFT) | np.asarray(new, np.uint32)

    def _words(self, span: Span) -> Array:
        known = self._rows.get(id(span.rows))
        if known is None or span.rows is None:
            known = span.rows, self._found(span)
            self._rows[id(span.rows)] = known
        return known[1]

    def _found(self, span: Span) -> Array:
        starts, size = span.pieces()
        first, count = starts // self._owners, -(-size // self._owners)
        if len(starts) == 1 and (int(starts[0]) % self._owners or size % self._owners):
            return np.arange(int(starts[0]) // self._owners, -(-(int(starts[0]) + size) // self._owners))
        return (first[:, None] + np.arange(count)).reshape(-1)

    # --- mbarriers ----------------------------------------------------------------------------------------------------

    def arrive(self, at: View, what: str, lanes: Array) -> None:
        """Lanes are about to initialise mbarriers, to wait for them, or to arrive."""
        stores = what.endswith((" init", " inval"))
        if stores and len(lanes) > 1:
            raise Closer
        for lane, offset in _places(at, lanes):
            who = _thread(at, lane) if len(lanes) == 1 else SEVERAL_SHARED
            words = np.arange(offset // self._owners, -(-(offset + _WORD.size) // self._owners))
            self.touch(at.cta, words, who, writes=stores)
            if stores:
                _phases(at.cta).pop(offset, None)
            elif "_wait" not in what:
                self.tell(at, at.cta, offset)

    def tell(self, at: View, cta: Cta, offset: int) -> None:
        """A warp, or what it has issued, arrives."""
        if cta is not at.cta:
            raise Closer
        _phase(cta, offset).arrive(at.warp, _epoch(cta))

    def wait(self, at: View, what: str, lanes: Array) -> None:
        """Lanes go on behind a wait."""
        wanted = at.source(1)
        if not what.endswith("parity"):
            wanted = wanted >> np.uint64(word.PHASE_SHIFT)
        for lane, offset in _places(at, lanes):
            phase = _phase(at.cta, offset)
            if phase.number & 1 == int(wanted[lane]) & 1:
                continue  # it has failed, or others have been here in between
            phase.waited.append((at.warp, _epoch(at.cta), phase.tick()))


@dataclass(slots=True)
class _Phase:
    """The open phase of an mbarrier: its number; warps that have arrived in it, with epoch and time; the last epoch in
    which any had arrived before it, and the warps that did so then; who has waited for the phase before, likewise;
    the time is that of the mbarrier's last event."""

    number: int = 0
    arrived: list[tuple[int, int, int]] = field(default_factory=list)
    before: int = -1
    warps: set[int] = field(default_factory=set)
    waited: list[tuple[int, int, int]] = field(default_factory=list)
    time: int = 0

    def tick(self) -> int:
        self.time += 1
        return self.time

    def begin(self, parity: int) -> None:
        """The word has this parity now."""
        if self.number & 1 == parity:
            return
        for warp, epoch, number in self.waited:
            if not any(then > epoch or (who == warp and when > number) for who, then, when in self.arrived):
                raise Closer
        for warp, epoch, _ in self.arrived:
            if epoch > self.before:
                self.before, self.warps = epoch, set()
            if epoch == self.before:
                self.warps.add(warp)
        self.number += 1
        self.arrived.clear()
        self.waited.clear()

    def arrive(self, warp: int, epoch: int) -> None:
        if self.before == epoch and self.warps != {warp}:
            raise Closer
        self.arrived.append((warp, epoch, self.tick()))


def _phases(cta: Cta) -> dict[int, _Phase]:
    found: dict[int, _Phase] = cta.state.setdefault(_PHASES, {})
    return found


def _phase(cta: Cta, offset: int) -> _Phase:
    phase = _phases(cta).setdefault(offset, _Phase())
    phase.begin(word.phase(_WORD.unpack_from(cta.shared, offset)[0]))
    return phase


def _places(at: View, lanes: Array) -> list[tuple[int, int]]:
    """The mbarrier that all lanes are at, with the first of them: their addresses, and what waits want, must agree."""
    addresses = at.addresses()[lanes]
    wanted = at.source(1)[lanes] if len(at.op.src) > 1 and at.op.src[1] is not None else addresses
    if (addresses != addresses[0]).any() or (wanted != wanted[0]).any():
        raise Closer
    found = [(lane, cta, offset) for lane, cta, offset in each(at, lanes[:1])]
    if any(cta is not at.cta for _, cta, _ in found):
        raise Closer
    return [(lane, offset) for lane, _, offset in found]


# --- tensor memory ----------------------------------------------------------------------------------------------------


class _Cells:
    """Of each cell: who touched it last, in which epoch, and whether that wrote it."""

    def __init__(self) -> None:
        self.epoch = np.full(_SHAPE, -1, np.int64)
        self.who = np.zeros(_SHAPE, np.int32)
        self.wrote = np.zeros(_SHAPE, np.bool_)

    def touch(self, epoch: int, warp: int, lane: int, span: Span) -> None:
        """A lane, or a warp (-1), accesses cells."""
        rows, columns = rows_of(span.lanes), slice(span.start, span.end)
        place: Any = (slice(None), columns) if len(rows) == _SHAPE[0] else (rows, columns)
        me, writes = (LANES + 1) * warp + lane + 1, span.kind != "read"
        fresh, mine = self.epoch[place] == epoch, self.who[place] == me
        if (fresh & ~mine & (self.wrote[place] | writes)).any():
            raise Closer
        self.who[place] = me if writes else np.where(fresh & ~mine, -1, me)
        self.wrote[place] = writes | (self.wrote[place] & fresh)
        self.epoch[place] = epoch


def _cells(cta: Cta) -> _Cells:
    cells: _Cells = cta.state.get(_CELLS) or cta.state.setdefault(_CELLS, _Cells())
    return cells


def _epoch(cta: Cta) -> int:
    """How many barriers all threads of the CTA have passed."""
    return int(cta.owners[1])


def _thread(at: View, lane: int) -> int:
    return LANES * at.warp + lane + 1
