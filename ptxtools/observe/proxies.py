"""Which generic stores the asynchronous proxy may read (8.6, 8.9.5): those with a fence.proxy.async behind them.

A fence counts for a store if it lies on a path of causality from the store to the asynchronous operation: the thread
that runs the fence has stored itself, or was told by barriers, mbarriers or strong accesses, and the thread that starts
the operation was told of the fence in the same way. So every thread has vector clocks: what it knows of the others'
stores, and which of them are fenced as far as it knows. In clusters of very many threads a warp has one for all of its
lanes. Between clusters any later fence counts.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from ptxtools.machine.claims import WORD
from ptxtools.machine.residents import Cluster, Cta
from ptxtools.program.program import LANES

if TYPE_CHECKING:
    from ptxtools.machine.events import View

Numbers: TypeAlias = npt.NDArray[Any]

_NAME = "proxies"
#: Threads of a cluster up to which each has clocks of its own.
_MOST_THREADS = 2048
#: Addresses of flags and atomics that are told apart; all others carry what anybody knows.
_MOST_FLAGS = 256
#: Planes of the clocks: what a thread knows, and what it knows to be fenced in each space.
_KNOWN = 0
_FENCED = {"shared": 1, "global": 2}
_PAGE = 1024


class Clocks:
    """Clocks of a cluster's threads. time[plane, thread, other]: the other's time up to which the thread knows."""

    def __init__(self, threads: int) -> None:
        self.grain = 1 if threads <= _MOST_THREADS else LANES
        count = -(-threads // self.grain)
        self.time = np.zeros((3, count, count), np.int32)
        np.fill_diagonal(self.time[_KNOWN], 1)
        self.carried: dict[Any, Numbers] = {}

    def give(self, threads: Numbers, key: Any) -> None:
        """Let whoever takes from `key` know what these threads know."""
        told = self.time[:, threads].max(axis=1)
        known = self.carried.get(key)
        self.carried[key] = told if known is None else np.maximum(known, told)
        self._tick(threads)

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
            self.time[_FENCED[space], threads] = self.time[_KNOWN, threads]
        self._tick(threads)

    def _tick(self, threads: Numbers) -> None:
        self.time[_KNOWN, threads, threads] += 1


class Stores:
    """The last generic store to each 4-byte word of some memory. place: in the program, + 1, 0: none; thread, time: of
    its cluster's clocks; cluster; order: among all stores and fences of the launch."""

    __slots__ = ("cluster", "order", "place", "thread", "time")

    def __init__(self, words: int) -> None:
        self.place, self.thread, self.time, self.cluster = (np.zeros(words, np.int32) for _ in range(4))
        self.order = np.zeros(words, np.int64)


