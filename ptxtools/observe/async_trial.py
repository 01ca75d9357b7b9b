"""asynccheck's first look at a grid: nobody touches what is in flight.

Asynchronous work is complete at once, and the native engine marks what a late end could make wrong
(`machine.filters.Bounds.marks`, `proxies`). Bytes that cp.async writes are marked until the warp has waited for their
group; chunks that wgmma reads have the product's number, and may be written when the warps have waited for it; of bytes
that threads have stored it is known when, so that products can tell a missing fence.proxy.async. Registers of wgmma are
looked at in the program (`async_registers`). As long as nobody touches what is marked, nor writes anywhere near what
copies read, and all copies are waited for, there is nothing to report, in this order of completions or another one.
Whatever else happens raises `Doubt`: then the grid runs again from the beginning, and `AsyncCheck` judges.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

from ptxtools.machine.claims import Span
from ptxtools.machine.filters import ALWAYS, COMES, EPOCHS, EVERYWHERE, FENCES, MATRICES, Bounds, stretches
from ptxtools.machine.observers import Doubt
from ptxtools.program.details import Groups, Look, Meeting
from ptxtools.program.operations import (
    BULK_COPIES,
    EVENT,
    LATE_COPIES,
    OPERATIONS,
    PAUSES,
    TENSOR_CORES,
    fenced,
)
from ptxtools.program.program import LANES
from ptxtools.records import replace
from ptxtools.sim.tensor.wgmma_reads import WarpgroupReads, multiplies
from ptxtools.sim.tensormap.descriptor import BYTES as MAP_BYTES

from .async_flights import Flights, Ground, flights_of
from .async_planes import Planes
from .async_registers import settled
from .race_waits import hasty
from .sharing import independent, works

if TYPE_CHECKING:
    from collections.abc import Callable

    from ptxtools.machine.claims import Claim
    from ptxtools.machine.events import View
    from ptxtools.machine.launch import Launch
    from ptxtools.machine.observers import Access, Array
    from ptxtools.machine.residents import Cta, Schedule
    from ptxtools.program.program import Op, Program
    from ptxtools.sim.device import Grid

    from .session import Session

_ELSEWHERE = ("shared", "cluster", "local", "param", "const")
#: Kinds of asynchronous work that are known, and those that end by themselves.
_KNOWN = LATE_COPIES | TENSOR_CORES | BULK_COPIES | PAUSES
_FLIGHTS = BULK_COPIES | {kind for kind in TENSOR_CORES if kind.startswith("tcgen05.")}
_OF_FLIGHTS = ("issued", "completed", "transacted", "signalled", "bulk_grouped", "tensor_waited", "leave", "tensormap")
_OTHERS = ("access", "fetched", "grouped", "arrive", "leave", "fence", "together")
#: The largest access to shared memory that lies in one chunk.
_CHUNK = 16


def possible(program: Program) -> bool:
    """Whether it is worth while: all asynchronous work is of known kinds, the registers of warpgroups' products are not
    touched in flight, and mbarriers are looked at."""
    kinds = program.kinds
    if (
        kinds.isdisjoint(_FLIGHTS)
        and program.found(works)
        and any(OPERATIONS[kind].seen == "mbarrier" for kind in kinds)
    ):
        return False  # nobody is told of mbarriers then, by which others may hear of work before its end
    settles = "wgmma.mma_async" not in kinds or settled(program)
    return all(map(_plain, kinds)) and settles and not program.found(hasty)


def _copies_bulk(program: Program) -> bool:
    return any(op.kind in BULK_COPIES for op in program.operations())


def _reads_global(program: Program) -> bool:
    """Whether threads may read global memory."""
    return any(
        OPERATIONS[op.kind].access not in ("", "write") and op.space not in _ELSEWHERE for op in program.operations()
    )


def _plain(kind: str) -> bool:
    row = OPERATIONS[kind]
    if row.seen == "mbarrier":
        return True
    served = row.runs == EVENT and not kind.startswith("observe.") and kind not in _KNOWN
    return not served and row.seen != "cluster" and "mbarrier" not in row.seen


class AsyncTrial:
    """Looks at a grid. proxies: some of the work goes through the asynchronous proxy; flights: some ends by itself;
    owners: for the epochs."""

    MARKS, WARPGROUPS = True, False

    def __init__(self, session: Session, grid: Grid) -> None:
        kinds = grid.program.kinds
        self.flights = not kinds.isdisjoint(_FLIGHTS)
        self.proxies = self.flights or any(OPERATIONS[kind].asynchronous for kind in kinds)
        self.owners = EPOCHS if grid.program.found(works) else 0
        if not self.flights:
            vars(self).update(dict.fromkeys(_OF_FLIGHTS))  # so that nothing is told of wgmma but `together`
        if not grid.program.found(works):  # nothing to look at, where others look
            vars(self).update(dict.fromkeys(_OTHERS), MARKS=False)
        self._reads = WarpgroupReads(grid.program)
        arena = session.device.arena
        memory = arena.base, arena.base + arena.used
        #: What the CTAs of each worker do in global memory.
        self._grounds: defaultdict[Schedule, Ground] = defaultdict(lambda: Ground(memory))

    @staticmethod
    def shares(program: Program) -> bool:
        """Whether workers may share a grid (`machine.observers.Alone`). What threads read of global memory is not
        noted: nobody may copy to it there."""
        return program.found(independent) and not (_copies_bulk(program) and _reads_global(program))

    @staticmethod
    def concerned(program: Program, device: Any) -> Callable[[Op], bool]:
        """Which events of a program matter: all but those of local memory, and of warps at other work. Fences
        matter to the asynchronous proxy alone."""
        kinds = program.kinds
        flights = not kinds.isdisjoint(_FLIGHTS)
        proxies = flights or any(OPERATIONS[kind].asynchronous for kind in kinds)
        if not program.found(works):
            return lambda op: False

        def matters(op: Op) -> bool:
            if op.kind == "observe.access":
                return op.space != "local"
            if isinstance(op.detail, Meeting):
                if op.detail.what.startswith("mbarrier"):
                    return flights and (op.kind == "observe.leave") == ("_wait" in op.detail.what)
                return _rule(op) == COMES or (proxies and _rule(op) != ALWAYS) or (flights and _named(op))
            return op.kind != "observe.together" or multiplies(op)

        return matters

    def filter(self, launch: Launch) -> Bounds:
        """What is marked, and gaps in global memory."""
        shared = stretches([(0, launch.program.static_shared + launch.dynamic_shared)])
        known = {"global": EVERYWHERE, "shared": shared, "local": EVERYWHERE}
        asks = _wide if self.proxies else lambda _: False

        def of(ground: Ground) -> Bounds:
            reads = {**known, "global": ground.reads_apart} if self.flights else known
            writes, marks = {**known, "global": ground.apart}, ground.marked
            return Bounds(reads, writes, asks, marks=marks, proxies=self.proxies, flights=self.flights)

        return replace(of(Ground((0, 0))), of_worker=lambda schedule: of(self._grounds[schedule]))

    def passing(self, op: Op) -> int | None:
        """Barriers and fences are counted; products are looked at, and so are mbarriers."""
        meets = isinstance(op.detail, Meeting) and ("mbarrier" in op.detail.what or (self.flights and _named(op)))
        return None if meets else _rule(op)

    def access(self, at: View, access: Access) -> None:
        """Something in flight may be touched, or what single lanes alone know to be complete."""
        if access.space == "local":
            return
        if not self.flights or access.space != "shared" or access.action == "copy":
            raise Doubt
        self._of(at.cta).access(at, access)

    def fetched(self, at: View, access: Access) -> None:
        """A copy from elsewhere than global memory."""
        raise Doubt

    def grouped(self, at: View, commit: bool, pending: int | None) -> None:
        """A part of a warp, or too many groups."""
        raise Doubt

    def arrive(self, at: View, what: str, lanes: Array) -> None:
        """At a barrier of the CTA there may be more epochs than can be told apart."""
        if what.startswith("mbarrier"):
            if self.flights and "_wait" not in what:
                self._of(at.cta).arrive(at, what, lanes)
        elif self.flights and _named(at.op):
            self._of(at.cta).arrive(at, what, lanes)
        elif _rule(at.op) == COMES and not at.counted:
            raise Doubt

    def leave(self, at: View, what: str, lanes: Array) -> None:
        """Lanes go on behind a wait."""
        if what.startswith("mbarrier") and "_wait" in what:
            self._of(at.cta).knowledge.leave(at, what, lanes)
        elif self.flights and _named(at.op):
            self._of(at.cta).knowledge.go(at, lanes)

    def fence(self, at: View, lanes: Array) -> None:
        """What is not noted natively does not count."""

    def together(self, at: View, lanes: Array) -> None:
        """A warp is about to multiply what the engine does not know yet."""
        if not multiplies(at.op):
            return
        if len(lanes) != LANES:
            raise Doubt
        marked = self._grounds[at.schedule].marked
        planes, fences = Planes(at.cta, marked), self._of(at.cta).knowledge.of(at.warp).fences if self.flights else {}
        for span in self._reads.spans(at):
            if span.owner is not at.cta or span.rows is None:
                raise Doubt
            planes.multiplies(at, span.rows, fences)
        self._reads.teach(at)

    # --- work that ends by itself -------------------------------------------------------------------------------------

    def _of(self, cta: Cta) -> Flights:
        return flights_of(cta, self._grounds[cta.cluster.schedule])

    def issued(self, claim: Claim) -> None:
        """Work begins."""
        if claim.view.op.kind in _FLIGHTS:
            self._of(claim.view.cta).issued(claim)

    def completed(self, claim: Claim) -> None:
        """It is done."""
        if claim.view.op.kind in _FLIGHTS:
            self._of(claim.view.cta).completed(claim)

    def transacted(self, at: View, cta: Cta, offset: int, size: int) -> None:
        """A copy signals an mbarrier."""
        self._of(at.cta).transacted(at, cta, offset)

    def signalled(self, at: View, cta: Cta, offset: int) -> None:
        """tcgen05.commit does."""
        self._of(at.cta).signalled(at, cta, offset)

    def tensor_waited(self, at: View, stores: bool) -> None:
        """A warp has waited for its loads or stores of tensor memory."""
        self._of(at.cta).waited(at, stores=stores)

    def tensormap(self, at: View, lane: int, address: int, what: str) -> None:
        """A map must stay as it is for the copies that use it; in a first look, for the whole grid."""
        space, place = at.resolve(address, "generic")
        if what == "changed":
            raise Doubt
        if space == "global":
            self._grounds[at.schedule].touch(Span(None, place, place + MAP_BYTES, "read"))

    def bulk_grouped(self, at: View, lanes: Array) -> None:
        """Lanes close bulk groups, or have waited for some."""
        self._of(at.cta).grouped(at, lanes, at.op.of(Groups))

    def grid_ended(self, launch: Launch) -> None:
        """Have all copies been waited for? And has no worker written where others have copied?"""
        grounds = list(self._grounds.values())
        if any(int(ground.marked[0]) for ground in grounds):
            raise Doubt
        if any(one.meets(other) for one in grounds for other in grounds if one is not other):
            raise Doubt


def _rule(op: Op) -> int:
    """When an event needs nobody."""
    if op.kind == "observe.together":
        return MATRICES
    if op.kind == "observe.fence":
        return FENCES if "shared" in fenced(op.opcode) else ALWAYS
    meets = op.kind == "observe.arrive" and op.of(Meeting).what == "bar" and op.src[1] is None
    return COMES if meets else ALWAYS


def _named(op: Op) -> bool:
    """Whether warps meet at a named barrier there, or part."""
    what = op.detail.what if isinstance(op.detail, Meeting) else ""
    comes = op.kind == "observe.arrive" and what in ("bar", "arrive")
    return (comes or (op.kind == "observe.leave" and what == "bar")) and op.src[1] is not None


def _wide(op: Op) -> bool:
    """Whether an access to shared memory may lie in several chunks, or is told of in parts."""
    look = op.of(Look)
    odd = look.size > _CHUNK or bool(look.size & (look.size - 1))
    return odd and op.space != "global"


__all__ = ["AsyncTrial", "possible"]
