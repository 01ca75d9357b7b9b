"""The checkers of one launch, and what they have found."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, Any

from ptxtools.diagnostics import Trap, TrapKind
from ptxtools.diagnostics.findings import Finding, Site, Verdict
from ptxtools.machine.observers import Alone, Doubt
from ptxtools.sim.silenced import heard

if TYPE_CHECKING:
    from ptxtools.diagnostics.origin import Origin
    from ptxtools.machine.events import View
    from ptxtools.program.program import Program
    from ptxtools.sim.allocations import Allocations
    from ptxtools.sim.device import Device, Grid
    from ptxtools.sim.program_lines import ProgramLines

    from .race_grids import Before

#: What decides an order that only the content of memory shows.
_ACCESSES = ("a read", "a write")
#: Types of what is known.
_COPIED = (list, dict, int)
#: Reports of one grid; what comes after is counted.
_MOST = 100


class Session:
    """The checkers that look at a launch's grids (`machine.observers.Watch`). Workers share it."""

    def __init__(self, device: Device, names: frozenset[str]) -> None:
        self.device, self._names = device, names
        self._places: ProgramLines | None = None
        self.shared = False  # several workers run the grid
        self._first: object = None  # the request of the grid that the host launches, and no other grid
        self.is_launched = True  # whether the grid that runs is that one
        self._before = _grid_before(device) if TrapKind.RACECHECK in names else None
        self.findings: list[Finding] = []
        self.left_out = 0
        self.told = 0  # how often checkers have reported anything
        self._room = _MOST
        self._known: dict[Any, tuple[Finding, int]] = {}  # what was found before in the same launch, and its weight
        self._deciders: dict[tuple[str, int | None], str] = {}
        self._left_open: dict[str, None] = {}
        self.lock = threading.Lock()

    def begin(self, grid: Grid) -> Sequence[object]:
        """New checkers for a grid. memcheck comes first: it says which accesses are made at all."""
        self._places, self._room, self.shared = grid.context.places, _MOST, grid.shared
        self._layout = grid.image, grid.request.kernel, grid.request.params
        self._first = self._first or grid.request
        self.is_launched = self._first is grid.request
        child = grid.context.child
        if grid.trial and (self.before is not None or (child is not None and child.told is not None)):
            raise Doubt  # which of its accesses race with those is no matter of a first look
        return [class_of(name, trial=grid.trial)(self, grid) for name in _CHECKERS if name in self._names]

    def looks(self, name: str) -> bool:
        """Whether a checker is on."""
        return name in self._names

    @property
    def before(self) -> Before | None:
        """The grid before the one that begins, if that may run beside it."""
        return self._before if self.is_launched else None

    def saved(self) -> Callable[[], None]:
        """What puts back all that is known now."""
        known = {
            name: value if isinstance(value, int) else value.copy()
            for name, value in vars(self).items()
            if isinstance(value, _COPIED)
        }
        counts = [(finding, finding.count) for finding in self.findings]
        unwritten: Callable[[], None] | None = None
        if TrapKind.INITCHECK in self._names:
            from .unwritten import unwritten_of

            unwritten = unwritten_of(self.device).saved()

        def put_back() -> None:
            vars(self).update(known)
            for finding, count in counts:
                finding.count = count
            if unwritten is not None:
                unwritten()

        return put_back

    @property
    def allocations(self) -> Allocations:
        """What lies in global memory now."""
        from ptxtools.sim.allocations import Allocations

        return Allocations(self.device, *self._layout)

    def end(self) -> list[Finding]:
        return self.findings

    def report(
        self, view: View, lane: int, checker: str, message: str, key: Any, details: tuple[str, ...] = (), **more: Any
    ) -> None:
        """Note a finding; of one `key` the first, and how often it came. more: further fields of `Finding`."""
        before = len(self.findings)
        self.report_at(
            view.launch.program, view.op.where, view.cta.place, view.thread(lane), checker, message, key,
            details=details, **more,
        )  # fmt: skip
        if len(self.findings) > before and view.launch.observers is not None:
            view.launch.observers.tell("found", view, lane, self.findings[-1])

    def report_at(
        self,
        program: Program,
        where: int,
        cta: tuple[int, int, int] | None,
        thread: tuple[int, int, int] | None,
        checker: str,
        message: str,
        key: Any,
        weight: int = 0,
        **more: Any,
    ) -> None:
        """The same for a place in a program where no warp is stopped any more. weight: a finding of one key with more
        of it takes the place of the one before."""
        self._by_one_worker()
        with self.lock:
            self.told += 1
            key = (checker, program.kernel, key)
            known, least = self._known.get(key, (None, 0))
            if known is not None and weight <= least:
                known.count += 1
                return
            if known is None and not self._room:
                self.left_out += 1
                return
            found = self._finding(program, where, cta, thread, checker, message, **more)
            self._known[key] = found, weight
            if known is not None:
                found.count += known.count
                self.findings[next(n for n, one in enumerate(self.findings) if one is known)] = found
                return
            self._room -= 1
            self.findings.append(found)

    def _by_one_worker(self) -> None:
        """Reports come in the order in which one worker finds them. Raises `Alone` where several share the grid."""
        if self.shared:
            raise Alone

    def _finding(
        self, program: Program, where: int, cta: tuple[int, int, int] | None, thread: tuple[int, int, int] | None,
        checker: str, message: str, **more: Any,
    ) -> Finding:  # fmt: skip
        who = program.kernel, cta, thread
        return Finding(
            checker, message, *who, *self.place(program, where), source=self.source_of(program, where), **more
        )

    def decide(self, program: Program, where: int, what: str) -> None:
        """Note a line that decides the order in which threads synchronise, for racecheck's verdict."""
        file, line, _ = self.place(program, where)
        self._deciders.setdefault((file, line), what)

    def leave_open(self, what: Collection[str]) -> None:
        """Note that what memory has in the end may depend on the order of such lines."""
        self._left_open |= dict.fromkeys(what)

    @property
    def verdict(self) -> Verdict | None:
        """racecheck's, where it runs and has found no race."""
        if TrapKind.RACECHECK not in self._names or any(one.checker == TrapKind.RACECHECK for one in self.findings):
            return None
        return Verdict.of(self._deciders)

    @property
    def deciders(self) -> Collection[str]:
        """Those of the verdict; and those that decide nothing but what memory has in the end."""
        if TrapKind.RACECHECK not in self._names:
            return ()
        return [*self._deciders.values(), *self._left_open]

    @property
    def decisive(self) -> Collection[tuple[str, int | None]]:
        """Lines of the verdict that are plain accesses, or may be."""
        return [place for place, what in self._deciders.items() if what in _ACCESSES]

    def site(
        self, program: Program, where: int, cta: tuple[int, int, int] | None = None,
        thread: tuple[int, int, int] | None = None,
    ) -> Site:  # fmt: skip
        """A place in a program as the other side of a report."""
        return Site(*self.place(program, where), cta, thread, self.source_of(program, where))

    def place(self, program: Program, where: int) -> tuple[str, int | None, str]:
        """File, line and text of a place in a program."""
        assert self._places is not None
        if not 0 <= where < len(program.lines):
            return "", None, ""
        return *self._places.line_of(program, where), program.lines[where][2]

    def source_of(self, program: Program, where: int) -> Origin | None:
        """What a place of a program was generated from."""
        assert self._places is not None
        return self._places.source_of(program, where)

    def stop(self, view: View, lane: int, checker: str, message: str, details: tuple[str, ...], **more: Any) -> None:
        """Raise the `Trap` of a finding, unless it is silenced."""
        self._by_one_worker()
        who = view.op.where, view.cta.place, view.thread(lane)
        found = self._finding(view.launch.program, *who, checker, message, details=details, **more)
        assert self._places is not None
        if heard(self.device, [found], self._places.source)[0]:
            raise self.trap(view, lane, checker, message, details)

    def trap(self, view: View, lane: int, checker: str, message: str, details: tuple[str, ...] = ()) -> Trap:
        """A finding that ends the run."""
        trap = view.trap(message, lane)
        trap.kind, trap.details = TrapKind(checker), details
        return trap


