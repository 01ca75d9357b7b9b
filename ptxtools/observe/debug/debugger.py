"""The debugger: stops a run where it is asked to, and goes on, forwards or backwards, as it is told then.

It is an observer of instructions with a gate (`machine.gates`), so lines without a breakpoint cost little. When it
stops it calls its front end, inside the event: that looks at the run, and returns what is to be done next. A moment is
a count of instructions that warps have come to. To go back is to go on from an earlier snapshot (`timeline`) up to a
moment, or to look for the last stop before one.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import numpy.typing as npt

from ptxtools.diagnostics.kinds import TrapKind
from ptxtools.machine.gates import FOLLOW_NOBODY, FOLLOW_NOTES, FOLLOW_OPENS, NEVER, Gate

from .code import BARRIERS, Code
from .expressions import ExpressionError, Lane, evaluate
from .goals import Breakpoint, Focus, Goal, Goto, Orders, Search, Session, Stop
from .points import Points

if TYPE_CHECKING:
    from ptxtools.diagnostics import Trap
    from ptxtools.diagnostics.findings import Finding
    from ptxtools.machine.events import View
    from ptxtools.machine.launch import Dim3, Launch
    from ptxtools.machine.residents import Cta

    from .timeline import Timeline

Array: TypeAlias = npt.NDArray[Any]

#: Instructions between two looks at what the user wants, and at whether a snapshot is due.
_PERIOD = 100_000
#: Seconds of running after which there is a snapshot, and after which a stop is one.
_BETWEEN, _SHORT = 0.2, 0.01


class Leave(BaseException):
    """The user ends the run."""


class Front(Protocol):
    """Who talks to the user."""

    def stopped(self, debugger: Debugger, stop: Stop) -> tuple[Goal, bool]:
        """The run has stopped: what to do next, and whether backwards. Raises `Leave`."""

    def wants(self) -> bool:
        """Whether the user wants the run to stop."""


class Debugger:
    """An observer that stops the run. front: talks to the user; timeline: None where a run cannot go back.

    launch, code: of the grid that runs, None between grids; at: the warp that has stopped; focus: the lane that
    commands are about; mbarriers: of a CTA, addresses in its shared memory, with the arrivals of a phase.
    """

    def __init__(self, front: Front, timeline: Timeline | None) -> None:
        self.gate = Gate()
        self.session = Session()
        self.launch: Launch | None = None
        self.code: Code | None = None
        self.at: View | None = None
        self.focus: Focus | None = None
        self.mbarriers: dict[Dim3, dict[int, int]] = {}
        self._front, self._timeline = front, timeline
        self._points = Points(self.gate)
        self._task: Goto | Search | Goal = Goal()
        self._stacks: dict[tuple[Dim3, int, int], list[tuple[str, int]]] = {}
        self._inits: frozenset[int] = frozenset()  # instructions that make mbarriers
        self.hit_numbers: tuple[int, ...] = ()  # breakpoints at which it has stopped
        self._asked = self._changed = self._over = False
        self._ran = self._began = 0.0

    @property
    def count(self) -> int:
        """The present moment."""
        return int(self.gate.state.count)

    @property
    def replays(self) -> bool:
        """Whether the run only repeats what has been."""
        return self.count < self.session.furthest

    def pause(self, *_: object) -> None:
        """Stop at the next instruction. May be called by a signal."""
        self._asked = True
        self.gate.state.until = 0

    # --- events -------------------------------------------------------------------------------------------------------

    def grid_begun(self, launch: Launch) -> None:
        self.launch, self.code, self._stacks, self.mbarriers = launch, Code(launch), {}, {}
        opcodes = enumerate(map(self.code.opcode, range(len(launch.program.lines))))
        self._inits = frozenset(where for where, opcode in opcodes if opcode.startswith("mbarrier.init"))
        self.arm()
        if not self.session.furthest:
            self.gate.state.until = 0
        self._began = time.monotonic()

    def instruction(self, at: View, lanes: Array) -> None:
        listeners = at.launch.observers
        if listeners is not None and listeners.gate is not self.gate and not self.gate.comes(at):
            return  # another observer hears of all instructions, so the engine has asked no gate
        if at.op.where in self._inits:
            self._note_mbarrier(at, lanes)
        self._ran += time.monotonic() - self._began
        again = True
        while again:
            stop = self._looked_at(at)
            if stop is not None:
                again = self._stopped(at, stop)
            else:
                again = self._ran > _BETWEEN and isinstance(self._task, Goal) and self._keep(at)
        self._resume(at)

    def called(self, at: View, function: str, lanes: Array) -> None:
        for lane in lanes.tolist():
            self._stacks.setdefault((at.cta.place, at.warp, lane), []).append((function, at.op.where))

    def returned(self, at: View, lanes: Array) -> None:
        for lane in lanes.tolist():
            stack = self._stacks.get((at.cta.place, at.warp, lane))
            if stack:
                stack.pop()

    def warp_ended(self, at: View) -> None:
        """Whoever steps in the warp sees what comes next."""
        task = self._task
        if isinstance(task, Goal) and task.kind != "continue" and (task.cta, task.warp) == (at.cta.place, at.warp):
            self._task = Goal("count", count=self.count + 1)
            self.gate.state.until = self.count + 1

    def cta_ended(self, cta: Cta) -> None:
        """What was watched in the CTA is no more."""
        self.mbarriers.pop(cta.place, None)
        gone = [one for one in self.session.breakpoints.values() if one.owner == cta.place and one.enabled]
        for one in gone:
            one.enabled = False
        if gone:
            self.arm()

    def found(self, at: View, lane: int, finding: Finding) -> None:
        """A checker reports something."""
        if self.session.stops_at_reports and isinstance(self._task, Goal) and not self.replays:
            self._points.hit_lane = lane
            self._stopped(at, Stop("report", f"{finding.checker}: {finding.message}"), keeps=False)
            self._resume(at)

    def trapped(self, trap: Trap) -> None:
        """The run goes back to where the thread was about to trap; of a deadlock, to the last instruction."""
        if isinstance(self._task, Search):
            self._searched(self._task)
        self._over = True
        if self._timeline is None or self.launch is None or self.session.trapped:
            return
        session = self.session
        session.trapped, session.furthest = True, max(session.furthest, self.count)
        session.ending = "\n".join([trap.reason, *trap.details])
        stop = Stop("trap", session.ending)
        if trap.kind not in (TrapKind.DEADLOCK, TrapKind.TIMEOUT) and trap.cta is not None and trap.thread is not None:
            x, y, _ = self.launch.block
            warp, lane = divmod(trap.thread[0] + x * (trap.thread[1] + y * trap.thread[2]), 32)
            self._search(Goal("step", trap.cta, warp, 1 << lane), self.count + 1, stop)
        self._timeline.back(self.count, Orders(session, Goto(self.count, stop)))

    def grid_ended(self, launch: Launch) -> None:
        if isinstance(self._task, Search) and self.count + 1 >= self._task.limit:
            self._searched(self._task)
        if isinstance(self._task, Goal) and not self._over:
            self.session.furthest = max(self.session.furthest, self.count)
            self.at = self.focus = None
            goal, backwards = self._ask(Stop("end", "the grid has ended"))
            while backwards:
                self._search(goal, self.count + 1)
                goal, backwards = self._ask(Stop("history", "there is nothing earlier to go back to"))
            self._task = goal if goal.kind == "continue" else Goal("count", count=self.count + 1)
            self.gate.state.until = NEVER if goal.kind == "continue" else self.count + 1
        self.launch = self.code = None

    # --- stopping -----------------------------------------------------------------------------------------------------

    def _looked_at(self, at: View) -> Stop | None:
        """Whether to stop at this instruction."""
        task, count = self._task, self.count
        assert self.code is not None
        if isinstance(task, Goto):
            if count < task.count or task.stop is not None:
                return task.stop if count >= task.count else None
            self._task = task = Goal()
        if isinstance(task, Search):
            if count >= task.limit:
                return self._searched(task)
            if task.goal.kind == "continue":
                met = self._points.hit(self.session, at, self.code, counts=False) is not None
            else:
                met = self._met(at, task.goal)
            task.best = count if met else task.best
            return None
        if not self.session.furthest:
            return Stop("entry", "")
        number = len(self.session.breakpoints)
        stop = self._points.hit(self.session, at, self.code, counts=True)
        if len(self.session.breakpoints) != number:  # a temporary one
            self.arm()
        if stop is None and self._met(at, task):
            task.times -= 1
            stop = Stop("step", "") if task.times < 1 else None
        if stop is None and (self._asked or self._front.wants()):
            stop = Stop("pause", "interrupted")
        return stop

    def _stopped(self, at: View, stop: Stop, *, keeps: bool = True) -> bool:
        """Let the user look, until the run is to go on. True in a process that has come back to this moment."""
        began = time.monotonic()
        self.at, self._asked = at, False
        self.session.furthest = max(self.session.furthest, self.count)
        timeline = self._timeline if keeps else None
        if timeline is not None and (self._ran > _SHORT or not timeline.snapshots) and self._keep(at, stop):
            return True
        self._focus_on(at, stop)
        self._task = Goal()
        while True:
            goal, backwards = self._ask(stop)
            if self._changed and timeline is not None and self._keep(at):
                return True
            self._changed = False
            if not backwards:
                break
            self._search(goal, self.count)
            stop = Stop("history", "there is nothing earlier to go back to")
        self._task = goal
        self._put_off(began)
        return False

    def _ask(self, stop: Stop) -> tuple[Goal, bool]:
        self.hit_numbers = tuple(number for number in stop.numbers if number in self.session.breakpoints)
        try:
            found = self._front.stopped(self, stop)
            self._asked = False
            return found
        except BaseException:
            self._over = True
            raise

    def _put_off(self, began: float) -> None:
        """Time that the user took does not count."""
        if self.launch is not None and self.launch.deadline is not None:
            self.launch.deadline += time.monotonic() - began

    def _keep(self, at: View, stop: Stop | None = None) -> bool:
        """Take a snapshot here, if that can be; true in a process that has come back to it. stop: why the run has
        stopped here."""
        self._ran, began = 0.0, time.monotonic()
        orders = None if self._timeline is None else self._timeline.take(self.count)
        if orders is None:
            return False
        self._put_off(began)
        self.session, self._task = orders.session, orders.task
        self.at, self._asked, self._changed = at, False, False
        self.arm()
        points, task = self.session.breakpoints, self._task
        if isinstance(task, Search) and task.goal.kind == "continue" and self.count < task.limit:
            hits = () if stop is None else stop.numbers  # a change of what is watched is seen only once
            if any(number in points and points[number].enabled for number in hits):
                task.best = self.count
        return True

    def _resume(self, at: View) -> None:
        """Set the gate for what is to be done, as the lanes go on."""
        task, state = self._task, self.gate.state
        goal, limit = Goal(), NEVER
        if isinstance(task, Goal):
            goal, limit = task, task.count if task.kind == "count" else NEVER
        elif isinstance(task, Search):
            goal, limit = task.goal, task.limit
        else:
            limit = task.count
        self.gate.passed(at)
        state.until = min(limit, self.count + _PERIOD)
        if goal.kind in ("continue", "count"):
            self.gate.follow(FOLLOW_NOBODY)
        elif goal.cta is None or goal.warp is None:
            state.until = self.count + 1
        elif isinstance(task, Search) and goal.kind == "step":
            task.best = max(task.best, int(state.seen))
            self.gate.follow(FOLLOW_NOTES, goal.cta, goal.warp, goal.lanes)
        else:
            self.gate.follow(FOLLOW_OPENS, goal.cta, goal.warp, goal.lanes)
        self._began = time.monotonic()

    def _focus_on(self, at: View, stop: Stop) -> None:
        """The lane that commands are about: the one before, if it has come here, else the first that has."""
        old, hit = self.focus, self._points.hit_lane
        if stop.kind in ("breakpoint", "report") and at.mask >> hit & 1:
            self.focus = Focus(at.cta.place, at.warp, hit)
        elif old is None or (old.cta, old.warp) != (at.cta.place, at.warp) or not at.mask >> old.lane & 1:
            self.focus = Focus(at.cta.place, at.warp, at.leader)

    # --- going back ---------------------------------------------------------------------------------------------------

    def _search(self, goal: Goal, limit: int, stop: Stop | None = None) -> None:
        """Go back to the last moment before `limit` at which a goal is met. Returns only where that cannot be."""
        if self._timeline is None:
            return
        self.session.trapped = stop is not None
        if goal.kind == "count":
            stop = None if goal.goes_on else Stop("goto", "")
            self._timeline.back(goal.count, Orders(self.session, Goto(goal.count, stop)))
            return
        first = self._timeline.before(limit)
        if first is not None:
            self._timeline.back(first, Orders(self.session, Search(goal, limit, first, stop=stop)))

    def _searched(self, task: Search) -> Stop:
        """A stretch has been searched: go to what was found, or search the one before."""
        assert self._timeline is not None
        goal, timeline = task.goal, self._timeline
        if goal.kind == "step" and goal.warp is not None:
            task.best = max(task.best, int(self.gate.state.seen))
        if task.best:
            goal.times -= 1
            if goal.times > 0:
                self._search(goal, task.best, task.stop)
            timeline.back(task.best, Orders(self.session, Goto(task.best, task.stop or Stop("back", ""))))
        first = timeline.before(task.first)
        if first is not None:
            timeline.back(first, Orders(self.session, Search(goal, task.first, first, stop=task.stop)))
        begun = Stop("history", "the run began here: there is nothing earlier")
        timeline.back(timeline.snapshots[0].count, Orders(self.session, Goto(timeline.snapshots[0].count, begun)))
        return begun

    # --- what stops it ------------------------------------------------------------------------------------------------

    def _met(self, at: View, goal: Goal) -> bool:
        """Whether a goal is met at an instruction."""
        if goal.kind in ("continue", "count"):
            return goal.kind == "count" and self.count >= goal.count
        if goal.cta not in (None, at.cta.place):
            return False
        ours = at.mask & goal.lanes
        if not ours or goal.warp not in (None, at.warp):
            return False
        if goal.kind == "step":
            return True
        depth = len(self.stack(at.cta.place, at.warp, (ours & -ours).bit_length() - 1))
        if goal.kind in ("next", "finish"):
            return depth <= goal.depth - (goal.kind == "finish")
        assert self.code is not None
        if goal.kind == "barrier":
            return self.code.opcode(at.op.where).startswith(BARRIERS)
        return depth <= goal.depth and self.source_line(at.op.where) not in ("", goal.source)

    def source_line(self, where: int) -> str:
        """The source line of an instruction, or ""."""
        origin = None if self.code is None else self.code.origin(where)
        return "" if origin is None else str(origin)

    def stack(self, cta: Dim3, warp: int, lane: int) -> list[tuple[str, int]]:
        """The calls that a lane is in, outermost first: the function, and where it was called."""
        return self._stacks.get((cta, warp, lane), [])

    def add(self, one: Breakpoint) -> Breakpoint:
        """Add a breakpoint or a watchpoint, which gets a number. Raises `LocationError`, `ExpressionError`."""
        self._points.add(self.session, one, self.code, self.lane())
        self.arm()
        return one

    def arm(self) -> None:
        """Open the gate at the breakpoints; to be called after they have changed."""
        if self.launch is not None and self.code is not None:
            self._points.arm(self.session, self.launch, self.code, self._inits)

    def release(self) -> None:
        """Nobody is there any more: the run goes on to its end."""
        self.session.breakpoints.clear()
        self.session.trapped, self.session.stops_at_reports = True, False
        self.arm()

    # --- looking ------------------------------------------------------------------------------------------------------

    def view(self, cta: Dim3, warp: int, lane: int) -> View | None:
        """A lane where it is; None if it is not resident or has exited."""
        at = self.at
        if at is not None and (at.cta.place, at.warp) == (cta, warp) and at.mask >> lane & 1:
            return at
        inspector = None if self.launch is None else self.launch.inspector
        return None if inspector is None else inspector.view(cta, warp, lane)

    def lane(self) -> Lane | None:
        """The lane that commands are about."""
        focus = self.focus
        view = None if focus is None else self.view(focus.cta, focus.warp, focus.lane)
        return None if view is None or focus is None else Lane(view, focus.lane)

    def modified(self) -> None:
        """The user has changed the run: what comes is different now, and earlier snapshots know nothing of it."""
        self._changed = True
        self._points.watch(self.session)

    def _note_mbarrier(self, at: View, lanes: Array) -> None:
        """Remember an mbarrier that is made: its address is the operand in brackets."""
        inside, _, rest = at.text.partition("[")[2].partition("]")
        for lane in lanes.tolist():
            try:
                address = int(evaluate(inside, Lane(at, lane))) & 0xFF_FFFF
                arrivals = int(evaluate(rest.strip(" ,;"), Lane(at, lane)))
            except ExpressionError:
                continue
            self.mbarriers.setdefault(at.cta.place, {})[address] = arrivals
