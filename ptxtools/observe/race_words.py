"""Words that say when memory was last written and read, for racecheck's second look (`machine.filters.Bounds.clocks`).

What native code does with them before an access of a warp, this does for accesses that Python is told of.
"""

from __future__ import annotations

from operator import is_not
from typing import TYPE_CHECKING

import numpy as np

from ptxtools.machine.observers import Doubt
from ptxtools.machine.residents import (
    ALL_LANES,
    CLOCK_SHIFT,
    GUARDED,
    MOST_TIMES,
    SEVERAL_CLUSTER,
    SEVERAL_CTA,
    SEVERAL_GRID,
    SEVERAL_WARPS,
)
from ptxtools.program.program import LANES

from .async_knowledge import threads_of
from .race_joins import AROUND, CTA_UNTIL, GRID_UNTIL, JOINED, NOW, OWN, PLAIN, STIRS, TOLD, Joins

if TYPE_CHECKING:
    from ptxtools.machine.clocks import Clocks as Tables
    from ptxtools.machine.events import View
    from ptxtools.machine.observers import Array
    from ptxtools.machine.residents import Cta

    from .clocks import Clocks, Warp
    from .race_shadow import Shadow

_LANE = np.uint32((1 << CLOCK_SHIFT) - 1)
_TIME = np.uint32(MOST_TIMES - 1 << CLOCK_SHIFT)
_NEVER = (1 << 32) - 1
#: Times that are looked at together, at first.
_SOME = 64
_DIAGONAL = np.eye(LANES, dtype=np.int64) << 32