def _grid_before(device: Device) -> Before | None:
    from .race_grids import taken

    return taken(device)


def _memcheck() -> type:
    from .memcheck import MemCheck

    return MemCheck


def _initcheck() -> type:
    from .initcheck import InitCheck

    return InitCheck


def _synccheck() -> type:
    from .synccheck import SyncCheck

    return SyncCheck


def _asynccheck() -> type:
    from .asynccheck import AsyncCheck

    return AsyncCheck


def _racecheck() -> type:
    from .racecheck import RaceCheck

    return RaceCheck


#: In the order in which they are told of an event.
_CHECKERS: dict[str, Callable[[], type]] = {
    TrapKind.MEMCHECK: _memcheck,
    TrapKind.INITCHECK: _initcheck,
    TrapKind.SYNCCHECK: _synccheck,
    TrapKind.ASYNCCHECK: _asynccheck,
    TrapKind.RACECHECK: _racecheck,
}


def class_of(name: str, *, trial: int = 0) -> type:
    """The class of a checker that looks at grids. It takes the session, and the grid. trial: for a first look, or a
    closer one (2)."""
    if trial > 1 and name == TrapKind.RACECHECK:
        from .race_clocked import RaceClocked

        return RaceClocked
    if trial and name == TrapKind.RACECHECK:
        from .race_trial import RaceTrial

        return RaceTrial
    if trial and name == TrapKind.ASYNCCHECK:
        from .async_trial import AsyncTrial

        return AsyncTrial
    return _CHECKERS[name]()
