"""racecheck on a page of shadow: an access against the last write and the last reads there."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from . import race_reports
from .clocks import WEAK, Clocks, Warp
from .race_accesses import lanes_late, sort_of
from .race_shadow import PAGE, WORD, Page

if TYPE_CHECKING:
    from ptxtools.machine.events import View
    from ptxtools.machine.observers import Access
    from ptxtools.machine.residents import Cta

    from .clocks import Array
    from .race_verdict import Deciders
    from .session import Session


class Pages:
    """The comparisons of a grid. clocks: of its warps; lanes_race: lanes of a warp run independently; swaps: lines of
    compare-and-swap."""

    def __init__(self, session: Session, deciders: Deciders, clocks: Clocks, *, lanes_race: bool) -> None:
        self._session, self._deciders, self._clocks, self._lanes_race = session, deciders, clocks, lanes_race
        self.swaps: set[int] = set()
        self._guesses: dict[Any, Callable[[], None]] = {}  # by who read, and where
        self._confirmed: set[Any] = set()

    def look(
        self, at: View, access: Access, warp: Warp, owner: Cta | None, which: tuple[int, Page], inside: Array,
        lanes: Array, values: Array | None, scope: int,
    ) -> None:  # fmt: skip
        number, page = which
        clocks = self._clocks
        base = number * PAGE
        writes, grain, now = page.writes, page.grain, warp.time
        sort = sort_of(at, access)
        memory = owner
        self._deciders.seen(at, access, memory, (base + inside * grain) // WORD)
        # Against the last write.
        written = writes["written"][inside]
        if written.any():
            writer, lane = writes["writer"][inside], writes["lane"][inside]
            late = self.late(warp, page, inside, lanes)
            if values is not None:  # to write the same value again harms nobody
                late &= writes["value"][inside] != values
            if late.any():
                needed = clocks.distance(warp, writer)
                strong = np.minimum(writes["scope"][inside], scope) >= needed
                racing = np.flatnonzero(late & ~strong)
                open_ = late & strong & ~((sort > 0) & (writes["sort"][inside] == sort))
                if access.writes and open_.any():
                    words = (base + inside[open_] * grain) // WORD
                    self._deciders.unordered(at, memory, words, writes["where"][inside[open_]])
                if len(racing):
                    one = racing[0]
                    did = "atomic" if writes["sort"][inside[one]] else "write"
                    other = race_reports.Other(
                        did, int(writer[one]), int(lane[one]), int(writes["where"][inside[one]]),
                        int(writes["scope"][inside[one]]), int(written[one]),
                    )  # fmt: skip
                    self._report(
                        at, access, warp, owner, base + int(inside[one]) * grain, int(lanes[one]), other, scope
                    )
        if not access.writes:
            self._note_read(at, page, warp, inside, lanes, scope, now)
            return
        if page.readers:
            self._against_reads(at, access, warp, owner, which, inside, lanes, scope)
        if self._lanes_race and not scope and len(inside) > 1:
            self._same_instruction(at, access, warp, owner, which, inside, lanes, values)
        writes["writer"][inside], writes["written"][inside], writes["lane"][inside] = warp.agent, now, lanes
        writes["where"][inside], writes["scope"][inside], writes["sort"][inside] = at.op.where, scope, sort
        writes["value"][inside] = -1 if values is None else values

    def late(self, warp: Warp, page: Page, inside: Array, lanes: Array) -> Array:
        """Where the last write is not known to these lanes. Lane -1: all lanes of a warp together."""
        writes = page.writes
        written, writer, lane = writes["written"][inside], writes["writer"][inside], writes["lane"][inside]
        mine = writer == warp.agent
        if mine.all():
            known = warp.lanes[lanes, lane]
        else:
            known = np.where(mine, warp.lanes[lanes, lane], self._clocks.known(writer, warp.known))
        same = (lane == lanes) | (lane < 0) | (lanes < 0) if self._lanes_race else np.True_
        late: Array = (written > known) & ~(mine & same)
        return late

    def _note_read(self, at: View, page: Page, warp: Warp, inside: Array, lanes: Array, scope: int, now: int) -> None:
        row, reads = page.row(warp.agent), page.reads
        reads["time"][row, inside], reads["where"][row, inside] = now, at.op.where
        reads["scope"][row, inside] = scope
        if lanes[0] < 0:  # a warp as a whole: its own lanes come behind it
            return
        old = reads["lanes"][row, inside]
        since = reads["since"][row, inside]
        stays = since > warp.lanes.min() if self._lanes_race else np.zeros(len(inside), np.bool_)
        reads["since"][row, inside] = np.where(stays, since, now)
        reads["lanes"][row, inside] = np.where(stays, old, 0)
        np.bitwise_or.at(reads["lanes"][row], inside, np.uint32(1) << lanes.astype(np.uint32))

    def _against_reads(
        self, at: View, access: Access, warp: Warp, owner: Cta | None, which: tuple[int, Page], inside: Array,
        lanes: Array, scope: int,
    ) -> None:  # fmt: skip
        number, page = which
        count, reads = len(page.readers), page.reads
        agents = np.array(page.readers)
        times = reads["time"][:count, inside]
        known = np.maximum(self._clocks.known(agents, warp.known), self._clocks.known(agents, warp.seen))
        late = times > known[:, None]
        mine = np.flatnonzero(agents == warp.agent)
        late[mine] = False
        if len(mine) and self._lanes_race:
            late[mine[0]] = lanes_late(warp, reads["lanes"][mine[0], inside], reads["since"][mine[0], inside], lanes)
        if not late.any():
            return
        needed = self._clocks.distance(warp, agents)
        strong = np.minimum(reads["scope"][:count, inside], scope) >= needed[:, None]
        for where in np.unique(reads["where"][:count, inside][late & strong]).tolist():
            self._deciders.decide(where, "a read")
        racing = np.argwhere(late & ~strong)
        if len(racing):
            row, one = racing[0].tolist()
            readers = int(reads["lanes"][row, inside[one]])
            if page.readers[row] == warp.agent:
                readers &= ~(1 << int(lanes[one]))
            lane = (readers & -readers).bit_length() - 1
            at_once = {name: int(reads[name][row, inside[one]]) for name in ("where", "scope", "time")}
            other = race_reports.Other("read", page.readers[row], lane, *at_once.values())
            place = number * PAGE + int(inside[one]) * page.grain
            self._report(at, access, warp, owner, place, int(lanes[one]), other, scope)

    def _same_instruction(
        self, at: View, access: Access, warp: Warp, owner: Cta | None, which: tuple[int, Page], inside: Array,
        lanes: Array, values: Array | None,
    ) -> None:  # fmt: skip
        """Lanes of one store that store different values in one place."""
        if values is None:
            return
        order = np.argsort(inside, kind="stable")
        place, value, lane = inside[order], values[order], lanes[order]
        twice = np.flatnonzero((place[1:] == place[:-1]) & (value[1:] != value[:-1]) & (lane[1:] != lane[:-1]))
        if len(twice):
            one = int(twice[0])
            other = race_reports.Other("write", warp.agent, int(lane[one]), at.op.where, WEAK, 0)
            number, page = which
            self._report(
                at, access, warp, owner, number * PAGE + int(place[one]) * page.grain, int(lane[one + 1]), other, WEAK
            )

    def _report(
        self, at: View, access: Access, warp: Warp, owner: Cta | None, place: int, lane: int,
        other: race_reports.Other, scope: int,
    ) -> None:  # fmt: skip
        tell = race_reports.report(self._session, at, access, (self._clocks, warp), owner, place, lane, other, scope)
        here, before = (str(access.action), scope, at.op.where), (other.action, other.scope, other.where)
        for read, change, who in (here, before, (warp.agent, lane)), (before, here, (other.agent, other.lane)):
            if read[:2] == ("read", WEAK) and change[0] == "atomic" and change[2] in self.swaps:
                self._guesses[*who, None if owner is None else owner.place, place // WORD] = tell
                return
        tell()

    def confirm(self, warp: Warp, owner: Cta | None, lanes: Array, places: Array) -> None:
        """Lanes compare and swap: what they read before without any order was a guess, which this confirms."""
        memory = None if owner is None else owner.place
        for lane, place in zip(lanes.tolist(), places.tolist(), strict=True):
            self._confirmed.add((warp.agent, lane, memory, place // WORD))

    def end(self) -> None:
        """Reads beside a compare-and-swap that no swap of the same thread has confirmed are races."""
        for who, tell in self._guesses.items():
            if who not in self._confirmed:
                tell()
        self._guesses.clear()
