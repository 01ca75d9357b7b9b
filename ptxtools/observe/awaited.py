"""asynccheck on work that is over: who has been told so.

In one schedule work may end, because its warp waits for it, just before another warp touches its memory, though nothing
orders the two. So a wait is a moment of the warp that waits, and the end of work that an mbarrier tells of one of that
mbarrier; who touches the memory must have been told of that moment, by barriers, mbarriers or strong accesses
(`causality`). The lanes of a warp count as one here, and so do the warps of a warpgroup for its products.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

import numpy as np

from ptxtools.machine.issued import WARPS
from ptxtools.program.details import Groups
from ptxtools.program.operations import AWAITED, COMMITTED
from ptxtools.records import dataclass, field
from ptxtools.sim.asynchronous.signals import signalled

from .abroad import Abroad
from .causality import KNOWN, Causality, mbarrier_key
from .outstanding import Outstanding

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ptxtools.machine.claims import Claim, Span
    from ptxtools.machine.events import View
    from ptxtools.machine.residents import Cta

    from .causality import Clocks, Numbers

_NAME = "asynccheck: work that is over"
#: Claims that are over and remembered, at most, of a launch.
_MOST = 2048
#: Of these, those of CTAs that have ended: each keeps its CTA.
_MOST_ENDED = 64


@dataclass(slots=True)
class _Warp:
    """open, closed: of cp.async ("copy") and bulk groups, by kind and lane; loads, stores: of tensor memory, not waited
    for."""

    open: defaultdict[tuple[str, int], list[Claim]] = field(default_factory=lambda: defaultdict(list))
    closed: defaultdict[tuple[str, int], list[list[Claim]]] = field(default_factory=lambda: defaultdict(list))
    loads: list[Claim] = field(default_factory=list)
    stores: list[Claim] = field(default_factory=list)


@dataclass(slots=True)
class _Work:
    """Of a CTA. warps; piped: work of tcgen05, all that it has begun; products: of a warpgroup, by number, and up to
    which one each warp's waits have been noted."""

    warps: defaultdict[int, _Warp] = field(default_factory=lambda: defaultdict(_Warp))
    piped: list[Claim] = field(default_factory=list)
    products: defaultdict[int, list[tuple[int, Claim]]] = field(default_factory=lambda: defaultdict(list))
    noted: defaultdict[int, int] = field(default_factory=lambda: defaultdict(int))


