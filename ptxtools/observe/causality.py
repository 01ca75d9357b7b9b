"""Who has been told what by whom in a cluster, for asynccheck: vector clocks that barriers, mbarriers and strong
accesses carry from thread to thread. It asks for no fences and no scopes, which are racecheck's."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from ptxtools.program.program import LANES

if TYPE_CHECKING:
    from ptxtools.machine.events import View
    from ptxtools.machine.residents import Cluster, Cta

Numbers: TypeAlias = npt.NDArray[Any]

#: Threads of a cluster up to which each has clocks of its own.
_MOST_THREADS = 2048
#: Addresses of flags and atomics that are told apart; all others carry what anybody knows.
_MOST_FLAGS = 256
#: Planes of the clocks: what a thread knows, and what it knows to be fenced in each space.
KNOWN = 0
FENCED = {"shared": 1, "global": 2}


class Clocks:
    """Clocks of a cluster's threads. time[plane, thread, other]: the other's time up to which the thread knows; behind
    the threads there may be columns of what is no thread (`column`)."""

    def __init__(self, threads: int, grain: int) -> None:
        self.grain = grain
        count = -(-threads // self.grain)
        self.time = np.zeros((3, count, count), np.int32)
        np.fill_diagonal(self.time[KNOWN], 1)
        self.carried: dict[Any, Numbers] = {}
        self._columns: dict[Any, int] = {}

    def column(self, key: Any) -> int:
        """That of something that is no thread."""
        if key not in self._columns:
            self._columns[key] = self.time.shape[2]
            self.time = np.pad(self.time, ((0, 0), (0, 0), (0, 1)))
            self.carried = {one: np.pad(told, ((0, 0), (0, 1))) for one, told in self.carried.items()}
        return self._columns[key]

    def tell(self, key: Any, column: int, time: int) -> None:
        """Let whoever takes from `key` know of a time."""
        known = self.carried.setdefault(key, np.zeros(self.time.shape[::2], np.int32))
        known[KNOWN, column] = max(time, int(known[KNOWN, column]))

    def give(self, threads: Numbers, key: Any) -> None:
        """Let whoever takes from `key` know what these threads know."""
        self.hand_on(key, self.now(threads))

    def now(self, threads: Numbers) -> Numbers:
        """What these threads know together: what they do from now on is no part of it."""
        told: Numbers = self.time[:, threads].max(axis=1)
        self._tick(threads)
        return told

    def hand_on(self, key: Any, knew: Numbers) -> None:
        """Let whoever takes from `key` know what threads knew once (`now`)."""
        known = self.carried.setdefault(key, np.zeros(self.time.shape[::2], np.int32))
        np.maximum(known[:, : len(knew[0])], knew, out=known[:, : len(knew[0])])

    def take(self, threads: Numbers, key: Any) -> None:
        known = self.carried.get(key)
        if known is not None:
            self.time[:, threads] = np.maximum(self.time[:, threads], known[:, None])

    def join(self, threads: Numbers, members: Numbers) -> None:
        """Members of a warp have met: these threads know what all of them know."""
        told = self.time[:, members].max(axis=1)
        self.time[:, threads] = np.maximum(self.time[:, threads], told[:, None])
        self._tick(members)

    def fence(self, threads: Numbers, spaces: Iterable[str]) -> None:
        """All that these threads know of is fenced."""
        for space in spaces:
            self.time[FENCED[space], threads] = self.time[KNOWN, threads]
        self._tick(threads)

    def _tick(self, threads: Numbers) -> None:
        self.time[KNOWN, threads, threads] += 1


class Causality:
    """Of the clusters of a launch. name: under which their clocks are kept; by_warp: a warp has one clock for all of
    its lanes, as it has in clusters of very many threads in any case."""

    def __init__(self, name: str, *, by_warp: bool = False) -> None:
        self._name, self._by_warp = name, by_warp

    def arrive(self, view: View, what: str, lanes: Numbers) -> None:
        """Lanes come to a barrier, or arrive at mbarriers."""
        if what not in ("cluster wait", "warp") and "_wait" not in what:
            for key, some in _keys(view, what, lanes):
                self.clocks(view).give(self.threads(view, some), key)

    def leave(self, view: View, what: str, lanes: Numbers) -> None:
        """Lanes go on behind a barrier, or have waited for mbarriers, or met as a warp."""
        clocks = self.clocks(view)
        if what == "warp":
            for mask in np.unique(view.source(0)[lanes]).tolist():
                members = self.threads(view, np.flatnonzero(mask >> np.arange(LANES) & 1))
                clocks.join(self.threads(view, lanes[view.source(0)[lanes] == mask]), members)
        elif what in ("bar", "cluster wait") or "_wait" in what:
            for key, some in _keys(view, what, lanes):
                clocks.take(self.threads(view, some), key)

    def flags(self, view: View, owner: Cta | None, lanes: Numbers, places: Numbers, action: str) -> None:
        """Strong accesses, by which threads may tell one another (8.7, 8.8)."""
        clocks = self.clocks(view)
        for place in np.unique(places).tolist():
            key = ("flag", None if owner is None else owner.rank, place)
            if key not in clocks.carried and len(clocks.carried) >= _MOST_FLAGS:
                key = ("flags", None, 0)
            threads = self.threads(view, lanes[places == place])
            if action != "write":
                clocks.take(threads, key)
            if action != "read":
                clocks.give(threads, key)

    def clocks(self, view: View) -> Clocks:
        cluster: Cluster = view.cluster
        if self._name not in cluster.state:
            threads = _padded(view) * len(cluster.ctas)
            cluster.state[self._name] = Clocks(threads, LANES if self._by_warp or threads > _MOST_THREADS else 1)
        clocks: Clocks = cluster.state[self._name]
        return clocks

    def threads(self, view: View, lanes: Numbers) -> Numbers:
        """Numbers of lanes of the warp among the cluster's threads, or of the warp where it has one clock."""
        clocks = self.clocks(view)
        first = view.cta.rank * _padded(view) + view.warp * LANES
        if clocks.grain == 1:
            return first + lanes
        return np.full(len(lanes), first // LANES)


def mbarrier_key(cta: Cta, offset: int) -> tuple[str, int]:
    """Of an mbarrier, among what threads meet at."""
    return "mbarrier", cta.window + offset


def _padded(view: View) -> int:
    """Threads of a CTA, in whole warps."""
    x, y, z = view.launch.block
    return -(-x * y * z // LANES) * LANES


def _keys(view: View, what: str, lanes: Numbers) -> Iterator[tuple[Any, Numbers]]:
    """What lanes meet at, and which of them."""
    if what.startswith("cluster"):
        yield ("cluster",), lanes
        return
    mbarriers = what.startswith("mbarrier")
    numbers = (view.shared_places(view.addresses()) if mbarriers else view.source(0))[lanes]
    for number in np.unique(numbers).tolist():
        some = lanes[numbers == number]
        yield (("mbarrier", number) if mbarriers else ("bar", view.cta.rank, number)), some


__all__ = ["FENCED", "KNOWN", "Causality", "Clocks", "mbarrier_key"]
