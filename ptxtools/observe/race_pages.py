"""racecheck on a page of shadow: an access against the last write and the last reads there."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from ptxtools.machine.observers import Doubt

from . import race_reports
from .clocks import CTA, WEAK, Clocks, Warp
from .race_accesses import Strength, lanes_late, sort_of
from .race_shadow import BEHIND, EARLIER, FAR, NARROWER, OWN, PAGE, READ, SAW, SEEN, UNORDERED, WORD, Page

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ptxtools.machine.events import View
    from ptxtools.machine.observers import Access
    from ptxtools.machine.residents import Cta

    from .clocks import Array
    from .race_verdict import Deciders
    from .session import Session

    Columns = Mapping[str, Array]


class Pages:
    """The comparisons of a grid. clocks: of its warps; lanes_race: lanes of a warp run independently; swaps: lines of
    compare-and-swap."""

    def __init__(self, session: Session, deciders: Deciders, clocks: Clocks, *, lanes_race: bool) -> None:
        self._session, self._deciders, self._clocks, self.lanes_race = session, deciders, clocks, lanes_race
        self.swaps: set[int] = set()
        self.told: set[tuple[int, int]] = set()  # pairs of lines of which `race_proxies` has told
        self._guesses: dict[Any, Callable[[], None]] = {}  # by who read, and where
        self._confirmed: set[Any] = set()
        self._read_until: Array | None = None  # what `_readers_known` has found for this look

    def look(
        self, at: View, access: Access, warp: Warp, owner: Cta | None, which: tuple[int, Page], inside: Array,
        lanes: Array, values: Array | None, strength: Strength,
    ) -> None:  # fmt: skip
        number, page = which
        scope = strength.scope
        base = number * PAGE
        writes, now = page.writes, warp.time
        sort = sort_of(at, access)
        memory = owner
        self._deciders.seen(at, access, memory, (base + inside * page.grain) // WORD, (self._clocks, warp))
        if scope or not self._deciders.calm:
            words = (base + inside * page.grain) // WORD
            self._deciders.meets(at, access, memory, words, (self._clocks, warp), weak=not scope)
        self._read_until = None
        hides: dict[int, Array] = {}
        apart = behind = inside[:0]
        sees = np.zeros(len(inside), np.bool_)  # an atomic, the write that it replaces
        if writes["written"][inside].any():
            late, strong, same = self._against(warp, page, writes, inside, lanes, values, strength)
            if same.any():  # no race with that; but whoever comes next may race with either
                hides[UNORDERED] = same
            alike = (sort > 0) & (writes["sort"][inside] == sort)
            open_ = late & strong & ~alike
            if access.writes and open_.any():
                self._unordered(at, memory, base, page, inside[open_], writes, warp, found=True)
            if (late & strong & alike).any():
                passed = inside[late & strong & alike]
                words = (base + passed * page.grain) // WORD
                columns = {name: writes[name][passed] for name in ("writer", "where", "written")}
                self._deciders.beside(memory, words, columns, sort)
            if scope and access.action != "atomic":  # which sees the write before it
                hides[UNORDERED] = late & strong | same
            if access.writes and scope:
                before = writes["scope"][inside]
                apart = inside[(before > 0) & (writes["unit"][inside] != strength.unit)]
                distance = self._clocks.distance(warp, writes["writer"][inside])
                hides[NARROWER] = ~late & ((before < scope) | (before < distance))
                hides[FAR] = ~late & (before > 0) & (distance > CTA)
                if access.action == "atomic":
                    replaced = late & strong
                    hides[NARROWER] |= replaced & (before < scope)
                    hides[UNORDERED] = replaced | same
                    behind = inside[replaced]  # its own thread comes behind those
                    sees = strength.fits(before, writes["unit"][inside], distance)
                else:
                    mine, wide = writes["writer"][inside] == warp.agent, ~late & (before >= scope)
                    hides[OWN], hides[BEHIND] = wide & mine, wide & ~mine & ~same
            racing, found_in = late & ~strong, writes
            for hidden in page.hidden:
                if hidden is None or racing.any() or self._harmless(access, warp, hidden, inside, sort, strength):
                    continue
                late, strong, _ = self._against(warp, page, hidden, inside, lanes, values, strength)
                racing, found_in = late & ~strong, hidden
                open_ = late & strong & ~((sort > 0) & (hidden["sort"][inside] == sort))
                if access.writes and open_.any():
                    self._unordered(at, memory, base, page, inside[open_], hidden, warp, found=False)
            if racing.any():
                one = int(racing.argmax())
                found = {name: int(column[inside[one]]) for name, column in found_in.items()}
                names = ("writer", "lane", "where", "scope", "unit", "written")
                other = race_reports.Other("atomic" if found["sort"] else "write", *(found[name] for name in names))
                place = base + int(inside[one]) * page.grain
                self._report(at, access, warp, owner, place, int(lanes[one]), other, strength)
        if not access.writes:
            self.note_read(page, warp, inside, lanes, strength, now, at.op.where)
            seen = hides.get(UNORDERED)
            if seen is not None and seen.any():
                self._note_seen(page, warp, inside[seen], now)
            return
        if page.readers:
            self._against_reads(at, access, warp, owner, which, inside, lanes, strength)
        if self.lanes_race and not scope and len(inside) > 1:
            self._same_instruction(at, access, warp, owner, which, inside, lanes, values)
        if len(behind):
            self._note_seen(page, warp, behind, now)
        if scope and ((writes["writer"][inside] == warp.agent) & (writes["written"][inside] == now)).any():
            warp.tick()  # who sees this one has not seen the one before
            now = warp.time
        for why, some in hides.items():
            if some.any():
                page.hide(inside[some], why, (np.where(sees[some], warp.agent, -1), np.where(sees[some], now, 0)))
        if sees.any():
            page.pass_on(inside[sees], warp.agent, now)
        if len(apart):
            page.hide_apart(apart)
        since: int | Array = now
        if scope and access.action == "atomic":
            chained = (writes["writer"][inside] == warp.agent) & (writes["scope"][inside] > 0)
            chained &= writes["unit"][inside] == strength.unit
            since = np.where(chained, writes["since"][inside], now)
        writes["since"][inside] = since
        writes["writer"][inside], writes["written"][inside], writes["lane"][inside] = warp.agent, now, lanes
        writes["where"][inside], writes["scope"][inside], writes["sort"][inside] = at.op.where, scope, sort
        writes["unit"][inside], writes["value"][inside] = strength.unit, -1 if values is None else values

    @staticmethod
    def note_first(page: Page, warp: Warp, inside: Array, lane: int, where: int) -> None:
        """A lane has stored to granules of a page to which nobody else has."""
        first = {"writer": warp.agent, "written": warp.time, "since": warp.time, "lane": lane, "where": where}
        for name, value in first.items():
            page.writes[name][inside] = value

    def _unordered(
        self, at: View, memory: Cta | None, base: int, page: Page, places: Array, writes: Columns, warp: Warp, *,
        found: bool,
    ) -> None:  # fmt: skip
        """A strong write comes in no order with some that granules have had; found: they have them now."""
        columns = {name: writes[name][places] for name in ("writer", "where", "written")}
        self._deciders.unordered(at, memory, (base + places * page.grain) // WORD, columns, warp, found=found)

    def _harmless(
        self, access: Access, warp: Warp, hidden: Columns, inside: Array, sort: int, strength: Strength
    ) -> bool:
        """Whether it is no matter if a warp knows of earlier writes: there are none, or they fit together with its
        access, and may come beside it in any order."""
        there = hidden["written"][inside] > 0
        if not there.any():
            return True
        if not strength.scope or (access.writes and sort <= 0):
            return False
        needed = self._clocks.distance(warp, hidden["writer"][inside])
        good = strength.fits(hidden["scope"][inside], hidden["unit"][inside], needed)
        if access.writes:
            good &= hidden["sort"][inside] == sort
        return bool(good[there].all())

    def _against(
        self, warp: Warp, page: Page, writes: Columns, inside: Array, lanes: Array, values: Array | None,
        strength: Strength,
    ) -> tuple[Array, Array, Array]:  # fmt: skip
        """Where writes are not known to these lanes, where both accesses are strong and fit together, and where writes
        are not known, but of the same value. A write that a strong read has seen is ordered before all that comes
        behind the read (8.9.4)."""
        late = self.late(warp, writes, inside, lanes)
        same = np.zeros(len(late), np.bool_)
        if values is not None:  # to write the same value again harms nobody
            same = late & (writes["value"][inside] == values)
            late &= ~same
        if not late.any():
            return late, late, same
        if page.readers and page.reads["saw_at"].any():
            late &= ~self._seen(warp, page, inside, writes["writer"], writes["written"])
            if "by" in writes:  # and who sees the atomic that has seen it
                late &= ~self._seen(warp, page, inside, writes["by"], writes["by_at"])
                late &= ~self._lost(warp, page, inside)
        if "by" in writes:  # or knows of it
            by = writes["by"][inside]
            told = self._clocks.known(np.maximum(by, 0), warp.known)
            late &= ~((by >= 0) & (told >= writes["by_at"][inside]))
        needed = self._clocks.distance(warp, writes["writer"][inside])
        return late, strength.fits(writes["scope"][inside], writes["unit"][inside], needed), same

    def _seen(self, warp: Warp, page: Page, inside: Array, writers: Array, times: Array) -> Array:
        """Where some strong read has seen a write, and this warp knows of the read."""
        known, written = self._readers_known(warp, page), times[inside]
        found = np.zeros(len(inside), np.bool_)
        for which in SEEN:
            saw = {name: page.reads[f"{which}{name}"][: len(known), inside] for name in SAW}
            same = (saw["writer"] == writers[inside]) & (saw["since"] <= written) & (written <= saw["written"])
            found |= (same & (saw["at"] > 0) & (saw["at"] <= known)).any(0)
        return found

    def _lost(self, warp: Warp, page: Page, inside: Array) -> Array:
        """Where this warp knows of more strong reads than are kept: what they have seen may have been any write."""
        known = self._readers_known(warp, page)
        lost = page.reads["lost_at"][: len(known), inside]
        return np.asarray(((lost > 0) & (lost <= known)).any(0))

    def _readers_known(self, warp: Warp, page: Page) -> Array:
        """Up to when a warp knows what the readers of a page have done, one a row."""
        if self._read_until is None:
            agents = np.array(page.readers)
            known = self._clocks.known(agents, warp.known)
            known[agents == warp.agent] = warp.time
            self._read_until = known[:, None]
        return self._read_until

    def late(self, warp: Warp, writes: Columns, inside: Array, lanes: Array) -> Array:
        """Where writes are not known to these lanes. Lane -1: all lanes of a warp together."""
        written, writer, lane = writes["written"][inside], writes["writer"][inside], writes["lane"][inside]
        mine = writer == warp.agent
        if mine.all():
            known = warp.lanes[lanes, lane]
        else:
            known = np.where(mine, warp.lanes[lanes, lane], self._clocks.known(writer, warp.known))
        same = (lane == lanes) | (lane < 0) | (lanes < 0) if self.lanes_race else np.True_
        late: Array = (written > known) & ~(mine & same)
        return late

    def note_read(
        self, page: Page, warp: Warp, inside: Array, lanes: Array, strength: Strength, now: int, where: int
    ) -> None:
        """Lanes of a warp have read granules of a page at some time; where: their line."""
        row, reads = page.row(warp.agent), page.reads
        scope = strength.scope
        was, there = reads["scope"][row, inside], reads["time"][row, inside] > 0
        narrower = (was < scope) & there
        if scope:
            still = narrower & (reads["narrow_scope"][row, inside] < was)
            apart = (was > 0) & there & (reads["unit"][row, inside] != strength.unit)
            for name in READ if still.any() or apart.any() else ():
                for kept, which, some in (("narrowest_", "narrow_", still), ("apart_", "", apart)):
                    column = reads[f"{kept}{name}"][row]
                    column[inside] = np.where(some, reads[f"{which}{name}"][row, inside], column[inside])
        for name in READ if not scope or narrower.any() else ():  # a read of no wider scope stands for all before
            known = reads[f"narrow_{name}"][row, inside] if scope else 0
            reads[f"narrow_{name}"][row, inside] = np.where(narrower, reads[name][row, inside], known)
        reads["time"][row, inside], reads["where"][row, inside] = now, where
        reads["scope"][row, inside], reads["unit"][row, inside] = strength
        if lanes[0] < 0:  # a warp as a whole: its own lanes come behind it
            return
        old = reads["lanes"][row, inside]
        since = reads["since"][row, inside]
        stays = since > warp.known_reads().min() if self.lanes_race else np.zeros(len(inside), np.bool_)
        reads["since"][row, inside] = np.where(stays, since, now)
        reads["lanes"][row, inside] = np.where(stays, old, 0)
        np.bitwise_or.at(reads["lanes"][row], inside, np.uint32(1) << lanes.astype(np.uint32))

    @staticmethod
    def _note_seen(page: Page, warp: Warp, inside: Array, now: int) -> None:
        row, reads = page.row(warp.agent), page.reads
        lost, before = reads["lost_at"][row, inside], reads["before_at"][row, inside]
        reads["lost_at"][row, inside] = np.where(lost > 0, lost, before)
        for name in SAW:
            reads[f"before_{name}"][row, inside] = reads[f"saw_{name}"][row, inside]
            reads[f"saw_{name}"][row, inside] = now if name == "at" else page.writes[name][inside]

    def _against_reads(
        self, at: View, access: Access, warp: Warp, owner: Cta | None, which: tuple[int, Page], inside: Array,
        lanes: Array, strength: Strength,
    ) -> None:  # fmt: skip
        number, page = which
        count, reads = len(page.readers), page.reads
        agents = np.array(page.readers)
        times = reads["time"][:count, inside]
        known = np.maximum(self._clocks.known(agents, warp.known), self._clocks.known(agents, warp.seen))
        late = times > known[:, None]
        mine = np.flatnonzero(agents == warp.agent)
        late[mine] = False
        if len(mine) and self.lanes_race:
            late[mine[0]] = lanes_late(warp, reads["lanes"][mine[0], inside], reads["since"][mine[0], inside], lanes)
        if not late.any():
            return
        needed = self._clocks.distance(warp, agents)
        strong = self._fitting(reads, "", count, inside, needed, strength)
        for where in sorted(set(reads["where"][:count, inside][late & strong].tolist())):
            self._deciders.decide(where, "a read")
        racing, kind = np.argwhere(late & ~strong), ""
        for earlier in EARLIER[1:]:
            if not len(racing) and reads[f"{earlier}time"][:count, inside].any():
                late = reads[f"{earlier}time"][:count, inside] > known[:, None]
                late[mine] = False
                strong = self._fitting(reads, earlier, count, inside, needed, strength)
                racing, kind = np.argwhere(late & ~strong), earlier
        if len(racing):
            row, one = racing[0].tolist()
            readers = int(reads["lanes"][row, inside[one]])
            if page.readers[row] == warp.agent:
                readers &= ~(1 << int(lanes[one]))
            lane = (readers & -readers).bit_length() - 1
            at_once = {name: int(reads[kind + name][row, inside[one]]) for name in ("where", "scope", "unit", "time")}
            other = race_reports.Other("read", page.readers[row], lane, *at_once.values())
            place = number * PAGE + int(inside[one]) * page.grain
            self._report(at, access, warp, owner, place, int(lanes[one]), other, strength)

    @staticmethod
    def _fitting(reads: Columns, which: str, count: int, inside: Array, needed: Array, strength: Strength) -> Array:
        """Which reads of warps fit together with an access. which: of those in `EARLIER`."""
        scopes, units = (reads[f"{which}{name}"][:count, inside] for name in ("scope", "unit"))
        return np.asarray(strength.fits(scopes, units, needed[:, None]))

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
            other = race_reports.Other("write", warp.agent, int(lane[one]), at.op.where, WEAK, 0, 0)
            number, page = which
            self._report(
                at, access, warp, owner, number * PAGE + int(place[one]) * page.grain, int(lane[one + 1]), other,
                Strength(WEAK, 0),
            )  # fmt: skip

    def _report(
        self, at: View, access: Access, warp: Warp, owner: Cta | None, place: int, lane: int,
        other: race_reports.Other, strength: Strength,
    ) -> None:  # fmt: skip
        if other.where < 0:
            raise Doubt  # which is not known, as this is no more than a look
        if (at.op.where, other.where) in self.told:
            return
        tell = race_reports.report(self._session, at, access, (self._clocks, warp), owner, place, lane, other, strength)
        here, before = (str(access.action), strength.scope, at.op.where), (other.action, other.scope, other.where)
        for read, change, who in (here, before, (warp.agent, lane)), (before, here, (other.agent, other.lane)):
            if read[:2] == ("read", WEAK) and change[0] == "atomic" and change[2] in self.swaps:
                self._deciders.decide(read[2], "a read")
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
