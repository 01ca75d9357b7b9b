"""What racecheck knows of barriers of CTAs and clusters: who meets whom, pass by pass."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from ptxtools.program.program import LANES

from .clocks import covers
from .race_accesses import warps_of

if TYPE_CHECKING:
    from ptxtools.machine.events import View

    from .clocks import Array, Clocks, Warp


class Decides(Protocol):
    """Who is told of lines that decide an order."""

    def decide(self, where: int, what: str) -> None: ...


class Barriers:
    """The barriers of a grid."""

    def __init__(self, deciders: Decides) -> None:
        self._deciders = deciders
        self._passes: dict[Any, Array] = {}
        self._open: dict[Any, int] = {}  # number of the pass to which who arrives comes
        self._meetings: dict[Any, set[int]] = {}  # warps that have come to a barrier, by its pass
        self.turned = False  # whether those that left last were the first of their pass

    def meet(self, clocks: Clocks, at: View, key: Any, warp: Warp) -> None:
        """Note who comes to a pass of a barrier: in another schedule another one might, if more come than it is for, or
        if somebody comes who does not know of the pass before."""
        together = self._meetings.setdefault(key, set())
        together.add(warp.agent)
        count = at.source(1) if key[0] == "bar" and at.op.src[1] is not None else None
        if count is not None and (len(together) - 1) * LANES >= int(count[at.leader]):
            self._deciders.decide(at.op.where, "a barrier")
        if not covers(warp.known, clocks.carried((*key[:-1], key[-1] - 1))):
            self._deciders.decide(at.op.where, "a barrier")

    def keys(self, view: View, what: str, lanes: Array, *, arriving: bool) -> set[Any]:
        """What lanes meet at: a pass of a barrier. It is over when the first of those that came to it leaves."""
        cluster = what.startswith("cluster")
        numbers = np.zeros(len(lanes), np.int64) if cluster else view.source(0)[lanes].astype(np.int64)
        keys, self.turned = set(), False
        per_cta = warps_of(view.launch)
        for number in np.unique(numbers).tolist():
            name, passes = self._passes_of(view, what, number)
            first = LANES * (view.cta.rank * per_cta + view.warp if cluster else view.warp)
            mine = first + lanes[numbers == number]
            if arriving and what != "cluster wait":
                passes[mine] = self._open.setdefault(name, 0)
            elif not arriving:
                after = 1 + int(passes[mine].max())
                self.turned |= after > self._open.get(name, 0)
                self._open[name] = max(self._open.get(name, 0), after)
            keys |= {(*name, count) for count in np.unique(passes[mine]).tolist()}
        return keys

    def _passes_of(self, view: View, what: str, number: int) -> tuple[tuple[Any, ...], Array]:
        """The name of a barrier, and to which pass of it each thread has come."""
        per_cta, cluster = warps_of(view.launch), what.startswith("cluster")
        name: tuple[Any, ...] = ("cluster", view.cluster.number)
        if not cluster:
            name = "bar", view.cluster.number, view.cta.rank, number
        threads = LANES * per_cta * (len(view.cluster.ctas) if cluster else 1)
        return name, self._passes.setdefault(name, np.zeros(threads, np.int64))

    def came(self, view: View, what: str, lane: int, first: int, warps: list[tuple[int, int]]) -> Any:
        """Lanes of warps, as masks, have come before to the barrier that a lane comes to now; first: warp of its CTA or
        its cluster. The pass that they are at."""
        name, passes = self._passes_of(view, what, 0 if what.startswith("cluster") else int(view.source(0)[lane]))
        key = (*name, self._open.setdefault(name, 0))
        for warp, mask in warps:
            passes[LANES * (warp - first) : LANES * (warp - first + 1)][mask >> np.arange(LANES) & 1 == 1] = key[-1]
        self._meetings.setdefault(key, set()).update(warp for warp, _ in warps)
        return key
