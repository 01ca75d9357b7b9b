"""synccheck: barriers as the manual wants them (9.7.13.1): all threads of a warp at one instruction, whole warps;
mbarriers that are initialised and touched by nothing else; shared memory of CTAs that still run.

Whether a warp met as a whole is judged when it goes on: the simulator lets lanes come to a barrier one after another.
Where a barrier opens when all living threads have come, it is enough to know who goes on from where.
"""

from __future__ import annotations

import weakref
from collections import defaultdict
from typing import TYPE_CHECKING, Any

import numpy as np

from ptxtools.diagnostics import TrapKind
from ptxtools.machine.filters import (
    ALWAYS,
    COUNTED,
    EVERYWHERE,
    INITIALISED,
    NAMED,
    SPACES,
    TURNS,
    UNIFORM,
    WHOLE,
    Bounds,
)
from ptxtools.program.details import Action, Meeting
from ptxtools.program.operations import OPERATIONS
from ptxtools.program.program import LANES
from ptxtools.records import dataclass, field

from . import agreements, launch_control, mbarriers, members, thread_sync
from .ground import Ground
from .sharing import independent

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from ptxtools.diagnostics import Trap
    from ptxtools.machine.claims import Span
    from ptxtools.machine.events import View
    from ptxtools.machine.launch import Launch
    from ptxtools.machine.observers import Access, Array
    from ptxtools.machine.residents import Cta, Schedule
    from ptxtools.program.program import Op, Program
    from ptxtools.sim.device import Grid

    from .session import Session

_NAME = "synccheck"
_WARPGROUP = 4
#: Names in the state of a CTA.
_CHANGES, _PROGRAM, _ARRIVED = "setmaxnreg of warps", "program of setmaxnreg", "threads at the cluster's barrier"
_CLUSTER = -1
#: Shared memory without mbarriers.
_NOTHING_TAKEN = Ground()
#: Accesses of programs of which none matters.
_ALL = dict.fromkeys(SPACES, EVERYWHERE)
_ANYWHERE = Bounds(_ALL, _ALL, lambda op: False, lasting=True)


@dataclass(slots=True)
class _Warp:
    """A warp at a barrier: how often each lane has passed it, and who came to each phase from which instruction; first:
    who went on first in phases that others of the warp have not left, and from where, of aligned instructions."""

    passes: Array = field(default_factory=lambda: np.zeros(LANES, np.int64))
    came: dict[int, dict[int, int]] = field(default_factory=dict)  # phase -> place -> mask of lanes
    first: dict[int, tuple[int, int]] = field(default_factory=dict)  # phase -> lane, place


