"""racecheck: accesses to the same bytes of shared or global memory that nothing orders (chapter 8).

Two accesses race when neither happens before the other, at least one writes, and they are not both strong with scopes
that include each other (8.6). What happens before what: `clocks`; the last accesses: `race_shadow`; words for reports:
`race_reports`. Lanes of a warp are ordered by bar.warp.sync and whatever orders threads, from sm_70 on. Two stores of
the same value are no race. What asynchronous work accesses counts as accessed by the thread that issues it, as it does
so (`issued`); that the work has come to its end is for asynccheck to see. Other schedules: `race_verdict`.
"""

from __future__ import annotations

import weakref
from contextlib import nullcontext
from functools import partial
from math import prod
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from ptxtools.diagnostics import TrapKind
from ptxtools.machine.filters import ALWAYS
from ptxtools.machine.issued import WARPS
from ptxtools.machine.observers import Access
from ptxtools.program.details import Meeting
from ptxtools.program.mbarrier import describe
from ptxtools.program.operations import MEETINGS, OPERATIONS
from ptxtools.program.program import LANES, OFFSET_MASK, RANK_SHIFT
from ptxtools.records import replace
from ptxtools.sim.asynchronous.signals import signalled

from . import race_copies, race_exits, race_proxies, race_waits
from .clocks import CLUSTER, CTA, GPU, SYS, WEAK, Clocks, Known, Message, Warp, covered, merged
from .mbarriers import distinct
from .race_accesses import (
    Strength,
    changes_words,
    compared,
    failing,
    granules,
    lanes_are_independent,
    overlap,
    scalars_of,
    scope_named,
    stored_bytes,
    strength_of,
    warps_of,
)
from .race_barriers import Barriers
from .race_grids import Before, Begun, action_of, parent_of
from .race_pages import Pages
from .race_phases import Mbarriers
from .race_repeats import AGAIN, Polls, polls, waits
from .race_shadow import Shadow, tensor_places, words_in
from .race_uses import Uses
from .race_verdict import Deciders
from .thread_sync import AFTER

if TYPE_CHECKING:
    from collections.abc import Callable

    from ptxtools.machine.claims import Claim, Span
    from ptxtools.machine.events import View
    from ptxtools.machine.filters import Bounds
    from ptxtools.machine.launch import Launch
    from ptxtools.machine.residents import Cta
    from ptxtools.program.program import Op, Program
    from ptxtools.sim.children import Child, Work
    from ptxtools.sim.device import Grid

    from .session import Session

Array: TypeAlias = npt.NDArray[Any]

_NAME = "racecheck"
#: Under this name a CTA's state has the times at which warps have issued wgmma.
_PRODUCTS = f"{_NAME} products"
_ALL = np.arange(LANES)
#: How mbarriers are used.
MBARRIER = Strength(SYS, 8)
#: Strengths that acquire and that release.
_ACQUIRES, _RELEASES = ("acquire", "acq_rel"), ("release", "acq_rel")


