"""Polls that racecheck need not be told of again.

A warp that looks at a flag, and finds what it has found before, changes nothing: neither what it knows, nor what is
kept of the flag. So what a strong read or a wait for an mbarrier has left is noted for native code (`machine.repeats`),
until the warp does anything else, or somebody writes to the words that it has looked at.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

import numpy as np

from ptxtools.machine.filters import EVERYWHERE, INITIALISED, REPEATS, Bounds
from ptxtools.machine.repeats import Repeats
from ptxtools.program import mbarrier
from ptxtools.program.details import Look, Meeting
from ptxtools.program.operations import strength
from ptxtools.program.program import OFFSET_MASK, RANK_SHIFT

from .mbarriers import distinct
from .race_shadow import WORD, words_in

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ptxtools.machine.events import View
    from ptxtools.machine.observers import Access
    from ptxtools.machine.residents import Cta
    from ptxtools.program.program import Op, Program

    from .clocks import Array, Warp
    from .session import Session


class Polls:
    """Those of a grid."""

    def __init__(self, session: Session, program: Program) -> None:
        self._session = session
        self.repeats = Repeats(program)
        self._warps: defaultdict[int, set[int]] = defaultdict(set)  # rows by warp
        self._words: defaultdict[tuple[int | None, int], set[int]] = defaultdict(set)  # by CTA and word

    @property
    def bounds(self) -> Bounds:
        """What passes natively."""
        everywhere = dict.fromkeys(("global", "shared", "local"), EVERYWHERE)
        return Bounds(everywhere, everywhere, lambda op: not polls(op), repeats=self.repeats, polls=polls)

    def before(self, warp: Warp) -> tuple[Any, ...]:
        """What must be the same behind a poll."""
        heard = [(one.agent, id(one.told), one.scope, one.where) for one in warp.heard]
        return self._session.told, warp.time, warp.known, warp.lanes.copy(), sorted(heard), dict(warp.missed)

    def looked(self, at: View, access: Access, warp: Warp, before: Any) -> None:
        """A warp has read with nothing but chance between it and who writes."""
        if self._quiet(warp, before):
            self._note(at, access, warp)

    def _note(self, at: View, access: Access, warp: Warp) -> None:
        row, found = self.repeats.access(at, access.lanes), self._warps[warp.agent]
        found.add(row)
        for place in np.unique(access.addresses.astype(np.int64)).tolist():
            memory, start = None, place
            if access.space == "shared":
                rank, start = place >> RANK_SHIFT, place & OFFSET_MASK
                memory = at.cluster.ctas[rank].number if rank < len(at.cluster.ctas) else at.cta.number
            for word in words_in((start, start + access.size)):
                self._words[memory, word].add(row)

    def found(self, at: View, access: Access, warp: Warp, *, learns: bool) -> None:
        """The same of a warp of which it is known whether it has learnt anything."""
        if learns:
            self.moved(warp.agent)
        self._note(at, access, warp)

    def waited(self, at: View, what: str, warp: Warp, lanes: Array, before: Any) -> None:
        """Lanes have come to a wait for an mbarrier of their CTA, or are behind it, and its phase is open."""
        wanted = at.source(1)[lanes]
        if not what.endswith("parity"):
            wanted = wanted >> np.uint64(mbarrier.PHASE_SHIFT)
        addresses, parity = at.addresses()[lanes], int(wanted[0]) & 1
        places = [(cta, offset) for cta, offset in distinct(at, lanes[:1]) if cta is at.cta]
        alike = (addresses == addresses[0]).all() and (wanted & wanted.dtype.type(1) == parity).all()
        if not (self._quiet(warp, before) and places and alike):
            return
        ((cta, offset),) = places
        if mbarrier.phase(int.from_bytes(cta.shared[offset : offset + 8], "little")) == parity:
            row = self.repeats.wait(at, lanes, parity)
            self._warps[warp.agent].add(row)
            for word in words_in((offset, offset + 8)):
                self._words[cta.number, word].add(row)

    def moved(self, agent: int) -> None:
        """A warp does something else."""
        for row in self._warps.pop(agent, ()):
            self.repeats.forget(row)

    def written(self, owner: Cta | None, places: Array, size: int) -> None:
        """Somebody writes, to shared memory of a CTA or to global memory."""
        if self._words:
            words = (places[:, None] + np.arange(0, size, min(size, WORD))) // WORD
            self._forget(owner, [*np.unique(words).tolist(), *((places + (size - 1)) // WORD).tolist()])

    def told(self, cta: Cta, offset: int) -> None:
        """Somebody, or something, arrives at an mbarrier."""
        self._forget(cta, words_in((offset, offset + 8)))

    def _forget(self, owner: Cta | None, words: Iterable[int]) -> None:
        memory = None if owner is None else owner.number
        for word in words:
            for row in self._words.pop((memory, word), ()):
                self.repeats.forget(row)

    def _quiet(self, warp: Warp, before: tuple[Any, ...]) -> bool:
        """Whether nobody was told of anything; what else has been noted of the warp stays only if it has learnt
        nothing."""
        told, time, known, lanes, heard, missed = before
        now = self.before(warp)
        same = len(known) == len(warp.known) and all(known.get(key) is row for key, row in warp.known.items())
        if not same or (time, heard, missed) != (now[1], *now[4:]) or (lanes != warp.lanes).any():
            self.moved(warp.agent)
        return bool(told == self._session.told)


def polls(op: Op) -> bool:
    """Whether an access only looks, and may find what tells something."""
    return type(op.detail) is Look and op.detail.action == "read" and strength(op.opcode) not in ("", "weak")


def waits(op: Op) -> bool:
    """Whether lanes meet at a wait for an mbarrier, or behind it."""
    return isinstance(op.detail, Meeting) and op.detail.what.startswith("mbarrier") and "_wait" in op.detail.what


#: When such an event needs nobody.
AGAIN = INITIALISED | REPEATS
