"""Which generic stores the asynchronous proxy may read (8.6, 8.9.5): those with a fence.proxy.async behind them.

A fence counts for a store if it lies on a path of causality from the store to the asynchronous operation: the thread
that runs the fence has stored itself, or was told by barriers, mbarriers or strong accesses, and the thread that starts
the operation was told of the fence in the same way; so is who waits for an mbarrier that a copy signals, of what the
copy's thread knew when it began that. So every thread has vector clocks (`causality`): what it knows of the others'
stores, and which of them are fenced as far as it knows. In clusters of very many threads a warp has one for all of its
lanes. Between clusters any later fence counts.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from ptxtools.machine.claims import WORD
from ptxtools.machine.residents import Cta

from .causality import FENCED, KNOWN, Causality, mbarrier_key

if TYPE_CHECKING:
    from ptxtools.machine.claims import Claim
    from ptxtools.machine.events import View

Numbers: TypeAlias = npt.NDArray[Any]

_NAME = "proxies"
_PAGE = 1024


class Stores:
    """The last generic store to each 4-byte word of some memory. place: in the program, + 1, 0: none; thread, time: of
    its cluster's clocks; cluster; order: among all stores and fences of the launch."""

    __slots__ = ("cluster", "order", "place", "thread", "time")

    def __init__(self, words: int) -> None:
        self.place, self.thread, self.time, self.cluster = (np.zeros(words, np.int32) for _ in range(4))
        self.order = np.zeros(words, np.int64)


class Proxies(Causality):
    """What generic stores wrote in a launch, and what fences have made of it."""

    def __init__(self) -> None:
        super().__init__(_NAME)
        self._order = 0
        self._last_fence = 0
        self._pages: dict[int, Stores] = {}  # of global memory, by number
        #: By view: work that signals mbarriers and has not completed, and what its threads knew when it began.
        self._signals: dict[int, tuple[set[Claim], Numbers]] = {}

    # --- what happens -------------------------------------------------------------------------------------------------

    def fence(self, view: View, lanes: Numbers, spaces: Collection[str]) -> None:
        """fence.proxy.async of these spaces (9.7.13.4)."""
        self.clocks(view).fence(self.threads(view, lanes), spaces)
        self._order += 1
        if "global" in spaces:
            self._last_fence = self._order

    def store(self, view: View, owner: Cta | None, lanes: Numbers, places: Numbers, size: int) -> None:
        """Generic stores of `size` bytes each to shared memory of a CTA or to global memory (None)."""
        threads, clocks = self.threads(view, lanes), self.clocks(view)
        times = clocks.time[KNOWN, threads, threads]
        self._order += 1
        for part in range(0, size, WORD):
            words = (places + part) // WORD
            for stores, inside, mine in self._stores(owner, words):
                stores.place[inside] = view.op.where + 1
                stores.thread[inside], stores.time[inside] = threads[mine], times[mine]
                stores.cluster[inside], stores.order[inside] = view.cluster.number, self._order

    def issued(self, claim: Claim) -> None:
        """Work begins that signals mbarriers: who waits for them knows what its thread knows now."""
        view = claim.view
        knows = self.clocks(view).now(self.threads(view, np.array([claim.lane])))
        claims, knew = self._signals.get(id(view), (set(), knows))
        self._signals[id(view)] = {*claims, claim}, np.maximum(knew, knows)

    def completed(self, claim: Claim) -> None:
        """Work is over."""
        claims, _ = self._signals.get(id(claim.view), (None, None))
        if claims is not None:
            claims.discard(claim)
            if not claims:
                del self._signals[id(claim.view)]

    def transacted(self, view: View, cta: Cta, offset: int) -> None:
        """A copy signals an mbarrier."""
        if id(view) in self._signals:
            _, knew = self._signals[id(view)]
            self.clocks(view).hand_on(mbarrier_key(cta, offset), knew)

    def signalled(self, view: View, cta: Cta, offset: int) -> None:
        """tcgen05.commit does, for what its thread knows."""
        self.clocks(view).give(self.threads(view, np.array(list(view.lanes()))), mbarrier_key(cta, offset))

    # --- what is asked ------------------------------------------------------------------------------------------------

    def unfenced(self, view: View, lane: int, owner: Cta | None, words: Numbers) -> int | None:
        """Place in the program of a store to one of the words that the asynchronous proxy may not see yet."""
        clocks, thread = self.clocks(view), self.threads(view, np.array([lane]))[0]
        fenced = clocks.time[FENCED["global" if owner is None else "shared"], thread]
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
        return bool(self.clocks(view).time[1:].any())

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
