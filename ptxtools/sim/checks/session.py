"""The checkers of one launch, and what they have found."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from ptxtools.diagnostics import Trap, TrapKind

from ..context import context_of
from .findings import Finding

if TYPE_CHECKING:
    from ptxtools.diagnostics.origin import Origin
    from ptxtools.machine.events import View
    from ptxtools.program.program import Program

    from ..device import Device
    from ..program_lines import ProgramLines
    from .asynccheck import AsyncCheck
    from .initcheck import InitCheck
    from .memcheck import MemCheck
    from .racecheck import RaceCheck
    from .synccheck import SyncCheck

#: Reports of one launch; what comes after is counted.
_MOST = 100


class Session:
    """Checkers that are on are objects, others None. Workers share it."""

    def __init__(self, device: Device, places: ProgramLines, known: dict[Any, Finding]) -> None:
        """known: what was found before in the same launch, by key, by the grids that led to this one."""
        self.device = device
        self._places = places
        self.findings: list[Finding] = []
        self.left_out = 0
        self._known = known
        self.lock = threading.Lock()
        self.memory: MemCheck | None = None
        self.initial: InitCheck | None = None
        self.races: RaceCheck | None = None
        self.meetings: SyncCheck | None = None
        self.outstanding: AsyncCheck | None = None
        checks = device.checks
        if "asynccheck" in checks:
            from .asynccheck import AsyncCheck

            self.outstanding = AsyncCheck(self)
        if "initcheck" in checks:
            from .initcheck import InitCheck

            self.initial = InitCheck(device)
        if "racecheck" in checks:
            from .racecheck import RaceCheck

            self.races = RaceCheck()
        if "synccheck" in checks:
            from .synccheck import SyncCheck

            self.meetings = SyncCheck()

    def report(
        self, view: View, lane: int, checker: str, message: str, key: Any, details: tuple[str, ...] = ()
    ) -> None:
        """Note a finding; of one `key` the first, and how often it came."""
        with self.lock:
            key = (checker, view.launch.program.kernel, key)
            known = self._known.get(key)
            if known is not None:
                known.count += 1
                return
            if len(self.findings) >= _MOST:
                self.left_out += 1
                return
            program, where = view.launch.program, view.op.where
            file, line, text = self.place(program, where)
            who = program.kernel, view.cta.place, view.thread(lane)
            source = self._places.source_of(program, where)
            found = self._known[key] = Finding(checker, message, *who, file, line, text, details, source)
            self.findings.append(found)

    def place(self, program: Program, where: int) -> tuple[str, int | None, str]:
        """File, line and text of a place in a program."""
        if not 0 <= where < len(program.lines):
            return "", None, ""
        return *self._places.line_of(program, where), program.lines[where][2]

    def source_of(self, program: Program, where: int) -> Origin | None:
        """What another place of a report was generated from."""
        return self._places.source_of(program, where)

    def trap(self, view: View, lane: int, checker: str, message: str, details: tuple[str, ...] = ()) -> Trap:
        """A finding that ends the run."""
        trap = view.trap(message, lane)
        trap.kind, trap.details = TrapKind(checker), details
        return trap


def session_of(view: View) -> Session:
    """The session of the launch that a look belongs to."""
    session = context_of(view).checks
    assert session is not None
    return session