class Words:
    """Those of a grid. tables: what native code knows of its warps, numbered CTA by CTA, and so cluster by cluster, as
    in `clocks`; threads: of a CTA; independent: lanes of a warp are."""

    def __init__(self, clocks: Clocks, tables: Tables, threads: int, *, independent: bool) -> None:
        self._clocks, self.tables, self._independent = clocks, tables, independent
        self.joins = Joins(tables, clocks.per_cluster, independent=independent)
        clocks.later = lambda _: self._later()
        self._warps: dict[int, Warp] = {}  # that Python has been told of
        self._seen: dict[int, int] = {}  # their times
        tables.times[:, PLAIN] = 2
        numbers = np.arange(tables.count)
        if independent:  # some have one thread
            numbers = numbers[(numbers % tables.per_cta + 1) * LANES - threads == LANES - 1]
        tables.known[numbers, numbers] = _NEVER

    def _numbers(self, cluster: int) -> slice:
        """The warps of a cluster."""
        per = self._clocks.per_cluster
        return slice(cluster * per, (cluster + 1) * per)

    def _here(self, cluster: int) -> bool:
        """Whether it is one of this grid."""
        return 0 <= cluster * self._clocks.per_cluster < self.tables.count

    def _number(self, at: View) -> int:
        return at.cta.number * self.tables.per_cta + at.warp

    def _later(self, number: int | None = None) -> int:
        """A time for accesses of a warp, or for something else."""
        try:
            return self.tables.next(number)
        except OverflowError:
            raise Doubt from None

    def meet(self, at: View, warp: Warp) -> bool:
        """A warp has come: what it has accessed natively it did at a time of its own. Whether it has met others."""
        number = self._number(at)
        new = number not in self._warps
        if new:
            self._begin(number, warp)
        lanes = bool(self.tables.lanes[number].any())
        met = self.learn(number)
        if new or lanes:
            self.publish(at, warp)
        return met

    def unmoved(self, number: int) -> Warp | None:
        """A warp that has done nothing natively since Python was told of it, but for what it may have learnt."""
        moment, warp = self.tables.times[number], self._warps.get(number)
        if warp is None or moment[JOINED] or moment[TOLD] or int(moment[OWN]) > warp.time:
            return None
        return warp

    def _begin(self, number: int, warp: Warp) -> None:
        self._warps[number], self._seen[number] = warp, warp.time

    def learn(self, number: int) -> bool:
        """Take over what a warp has done and learnt natively; whether it has met others."""
        if number not in self._warps:
            if not self.tables.times[number, TOLD]:
                return False
            self._begin(number, self._clocks.warp(*divmod(number, self._clocks.per_cluster)))
        warp = self._warps[number]
        before = warp.time
        met = self.joins.learn(number, warp)
        if warp.time != before:
            self._seen[number] = warp.time
        return met

    # --- what warps know ----------------------------------------------------------------------------------------------

    def publish(self, at: View, warp: Warp) -> None:
        """Let native code know what a warp knows now; when others have been told anything, its accesses have another
        time from now on."""
        number, tables = self._number(at), self.tables
        moment, shown, row = tables.times[number], self.joins.shown[number], tables.known[number]
        if warp.time != self._seen[number]:
            self._seen[number], moment[NOW] = warp.time, 0
        near = far = number in self.joins.merged
        self.joins.merged.discard(number)
        known = warp.known
        for cluster, times in known.items() if any(map(is_not, known.values(), map(shown.get, known))) else ():
            if shown.get(cluster) is not times and self._here(cluster):
                near = True
                shown[cluster], far = times, far or cluster != warp.cluster
                row[self._numbers(cluster)] = times
        row[number] = self._own(at, warp)
        self.joins.publish(number, warp)
        if near:
            first = at.cta.number * tables.per_cta
            moment[CTA_UNTIL] = self._until(number, first, first + tables.per_cta, int(moment[CTA_UNTIL]))
        if far:  # perhaps of the whole grid
            moment[GRID_UNTIL] = self._until(number, 0, tables.count, int(moment[GRID_UNTIL]))

    def _own(self, at: View, warp: Warp) -> int:
        """The time up to which all lanes of a warp know each other."""
        if not self._independent:
            return _NEVER
        threads = threads_of(at)
        return warp.time if threads == 1 else int((warp.lanes + _DIAGONAL)[:threads, :threads].min())

    def _around(self, number: int, row: Array) -> int:
        """The time up to which somebody who knows this knows all that was done in the cluster of a warp."""
        around = self._numbers(number // self._clocks.per_cluster)
        return self._complete(row, around.start, around.stop, int(self.tables.times[number, AROUND]))

    def until_of_grid(self, number: int) -> int:
        """The time up to which a warp knows all that the grid has done."""
        return self._until(number, 0, self.tables.count, int(self.tables.times[number, GRID_UNTIL]))

    def _until(self, number: int, first: int, after: int, since: int) -> int:
        """The time up to which a warp knows all that some warps have done, at least that up to which it did before."""
        return self._complete(self.tables.known[number], first, after, since)

    def _complete(self, row: Array, first: int, after: int, since: int) -> int:
        latest, at, some = self.tables.latest, since + 1, _SOME
        while at <= latest:
            warps = self.tables.warps[at : min(at + some, latest + 1)]
            here = np.flatnonzero((warps >= first) & (warps < after))
            unknown = here[row[warps[here]] < at + here]
            if len(unknown):
                return at + int(unknown[0]) - 1
            at, some = at + some, 2 * some
        return latest

    # --- accesses -----------------------------------------------------------------------------------------------------

    def guarded(self, words: Array, index: Array) -> Array:
        found: Array = words[index, 0] == np.uint32(GUARDED)
        return found

    def touch(self, at: View, words: Array, index: Array, lanes: Array, *, writes: bool) -> None:
        """Lanes of a warp (-1: all together) access pieces of memory, each another one if they write."""
        number, tables = self._number(at), self.tables
        moment = tables.times[number]
        lanes = np.where(lanes < 0, ALL_LANES, lanes).astype(np.uint32)
        good, reads = self._passes(number, words, index, lanes, writes=writes)
        if not good.all():
            first = number // tables.per_cta * tables.per_cta
            moment[CTA_UNTIL] = self._until(number, first, first + tables.per_cta, int(moment[CTA_UNTIL]))
            moment[GRID_UNTIL] = self._until(number, 0, tables.count, int(moment[GRID_UNTIL]))
            moment[AROUND] = self._around(number, tables.known[number])
            good, reads = self._passes(number, words, index, lanes, writes=writes)
            if writes:
                good |= self._follows(number, words, index, lanes)
            if not good.all():
                raise Doubt
        mine = np.uint32(self._now(number) << CLOCK_SHIFT) | lanes
        if writes:
            words[index, 0], words[index, 1] = mine, 0
            if (words[index, 0] != mine).any():
                raise Doubt  # lanes that write the same piece
            return
        word = np.where(reads, mine, mine | self._several(number, words[index, 1]))
        words[index, 1] = word
        lost = words[index, 1] != word
        if lost.any():  # lanes that read the same piece
            apart = word[lost] & np.uint32(SEVERAL_WARPS)
            words[index[lost], 1] = mine[lost] | np.where(apart == 0, np.uint32(SEVERAL_CTA), apart)

    def _now(self, number: int) -> int:
        """The time of accesses that a warp makes now."""
        moment = self.tables.times[number]
        if not moment[NOW]:
            time, warp = self._later(number), self._warps[number]
            moment[NOW], moment[OWN], moment[STIRS] = time, time, 1
            warp.reach(time)
            self._seen[number] = time
        return int(moment[NOW])

    def _follows(self, number: int, words: Array, index: Array, lanes: Array) -> Array:
        """Which writes come behind single reads of which relaxed reads have told (`Warp.seen`)."""
        wrote, read = words[index, 0], words[index, 1]
        seen = np.zeros(self.tables.count, np.int64)
        for cluster, times in self._warps[number].seen.items():
            if self._here(cluster):
                seen[self._numbers(cluster)] = times
        time = (read & _TIME) >> np.uint32(CLOCK_SHIFT)
        found = (read & np.uint32(SEVERAL_WARPS) == 0) & (seen[self.tables.warps[time]] >= time)
        good = (wrote == 0) | (self._knows(number, wrote, lanes) & (wrote != np.uint32(GUARDED)))
        result: Array = found & good
        return result

    def _several(self, number: int, reads: Array) -> Array:
        """Whether those who read belong to one CTA with a warp, or to one cluster."""
        per, around = self.tables.per_cta, self._clocks.per_cluster
        last = self.tables.warps[(reads & _TIME) >> np.uint32(CLOCK_SHIFT)]
        near = (last // per == number // per) & (reads & np.uint32(SEVERAL_GRID | SEVERAL_CLUSTER) == 0)
        here = (last // around == number // around) & (reads & np.uint32(SEVERAL_GRID) == 0)
        far = np.where(here, np.uint32(SEVERAL_CLUSTER), np.uint32(SEVERAL_GRID))
        return np.where(near, np.uint32(SEVERAL_CTA), far)

    def _passes(self, number: int, words: Array, index: Array, lanes: Array, *, writes: bool) -> tuple[Array, Array]:
        """Which accesses pass, and of which pieces all reads are known."""
        moment = self.tables.times[number]
        wrote, read = words[index, 0], words[index, 1]
        good = (wrote == 0) | (self._knows(number, wrote, lanes) & (wrote != np.uint32(GUARDED)))
        several = read & np.uint32(SEVERAL_WARPS) != 0
        time = (read & _TIME) >> np.uint32(CLOCK_SHIFT)
        per = self.tables.per_cta
        last, around = self.tables.warps[time], self._clocks.per_cluster
        near = (read & np.uint32(SEVERAL_CTA) != 0) & (last // per == number // per)
        here = several & (read & np.uint32(SEVERAL_GRID) == 0) & (last // around == number // around)
        known = (near & (time <= moment[CTA_UNTIL])) | (several & (time <= moment[GRID_UNTIL]))
        known |= here & (time <= moment[AROUND])
        reads = (read == 0) | np.where(several, known, self._knows(number, read, lanes))
        return (good & reads if writes else good), reads

    def _knows(self, number: int, found: Array, lanes: Array) -> Array:
        time = (found & _TIME) >> np.uint32(CLOCK_SHIFT)
        warps = self.tables.warps[time]
        lane = found & _LANE
        mine = (lane == lanes) | (lane == ALL_LANES) | (lanes == ALL_LANES)
        known: Array = (self.tables.known[number][warps] >= time) | ((warps == number) & mine)
        return known

    def guard(self, words: Array, index: Array, shadow: Shadow, piece: int, base: int) -> None:
        """From now on no access to these pieces passes; what was there is put into a shadow. base: address of the
        first piece."""
        wrote, read = words[index, 0], words[index, 1]
        new = wrote != np.uint32(GUARDED)
        if not new.any():
            return
        if (read[new] & np.uint32(SEVERAL_WARPS) != 0).any():
            raise Doubt
        some = new & ((wrote != 0) | (read != 0))
        if some.any():
            self._take_over(shadow, base + index[some].astype(np.int64) * piece, piece, wrote[some], read[some])
        words[index[new]] = np.uint32(GUARDED), np.uint32(0)

    def _take_over(self, shadow: Shadow, places: Array, piece: int, wrote: Array, read: Array) -> None:
        for _, page, inside, bytes_ in shadow.pieces(places, piece):
            which = bytes_ // piece
            agents, times, lanes = self._who(wrote[which])
            there, writes = times > 0, page.writes
            at = inside[there]
            writes["writer"][at], writes["written"][at], writes["since"][at] = agents[there], times[there], times[there]
            writes["lane"][at] = np.where(lanes == ALL_LANES, -1, lanes)[there]
            writes["where"][at], writes["value"][at] = -1, -1
            agents, times, lanes = self._who(read[which])
            for agent in np.unique(agents[times > 0]).tolist():
                mine = (agents == agent) & (times > 0)
                row, at, reads = page.row(agent), inside[mine], page.reads
                reads["time"][row, at], reads["since"][row, at], reads["where"][row, at] = times[mine], times[mine], -1
                bits = np.left_shift(1, np.minimum(lanes, LANES - 1), dtype=np.int64)
                reads["lanes"][row, at] = np.where(lanes == ALL_LANES, 0, bits)[mine]

    def _who(self, words: Array) -> tuple[Array, Array, Array]:
        """Warps, times and lanes that words stand for."""
        times = ((words & _TIME) >> np.uint32(CLOCK_SHIFT)).astype(np.int64)
        return self.tables.warps[times].astype(np.int64), times, (words & _LANE).astype(np.int64)

    def ended(self, cta: Cta, words: Array) -> None:
        """A CTA has ended: nobody else may have accessed its memory without its knowing."""
        per = self.tables.per_cta
        mine = slice(cta.number * per, (cta.number + 1) * per)
        known = self.tables.known[mine].max(axis=0)
        known[mine] = _NEVER
        found = np.unique(words)
        found = found[(found != 0) & (found != np.uint32(GUARDED))]
        time = (found & _TIME) >> np.uint32(CLOCK_SHIFT)
        warps = self.tables.warps[time]
        far, single = warps // per != cta.number, found & np.uint32(SEVERAL_WARPS) == 0
        several = found & np.uint32(SEVERAL_GRID) != 0
        until = self.tables.times[mine, GRID_UNTIL].max()
        late = (far & single & (known[warps] < time)) | (several & (time > until))
        near = ~(single | several) & (far | (found & np.uint32(SEVERAL_CLUSTER) != 0))
        if near.any():
            late |= near & (time > self._around(mine.start, known))
        if late.any():
            raise Doubt
