"""What mbarriers carry from thread to thread, phase by phase (9.7.13.15).

Arrivals of a phase, and of those before it, happen before a wait for that phase returns; those of later phases do not,
even if they have come already. A phase that ends, or a thread that arrives, without knowing of the phase before would
come out otherwise in another schedule: that is noted for the verdict.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from ptxtools.program import mbarrier as word

from .clocks import Known, Warp, merged
from .mbarriers import each

if TYPE_CHECKING:
    from ptxtools.machine.events import View
    from ptxtools.machine.residents import Cta

    from .clocks import Array

_STATE = "racecheck's mbarriers"
_WORD = struct.Struct("<Q")


@dataclass(slots=True)
class Phases:
    """One mbarrier: number of the phase that is open; what arrivals up to a phase have told, for the open phase and the
    two before; who has waited for the last one: (cluster, number of the warp in it, its time, line)."""

    number: int = 0
    told: dict[int, Known] = field(default_factory=lambda: {0: {}, -1: {}, -2: {}})
    waited: list[tuple[int, int, int, int]] = field(default_factory=list)

    def begin(self, parity: int) -> list[int]:
        """The word has this parity now; lines of waits which the end of a phase has not waited for."""
        if self.number & 1 == parity:
            return []
        told = self.told[self.number]
        late = [where for *who, where in self.waited if not _knows(told, *who)]
        self.number += 1
        self.told = {self.number: dict(told), self.number - 1: told, self.number - 2: self.told[self.number - 2]}
        self.waited.clear()
        return late


def _knows(told: Mapping[int, Array], cluster: int, number: int, time: int) -> bool:
    row = told.get(cluster)
    return row is not None and int(row[number]) >= time


def covers(known: Mapping[int, Array], told: Mapping[int, Array]) -> bool:
    """Whether a knowledge has all of another one."""
    for cluster, row in told.items():
        mine = known.get(cluster)
        if mine is None:
            return False
        if mine is not row and bool((row > mine).any()):
            return False
    return True


class Mbarriers:
    """The mbarriers of a launch; each hangs on its CTA. decide: told of lines that decide an order."""

    def __init__(self, decide: Callable[[int, str], None]) -> None:
        self._decide = decide

    def arrive(self, view: View, what: str, lanes: Array, warp: Warp, told: Known) -> None:
        """Lanes initialise an mbarrier, or arrive there and tell something."""
        for cta, offset in _places(view, lanes):
            if what.endswith((" init", " inval")):
                cta.state.setdefault(_STATE, {}).pop(offset, None)
            else:
                self.tell(cta, offset, told, view.op.where, warp.known)

    def tell(self, cta: Cta, offset: int, told: Known, where: int, known: Known | None = None) -> None:
        """Something arrives at an mbarrier. known: what the thread that arrives knows."""
        phases = self._phases(cta, offset)
        if known is not None and not covers(known, phases.told[phases.number - 1]):
            self._decide(where, "an mbarrier")
        phases.told[phases.number] = merged(phases.told[phases.number], told)

    def wait(self, view: View, what: str, lanes: Array, warp: Warp) -> None:
        """Lanes go on behind a wait: those whose phase is complete learn what its arrivals told. If others have run in
        between, the next phase may have ended already; so the last phase of that parity counts."""
        wanted = view.source(1)
        if not what.endswith("parity"):
            wanted = wanted >> np.uint64(word.PHASE_SHIFT)
        for lane, cta, offset in each(view, lanes):
            phases = self._phases(cta, offset)
            back = 1 if phases.number & 1 != int(wanted[lane]) & 1 else 2
            warp.take(phases.told[phases.number - back], np.array([lane]))
            passed = (warp.cluster, warp.number, warp.time, view.op.where)
            if back == 1 and passed not in phases.waited:
                phases.waited.append(passed)

    def _phases(self, cta: Cta, offset: int) -> Phases:
        phases: Phases = cta.state.setdefault(_STATE, {}).setdefault(offset, Phases())
        for where in phases.begin(word.phase(_WORD.unpack_from(cta.shared, offset)[0])):
            self._decide(where, "a wait")
        return phases


def _places(view: View, lanes: Array) -> dict[tuple[Cta, int], None]:
    return {(cta, offset): None for _, cta, offset in each(view, lanes)}
