"""racecheck's second look at a grid: clocks in Python, accesses in native code.

What orders threads, and strong accesses, `RaceCheck` judges as always, but for barriers of the CTA and the cluster at
which all threads of warps come (`race_joins`). Of plain accesses the native engine keeps when
each piece of memory was last written and read (`machine.filters.Bounds.clocks`), and passes those whose warp knows of
what they may not come beside; copies and products are looked at in the same words here. What strong accesses, mbarriers
and atomics touch is guarded from then on: Python is told of every access to it, and what plain accesses were there
before is taken over into the shadow. Whatever is not plainly right raises `Doubt`: then the grid runs again from the
beginning, and `RaceCheck` alone judges.
"""

from __future__ import annotations

from contextlib import contextmanager
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from ptxtools.machine.clocks import Clocks as Tables
from ptxtools.machine.filters import (
    ALWAYS,
    COMES,
    EVERYWHERE,
    INITIALISED,
    JOINS,
    NAMED,
    NOBODY,
    PHASES,
    SEVERAL,
    WHOLE,
    Bounds,
    stretches,
)
from ptxtools.machine.observers import Doubt
from ptxtools.machine.residents import OWNERS_HEAD
from ptxtools.program.details import Look, Meeting
from ptxtools.program.operations import (
    EVENT,
    FETCHES,
    OPERATIONS,
    SERVED,
    strength,
)
from ptxtools.program.program import OFFSET_MASK, RANK_SHIFT
from ptxtools.records import replace
from ptxtools.sim.tensor.wgmma_reads import multiplies

from .mbarriers import distinct
from .members import only_plain, threads_of
from .race_accesses import Strength, looks_of, piece_of
from .race_flags import Flags
from .race_grids import action_of, lets_begin
from .race_guess import ReadOnly
from .race_phased import Phased
from .race_proxies import GENERIC, proxy_of
from .race_repeats import AGAIN, polls, waits
from .race_shadow import WORD, Shadow
from .race_words import Words
from .racecheck import MBARRIER, RaceCheck

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ptxtools.machine.claims import Claim, Span
    from ptxtools.machine.events import View
    from ptxtools.machine.launch import Launch
    from ptxtools.machine.observers import Access, Array
    from ptxtools.machine.residents import Cta
    from ptxtools.program.program import Op, Program
    from ptxtools.sim.children import Child, Work
    from ptxtools.sim.device import Grid

    from .clocks import Warp
    from .session import Session

#: Barriers, by what lanes leave; where they meet.
_MEETS = {"bar": "bar", "cluster wait": "cluster"}
_MET = ("bar", "cluster arrive")
#: The most warps that know of each other.
_MOST_WARPS = 2048
_NOBODY = None, None


def possible(program: Program) -> bool:
    """Whether all that Python serves leaves nothing beside memory, and all accesses to it are looked at."""
    return all(map(_plain, program.operations())) and not lets_begin(program)


def _multiplies(program: Program) -> bool:
    """Whether a program has products of warpgroups, of which warps learn as they arrive."""
    return any(map(multiplies, program.operations()))


def _plain(op: Op) -> bool:
    served = OPERATIONS[op.kind].runs == EVENT and not op.kind.startswith("observe.")
    known = not served or op.kind in SERVED
    return known and op.kind not in FETCHES and action_of(op.opcode) != "launch_dependents"


