"""What mbarriers carry from thread to thread, phase by phase (9.7.13.15).

Arrivals of a phase, and of those before it, happen before a wait for that phase returns; those of later phases do not,
even if they have come already. A phase that ends, or a thread that arrives, without knowing of the phase before would
come out otherwise in another schedule: that is noted for the verdict.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ptxtools.program import mbarrier as word
from ptxtools.program.program import LANES
from ptxtools.records import dataclass, field

from .clocks import CLUSTER, CTA, MOST_HEARD, Known, Message, Warp, covers, merged
from .mbarriers import distinct, each

if TYPE_CHECKING:
    from ptxtools.machine.events import View
    from ptxtools.machine.residents import Cta

    from .clocks import Array

_STATE = "racecheck's mbarriers"
_WORD = struct.Struct("<Q")


@dataclass(slots=True)
class Phases:
    """One mbarrier: number of the phase that is open; what arrivals up to a phase have told, for the open phase and the
    two before, and those of the CTA alone; far: the last arrival of each warp of another CTA; passed: by warp the last
    phases that its lanes have waited for, and the lines; waited: who has waited for the last phase: (cluster, number of
    the warp in it, its time, line)."""

    number: int = 0
    told: dict[int, Known] = field(default_factory=lambda: {0: {}, -1: {}, -2: {}})
    near: dict[int, Known] = field(default_factory=lambda: {0: {}, -1: {}, -2: {}})
    far: dict[int, Message] = field(default_factory=dict)
    passed: dict[int, tuple[Array, Array]] = field(default_factory=dict)
    waited: list[tuple[int, int, int, int]] = field(default_factory=list)

    def begin(self, parity: int) -> list[int]:
        """The word has this parity now; lines of waits which the end of a phase has not waited for."""
        if self.number & 1 == parity:
            return []
        told = self.told[self.number]
        late = [where for *who, where in self.waited if not _knows(told, *who)]
        self.another()
        return late

    def another(self) -> None:
        """The next phase is open."""
        self.number += 1
        for known in (self.told, self.near):
            last = known[self.number - 1]
            known[self.number] = dict(last)
            del known[self.number - 3]
        self.waited.clear()

    def passed_by(self, agent: int) -> tuple[Array, Array]:
        """The last phases that lanes of a warp have waited for, and where."""
        if agent not in self.passed:
            self.passed[agent] = np.full(LANES, -2), np.full(LANES, -1)
        return self.passed[agent]


def _knows(told: Mapping[int, Array], cluster: int, number: int, time: int) -> bool:
    row = told.get(cluster)
    return row is not None and int(row[number]) >= time


class Mbarriers:
    """The mbarriers of a launch; each hangs on its CTA. decide: told of lines that decide an order; twice: of a lane
    that waits for a phase for which it has waited before, while the next one is under way: view, lane, mbarrier, and
    the line where it did."""

    def __init__(
        self, decide: Callable[[int, str], None], twice: Callable[[View, int, Cta, int, int], None] | None = None
    ) -> None:
        self._decide, self._twice = decide, twice

    def arrive(self, view: View, what: str, lanes: Array, warp: Warp, told: Known) -> None:
        """Lanes initialise an mbarrier, or arrive there and tell something: nothing to another CTA, if the scope is
        that of their own."""
        for cta, offset in distinct(view, lanes):
            if what.endswith((" init", " inval")):
                cta.state.setdefault(_STATE, {}).pop(offset, None)
                continue
            scope = CLUSTER
            if cta is not view.cta:
                scope = CTA if _of_the_cta(view) else CLUSTER
                self._phases(cta, offset).far[warp.agent] = Message(warp.agent, told, scope, view.op.where)
            if scope == CLUSTER:
                self.tell(cta, offset, told, view.op.where, warp.known, near=cta is view.cta)

    def tell(
        self, cta: Cta, offset: int, told: Known, where: int, known: Known | None = None, *, near: bool = True
    ) -> None:
        """Something arrives at an mbarrier. known: what the thread that arrives knows; near: it is one of the CTA."""
        phases = self._phases(cta, offset)
        if known is not None and not covers(known, phases.told[phases.number - 1]):
            self._decide(where, "an mbarrier")
        for carried in (phases.told, phases.near) if near else (phases.told,):
            carried[phases.number] = merged(carried[phases.number], told)

    def wait(self, view: View, what: str, lanes: Array, warp: Warp) -> None:
        """Lanes go on behind a wait: those whose phase is complete learn what its arrivals told, those of a relaxed one
        with their next fence (9.7.13.15.16): a store before it is not behind what others have read, either. If others
        have run in between, the next phase may have ended already; so the last phase of that parity counts."""
        wanted = view.source(1)
        if not what.endswith("parity"):
            wanted = wanted >> np.uint64(word.PHASE_SHIFT)
        parities, addresses = (wanted[lanes] & wanted.dtype.type(1)).astype(np.int64), view.addresses()[lanes]
        together: dict[tuple[Cta, int, int], Any] = {}
        if (parities == parities[0]).all() and (addresses == addresses[0]).all():
            together = {(cta, offset, int(parities[0])): lanes for cta, offset in distinct(view, lanes)}
        else:
            for lane, cta, offset in each(view, lanes):
                together.setdefault((cta, offset, int(wanted[lane]) & 1), []).append(lane)
        for (cta, offset, parity), some in together.items():
            phases = self._phases(cta, offset)
            back = 1 if phases.number & 1 != parity else 2
            of_the_cta = _of_the_cta(view)
            told = (phases.near if of_the_cta else phases.told)[phases.number - back]
            if view.op.opcode is not None and view.op.opcode.has("relaxed"):
                before = [one for one in warp.heard if one.where == view.op.where]
                for one in before:
                    told = merged(one.told or {}, told)
                message = Message(warp.agent, told, CTA if of_the_cta else CLUSTER, view.op.where)
                warp.heard = [*(one for one in warp.heard if one not in before), message][-MOST_HEARD:]
            else:
                warp.take(told, np.array(some))
            for message in phases.far.values():
                if of_the_cta or message.scope == CTA:
                    warp.missed[message.agent] = message, CTA
            if back == 1:
                self._again(view, np.array(some), cta, offset, phases, warp)
            passed = (warp.cluster, warp.number, warp.time, view.op.where)
            if back == 1 and passed not in phases.waited:
                phases.waited.append(passed)

    def _again(self, view: View, lanes: Array, cta: Cta, offset: int, phases: Phases, warp: Warp) -> None:
        """Lanes have waited for the last phase."""
        found = _WORD.unpack_from(cta.shared, offset)[0]
        numbers, places = phases.passed_by(warp.agent)
        begun = word.pending(found) != word.expected(found) or word.transactions(found) != 0
        if begun and self._twice is not None:
            for lane in lanes[numbers[lanes] == phases.number - 1].tolist():
                self._twice(view, lane, cta, offset, int(places[lane]))
        numbers[lanes], places[lanes] = phases.number - 1, view.op.where

    def _phases(self, cta: Cta, offset: int) -> Phases:
        phases = phases_of(cta, offset)
        for where in phases.begin(word.phase(_WORD.unpack_from(cta.shared, offset)[0])):
            self._decide(where, "a wait")
        return phases


def phases_of(cta: Cta, offset: int) -> Phases:
    """What is known of an mbarrier of a CTA, as of the last time that anybody asked."""
    found: Phases = cta.state.setdefault(_STATE, {}).setdefault(offset, Phases())
    return found


def _of_the_cta(view: View) -> bool:
    """Whether an operation says that its scope is the CTA. Without a scope it counts as one of the cluster: compilers'
    code and libraries leave it out for mbarriers of other CTAs, too."""
    return view.op.opcode is not None and view.op.opcode.has("cta")