class Awaited:
    """The work of a launch that is over."""

    def __init__(self) -> None:
        self._told = Causality(_NAME, by_warp=True)
        self._past = Outstanding()
        #: Moments by which work was over: columns of its cluster's clocks, and times; one of them is enough.
        self._moments: dict[Claim, list[tuple[int, int]]] = {}
        self._over: dict[Claim, None] = {}
        #: By view: work that signals mbarriers, and what its warp knew when it began.
        self._signals: dict[int, tuple[list[Claim], Numbers]] = {}
        self._signalled: defaultdict[Any, int] = defaultdict(int)
        self._abroad = Abroad()
        self._ended: list[Claim] = []  # of CTAs that have ended

    # --- who tells whom -----------------------------------------------------------------------------------------------

    def arrive(self, view: View, what: str, lanes: Numbers) -> None:
        """Lanes come to a barrier, or arrive at mbarriers: cp.async.mbarrier.arrive when their copies are over."""
        self._note_products(view)
        self._told.arrive(view, what, lanes)
        if view.op.opcode is not None and view.op.opcode.name.startswith("cp.async.mbarrier.arrive"):
            warp = _work(view).warps[view.warp]
            claims = [
                claim for lane in lanes.tolist()
                for group in (*warp.closed["copy", lane], warp.open["copy", lane]) for claim in group
            ]  # fmt: skip
            for place in np.unique(view.shared_places(view.addresses())[lanes]).tolist():
                self._signal(view, ("mbarrier", place), claims)

    def leave(self, view: View, what: str, lanes: Numbers) -> None:
        """Lanes go on behind one."""
        self._told.leave(view, what, lanes)

    def flags(self, view: View, owner: Cta | None, lanes: Numbers, places: Numbers, action: str) -> None:
        """Strong accesses."""
        self._note_products(view)
        if owner is None:
            clocks, (mine,) = self._clocks_of(view)
            flags = np.unique(places).tolist()
            if action != "write":
                self._abroad.take(view.cluster, flags)
            if action != "read":
                self._abroad.give(view.cluster, clocks.time[KNOWN, mine], flags)
        self._told.flags(view, owner, lanes, places, action)

    # --- work ---------------------------------------------------------------------------------------------------------

    def issued(self, claim: Claim) -> None:
        """Work begins."""
        view, kind = claim.view, claim.view.op.kind
        if kind not in AWAITED:
            return  # it is over when its instruction is
        self._moments[claim] = []
        work = _work(view)
        warp = work.warps[view.warp]
        if kind == "async.copy":
            for lane in view.lanes():
                warp.open["copy", lane].append(claim)
        elif kind == "wgmma.mma_async":
            work.products[view.warp // WARPS].append((view.issued_by(view.warp).issued, claim))
        elif kind == "tcgen05.ld":
            warp.loads.append(claim)
        elif kind == "tcgen05.st":
            warp.stores.append(claim)
        elif kind in COMMITTED:
            work.piped.append(claim)
        elif signals(claim):
            self._begin(claim)
        else:
            warp.open["bulk", claim.lane].append(claim)

    def _begin(self, claim: Claim) -> None:
        """Work that signals an mbarrier begins: who waits for that knows what the warp knows now."""
        view = claim.view
        clocks, (mine,) = self._clocks_of(view)
        if id(view) not in self._signals:
            self._signals[id(view)] = [], clocks.now(np.array([mine]))
        self._signals[id(view)][0].append(claim)

    def completed(self, claim: Claim) -> None:
        """It is over: whether anybody has waited for it or not."""
        if claim not in self._moments:
            return
        self._past.add(claim)
        self._over[claim] = None
        claims, _ = self._signals.get(id(claim.view), ([], None))
        if claims and all(one.over for one in claims):
            del self._signals[id(claim.view)]
        if len(self._over) > _MOST:
            self._forget()

    def transacted(self, view: View, cta: Cta, offset: int) -> None:
        """A copy signals an mbarrier."""
        claims, knew = self._signals.get(id(view), ([], None))
        key = mbarrier_key(cta, offset)
        self._signal(view, key, claims)
        if knew is not None:
            self._told.clocks(view).hand_on(key, knew)

    def signalled(self, view: View, cta: Cta, offset: int) -> None:
        """tcgen05.commit does, for all work of its thread before it (9.7.16.12.1), and what that comes behind
        (9.7.16.5.4.3)."""
        key, lanes, piped = mbarrier_key(cta, offset), set(view.lanes()), _work(view).piped
        own = [n for n, claim in enumerate(piped, 1) if claim.view.warp == view.warp and claim.lane in lanes]
        self._signal(view, key, [claim for claim in piped[: max(own, default=0)] if claim.over])
        clocks, mine = self._clocks_of(view)
        clocks.give(mine, key)

    def _signal(self, view: View, key: Any, claims: list[Claim]) -> None:
        """Who waits for an mbarrier knows that some work is over."""
        clocks = self._told.clocks(view)
        column = clocks.column(key)
        time = self._signalled[view.cluster, key] = self._signalled[view.cluster, key] + 1
        clocks.tell(key, column, time)
        for claim in claims:
            self._moments.get(claim, []).append((column, time))

    def grouped(self, view: View, lanes: Numbers) -> None:
        """Lanes close groups of copies, or have waited for some."""
        groups, warp = view.op.of(Groups), _work(view).warps[view.warp]
        kind = "copy" if view.op.kind == "async.copy.group" else "bulk"
        for lane in lanes.tolist():
            mine = warp.closed[kind, lane]
            if groups.commit or groups.pending in (None, -1):
                mine.append(warp.open.pop((kind, lane), []))
            if groups.pending is None:
                continue
            done = max(0, len(mine) - max(0, groups.pending))
            self._wait(view, [claim for group in mine[:done] for claim in group if claim.reads or not groups.read])
            if not groups.read:
                del mine[:done]

    def tensor_waited(self, view: View, *, stores: bool) -> None:
        """A warp has waited for its loads or stores of tensor memory."""
        warp = _work(view).warps[view.warp]
        mine = warp.stores if stores else warp.loads
        self._wait(view, mine)
        mine.clear()

    def _note_products(self, view: View) -> None:
        """A warp may have waited for products since it was last heard of."""
        work: _Work | None = view.cta.state.get(_NAME)
        if work is None or not work.products:
            return
        done, noted = view.issued_by(view.warp).done, work.noted[view.warp]
        if done > noted:
            products = work.products[view.warp // WARPS]
            self._wait(view, [claim for number, claim in products if noted < number <= done])
            work.noted[view.warp] = done

    def _wait(self, view: View, claims: list[Claim]) -> None:
        clocks, (mine,) = self._clocks_of(view)
        time = int(clocks.time[KNOWN, mine, mine])
        for claim in claims:
            if claim in self._moments:
                self._moments[claim].append((int(mine), time))

    # --- what is asked ------------------------------------------------------------------------------------------------

    def near(self, view: View, owner: Cta | None, tensor: bool, start: int, end: int) -> Iterator[tuple[Claim, Span]]:
        """Spans near some bytes of work that is over, and which the warp has not been told of."""
        if not self._over:
            return
        self._note_products(view)
        clocks, (mine,) = self._clocks_of(view)
        known = clocks.time[KNOWN, mine]
        for claim, span in self._past.near(owner, tensor, start, end):
            other, moments = claim.view.cluster, self._moments[claim]
            if other is view.cluster:
                told = any(known[column] >= time for column, time in moments)
            else:
                told = self._abroad.knows(view.cluster, other, moments)
            if not told:
                yield claim, span

    def _clocks_of(self, view: View) -> tuple[Clocks, Numbers]:
        """Clocks of the cluster, and the number of the warp in them."""
        return self._told.clocks(view), self._told.threads(view, np.zeros(1, np.int64))

    def ended(self, cta: Cta) -> None:
        """A CTA has ended. What its work did to global memory others may still have to be told of."""
        mine = [claim for claim in self._moments if claim.view.cta is cta]
        left = [claim for claim in mine if claim.over and any(span.owner is None for span in claim.spans)]
        self._ended += left
        self._drop([claim for claim in mine if claim not in left])
        self._drop([claim for claim in self._ended[:-_MOST_ENDED] if claim in self._moments])
        del self._ended[:-_MOST_ENDED]

    def _forget(self) -> None:
        """Leave out the older half of what is over."""
        self._drop(list(self._over)[: _MOST // 2])

    def _drop(self, claims: list[Claim]) -> None:
        for claim in claims:
            self._past.remove(claim)
            self._over.pop(claim, None)
            del self._moments[claim]
        for work in {id(claim.view.cta): _work(claim.view) for claim in claims}.values():
            work.piped = [claim for claim in work.piped if claim in self._moments]
            for group, products in work.products.items():
                work.products[group] = [one for one in products if one[1] in self._moments]


def signals(claim: Claim) -> bool:
    """Whether work tells an mbarrier, by itself, that it has completed."""
    return claim.view.op.kind == "clusterlaunchcontrol.try_cancel" or bool(signalled(claim.view, claim.lane))


def _work(view: View) -> _Work:
    found: _Work = view.cta.state.get(_NAME) or view.cta.state.setdefault(_NAME, _Work())
    return found


__all__ = ["Awaited", "signals"]