class RaceClocked(RaceCheck):
    """owners: bytes of shared memory for each word of 4 bytes beside it."""

    owners = 1

    def __init__(self, session: Session, grid: Grid) -> None:
        super().__init__(session, grid)
        self._read_only = ReadOnly(grid.program)
        self._constants = grid.image.const
        if self._proxies.wanted and not (self._read_only.open and self._proxies.reading):
            raise Doubt  # which proxies touch what is noted access by access
        looks = grid.program.found(looks_of)
        self._pieces = max(2, piece_of(looks, "global") or WORD), max(2, piece_of(looks, "shared") or WORD)
        arena = session.device.arena
        self._memory = arena.base, arena.base + arena.used
        self._plain: Array = np.zeros((arena.used // self._pieces[0] + 1, 2), np.uint32)
        self._told_before = session.told
        self._whole = grid.program.found(only_plain)
        self._program, self._multiplies = grid.program, grid.program.found(_multiplies)
        self._using = False  # mbarriers, as they are meant to be
        self._accessing: tuple[View | None, Warp | None] = _NOBODY  # whose event is looked at, and has been met
        self._guarded: set[tuple[int, int]] = set()  # single accesses to global memory that is guarded
        self._clustered = prod(grid.request.cluster or (1,)) > 1 or grid.program.clustered

    def grid_begun(self, launch: Launch) -> None:
        super().grid_begun(launch)
        warps = prod(launch.grid) * self._clocks.per_cta
        if warps > _MOST_WARPS:
            raise Doubt
        tables = Tables(warps, self._clocks.per_cta, prod(launch.cluster), self._pieces[1])
        self._words = Words(self._clocks, tables, prod(launch.block), independent=self._pages.lanes_race)
        self._flags = Flags(
            (self._clocks, self._words, tables), self._deciders, self._pages, self._polls, self._global,
            self._add_messages, possible=not (self._beside or self._proxies.wanted or self._child),
        )  # fmt: skip
        self._mbarriers = self._phased = Phased(
            self._deciders.decide, self._waits_twice, (self._clocks, tables), self._pages, self._program, MBARRIER,
            self._words_of_mbarrier, self._polls.told,
        )  # fmt: skip

    def filter(self, launch: Launch) -> Bounds:
        shared = launch.program.static_shared + launch.dynamic_shared
        self._read_only.make(launch, self._session.device.arena.live(), self._constants)
        read, written = self._read_only.rows(self._memory, self._words_of)
        known = {"global": written, "shared": stretches([(0, shared)]), "local": EVERYWHERE}
        return replace(
            self._polls.bounds, reads={**known, "global": read}, writes=known, asks=_asked, owners=self._pieces,
            clocks=self._words.tables, sort=_beside,
        )  # fmt: skip

    def _words_of(self, address: int) -> int:
        """Where the two words of a byte are, the first of its piece."""
        first: int = self._plain.__array_interface__["data"][0]
        return first + 2 * WORD * ((address - self._memory[0]) // self._pieces[0])

    def _words_of_mbarrier(self, cta: Cta, offset: int) -> tuple[Array, Array]:
        words, index = self._of(cta, np.array([offset]), MBARRIER.unit)
        return words, index[0]

    def passing(self, op: Op) -> int | None:
        """Whole warps meet natively at barriers that are for all. Epochs are counted, for others who look. Waits for
        mbarriers are looked at when they are over, natively where nothing is to be said, as arrivals are."""
        if op.kind == "observe.arrive" and waits(op):
            return ALWAYS
        what = op.detail.what if isinstance(op.detail, Meeting) else ""
        natively = what.startswith("mbarrier") and (op.opcode is None or not op.opcode.has("relaxed"))
        natively = natively and op.where not in self._ignored
        if natively and waits(op):
            return AGAIN | PHASES
        if natively and op.kind == "observe.arrive" and not what.endswith((" init", " inval")) and not self._multiplies:
            return INITIALISED | PHASES
        if op.kind == "observe.arrive" and what == "bar" and op.src[1] is None:
            return COMES | (JOINS if self._whole else NOBODY)
        if what == "cluster wait" or (what == "bar" and self._whole):
            return JOINS
        if what == "warp":
            return WHOLE | NAMED | JOINS
        if op.kind == "observe.arrive" and what == "cluster arrive":
            return None if op.opcode is None or op.opcode.has("relaxed") else JOINS
        return super().passing(op)

    # --- what is told -------------------------------------------------------------------------------------------------

    def _warp(self, at: View) -> Warp:
        if at is self._accessing[0] and self._accessing[1] is not None:
            return self._accessing[1]
        warp = self._meet(at)
        self._flags.settle(warp)
        return warp

    def _meet(self, at: View) -> Warp:
        """The warp of a view, which may have heard more at flags."""
        warp = super()._warp(at)
        if self._words.meet(at, warp):
            self._polls.moved(warp.agent)
        return warp

    def _done(self, at: View) -> None:
        """Behind an event: what the warp knows now, native code knows, too."""
        if self._session.told != self._told_before:
            raise Doubt
        self._words.publish(at, self._warp(at))

    def arrive(self, at: View, what: str, lanes: Array) -> None:
        if what in _MET:
            self._hand_over(at, what, lanes)
        if what != "mbarrier init" or not self._begins(at, lanes):
            super().arrive(at, what, lanes)
        self._done(at)

    def _begins(self, at: View, lanes: Array) -> bool:
        """A lane initialises an mbarrier: whether nobody has accessed that memory before."""
        mbarriers = distinct(at, lanes)
        if len(lanes) > 1 or len(mbarriers) != 1 or not self._deciders.calm:
            return False
        ((cta, offset),), lane, warp = mbarriers, int(lanes[0]), self._warp(at)
        shadow = cta.state.setdefault(self.SHARED, Shadow())
        if not self._phased.begin_first(cta, offset, shadow, (warp, lane, at.op.where)):
            return False
        self._polls.moved(warp.agent)
        warp.tick()
        return True

    def _arrive_at_mbarriers(self, at: View, what: str, lanes: Array, warp: Warp, *, relaxed: bool) -> None:
        stores, mbarriers = what.endswith((" init", " inval")), distinct(at, lanes)
        for cta, offset in mbarriers:
            (self._phased.drop if stores else self._phased.pull)(cta, offset)
        with self._using_mbarriers():
            super()._arrive_at_mbarriers(at, what, lanes, warp, relaxed=relaxed)
        for cta, offset in mbarriers if what.endswith(" init") else ():
            self._phased.begin(cta, offset, cta.state[self.SHARED])

    def _signals(self, view: View, warp: Warp, lane: int, mbarriers: list[tuple[Cta, int]]) -> None:
        for cta, offset in mbarriers:
            self._phased.pull(cta, offset)
        with self._using_mbarriers():
            super()._signals(view, warp, lane, mbarriers)

    @contextmanager
    def _using_mbarriers(self) -> Iterator[None]:
        """Meanwhile accesses to mbarriers are what these are for."""
        self._using = True
        yield
        self._using = False

    def _hand_over(self, at: View, what: str, lanes: Array) -> None:
        """What warps have told that have come natively to the same barrier."""
        self._warp(at)
        natives, told = self._words.joins.comes(at, what)
        if natives:
            first = (at.cta.number if what == "bar" else at.cluster.ctas[0].number) * self._clocks.per_cta
            for number, _ in natives:
                if self._words.learn(number):
                    self._polls.moved(number)
            self._clocks.carry(self._barriers.came(at, what, int(lanes[0]), first, natives), told)

    def leave(self, at: View, what: str, lanes: Array) -> None:
        barrier = _MEETS.get(what)
        if waits(at.op):
            super().arrive(at, what, lanes)  # which its lanes did with nothing but the wait between
        if barrier is None or not self._words.joins.left(at, barrier, whole=len(lanes) == threads_of(at)):
            super().leave(at, what, lanes)
            if barrier is not None and self._barriers.turned:
                self._words.joins.turned(at, barrier)
        self._done(at)

    def together(self, at: View, lanes: Array) -> None:
        super().together(at, lanes)
        self._done(at)

    def fence(self, at: View, lanes: Array) -> None:
        warp = self._meet(at)
        self._flags.fence(at, warp, lanes)
        self._flags.settle(warp)
        self._accessing = at, warp
        super().fence(at, lanes)
        self._done(at)
        self._flags.fenced(warp)
        self._accessing = _NOBODY

    def transacted(self, at: View, cta: Cta, offset: int, size: int) -> None:
        super().transacted(at, cta, offset, size)
        self._done(at)

    def signalled(self, at: View, cta: Cta, offset: int) -> None:
        super().signalled(at, cta, offset)
        self._done(at)

    def issued(self, claim: Claim) -> None:
        super().issued(claim)
        self._done(claim.view)

    def fetched(self, at: View, access: Access) -> None:
        self.access(at, access)

    # --- accesses -----------------------------------------------------------------------------------------------------

    def access(self, at: View, access: Access) -> None:
        if access.space not in ("shared", "global"):
            return
        if access.space == "global" and self._passes(at, access):
            return
        strong = access.strength or access.action == "atomic"
        told = strong and access.space == "global"
        if told and (self._flags.passes_again(at, access) or self._flags.passes(at, access, self._meet(at))):
            return
        self._accessing = at, self._warp(at)
        if strong:
            if access.space == "global":
                self._guard(None, access.addresses.astype(np.int64), access.size)
            super().access(at, access)
        else:
            for owner, mine in _owners(at, access):
                self._weak(at, access, owner, mine)
        self._done(at)
        if told:
            self._flags.consider(at, access)
        self._accessing = _NOBODY

    def _passes(self, at: View, access: Access) -> bool:
        """Whether an access to global memory is one through another proxy to what nobody writes."""
        self._read_only.check(access)
        if proxy_of(at.op) == GENERIC:
            return False
        if not self._read_only.holds(access):
            raise Doubt
        return True

    def _weak(self, at: View, access: Access, owner: Cta | None, mine: Array) -> None:
        """Lanes make plain accesses to global memory, or to shared memory of a CTA."""
        lanes, places = access.lanes[mine], access.addresses.astype(np.int64)[mine]
        if owner is not None:
            places &= OFFSET_MASK
            if int(places.max()) + access.size > len(owner.shared):
                raise Doubt
        words, index = self._of(owner, places, access.size)
        guarded: Array = np.any(self._words.guarded(words, index), axis=1)
        if access.writes and len(np.unique(index[:, 0])) < len(lanes):
            guarded[:] = True  # lanes write the same piece, perhaps the same value
        warp = self._warp(at)
        if guarded.any():
            part = replace(access, lanes=lanes[guarded], addresses=access.addresses[mine][guarded])
            self._guard(owner, places[guarded], access.size)
            super().access(at, part)
            index, lanes = index[~guarded], lanes[~guarded]
        if len(lanes):
            self._polls.moved(warp.agent)
            who = np.broadcast_to(lanes[:, None], index.shape)
            self._words.touch(at, words, index.ravel(), who.ravel(), writes=access.writes)

    def _shared(self, at: View, access: Access, rows: Array | None, strength: Strength) -> None:
        """Strong accesses, and operations on mbarriers."""
        for owner, mine in _owners(at, access):
            assert owner is not None
            places = access.addresses.astype(np.int64)[mine] & OFFSET_MASK
            inside = places + access.size <= len(owner.shared)
            self._guard(owner, places[inside], access.size)
        super()._shared(at, access, rows, strength)

    def _span(self, view: View, warp: Warp, span: Span, lane: int) -> None:
        if span.tensor:
            super()._span(view, warp, span, lane)
            return
        starts, size = span.pieces()
        if not len(starts):
            return
        places = starts.astype(np.int64)
        if span.owner is None and span.kind != "read" and self._read_only.touched(starts, size):
            self._read_only.wrong()
        words, index = self._of(span.owner, places, size)
        if span.kind == "reduce" or self._words.guarded(words, index).any():
            self._guard(span.owner, places, size)
            super()._span(view, warp, span, lane)
            return
        flat = index.ravel()
        self._words.touch(view, words, flat, np.full(len(flat), lane), writes=span.kind != "read")

    def _of(self, owner: Cta | None, places: Array, size: int) -> tuple[Array, Array]:
        """The words of a memory, and for each of some accesses the numbers of its pieces."""
        piece, words = self._pieces[owner is not None], self._plain
        if owner is None:
            places = places - self._memory[0]
        else:
            words = owner.owners[OWNERS_HEAD:].view(np.uint32)
            words = words[: len(words) // 2 * 2].reshape(-1, 2)
        first, last = places // piece, (places + (size - 1)) // piece
        index: Array = first[:, None] + np.arange(int((last - first).max()) + 1)
        if int(first.min()) < 0 or int(last.max()) >= len(words):
            raise Doubt
        return words, np.minimum(index, last[:, None])

    def _guard(self, owner: Cta | None, places: Array, size: int) -> None:
        """From now on Python looks at these bytes."""
        if not len(places):
            return
        if owner is None:
            self._flags.touched(places, size)
        alone = (int(places[0]), size) if owner is None and len(places) == 1 else None
        if alone in self._guarded:
            return
        if alone is not None:
            self._guarded.add(alone)
        words, index = self._of(owner, places, size)
        base, shadow = self._memory[0], self._global
        if owner is not None:
            base, shadow = 0, owner.state.setdefault(self.SHARED, Shadow())
            if not self._using:
                self._phased.touched(words, np.unique(index))
        self._words.guard(words, np.unique(index), shadow, self._pieces[owner is not None], base)

    # --- ends ---------------------------------------------------------------------------------------------------------

    def written(self, address: int, size: int) -> bool:
        words, index = self._of(None, np.array([address]), size)
        return bool(words[index.ravel(), 0].any()) or super().written(address, size)

    def launched(self, at: View, lane: int, child: Child) -> None:
        raise Doubt

    def queued(self, at: View, lane: int, work: Work) -> None:
        raise Doubt

    def cta_ended(self, cta: Cta) -> None:
        self._phased.ended(cta)
        if self._clustered or self._child is not None:  # else nobody asks what its warps knew
            self._learn(cta)
        super().cta_ended(cta)
        if self._clustered and cta.owners is not None:
            words = cta.owners[OWNERS_HEAD:].view(np.uint32)
            self._words.ended(cta, words[: len(words) // 2 * 2].reshape(-1, 2))

    def _learn(self, cta: Cta) -> None:
        for number in range(cta.number * self._clocks.per_cta, (cta.number + 1) * self._clocks.per_cta):
            self._words.learn(number)

    def grid_ended(self, launch: Launch) -> None:
        super().grid_ended(launch)
        if self._session.told != self._told_before:
            raise Doubt


def _owners(at: View, access: Access) -> list[tuple[Cta | None, Array]]:
    """Whose memory is accessed, and by which of the lanes."""
    if access.space == "global":
        return [(None, np.ones(len(access.lanes), np.bool_))]
    ranks = access.addresses.astype(np.int64) >> RANK_SHIFT
    ctas = at.cluster.ctas
    return [(ctas[rank], ranks == rank) for rank in np.unique(ranks).tolist() if rank < len(ctas)]


def _beside(op: Op) -> int:
    """Reads through other proxies come beside nothing that is noted."""
    return 0 if proxy_of(op) == GENERIC else SEVERAL


def _asked(op: Op) -> bool:
    """Whether all accesses of an operation are told of: strong ones that are no polls, and those that are not made of
    whole pieces."""
    look = op.of(Look)
    if polls(op):
        return False
    return look.action == "atomic" or bool(strength(op.opcode)) or bool(look.size & (look.size - 1))


__all__ = ["RaceClocked", "possible"]
