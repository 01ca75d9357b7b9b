"""asynccheck: nobody may touch what asynchronous work still reads or writes, and work needs what it reads in its proxy.

Work completes as late as it may (`Launch.late`), so that everything that no wait, group or mbarrier has completed is
outstanding when another instruction comes. Its spans of memory are kept until then.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from ptxtools.machine.events import has_told
from ptxtools.machine.filters import NOBODY
from ptxtools.machine.residents import Cta
from ptxtools.program.details import Look, Meeting
from ptxtools.program.mbarrier import HASTY
from ptxtools.program.operations import ISSUES, OPERATIONS, fenced
from ptxtools.program.program import OFFSET_MASK, RANK_SHIFT

from .awaited import Awaited, signals
from .in_flight import InFlight
from .maps_in_use import MapsInUse
from .outstanding import Outstanding
from .proxies import Proxies
from .race_waits import hasty, ignored
from .sharing import independent, works

if TYPE_CHECKING:
    from ptxtools.machine.claims import Claim, Span
    from ptxtools.machine.events import View
    from ptxtools.machine.observers import Access
    from ptxtools.program.program import Op, Program
    from ptxtools.sim.device import Grid

    from .session import Session

Numbers: TypeAlias = npt.NDArray[Any]

_NAME = "asynccheck"


class AsyncCheck:
    """What is outstanding in a launch, which runs on one worker."""

    def __init__(self, session: Session, grid: Grid) -> None:
        self._session: Session = weakref.proxy(session)  # which holds this: a cycle would keep the device's memory
        self._outstanding = Outstanding()
        self._proxies = Proxies()
        self._fences: dict[int, tuple[str, ...]] = {}  # lines of proxy fences, with the spaces in which they count here
        self._registers = InFlight(session)
        self._maps = MapsInUse(session)
        self._awaited = Awaited()
        self._ignored = grid.program.found(ignored)
        grid.program.cache[HASTY] = grid.program.found(hasty)

    @staticmethod
    def concerned(program: Program, device: Any) -> Callable[[Op], bool]:
        """Which events of a program matter: none where no work is issued; those of memory alone where none of it goes
        through the asynchronous proxy."""
        kinds = program.kinds
        issues = not kinds.isdisjoint(ISSUES)
        proxies = any(OPERATIONS[kind].asynchronous for kind in kinds)

        def matters(op: Op) -> bool:
            if op.kind == "observe.access":
                return issues and op.space != "local" and (proxies or op.of(Look).action != "copy")
            if op.kind == "observe.arrive" and op.of(Meeting).what.startswith("mbarrier"):
                return issues
            return proxies or (issues and (op.kind == "observe.in_flight" or isinstance(op.detail, Meeting)))

        return matters

    @staticmethod
    def trial(program: Program) -> bool | None:
        """Whether a grid is first looked at with copies that complete at once; None: nothing is asynchronous."""
        from .async_trial import possible

        issues = any(op.kind in ISSUES for op in program.operations())
        return possible(program) if issues else None

    @staticmethod
    def shares(program: Program) -> bool:
        """Whether workers may share a grid (`machine.observers.Alone`): where nothing is asynchronous."""
        return not program.found(works) and program.found(independent)

    def passing(self, op: Op) -> int | None:
        """Registers matter to the lanes that run an instruction."""
        return NOBODY if op.kind == "observe.in_flight" else None

    # --- work ---------------------------------------------------------------------------------------------------------

    def issued(self, claim: Claim) -> None:
        """Note work that begins, and report what it should have waited for."""
        self._touch(claim)
        self._registers.issued(claim)
        self._outstanding.add(claim)
        self._awaited.issued(claim)
        if signals(claim):
            self._proxies.issued(claim)
        self._maps.issued(claim)

    def completed(self, claim: Claim) -> None:
        """The work is done."""
        self._outstanding.remove(claim)
        self._awaited.completed(claim)
        self._proxies.completed(claim)
        self._registers.completed(claim)
        self._maps.completed(claim)

    def _touch(self, new: Claim) -> None:
        """Report outstanding work that new work should have waited for."""
        view, lane, text, pipe, reads = new.view, new.lane, new.text, new.pipe, new.reads
        needs_fence = OPERATIONS[view.op.kind].asynchronous
        for span in new.spans:
            near = self._near(view, span.owner, span.tensor, span.start, span.end)
            for claim, others in groupby(near, key=itemgetter(0)):
                ordered = (pipe is not None and claim.pipe == pipe) or (reads and claim.reads)
                if not ordered and any(span.meets(other) for _, other in others):
                    self._report(view, lane, f"{text} {_VERBS[span.kind]} memory", claim)
            if needs_fence and not span.tensor:
                self._check_proxy(view, lane, text, span)

    def abandoned(self, claim: Claim, missing: str) -> None:
        """The CTA has ended, and nobody waited for this work."""
        view = claim.view
        self._registers.abandoned(claim)
        message = f"{claim.text}: the CTA ends without {missing} for it"
        self._session.report(view, claim.lane, _NAME, message, (view.op.where, "forgotten"))

    # --- accesses of threads ------------------------------------------------------------------------------------------

    def access(self, at: View, access: Access) -> None:
        """Loads, stores and atomics against outstanding work; stores, and those of cp.async, are of the generic
        proxy."""
        if access.space not in ("shared", "global"):
            return
        for owner, lanes, offsets in self._by_owner(at, access):
            if access.action != "copy":
                self._access_to(at, access, owner, lanes, offsets)
            if access.writes:
                self._proxies.store(at, owner, lanes, offsets, access.size)
                if owner is None:
                    self._maps.stored(at, lanes, offsets)
            if access.strong or access.action == "atomic":
                for told in (self._proxies, self._awaited):
                    told.flags(at, owner, lanes, offsets, access.action)

    def tensormap(self, at: View, lane: int, address: int, what: str) -> None:
        """A tensor map is used or changed."""
        self._maps.touched(at, lane, address, what)

    def arrive(self, at: View, what: str, lanes: Numbers) -> None:
        self._proxies.arrive(at, what, lanes)
        self._awaited.arrive(at, what, lanes)
        if what.startswith("mbarrier") and " arrive" in what:
            has_told(at)

    def leave(self, at: View, what: str, lanes: Numbers) -> None:
        if "_wait" in what and at.op.where in self._ignored:
            return  # the thread does not know whether the phase is complete
        self._proxies.leave(at, what, lanes)
        self._awaited.leave(at, what, lanes)

    def transacted(self, at: View, cta: Cta, offset: int, size: int) -> None:
        """A copy signals an mbarrier."""
        self._awaited.transacted(at, cta, offset)
        self._proxies.transacted(at, cta, offset)

    def signalled(self, at: View, cta: Cta, offset: int) -> None:
        """tcgen05.commit does."""
        self._awaited.signalled(at, cta, offset)
        self._proxies.signalled(at, cta, offset)

    def bulk_grouped(self, at: View, lanes: Numbers) -> None:
        """Lanes close groups of copies, or have waited for some."""
        self._awaited.grouped(at, lanes)

    def tensor_waited(self, at: View, stores: bool) -> None:
        """A warp has waited for its loads or stores of tensor memory."""
        self._awaited.tensor_waited(at, stores=stores)

    def cta_ended(self, cta: Cta) -> None:
        """A CTA has ended."""
        self._awaited.ended(cta)

    def in_flight(self, at: View, lanes: Numbers) -> None:
        """An instruction touches registers that the tensor cores may be using."""
        self._registers.touched(at, lanes)

    def fence(self, at: View, lanes: Numbers) -> None:
        self._registers.fence(at)
        spaces = fenced(at.op.opcode)
        if at.op.opcode is not None and at.op.opcode.has("proxy"):
            self._fences[at.op.where] = spaces
        if spaces:
            self._proxies.fence(at, lanes, spaces)

    def _access_to(self, view: View, access: Access, owner: Cta | None, lanes: Numbers, offsets: Numbers) -> None:
        for claim, span in self._near(view, owner, False, int(offsets.min()), int(offsets.max()) + access.size):
            if span.kind == "read" and not access.writes:
                continue
            hit = np.flatnonzero((offsets < span.end) & (offsets + access.size > span.start))
            if span.rows is not None and len(hit):
                hit = hit[span.touches(offsets[hit], access.size)]
            if len(hit):
                place = int(offsets[hit[0]])
                what = f"{access.space} {access.action} of {access.size} bytes at {place:#x}"
                self._report(view, int(lanes[hit[0]]), what, claim)

    def _near(self, view: View, owner: Cta | None, tensor: bool, start: int, end: int) -> Iterator[tuple[Claim, Span]]:
        """Spans near some bytes of work that is under way, or may be as far as the warp has been told."""
        yield from self._outstanding.near(owner, tensor, start, end)
        yield from self._awaited.near(view, owner, tensor, start, end)

    def _by_owner(self, view: View, access: Access) -> Iterator[tuple[Cta | None, Numbers, Numbers]]:
        """Lanes and their offsets for each CTA whose shared memory is meant; None for global memory."""
        places = access.addresses.astype(np.int64)
        if access.space == "global":
            yield None, access.lanes, places
        elif not view.launch.program.clustered:
            yield view.cta, access.lanes, places
        else:
            ranks = places >> RANK_SHIFT
            for cta in view.cluster.ctas:
                mine = ranks == cta.rank
                if mine.any():
                    yield cta, access.lanes[mine], places[mine] & OFFSET_MASK

    def _report(self, view: View, lane: int, what: str, claim: Claim) -> None:
        program, there = view.launch.program, claim.view.op.where
        waited = "the thread was not told of the wait for it" if claim.over else "nobody waited for it"
        message = f"{what}, but {claim.text} {'may not have' if claim.over else 'has not'} completed: {waited}"
        others = (self._session.site(program, there, claim.view.cta.place),)
        self._session.report(
            view, lane, _NAME, message, (view.op.where, there), kind="outstanding", others=others,
            help="wait for it before this",
        )  # fmt: skip

    # --- proxies ------------------------------------------------------------------------------------------------------

    def _check_proxy(self, view: View, lane: int, text: str, span: Span) -> None:
        there = self._proxies.unfenced(view, lane, span.owner, span.words())
        if there is None:
            return
        _, line, source = self._session.place(view.launch.program, there)
        where = f"line {line}: " if line is not None else ""
        message = f"{text} {_VERBS[span.kind]} what was written without fence.proxy.async behind it"
        details = [f"written: {where}{' '.join(source.split())}"]
        if self._proxies.fenced_at_all(view):
            details.append(_ELSEWHERE)
        space = "global" if span.owner is None else "shared"
        wrong = next((where for where, spaces in self._fences.items() if space not in spaces), None)
        if wrong is not None:
            _, line, source = self._session.place(view.launch.program, wrong)
            details.append(f"line {line} is a fence of another proxy or space: {' '.join(source.split())}")
        self._session.report(
            view, lane, _NAME, message, (view.op.where, there, "proxy"), tuple(details),
            kind="no-proxy-fence" if wrong is None else "wrong-proxy",
            help=f"fence.proxy.async, or fence.proxy.async.{_FENCES[space]}, between the two",
        )  # fmt: skip


_ELSEWHERE = "there are fences, but none after the write in a thread that knew of it and that this one was told by"
_FENCES = {"shared": "shared::cta", "global": "global"}
_VERBS = {"read": "reads", "write": "writes", "reduce": "changes"}