class RaceCheck:
    """Looks at a grid. Shadows of shared memory hang on the CTAs, and end with them."""

    SHARED = f"{_NAME} shared"  # under which the shadow of a CTA's shared memory is kept

    def __init__(self, session: Session, grid: Grid) -> None:
        self._session: Session = weakref.proxy(session)  # which outlives this
        self._global = Shadow()
        self._target = grid.image.target
        self._by_words = grid.program.found(changes_words)
        self._compared = grid.program.found(compared)
        self._deciders = Deciders(self._session, grid.program)
        self._mbarriers = Mbarriers(self._deciders.decide, self._waits_twice)
        self._ignored = grid.program.found(race_waits.ignored)
        self._barriers = Barriers(self._deciders)
        self._uses = Uses(self._session, self._deciders, MBARRIER)
        self._told: dict[int, tuple[Claim, Known]] = {}  # what was known when work was issued, by view
        parent = parent_of(grid)
        before = parent or session.before
        #: Grids that may run beside this one.
        self._beside: list[Before] = [] if before is None else [before]
        self._child = None if parent is None or grid.context.child is None else (parent, grid.context.child)
        if parent is not None:
            self._beside += parent.beside(grid)
        self._begun = Begun(grid.context.places)
        self._polls = Polls(self._session, grid.program)
        self._proxies = race_proxies.Proxies(self._session, grid.program, grid.image.const)

    def grid_begun(self, launch: Launch) -> None:
        """Its shape is known: make the clocks of its warps."""
        per_cta = warps_of(launch)
        self._clocks = Clocks(per_cta, per_cta * prod(launch.cluster))
        lanes_race = lanes_are_independent(self._target)
        self._pages = Pages(self._session, self._deciders, self._clocks, lanes_race=lanes_race)
        self._pages.told = self._proxies.pairs

    @staticmethod
    def concerned(program: Program, device: Any) -> Callable[[Op], bool]:
        """Which events of a program matter: all but those of local memory, and what warps do together but for shuffles
        and votes; beginnings for the ends in clusters."""
        clustered = program.clustered

        def matters(op: Op) -> bool:
            if op.kind == "observe.together":
                return op.opcode is not None and op.opcode.family in MEETINGS and op.opcode.has("sync")
            return clustered if op.kind == "observe.begin" else op.kind != "observe.access" or op.space != "local"

        return matters

    @staticmethod
    def trial(program: Program) -> bool:
        """Whether a grid is first looked at without clocks."""
        from .race_trial import possible

        return possible(program)

    def filter(self, launch: Launch) -> Bounds:
        """Polls that find nothing new."""
        return self._polls.bounds

    def passing(self, op: Op) -> int | None:
        """Likewise of waits for mbarriers; who goes on behind what is no wait has done nothing since it came. Fences
        between proxies order nothing here, but for those of multicast addresses."""
        if waits(op):
            return AGAIN
        if op.kind == "observe.fence" and op.opcode is not None and op.opcode.has("proxy"):
            return None if op.opcode.has("alias") and self._proxies.multicast else ALWAYS
        what = op.detail.what if isinstance(op.detail, Meeting) and op.kind == "observe.leave" else ""
        return ALWAYS if what in ("arrive", "cluster arrive") or what.startswith("mbarrier") else None

    @staticmethod
    def closer(program: Program) -> bool:
        """Whether a grid can be looked at with clocks, but without Python for plain accesses."""
        from .race_clocked import possible

        return possible(program)

    def _warp(self, at: View) -> Warp:
        """The warp of a view."""
        return self._clocks.warp(at.cluster.number, at.cta.rank * self._clocks.per_cta + at.warp)

    # --- synchronisation ----------------------------------------------------------------------------------------------

    def arrive(self, at: View, what: str, lanes: Array) -> None:
        """Lanes come to a barrier: what their warp knows is known to whoever passes it with them."""
        warp = self._warp(at)
        opcode = at.op.opcode
        relaxed = opcode is not None and opcode.has("relaxed")
        if "_wait" not in what:
            self._polls.moved(warp.agent)
        if what.startswith("mbarrier"):
            self._arrive_at_mbarriers(at, what, lanes, warp, relaxed=relaxed)
            return
        for key in self._barriers.keys(at, what, lanes, arriving=True):
            if what == "cluster wait":
                continue
            self._barriers.meet(self._clocks, at, key, warp)
            self._clocks.give(warp, key, (warp.fenced.get(CLUSTER) or {}) if relaxed else None)
            self._clocks.forget((*key[:-1], key[-1] - 2))

    def _arrive_at_mbarriers(self, at: View, what: str, lanes: Array, warp: Warp, *, relaxed: bool) -> None:
        """An mbarrier's init and inval are stores; what else comes must be ordered with them."""
        stores, before = what.endswith((" init", " inval")), self._polls.before(warp)
        addresses = at.shared_places(at.addresses()[lanes])
        access = Access("shared", lanes, addresses, 8, "write" if stores else "read", "")
        # Libraries have one lane invalidate what all have used, after a match or a vote.
        with warp.using_mbarriers(together=what.endswith(" inval")):
            if stores:
                self._shared(at, access, None, Strength(WEAK, 0))
            else:
                judge = partial(self._shared, at, access, None, MBARRIER)
                self._uses.look(at, access, warp, self._pages, lambda owner: owner.state.get(self.SHARED), judge)
        if "_wait" in what:
            self._polls.waited(at, what, warp, lanes, before)
            return
        self._learn_of_products(at, warp)
        told: Known = (warp.fenced.get(CLUSTER) or {}) if relaxed else warp.known
        self._mbarriers.arrive(at, what, lanes, warp, told)
        for cta, offset in distinct(at, lanes):
            self._polls.told(cta, offset)
        warp.tick()

    def _learn_of_products(self, at: View, warp: Warp) -> None:
        """A group of wgmma is complete for the warpgroup as a whole: a warp that has waited for products knows that
        those of the other three have read what they needed."""
        issued = at.cta.state.get(_PRODUCTS, {})
        first = at.warp // WARPS * WARPS
        done = at.issued_by(at.warp).done if issued else 0
        for other in range(first, first + WARPS) if done else ():
            times = issued.get(other, [])[:done]
            if times and other != at.warp:
                row = np.zeros(self._clocks.per_cluster, np.int64)
                row[at.cta.rank * self._clocks.per_cta + other] = times[-1]
                warp.known = merged(warp.known, {warp.cluster: row})

    def _waits_twice(self, at: View, lane: int, cta: Cta, offset: int, before: int) -> None:
        """A lane waits for a phase again: a matter of synccheck."""
        if not self._session.looks(TrapKind.SYNCCHECK):
            return
        state = describe(int.from_bytes(cta.shared[offset : offset + 8], "little"))
        message = f"the thread waits a second time for the last phase of the mbarrier at shared {offset:#x} of {cta}, "
        self._session.report(
            at, lane, TrapKind.SYNCCHECK, f"{message}whose next one is under way: {state}", (at.op.where, "phase"),
            kind="phase-twice", others=(self._session.site(at.launch.program, before, at.cta.place, at.thread(lane)),),
            help="the parity to wait for changes with each phase",
        )  # fmt: skip

    def leave(self, at: View, what: str, lanes: Array) -> None:
        warp = self._warp(at)
        if "_wait" in what:
            if at.op.where in self._ignored:
                return  # nobody knows whether the phase is complete
            before = self._polls.before(warp)
            self._mbarriers.wait(at, what, lanes, warp)
            self._polls.waited(at, what, warp, lanes, before)
            return
        self._polls.moved(warp.agent)
        if what == "warp":
            masks = at.source(0)
            for mask in filter(None, np.unique(masks[lanes]).tolist()):
                warp.meet(np.flatnonzero(mask >> _ALL & 1))
            self._clocks.fence(warp, CTA, lanes)
        elif not what.startswith("mbarrier") and what not in ("arrive", "cluster arrive"):
            for key in self._barriers.keys(at, what, lanes, arriving=False):
                self._clocks.take(warp, key, lanes)
            # Barriers are fences for those that they are for (9.7.13.1).
            self._clocks.fence(warp, CLUSTER if what.startswith("cluster") else CTA, lanes)

    def together(self, at: View, lanes: Array) -> None:
        """Lanes shuffle or vote. That orders no memory; but libraries write behind it what others have read before."""
        warp, masks = self._warp(at), at.source(len(at.op.src) - 1)
        self._polls.moved(warp.agent)
        for mask in np.unique(masks[lanes]).tolist():
            if members := mask & 0xFFFF_FFFF:  # nobody: the instruction traps
                warp.meet_after_reads(np.flatnonzero(members >> _ALL & 1))

    def fence(self, at: View, lanes: Array) -> None:
        opcode, warp = at.op.opcode, self._warp(at)
        self._polls.moved(warp.agent)
        action = action_of(opcode)
        if action:
            self._begun.controlled(action, at, warp, lanes)
        elif opcode is not None and opcode.has("proxy"):
            if opcode.has("alias") and self._proxies.multicast:
                self._clocks.fence_aliases(warp)
        elif opcode is not None and opcode.family == "tcgen05":
            self._clocks.fence_tensor(warp, acquires=opcode.has(AFTER))
        elif opcode is not None:
            if opcode.has("mbarrier_init"):  # of mbarrier.init alone (9.7.13.4)
                warp.begun = dict(warp.known)
                warp.tick()
                return
            acquires, releases = not opcode.has("release"), not opcode.has("acquire")
            self._clocks.fence(warp, scope_named(at, SYS), lanes, acquires=acquires, releases=releases)

    # --- accesses -----------------------------------------------------------------------------------------------------

    def access(self, at: View, access: Access) -> None:
        """Lanes access shared memory, of their CTA or another one of the cluster, or global memory."""
        if access.space not in ("shared", "global"):
            return
        warp, wanted = self._warp(at), self._compared.get(at.op.where)
        if wanted is not None:
            fails = failing(at, access, wanted)
            if fails.any():  # those only read
                self._swaps_nothing(at, access, fails)
                self._polls.moved(warp.agent)
                return
        rows, strength = stored_bytes(at, access), strength_of(at, access, by_words=self._by_words)
        looks = polls(at.op) and not (self._beside and access.space == "global")
        before = self._polls.before(warp) if looks else None
        if access.space == "global":
            self._global_access(at, access, rows, strength)
        else:
            self._shared(at, access, rows, strength)
        if before is None:
            self._polls.moved(warp.agent)
        else:
            self._polls.looked(at, access, warp, before)

    def _swaps_nothing(self, at: View, access: Access, fails: Array) -> None:
        """A compare-and-swap that changes nothing in some lanes."""
        strength = strength_of(at, access, by_words=self._by_words)
        for some, action in ((fails, "read"), (~fails, access.action)):
            if some.any():
                part = replace(access, lanes=access.lanes[some], addresses=access.addresses[some], action=action)
                if access.space == "global":
                    self._global_access(at, part, None, strength)
                else:
                    self._shared(at, part, None, strength)

    def sampled(self, at: View, lanes: Array, addresses: Array, size: int) -> None:
        """Lanes fetch texels from textures."""
        self._global_access(at, Access("global", lanes, addresses, size, "read", ""), None, Strength(WEAK, 0))
        self._polls.moved(self._warp(at).agent)

    def _global_access(self, at: View, access: Access, rows: Array | None, strength: Strength) -> None:
        places = access.addresses.astype(np.int64)
        if self._proxies.wanted:
            who, proxy = (self._clocks, self._warp(at)), race_proxies.proxy_of(at.op)
            self._proxies.look(at, access, who, access.lanes, places, strength, proxy)
        self._access(at, access, None, self._global, access.lanes, places, rows, strength)

    def _shared(self, at: View, access: Access, rows: Array | None, strength: Strength) -> None:
        """The same for shared memory alone."""
        addresses = access.addresses.astype(np.int64)
        ranks = addresses >> RANK_SHIFT
        for rank in np.unique(ranks).tolist():
            if rank >= len(at.cluster.ctas):
                continue  # out of bounds: the access itself will trap
            owner = at.cluster.ctas[rank]
            offsets = addresses & OFFSET_MASK
            mine = (ranks == rank) & (offsets + access.size <= len(owner.shared))
            if mine.any():
                shadow = owner.state.setdefault(self.SHARED, Shadow())
                some = None if rows is None else rows[mine]
                self._access(at, access, owner, shadow, access.lanes[mine], offsets[mine], some, strength)

    def _access(
        self,
        at: View,
        access: Access,
        owner: Cta | None,
        shadow: Shadow,
        lanes: Array,
        places: Array,
        rows: Array | None,
        strength: Strength,
    ) -> None:
        warp, scope = self._warp(at), strength.scope
        if at.op.where in self._compared or (at.op.opcode is not None and at.op.opcode.has("cas")):
            self._pages.swaps.add(at.op.where)
        pieces = shadow.pieces(places, access.size)
        for before in self._beside if owner is None else ():
            before.look(self._session, at, access, warp, lanes, places, rows, strength)
        if scope:
            self._look_ahead(at, access, warp, pieces, lanes)
            self._deciders.together(at, access, owner, places, warp)
        reads = access.action != "write" and (at.op.opcode is None or at.op.opcode.family != "red")  # red is no read
        seen = None
        if scope and reads and shadow.messages:
            seen_before = warp.seen
            self._read_messages(access, warp, strength, shadow, places, lanes)
            if access.writes:  # what an atomic sees orders what comes behind it, not the atomic itself
                seen, warp.seen = warp.seen, seen_before
        step = access.size
        for number, page, inside, bytes_ in pieces:
            who = lanes[bytes_ // step]
            values = granules(rows, bytes_, page.grain)
            self._pages.look(at, access, warp, owner, (number, page), inside, who, values, strength)
        if seen is not None:
            warp.seen = seen
        if at.op.where in self._pages.swaps:
            self._pages.confirm(warp, owner, lanes, places)
        if access.writes:
            self._polls.written(owner, places, access.size)
            self._write_messages(at, access, warp, strength, shadow, places)

    def _look_ahead(self, at: View, access: Access, warp: Warp, pieces: Any, lanes: Array) -> None:
        """Before a strong access learns anything: whether what it finds was ordered before it."""
        for _, page, inside, bytes_ in pieces if self._deciders.asks(at, access) else ():
            if self._pages.late(warp, page.writes, inside, lanes[bytes_ // access.size]).any():
                self._deciders.early(at, access)

    def _read_messages(
        self, access: Access, warp: Warp, strength: Strength, shadow: Shadow, places: Array, lanes: Array
    ) -> None:
        acquire = access.strength in _ACQUIRES
        for extent in scalars_of(places, access.size, strength.unit):
            messages = shadow.told(extent)
            heard = shadow.together(extent, messages) if strength.scope >= GPU else None
            if heard is not None and self._clocks.read_all(warp, heard, strength.scope, lanes, acquire=acquire):
                continue
            for message in messages:
                self._clocks.read(warp, message, strength.scope, lanes, acquire=acquire)

    def _write_messages(
        self, at: View, access: Access, warp: Warp, strength: Strength, shadow: Shadow, places: Array
    ) -> None:
        """A strong store replaces what was told there, but for what its own thread has released there (8.8); an atomic
        adds to it, a weak store ends it."""
        if not strength.scope:
            self._end_messages(shadow, places, access.size)
            return
        told = self._clocks.told_by(warp, strength.scope, at.op.where, release=access.strength in _RELEASES)
        self._add_messages(at, access, warp, strength, shadow, places, told)

    @staticmethod
    def _add_messages(
        at: View, access: Access, warp: Warp, strength: Strength, shadow: Shadow, places: Array, told: list[Message]
    ) -> None:
        scope, messages = strength.scope, shadow.messages
        for extent in scalars_of(places, access.size, strength.unit):
            mine = [replace(message, extent=extent) for message in told]
            renewed = {
                known: replace(known, scope=min(known.scope, scope), where=at.op.where)
                for known in shadow.told(extent) if known.agent == warp.agent and known.told is not None
            }  # fmt: skip
            for word in words_in(extent):
                before = messages.get(word, [])
                if access.action != "atomic":
                    left = (one for one in before if one in renewed or not overlap(one.extent, extent))
                    before = [renewed.get(known, known) for known in left]
                messages[word] = [known for known in before if not any(covered(known, one) for one in mine)] + mine

    @staticmethod
    def _end_messages(shadow: Shadow, places: Array, size: int) -> None:
        """What strong writes have told ends where a weak one writes."""
        if not shadow.messages:
            return
        for place in np.unique(places).tolist():
            extent = place, place + size
            for word in words_in(extent):
                if word in shadow.messages:
                    left = [known for known in shadow.messages[word] if not overlap(known.extent, extent)]
                    shadow.messages[word] = left

    # --- asynchronous work --------------------------------------------------------------------------------------------

    def issued(self, claim: Claim) -> None:
        """Work begins: the copies of cp.async are accesses, lane by lane; of all else the spans are."""
        view = claim.view
        if view.op.kind == "async.copy":
            return
        warp = self._warp(view)
        self._polls.moved(warp.agent)
        lane = -1 if OPERATIONS[view.op.kind].warp else claim.lane
        if view.op.kind == "wgmma.mma_async":
            view.cta.state.setdefault(_PRODUCTS, {}).setdefault(view.warp, []).append(warp.time)
        for span in claim.spans:
            self._span(view, warp, span, lane)
        self._signals(view, warp, claim.lane, [(one.cta, one.offset) for one in signalled(view, claim.lane)])
        self._told[id(view)] = claim, dict(warp.known)
        warp.tick()

    def completed(self, claim: Claim) -> None:
        if self._told.get(id(claim.view), (None,))[0] is claim:
            del self._told[id(claim.view)]

    def _span(self, view: View, warp: Warp, span: Span, lane: int) -> None:
        space = "tensor" if span.tensor else "global" if span.owner is None else "shared"
        if span.owner is None:
            shadow = self._global
        else:
            shadow = span.owner.state.setdefault(self.SHARED if space == "shared" else f"{_NAME} {space}", Shadow())
        action = {"read": "read", "reduce": "write" if span.tensor else "atomic"}.get(span.kind, "write")
        starts, size = tensor_places(span) if span.tensor else span.pieces()
        if not len(starts):
            return
        if span.kind != "read" and not span.tensor:
            self._polls.written(span.owner, starts.astype(np.int64), size)
        access = Access(space, np.array([lane]), starts, size, action, "")
        strength = strength_of(view, access, by_words=self._by_words)
        who, places = np.full(len(starts), lane), starts.astype(np.int64)
        if space == "global" and self._proxies.wanted:
            clocks = self._clocks, warp
            self._proxies.look(view, access, clocks, who, places, strength, race_proxies.ASYNC)
        for before in self._beside if space == "global" else ():
            before.look(self._session, view, access, warp, who, places, None, strength)
        with warp.using_tensor_memory() if span.tensor else nullcontext():
            for number, page, inside, _ in shadow.pieces(starts.astype(np.int64), size):
                lanes = np.full(len(inside), lane)
                self._pages.look(view, access, warp, span.owner, (number, page), inside, lanes, None, strength)

    def _signals(self, view: View, warp: Warp, lane: int, mbarriers: list[tuple[Cta, int]]) -> None:
        """Work uses mbarriers, of other CTAs too: their initialisation must come before."""
        if mbarriers:
            places = np.array([cta.rank << RANK_SHIFT | offset for cta, offset in mbarriers])
            access = Access("shared", np.full(len(places), lane), places, 8, "read", "")
            with warp.using_mbarriers(together=False):
                self._shared(view, access, None, MBARRIER)

    def transacted(self, at: View, cta: Cta, offset: int, size: int) -> None:
        """A copy has brought its bytes: who waits for the mbarrier knows what was known when it was issued."""
        _, told = self._told.get(id(at), (None, self._warp(at).known))
        self._polls.told(cta, offset)
        self._mbarriers.tell(cta, offset, told, at.op.where)

    def signalled(self, at: View, cta: Cta, offset: int) -> None:
        """What tcgen05.commit has waited for is done."""
        warp = self._warp(at)
        self._polls.moved(warp.agent)
        self._polls.told(cta, offset)
        self._signals(at, warp, at.leader, [(cta, offset)])
        self._mbarriers.tell(cta, offset, warp.known, at.op.where, warp.known)
        warp.tick()

    def launched(self, at: View, lane: int, child: Child) -> None:
        """A lane launches a grid, which begins with what is known now."""
        warp = self._warp(at)
        self._polls.moved(warp.agent)
        if not child.tail:
            child.told = self._begun.parent(at, self._clocks, self._global, dict(warp.known))
        warp.tick()

    def queued(self, at: View, lane: int, work: Work) -> None:
        """A lane queues a copy or a fill, which begins with what is known now."""
        warp = self._warp(at)
        self._polls.moved(warp.agent)
        told = {} if work.tail else dict(warp.known)
        race_copies.queued(
            self._session, at, lane, work, self._begun.parent(at, self._clocks, self._global, told), warp
        )
        warp.tick()

    def cta_ended(self, cta: Cta) -> None:
        """A CTA has ended, perhaps before others of its cluster."""
        shadow = cta.state.get(self.SHARED)
        if shadow is not None:
            race_exits.ended(self._session, self._clocks, cta, shadow)

    def written(self, address: int, size: int) -> bool:
        """Whether the grid has written to these bytes of global memory."""
        return self._global.written(address, size)

    def grid_ended(self, launch: Launch) -> None:
        self._pages.end()
        self._session.leave_open(self._deciders.leaves_open)
        if self._child is not None:
            parent, child = self._child
            parent.ended(launch, self._clocks, self._global, child)
        if self._session.is_launched:
            self._begun.leave(self._session.device, launch, self._clocks, self._global)