class SyncCheck:
    """What came to barriers hangs on the CTA."""

    REGIONS = True

    def __init__(self, session: Session, grid: Grid) -> None:
        self._session: Session = weakref.proxy(session)  # which outlives this
        self._transactions = mbarriers.Transactions(session)
        #: Of shared memory, by worker: where no mbarrier is.
        self._grounds: defaultdict[Schedule, Ground] = defaultdict(Ground)
        self._program = grid.program
        self._thread_sync = thread_sync.ThreadSync(session, grid)
        if not self._thread_sync.wanted:
            vars(self)["tensor"] = None  # which then is no event to listen to
        self._arrives, self._plain = _barriers(grid.program)  # plain ones are judged by who leaves
        self._mixed = grid.program.found(agreements.disagreeing)
        self._partly = grid.program.found(agreements.partly)

    @staticmethod
    def concerned(program: Program, device: Any) -> Callable[[Op], bool]:
        """Which events of a program matter: accesses where there are mbarriers or other CTAs' shared memory, fences of
        tensor memory, ends of CTAs that change their registers."""
        touched = _reaches(program)
        changes = "setmaxnreg" in program.kinds or program.clustered  # ends of CTAs matter
        _, plain = _barriers(program)

        def matters(op: Op) -> bool:
            if op.kind == "observe.access":
                return touched and op.space in ("shared", "cluster", "generic")
            if op.kind == "observe.arrive" and op.of(Meeting).what == "bar":
                return not plain
            if op.kind == "observe.fence":
                return op.opcode is not None and any(map(op.opcode.has, thread_sync.FENCES))
            return changes or op.kind != "observe.begin"

        return matters

    @staticmethod
    def shares(program: Program) -> bool:
        """Whether workers may share a grid (`machine.observers.Alone`)."""
        return program.found(independent)

    def filter(self, launch: Launch) -> Bounds:
        """Accesses beside mbarriers, while no CTA has ended before others of its cluster."""
        if not self._program.found(_reaches):
            return _ANYWHERE

        def known(ground: Ground) -> dict[str, Array]:
            return {"global": EVERYWHERE, "shared": ground.rows, "local": EVERYWHERE}

        def of(schedule: Schedule) -> Bounds:
            mine = known(self._grounds[schedule])
            return Bounds(mine, mine, lambda op: False)

        every = known(_NOTHING_TAKEN)
        return Bounds(every, every, lambda op: False, of_worker=of)

    def passing(self, op: Op) -> int | None:
        """Nothing is to be said of a warp that comes as a whole. What comes to a barrier natively is not noted, and
        need not be: who leaves as a whole has come as a whole, and an arrival that is noted is a phase of its own."""
        if isinstance(op.detail, Meeting):
            what = op.detail.what
            if op.kind == "observe.arrive":
                counted = COUNTED if op.src[1] is not None else ALWAYS
                if what.startswith("mbarrier ") and not what.endswith((" init", " inval", "expect_tx")):
                    return INITIALISED
                if what in ("cluster arrive", "cluster wait"):
                    return TURNS
                if op.where in self._mixed:
                    return None
                if what == "bar" and self._plain:
                    return ALWAYS
                return WHOLE | counted if what == "bar" and not self._arrives else None
            if op.kind == "observe.leave" and op.where in (self._mixed if what == "bar" else self._partly):
                return None
            if op.kind == "observe.leave":
                waits = what == "warp" or (what == "bar" and (self._plain or _aligned(op)))
                return TURNS if what == "cluster wait" else WHOLE if waits else ALWAYS
        if op.kind == "observe.branch" and op.src_types != ("pred",):  # a table: those of several lanes are compared
            return None
        if op.kind == "observe.branch":
            return UNIFORM
        if op.kind != "observe.together" or (op.opcode is not None and op.opcode.family == "setmaxnreg"):
            return None
        if op.opcode is None or not (op.opcode.has("aligned") or op.opcode.has("sync")):
            return ALWAYS
        named = op.opcode.family == "shfl" or op.where in self._partly
        return WHOLE | (NAMED if named else ALWAYS)

    def arrive(self, at: View, what: str, lanes: Array) -> None:
        """Lanes come to a barrier or do something to mbarriers."""
        if what.startswith("mbarrier "):
            mbarriers.operation(self._session, at, what.partition(" ")[2], lanes, self._grounds[at.schedule])
            if what.endswith("expect_tx"):
                self._transactions.expect(at, lanes)
        if what.startswith("cluster"):
            self._cluster(at, what, lanes)
            if what != "cluster arrive" or not _aligned(at.op):
                return
        elif what not in ("bar", "arrive") or (what == "bar" and self._plain):
            return
        else:
            self._counts(at, lanes)
            if at.op.where in self._mixed or self._arrives:
                agreements.came(self._session, at, lanes)
        for warp, phase, some in _phases(at, what, lanes):
            _note(warp, phase, at.op.where, some)

    def leave(self, at: View, what: str, lanes: Array) -> None:
        """Lanes go on behind a barrier: all of their warp must have come to it, at the same instruction."""
        if what == "warp":
            members.met(self._session, at, lanes)
            return
        if what not in ("bar", "cluster wait"):
            return
        if what == "bar" and at.op.where in self._mixed:
            agreements.left(at, lanes)
        if what == "bar" and self._plain:
            for warp, phase, some in _phases(at, what, lanes):
                self._left(at, warp, phase, some)
            return
        if what == "bar" and not _aligned(at.op):
            return
        for lane, number in zip(lanes.tolist(), _numbers(at, what)[lanes].tolist(), strict=True):
            warp = _warp(at, number)
            places = warp.came.pop(int(warp.passes[lane]), None)
            if places is not None:  # else it was judged already, for another lane
                self._judge(at, lane, places, at.op.where if at.op.where in places else min(places))

    def _left(self, at: View, warp: _Warp, phase: int, lanes: Array) -> None:
        """Some lanes go on. Others that live have come from somewhere, and will be told of when they go on."""
        _note(warp, phase, at.op.where, lanes)
        if _aligned(at.op):
            warp.first.setdefault(phase, (int(lanes[0]), at.op.where))
        gone = 0
        for part in warp.came[phase].values():
            gone |= part
        if not at.living & ~gone:
            places, first = warp.came.pop(phase), warp.first.pop(phase, None)
            if first is not None:
                self._judge(at, first[0], places, first[1])

    def _judge(self, at: View, lane: int, places: dict[int, int], here: int) -> None:
        """Who came to a phase, by places; lane, here: who is told of, and where."""
        mask, threads = 0, members.threads_of(at)
        for part in places.values():
            mask |= part
        missing = [n for n in range(threads) if not mask >> n & 1]
        key, cta, program = (tuple(sorted(places)), "divergent"), at.cta.place, at.launch.program
        if missing:
            message = f"{len(missing)} of {threads} threads of the warp did not come to this aligned barrier"
            detail = f"not there: {members.listed(sum(1 << n for n in missing))}"
            who = program, here, cta, at.thread(lane)
            self._session.report_at(*who, _NAME, message, key, details=(detail,))
        elif len(places) > 1:
            others = tuple(self._session.site(program, where, cta) for where in sorted(places) if where != here)
            message = "threads of the warp met at this aligned barrier from different instructions"
            self._session.report_at(
                program, here, cta, at.thread(lane), _NAME, message, key, kind="divergent", others=others
            )

    def together(self, at: View, lanes: Array) -> None:
        """Lanes execute an instruction of a warp."""
        if at.op.opcode is not None and at.op.opcode.family == "setmaxnreg":
            places: dict[int, list[int]] = at.cta.state.setdefault(_CHANGES, {})
            places.setdefault(at.warp, []).append(at.op.where)
            at.cta.state[_PROGRAM] = at.launch.program
        members.together(self._session, at, lanes)

    def control(self, at: View, lanes: Array) -> None:
        """Lanes ask for a cluster that has not started, or look at an answer."""
        launch_control.used(self._session, at, lanes)

    def branch(self, at: View, lanes: Array) -> None:
        """Lanes come to a branch with .uni."""
        members.branch(self._session, at, lanes)

    def fence(self, at: View, lanes: Array) -> None:
        """A fence, perhaps a tcgen05.fence."""
        self._thread_sync.fence(at)

    def tensor(self, at: View, lane: int, spans: Sequence[Span]) -> None:
        """An instruction works on tensor memory."""
        self._thread_sync.used(at, lane, spans)

    def transacted(self, at: View, cta: Cta, offset: int, size: int) -> None:
        """A copy counts at an mbarrier."""
        self._transactions.brought(at, cta, offset, size)

    def trapped(self, trap: Trap) -> None:
        """In a deadlock an mbarrier may lack bytes, and lanes of a warp or warps of a warpgroup may wait for others."""
        if trap.kind is TrapKind.DEADLOCK:
            self._transactions.stuck()
            members.parted(self._session, self._program, trap)
            members.lacking(self._session, self._program, trap)

    def cta_ended(self, cta: Cta) -> None:
        """All warps of a warpgroup must have executed the same setmaxnreg (9.7.19.5)."""
        mbarriers.ended(cta, self._grounds[cta.cluster.schedule])
        self._transactions.ended(cta)
        places: dict[int, list[int]] = cta.state.get(_CHANGES, {})
        for group in {warp // _WARPGROUP for warp in places}:
            done = [places.get(_WARPGROUP * group + n, []) for n in range(_WARPGROUP)]
            most = max(done, key=len)
            fewest = min(range(_WARPGROUP), key=lambda n: len(done[n]))
            if len(done[fewest]) < len(most):
                where, program = most[len(done[fewest])], cta.state[_PROGRAM]
                message = f"warp {_WARPGROUP * group + fewest} of the warpgroup does not execute this setmaxnreg"
                self._session.report_at(
                    program, where, cta.place, None, _NAME, message, (where, "setmaxnreg"), kind="setmaxnreg",
                    help="all four warps of the warpgroup have to execute it",
                )  # fmt: skip

    def _cluster(self, at: View, what: str, lanes: Array) -> None:
        """Arriving and waiting at the cluster's barrier take turns (9.7.13.3)."""
        state = at.cta.state.setdefault(_ARRIVED, {})
        arrived = state.setdefault(at.warp, np.zeros(LANES, np.bool_))
        arrived |= at.take_turns() >> np.arange(LANES) & 1 == 1
        arrives = what == "cluster arrive"
        wrong = lanes[arrived[lanes] == arrives]
        if len(wrong):
            message = "a thread arrives twice at the cluster's barrier" if arrives else (
                "a thread waits at the cluster's barrier without having arrived"
            )  # fmt: skip
            key = (at.op.where, "cluster")
            self._session.report(at, int(wrong[0]), _NAME, message, key, kind="cluster-barrier",
                                 help="barrier.cluster.arrive and .wait take turns in every thread")  # fmt: skip
        arrived[lanes] = arrives

    def access(self, at: View, access: Access) -> None:
        """Lanes access shared memory."""
        if access.space == "shared":
            mbarriers.access(self._session, at, access)

    def _counts(self, view: View, lanes: Array) -> None:
        session = self._session
        if view.op.src[1] is None:
            return
        x, y, z = view.launch.block
        for count in np.unique(view.source(1)[lanes]).tolist():
            if count % LANES or count == 0:
                message = f"a thread count of {count} is no multiple of {LANES}"
                session.report(view, int(lanes[0]), _NAME, message, (view.op.where, count))
            elif count > -(-x * y * z // LANES) * LANES:
                message = f"{count} threads are to meet, but the CTA has {x * y * z}"
                session.report(view, int(lanes[0]), _NAME, message, (view.op.where, count))


def _reaches(program: Program) -> bool:
    """Whether accesses may matter: there are mbarriers, or shared memory of other CTAs."""
    return program.clustered or any("mbarrier" in OPERATIONS[kind].seen for kind in program.kinds)


def _barriers(program: Program) -> tuple[bool, bool]:
    """Whether threads of a program arrive at barriers without waiting; whether all barriers are for all living threads
    of the CTA, and agree."""
    found: tuple[bool, bool] | None = program.cache.get("barriers")
    if found is None:
        arrives = any(op.kind == "bar" and op.of(Action).name == "arrive" for op in program.operations())
        found = program.cache["barriers"] = (
            arrives,
            members.only_plain(program) and not program.found(agreements.disagreeing),
        )
    return found


def _phases(at: View, what: str, lanes: Array) -> Iterator[tuple[_Warp, int, Array]]:
    """Lanes that come to barriers, or go on, by the warp at each and the number of its phase, which is counted on."""
    numbers = _numbers(at, what)[lanes]
    for number in set(numbers.tolist()):
        warp, some = _warp(at, number), lanes[numbers == number]
        warp.passes[some] += 1
        phases = warp.passes[some]
        for phase in set(phases.tolist()):
            yield warp, phase, some[phases == phase]


def _note(warp: _Warp, phase: int, where: int, lanes: Array) -> None:
    places = warp.came.setdefault(phase, {})
    places[where] = places.get(where, 0) | int(np.bitwise_or.reduce(1 << lanes))


def _aligned(op: Op) -> bool:
    opcode = op.opcode
    return opcode is None or opcode.family == "bar" or opcode.has("aligned")


def _warp(view: View, number: int) -> _Warp:
    state: dict[Any, _Warp] = view.cta.state.setdefault(_NAME, {})
    return state.setdefault((number, view.warp), _Warp())


def _numbers(view: View, what: str) -> Array:
    """The barrier that each lane is at; the cluster's has none of the numbers."""
    return np.full(LANES, _CLUSTER) if what.startswith("cluster") else view.source(0)
