"""What warps learn at barriers without Python, in racecheck's second look (`machine.filters.JOINS`).

Native code joins what whole warps know, as `Clocks.give` and `take` do. Python takes that over when it is told of a
warp again. A phase of a barrier to which somebody comes of whom it must be told is its own: what those who have come
natively have told is handed to it.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

import numpy as np

from ptxtools.machine.observers import Doubt
from ptxtools.program.program import LANES

from .clocks import CLUSTER, CTA, TENSOR, covers, merged

if TYPE_CHECKING:
    from ptxtools.machine.clocks import Clocks as Tables
    from ptxtools.machine.events import View
    from ptxtools.machine.observers import Array

    from .clocks import Known, Warp

#: Of what is noted of a warp (`MOMENT` of the native engine), and of a barrier (`JOINING`).
NOW, CTA_UNTIL, GRID_UNTIL, OWN, PLAIN, TOLD, BAR, ARRIVED, JOINED = range(9)
ARRIVAL, FENCED, STIRS, BARS, ARRIVALS, LEFT, PART, AROUND, TOOK, TICK = 10, 11, 13, 14, 15, 16, 17, 18, 19, 20
_CAME, _TOLD, _SIDE, _UNTIL, _GRID, _KNOWN = range(6)
#: Who has come natively, and whether all have; whom Python has been told of.
_COME, _COMPLETE, _PYTHON = 1, 2, 3
_EVERYBODY = (1 << LANES) - 1
#: Fences of a warp that are remembered.
_MOST_FENCES = 4


class Joins:
    """Those of a grid. per_cluster: warps of a cluster; independent: lanes of a warp are."""

    def __init__(self, tables: Tables, per_cluster: int, *, independent: bool) -> None:
        self._tables, self._independent = tables, independent
        self._size, self._per = per_cluster // tables.per_cta, per_cluster
        #: By cluster and warp what its fences of wider scopes than the CTA have released, each with how often it had
        #: joined others before: barriers of the CTA, and arrivals at the cluster's.
        self._fences: defaultdict[int, dict[int, list[tuple[int, int, dict[int, Known]]]]] = defaultdict(dict)
        self._heard: dict[tuple[int, int], dict[int, Known]] = {}  # the last that a warp has heard of another one
        self.shown: defaultdict[int, dict[int, Array]] = defaultdict(dict)  # by warp and cluster what `known` has
        self._rows: dict[int, Array] = {}  # by warp `known` as it was when it was shown, or merged
        #: By warp the lanes that may not have left the last phase of the CTA's barrier, which was native.
        self._rest: dict[int, int] = {}
        self.merged: set[int] = set()  # warps that have learnt of other clusters since that was shown

    # --- warps --------------------------------------------------------------------------------------------------------

    def learn(self, number: int, warp: Warp) -> bool:
        """Take over what a warp has done and learnt natively; whether it has met others."""
        moment = self._tables.times[number]
        if int(moment[OWN]) > warp.time:
            warp.reach(int(moment[OWN]))
        joined, took = int(moment[JOINED]), bool(moment[TOOK])
        if joined or took:
            moment[JOINED] = moment[TOOK] = 0
            lanes = self._tables.lanes[number]
            warp.lanes = np.maximum(warp.lanes, lanes[:, None])
            lanes[:] = 0
        if joined:
            fences = self._tables.fences[number] if took else None
            self._join(number, warp, CTA if joined == 1 else CLUSTER, fences)
        elif took:
            self._merge(number, warp, self._tables.known[number])
        told = bool(moment[TOLD])
        if told:
            moment[TOLD] = 0
            if not moment[NOW]:  # what it does next comes behind what it has told
                warp.tick()
        return told or joined > 0

    def _merge(self, number: int, warp: Warp, row: Array) -> None:
        """It knows what a row of times says, of which it has known what was shown."""
        before, now, per = self._rows.get(number), row.astype(np.int64), self._per
        self._rows[number] = row.copy()
        now[warp.agent] = warp.time
        clusters, changed = now.reshape(-1, per), row.astype(np.bool_) if before is None else row != before
        changed[warp.agent] = True
        known, shown = warp.known, self.shown[number]
        self.merged.add(number)
        for cluster in np.flatnonzero(changed.reshape(-1, per).any(axis=1)).tolist():
            times, mine = clusters[cluster], known.get(cluster)
            if mine is not None and (mine is not shown.get(cluster) or cluster == warp.cluster):
                known[cluster] = np.maximum(times, mine)
            else:
                known[cluster] = shown[cluster] = times

    def _join(self, number: int, warp: Warp, scope: int, fences: Array | None) -> None:
        """It has been at a barrier, which is a fence. fences: what it knew there, if that is not what it knows now."""
        tables = self._tables
        row, moment = tables.known[number], tables.times[number]
        if self._independent:
            warp.lanes = np.maximum(warp.lanes, int(row[number]))
        self._merge(number, warp, row if fences is None else fences)
        fenced = dict(warp.known)
        fenced[warp.cluster] = fenced[warp.cluster].copy()
        fenced[warp.cluster][warp.number] = int(moment[FENCED])
        for narrower in range(CTA, scope + 1):
            warp.fenced[narrower] = fenced
        if fences is not None:
            self._merge(number, warp, row)
        for other, others in self._fences[warp.cluster].items():
            near = other // tables.per_cta == number // tables.per_cta
            heard = [
                wide for bars, arrivals, wide in others
                if (near and int(moment[BARS]) > bars) or int(moment[LEFT]) > arrivals
            ]  # fmt: skip
            if other == number or not heard or self._heard.get((number, other)) is heard[-1]:
                continue
            self._heard[number, other] = heard[-1]
            for wider, known in heard[-1].items():
                warp.fenced[wider] = merged(warp.fenced.get(wider, {}), known)

    @staticmethod
    def _is_plain(warp: Warp) -> bool:
        """Whether a warp knows nothing but what others may learn natively."""
        return not warp.heard and covers(warp.known, warp.met) and max(warp.known) < TENSOR

    def publish(self, number: int, warp: Warp) -> None:
        """Let native code know whether it may join this warp with others, and note its fences."""
        moment = self._tables.times[number]
        self._rows[number] = self._tables.known[number].copy()
        here = min(warp.known) >= 0 and max(warp.known) * self._per < self._tables.count
        moment[OWN], moment[PLAIN] = warp.time, (2 if here else 1) if self._is_plain(warp) else 0
        moment[TICK] = 0
        wide = {scope: known for scope, known in warp.fenced.items() if scope > CTA}
        if wide:
            fences = self._fences[warp.cluster].setdefault(number, [])
            before = fences[-1][2] if fences else {}
            if any(before.get(scope) is not known for scope, known in wide.items()):
                fences.append((int(moment[BARS]), int(moment[ARRIVALS]), wide))
                del fences[:-_MOST_FENCES]

    # --- barriers -----------------------------------------------------------------------------------------------------

    def comes(self, at: View, what: str) -> tuple[list[tuple[int, int]], Known]:
        """Python is told of a warp that comes to a barrier: which warps have come natively, with the lanes, and what
        they have told. From now on it is told of all that come to this phase."""
        tables, cta = self._tables, at.cta.number
        if what == "bar":
            first, last, field = cta * tables.per_cta, (cta + 1) * tables.per_cta, BAR
            joining, gathered = tables.bars[cta], tables.gathered[cta]
        else:
            cluster = cta // self._size
            first, last, field = cluster * self._per, (cluster + 1) * self._per, ARRIVED
            joining = tables.clusters[cluster]
            gathered = tables.clustered[cluster, int(joining[_SIDE])]
        number = cta * tables.per_cta + at.warp
        mine, joining[_TOLD] = tables.times[number], 1
        if what != "bar" and int(mine[field]) in (_COME, _COMPLETE):
            raise Doubt  # it has not left the last phase
        there = tables.times[first:last]
        told: Known = {}
        found: list[tuple[int, int]] = []
        if what == "bar":
            found = [(first + n, int(there[n, PART])) for n in np.flatnonzero(there[:, PART]).tolist()]
            there[:, PART] = 0
            for warp, mask in (*found, (number, at.mask)):
                rest = _EVERYBODY if int(tables.times[warp, BAR]) == _COMPLETE else self._rest.get(warp, 0)
                self._rest[warp], tables.times[warp, BAR] = rest & ~mask, 0
        if joining[_CAME]:
            natives = (first + np.flatnonzero(there[:, field] == _COME)).tolist()
            found += [(number, _EVERYBODY) for number in natives]
            told = self._known(gathered)
            tables.times[natives, field] = 0 if what == "bar" else _PYTHON
            if what != "bar":
                tables.times[natives, ARRIVALS] -= 1
            joining[_CAME] = joining[_GRID] = 0
            gathered[:] = 0
        mine[field] = 0 if what == "bar" else _PYTHON
        return found, told

    def _known(self, gathered: Array) -> Known:
        """What warps have told, by cluster."""
        row, per = gathered.astype(np.int64), self._per
        clusters = np.unique(np.flatnonzero(row) // per).tolist()
        return {cluster: row[cluster * per : (cluster + 1) * per] for cluster in clusters}

    def left(self, at: View, what: str, *, whole: bool) -> bool:
        """Python is told of a warp that goes on behind a barrier; whether it has joined all others natively."""
        number = at.cta.number * self._tables.per_cta + at.warp
        moment, field = self._tables.times[number], BAR if what == "bar" else ARRIVED
        state = int(moment[field])
        if state == _COME or (state == _COMPLETE and what != "bar" and not whole):
            raise Doubt  # it has come natively, but the phase is not complete; or some lanes alone go on
        rest = self._rest.pop(number, 0) if what == "bar" else 0
        if rest & at.mask and state != _COMPLETE:  # others of the warp have come to the next phase
            if at.mask & ~rest:
                raise Doubt
            self._rest[number] = rest & ~at.mask
            return True
        if state == _COMPLETE and what != "bar":
            self._go(number, at.cta.number // self._size)
        elif state == _PYTHON:
            moment[field] = 0
        return state == _COMPLETE

    def _go(self, number: int, cluster: int) -> None:
        """As native code does it."""
        tables = self._tables
        moment, joining = tables.times[number], tables.clusters[cluster]
        row = tables.known[number]
        np.maximum(row, tables.clustered[cluster, 1 - int(joining[_SIDE])], out=row)
        for until in (CTA_UNTIL, AROUND):
            moment[until] = max(moment[until], joining[_UNTIL])
        moment[GRID_UNTIL] = max(moment[GRID_UNTIL], joining[_KNOWN])
        moment[FENCED], moment[ARRIVED], moment[JOINED] = moment[ARRIVAL], 0, 2
        moment[LEFT] += 1

    def turned(self, at: View, what: str) -> None:
        """The first warp goes on behind a phase of which Python was told: the next one may be native."""
        cta = at.cta.number
        joining = self._tables.bars[cta] if what == "bar" else self._tables.clusters[cta // self._size]
        joining[_TOLD] = 0