class Proxies:
    """What generic stores wrote in a launch, and what fences have made of it."""

    def __init__(self) -> None:
        self._order = 0
        self._last_fence = 0
        self._pages: dict[int, Stores] = {}  # of global memory, by number

    # --- what happens -------------------------------------------------------------------------------------------------

    def arrive(self, view: View, what: str, lanes: Numbers) -> None:
        """Lanes come to a barrier, or arrive at mbarriers."""
        if what not in ("cluster wait", "warp") and "_wait" not in what:
            for key, some in _keys(view, what, lanes):
                _clocks(view).give(_threads(view, some), key)

    def leave(self, view: View, what: str, lanes: Numbers) -> None:
        """Lanes go on behind a barrier, or have waited for mbarriers, or met as a warp."""
        clocks = _clocks(view)
        if what == "warp":
            for mask in np.unique(view.source(0)[lanes]).tolist():
                members = _threads(view, np.flatnonzero(mask >> np.arange(LANES) & 1))
                clocks.join(_threads(view, lanes[view.source(0)[lanes] == mask]), members)
        elif what in ("bar", "cluster wait") or "_wait" in what:
            for key, some in _keys(view, what, lanes):
                clocks.take(_threads(view, some), key)

    def flags(self, view: View, owner: Cta | None, lanes: Numbers, places: Numbers, action: str) -> None:
        """Strong accesses, which threads may tell one another of their stores by (8.7, 8.8)."""
        clocks = _clocks(view)
        for place in np.unique(places).tolist():
            key = ("flag", None if owner is None else owner.rank, place)
            if key not in clocks.carried and len(clocks.carried) >= _MOST_FLAGS:
                key = ("flags", None, 0)
            threads = _threads(view, lanes[places == place])
            if action != "write":
                clocks.take(threads, key)
            if action != "read":
                clocks.give(threads, key)

    def fence(self, view: View, lanes: Numbers, spaces: Collection[str]) -> None:
        """fence.proxy.async of these spaces (9.7.13.4)."""
        _clocks(view).fence(_threads(view, lanes), spaces)
        self._order += 1
        if "global" in spaces:
            self._last_fence = self._order

    def store(self, view: View, owner: Cta | None, lanes: Numbers, places: Numbers, size: int) -> None:
        """Generic stores of `size` bytes each to shared memory of a CTA or to global memory (None)."""
        threads, clocks = _threads(view, lanes), _clocks(view)
        times = clocks.time[_KNOWN, threads, threads]
        self._order += 1
        for part in range(0, size, WORD):
            words = (places + part) // WORD
            for stores, inside, mine in self._stores(owner, words):
                stores.place[inside] = view.op.where + 1
                stores.thread[inside], stores.time[inside] = threads[mine], times[mine]
                stores.cluster[inside], stores.order[inside] = view.cluster.number, self._order

    # --- what is asked ------------------------------------------------------------------------------------------------

    def unfenced(self, view: View, lane: int, owner: Cta | None, words: Numbers) -> int | None:
        """Place in the program of a store to one of the words that the asynchronous proxy may not see yet."""
        clocks, thread = _clocks(view), _threads(view, np.array([lane]))[0]
        fenced = clocks.time[_FENCED["global" if owner is None else "shared"], thread]
        for stores, inside, _ in self._stores(owner, words, make=False):
            near = stores.cluster[inside] == view.cluster.number
            known = fenced[np.where(near, stores.thread[inside], 0)]
            seen = np.where(near, stores.time[inside] <= known, stores.order[inside] < self._last_fence)
            found = np.flatnonzero((stores.place[inside] > 0) & ~seen)
            if len(found):
                return int(stores.place[inside][found[0]]) - 1
        return None

    def fenced_at_all(self, view: View) -> bool:
        """Whether any thread of the cluster has run a fence."""
        return bool(_clocks(view).time[1:].any())

    def _stores(
        self, owner: Cta | None, words: Numbers, *, make: bool = True
    ) -> Iterator[tuple[Stores, Numbers, Numbers]]:
        """Pieces of memory that words are in: their numbers in it, and which of the words they are."""
        if owner is not None:
            stores = owner.state.get(_NAME)
            if stores is None:
                stores = owner.state[_NAME] = Stores(-(-len(owner.shared) // WORD))
            mine = np.flatnonzero(words < len(stores.place))
            yield stores, words[mine], mine
            return
        pages = words // _PAGE
        for page in np.unique(pages).tolist():
            if page not in self._pages:
                if not make:
                    continue
                self._pages[page] = Stores(_PAGE)
            mine = np.flatnonzero(pages == page)
            yield self._pages[page], words[mine] % _PAGE, mine


# --- threads ----------------------------------------------------------------------------------------------------------


def _padded(view: View) -> int:
    """Threads of a CTA, in whole warps."""
    x, y, z = view.launch.block
    return -(-x * y * z // LANES) * LANES


def _clocks(view: View) -> Clocks:
    cluster: Cluster = view.cluster
    if _NAME not in cluster.state:
        cluster.state[_NAME] = Clocks(_padded(view) * len(cluster.ctas))
    clocks: Clocks = cluster.state[_NAME]
    return clocks


def _threads(view: View, lanes: Numbers) -> Numbers:
    """Numbers of lanes of the warp among the cluster's threads, or of the warp where it has one clock."""
    clocks = _clocks(view)
    first = view.cta.rank * _padded(view) + view.warp * LANES
    if clocks.grain == 1:
        return first + lanes
    return np.full(len(lanes), first // LANES)


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
