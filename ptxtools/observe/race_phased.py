"""Mbarriers that native code looks after, in racecheck's second look (`machine.filters.PHASES`).

Threads that arrive and wait tell and learn there what `Mbarriers` says, without Python, where that is plainly right.
Python takes over what they have done when it is told of anything about that mbarrier, and leaves it to native code
again; or for good, if something else accesses its word, or threads of other CTAs arrive.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ptxtools.machine.residents import GUARDED
from ptxtools.program.program import LANES

from .clocks import merged
from .race_phases import Mbarriers, Phases, phases_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from ptxtools.machine.clocks import Clocks as Tables
    from ptxtools.machine.events import View
    from ptxtools.machine.residents import Cta
    from ptxtools.program.program import Program

    from .clocks import Array, Clocks, Known, Warp
    from .race_accesses import Strength
    from .race_pages import Pages
    from .race_shadow import Shadow

_NAME = "racecheck's records of mbarriers"
#: Bytes of an mbarrier.
_SIZE = 8
#: What is noted of an mbarrier (`PHASED` of the native engine), and of a warp there (`USE`).
_NUMBER, _ON, _DIRTY, _WRITER, _WRITTEN = range(5)
_TIME, _WHERE, _LANES, _SINCE, _WAITED, _WAITED_AT, _PASSED, _PASSED_LANES, _PASSED_AT = range(9)
_ALL = np.arange(LANES)


class Phased(Mbarriers):
    """Those of a grid. strength: of the reads that arrivals and waits are; words_of: the words of memory of a CTA, and
    the numbers of those that an mbarrier has; forget: told of mbarriers at which threads have arrived."""

    def __init__(
        self, decide: Callable[[int, str], None], twice: Callable[[View, int, Cta, int, int], None],
        clocks: tuple[Clocks, Tables], pages: Pages, program: Program, strength: Strength,
        words_of: Callable[[Cta, int], tuple[Array, Array]], forget: Callable[[Cta, int], None],
    ) -> None:  # fmt: skip
        super().__init__(decide, twice)
        self._clocks, self._tables = clocks
        self._pages, self._strength, self._words_of, self._forget = pages, strength, words_of, forget
        #: Lines of events by number, and numbers of waits by line.
        self._lines = [-1, *(op.where for op in program.operations())]
        waits = [number for number, op in enumerate(program.operations(), 1) if op.kind == "observe.leave"]
        self._events = {self._lines[number]: number for number in waits}
        self._free = list(range(len(self._tables.heads) - 1, 0, -1))
        self._places: dict[int, tuple[Cta, int, Shadow]] = {}  # by record
        self._open: list[tuple[Cta, int]] = []  # that Python is told of

    # --- which ones ---------------------------------------------------------------------------------------------------

    def begin(self, cta: Cta, offset: int, shadow: Shadow) -> None:
        """An mbarrier has been initialised: it may be left to native code. shadow: of the CTA's memory."""
        if offset % _SIZE or not self._free or offset + _SIZE > len(cta.shared):
            return
        ((_, page, inside, _),) = shadow.pieces(np.array([offset]), _SIZE)
        writers, times = (np.unique(page.writes[name][inside]).tolist() for name in ("writer", "written"))
        hidden = any(some is not None and some["written"][inside].any() for some in page.hidden)
        if len(writers) != 1 or len(times) != 1 or times[0] == 0 or hidden:
            return
        self._add(cta, offset, shadow, (writers[0], times[0]))

    def _add(self, cta: Cta, offset: int, shadow: Shadow, by: tuple[int, int]) -> None:
        record = self._free.pop()
        self._places[record] = cta, offset, shadow
        cta.state.setdefault(_NAME, {})[offset] = record
        head = self._tables.heads[record]
        head[:] = 0
        head[_WRITER], head[_WRITTEN] = by
        self._push(cta, offset, phases_of(cta, offset))
        words, index = self._words_of(cta, offset)
        words[index, 1] = record

    def begin_first(self, cta: Cta, offset: int, shadow: Shadow, by: tuple[Warp, int, int]) -> bool:
        """A lane initialises an mbarrier where nobody has accessed anything: whether that is all that is to be said.
        by: its warp, number and line."""
        if offset % _SIZE or offset + _SIZE > len(cta.shared):
            return False
        words, index = self._words_of(cta, offset)
        if words[index].any() or not self._free:
            return False
        ((_, page, inside, _),) = shadow.pieces(np.array([offset]), _SIZE)
        warp, lane, where = by
        self._pages.note_first(page, warp, inside, lane, where)
        self._add(cta, offset, shadow, (warp.agent, warp.time))
        words[index, 0] = GUARDED
        return True

    def drop(self, cta: Cta, offset: int) -> None:
        """Native code no longer looks after an mbarrier."""
        self.pull(cta, offset)
        self._release(cta, offset)

    def touched(self, words: Array, index: Array) -> None:
        """Something accesses guarded memory: mbarriers there are left to Python."""
        guarded = index[words[index, 0] == np.uint32(GUARDED)]
        for record in np.unique(words[guarded, 1]).tolist():
            if record:
                self.drop(*self._places[record][:2])

    def ended(self, cta: Cta) -> None:
        """A CTA has ended."""
        for offset in list(cta.state.get(_NAME, ())):
            self._release(cta, offset)

    def _release(self, cta: Cta, offset: int) -> None:
        record = cta.state.get(_NAME, {}).pop(offset, 0)
        if record:
            words, index = self._words_of(cta, offset)
            words[index, 1] = 0
            self._tables.heads[record] = 0
            del self._places[record]
            self._free.append(record)

    # --- what Python is told of ---------------------------------------------------------------------------------------

    def arrive(self, view: View, what: str, lanes: Array, warp: Warp, told: Known) -> None:
        super().arrive(view, what, lanes, warp, told)
        self._leave()

    def tell(
        self, cta: Cta, offset: int, told: Known, where: int, known: Known | None = None, *, near: bool = True
    ) -> None:
        super().tell(cta, offset, told, where, known, near=near)
        self._leave()

    def wait(self, view: View, what: str, lanes: Array, warp: Warp) -> None:
        super().wait(view, what, lanes, warp)
        self._leave()

    def _phases(self, cta: Cta, offset: int) -> Phases:
        self.pull(cta, offset)
        self._open.append((cta, offset))
        return super()._phases(cta, offset)

    def _leave(self) -> None:
        while self._open:
            cta, offset = self._open.pop()
            self._push(cta, offset, phases_of(cta, offset))

    # --- from native code and back ------------------------------------------------------------------------------------

    def pull(self, cta: Cta, offset: int) -> None:
        """Take over what was done natively at an mbarrier."""
        record = cta.state.get(_NAME, {}).get(offset, 0)
        if not record or not self._tables.heads[record, _DIRTY]:
            return
        head, phases = self._tables.heads[record], phases_of(cta, offset)
        while phases.number < int(head[_NUMBER]):
            phases.another()
        for number in range(phases.number - 2, phases.number + 1):
            more = self._known(self._tables.told[record, number % 3])
            for known in (phases.told, phases.near):
                known[number] = merged(known[number], more)
        first, uses = cta.rank * self._tables.per_cta, self._tables.uses[record]
        for one in np.flatnonzero(uses[:, _LANES] | uses[:, _WAITED] | uses[:, _PASSED]).tolist():
            use = uses[one].tolist()
            warp = self._clocks.warp(cta.cluster.number, first + one)
            waited = warp.cluster, warp.number, use[_WAITED], self._lines[use[_WAITED_AT]]
            if use[_WAITED] and waited not in phases.waited:
                phases.waited.append(waited)
            if use[_PASSED] and use[_PASSED_AT]:
                numbers, places = phases.passed_by(warp.agent)
                lanes = np.flatnonzero(use[_PASSED_LANES] >> _ALL & 1)
                numbers[lanes], places[lanes] = use[_PASSED] - 2, self._lines[use[_PASSED_AT]]
            if use[_LANES]:
                self._note(record, warp, use)
        uses[:, [_LANES, _SINCE]] = 0
        head[_DIRTY] = 0
        self._forget(cta, offset)

    def _note(self, record: int, warp: Warp, use: list[int]) -> None:
        """The arrivals and waits of a warp are reads of the word."""
        _, offset, shadow = self._places[record]
        lanes = np.flatnonzero(use[_LANES] >> _ALL & 1)
        for _, page, inside, bytes_ in shadow.pieces(np.full(len(lanes), offset), _SIZE):
            for time in (use[_SINCE], use[_TIME]):
                who = lanes[bytes_ // _SIZE]
                self._pages.note_read(page, warp, inside, who, self._strength, time, self._lines[use[_WHERE]])

    def _known(self, row: Array) -> Known:
        """Times of warps, by cluster."""
        per = self._clocks.per_cluster
        row = row.astype(np.int64)
        clusters = np.unique(np.flatnonzero(row) // per).tolist()
        return {cluster: row[cluster * per : (cluster + 1) * per] for cluster in clusters}

    def _push(self, cta: Cta, offset: int, phases: Phases) -> None:
        """Leave an mbarrier to native code, if that can have all that is known of it."""
        record = cta.state.get(_NAME, {}).get(offset, 0)
        if not record:
            return
        tables, per = self._tables, self._clocks.per_cluster
        head, told, uses = tables.heads[record], tables.told[record], tables.uses[record]
        good = not phases.far
        told[:], uses[:] = 0, 0
        for number, known in phases.told.items():
            for cluster, times in known.items():
                if 0 <= cluster * per < tables.count:
                    told[number % 3, cluster * per : (cluster + 1) * per] = times
                else:
                    good = False
        for _, number, time, where in phases.waited:
            use = uses[number - cta.rank * tables.per_cta]
            good &= not use[_WAITED]
            use[[_WAITED, _WAITED_AT]] = time, self._events.get(where, 0)
        for agent, (numbers, places) in phases.passed.items():
            lanes = np.flatnonzero(numbers == phases.number - 1)
            if len(lanes):
                event = self._events.get(int(places[lanes[0]]), 0) if (places[lanes] == places[lanes[0]]).all() else 0
                mask = int((1 << lanes).sum())
                uses[agent - cta.number * tables.per_cta, [_PASSED, _PASSED_LANES, _PASSED_AT]] = (
                    phases.number + 1, mask, event
                )  # fmt: skip
        head[_NUMBER], head[_ON], head[_DIRTY] = phases.number, good, 0


__all__ = ["Phased"]
