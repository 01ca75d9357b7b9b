"""What racecheck says of other schedules: whether the order of this run's synchronisation is fixed by the program.

Threads whose reads are all ordered, by synchronisation that comes out alike in every schedule, do the same in every
schedule. So it is enough to note the operations whose outcome depends on one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from . import race_states, race_waits
from .race_accesses import sort_of, words_of
from .sharing import by_chance, useful_atomics

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from ptxtools.machine.events import View
    from ptxtools.machine.observers import Access
    from ptxtools.program.program import Program

    from .clocks import Array, Clocks, Warp
    from .session import Session

_SORTS = {"atomic": "an atomic", "write": "a write", "read": "a read"}
_WORK = "asynchronous work"
_PENDING = "mbarrier.pending_count"  # which is arithmetic in the program


class Deciders:
    """Lines of a grid that decide the order in which its threads synchronise."""

    def __init__(self, session: Session, program: Program) -> None:
        self._session, self._program = session, program
        self._useful = program.found(useful_atomics)
        #: Words whose value depends on the order of writers: the line of one, what it is, and the times of all by their
        #: warps.
        self._open: dict[tuple[object, int], tuple[int, str, dict[int, int]]] = {}
        #: Of words by warp and line the atomics whose results are used, or that others of their sort have come beside:
        #: time and sort.
        self._atomics: dict[tuple[object, int], dict[tuple[int, int], tuple[int, int]]] = {}
        self._decided: set[int] = set()
        for where, what in program.found(_always):
            self.decide(where, what)

    def decide(self, where: int, what: str) -> None:
        """This line decides an order."""
        if where not in self._decided:
            self._decided.add(where)
            self._session.decide(self._program, where, what)

    def decided(self, where: int) -> bool:
        """Whether a line has decided an order already."""
        return where in self._decided

    def quiet(self, where: int) -> bool:
        """Whether an atomic of a line decides nothing new."""
        return where not in self._useful or where in self._decided

    def settled(self, words: Iterable[int], sort: int) -> dict[tuple[int, int], int] | None:
        """Atomics of a sort that may have come to words of global memory in another order, by warp and line, with their
        times; None: others have, too, or what words have depends on an order."""
        found: dict[tuple[int, int], int] = {}
        for word in words:
            atomics = self._atomics.get((None, word), {})
            if (None, word) in self._open or any(other != sort for _, other in atomics.values()):
                return None
            found |= {who: time for who, (time, _) in atomics.items()}
        return found

    @property
    def calm(self) -> bool:
        """Whether no atomic or strong store that matters has come in an open order: no access can then be the first
        to show it."""
        return not (self._open or self._atomics)

    # --- accesses to memory -------------------------------------------------------------------------------------------

    def reads(self, view: View, access: Access) -> bool:
        """Whether the program sees what an access finds."""
        return access.action == "read" or view.op.where in self._useful

    def asks(self, view: View, access: Access) -> bool:
        """Whether it is still open if what an access finds decides an order."""
        return view.op.where not in self._decided and self.reads(view, access)

    def early(self, view: View, access: Access) -> None:
        """A strong access finds what another thread has stored, without being ordered behind that."""
        if self.reads(view, access):
            self.decide(view.op.where, _what(view, access.action))

    def unordered(
        self, view: View, memory: object, words: Array, before: Mapping[str, Array], warp: Warp, *, found: bool
    ) -> None:
        """Strong stores or atomics of a warp come in no order with those before, and the last one matters. before: the
        columns of those others; found: they find what those have written."""
        lines = before["where"].tolist()
        for where in sorted(set(lines)):
            if where in self._useful:
                self.decide(where, "an atomic")
        says = found and view.op.where in self._useful
        if not says and self._useful.isdisjoint(lines):  # else they say so themselves
            others = zip(before["writer"].tolist(), before["written"].tolist(), strict=True)
            for place, other in zip(words.tolist(), others, strict=True):
                self._leave_open(memory, place, view, other, (warp.agent, warp.time))

    def _leave_open(self, memory: object, place: int, view: View, *writers: tuple[int, int]) -> None:
        """What a word has depends on the order of some writes: their warps, and the times of these."""
        what = _what(view, "write")
        times = self._open.setdefault((memory, place), (view.op.where, what, {}))[2]
        for agent, time in writers:
            times[agent] = max(time, times.get(agent, 0))

    def seen(self, view: View, access: Access, memory: object, words: Array, who: tuple[Clocks, Warp]) -> None:
        """A warp accesses words, the values of which may depend on an order: until somebody replaces them who comes
        behind all that have written."""
        if not self._open:
            return
        clocks, warp = who
        for place in sorted(set(words.tolist())):
            where, what, times = self._open.get((memory, place), (-1, "", {}))
            if where >= 0 and self.reads(view, access):
                self.decide(where, what)
            elif where >= 0 and access.action == "write":
                known = clocks.known(np.array(list(times)), warp.known).tolist()
                if all(one == warp.agent or times[one] <= time for one, time in zip(times, known, strict=True)):
                    del self._open[memory, place]
                else:
                    times[warp.agent] = warp.time

    def beside(self, memory: object, words: Array, before: Mapping[str, Array], sort: int) -> None:
        """Atomics come beside others of their sort, in any order: what comes next stands behind the last one alone.
        before: the columns of those others."""
        columns = (words, before["writer"], before["where"], before["written"])
        for place, agent, where, time in zip(*(column.tolist() for column in columns), strict=True):
            self._atomics.setdefault((memory, place), {})[agent, where] = time, sort

    def meets(
        self, view: View, access: Access, memory: object, words: Array, who: tuple[Clocks, Warp], *, weak: bool
    ) -> None:
        """An access to words: atomics of other warps may have come before it in this run alone. weak: such an atomic
        would race with it if it came behind."""
        clocks, warp = who
        tracked = access.action == "atomic" and view.op.where in self._useful - self._decided
        if not (self._atomics or tracked):
            return
        sort, decides = sort_of(view, access), (weak or self.reads(view, access)) and view.op.where not in self._decided
        for place in sorted(set(words.tolist())) if decides or access.writes else ():
            before = self._atomics.get((memory, place), {})
            for (agent, where), (time, other) in list(before.items()):
                if not decides and where not in self._useful and sort == other:
                    continue  # it is no matter in which order they come
                if agent == warp.agent or time <= clocks.known(np.array([agent]), warp.known)[0]:
                    continue
                if decides:
                    self.decide(view.op.where, _what(view, access.action))
                if access.writes and where in self._useful:
                    self.decide(where, "an atomic")
                    del before[agent, where]
                elif access.writes and sort != other:
                    self._leave_open(memory, place, view, (agent, time), (warp.agent, warp.time))
            if tracked:
                self._atomics.setdefault((memory, place), {})[warp.agent, view.op.where] = warp.time, sort

    @property
    def leaves_open(self) -> set[str]:
        """Sorts of lines on whose order it depends what memory has in the end."""
        return {what for _, what, _ in self._open.values()}

    def together(self, view: View, access: Access, memory: object, places: Array, warp: Warp) -> None:
        """Lanes of one atomic that meet at one place: their order is open."""
        if access.action != "atomic" or len(places) == 1:
            return
        found, counts = np.unique(places, return_counts=True)
        if len(found) == len(places):
            return
        if self.reads(view, access):
            self.decide(view.op.where, "an atomic")
        elif sort_of(view, access) <= 0:  # what they leave depends on it
            for word in words_of(found[counts > 1], access.size):
                self._leave_open(memory, word, view, (warp.agent, warp.time))


def _what(view: View, action: str) -> str:
    """What an access is, for the verdict."""
    return _SORTS.get(action, _WORK) if view.op.kind == "observe.access" else _WORK


def _always(program: Program) -> list[tuple[int, str]]:
    """Lines that decide an order whatever comes, and what does so there."""
    found = [(op.where, what) for op in program.operations() if (what := by_chance(op))]
    found += [(where, _PENDING) for where, (*_, text) in enumerate(program.lines) if _PENDING in text]
    found += [(where, "an arrival whose state is used") for where in race_states.deciding(program)]
    found += [(where, "a wait whose result is used") for where in race_waits.deciding(program)]
    return found
