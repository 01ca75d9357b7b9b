"""A launch in further schedules, which reverse what it has decided (`RunOptions.explore`; docs/checking.md)."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import numpy as np

from ptxtools.diagnostics import LaunchError, Trap, TrapKind
from ptxtools.diagnostics.findings import Exploration, Finding
from ptxtools.machine.exploring import RACING
from ptxtools.machine.providers import explorers
from ptxtools.records import replace

from .allocations import Allocations
from .silenced import heard

if TYPE_CHECKING:
    from ptxtools.program.program import Program

    from .context import LaunchContext
    from .device import Device, Request, RunResult
    from .hostmap import HostMap
    from .loadable import Loadable

#: The most device memory of which copies are kept.
_MOST_BYTES = 1 << 30
#: What decides an order and can be reversed (`Verdict.decided_by`).
_REVERSIBLE = {"an atomic", "a read", "a write"}


def explored(device: Device, module: Loadable, request: Request, host: HostMap | None) -> RunResult:
    """Run a launch, and again in up to `request.explore` schedules. Memory, results and output are those of the first
    run; what checkers find in the others is added to its reports. Raises `LaunchError` for what cannot run again, and
    `Trap` if the first run fails."""
    once = replace(request, explore=None)
    _check(device, module, request, host)
    deadline = None if request.timeout is None else time.monotonic() + request.timeout
    context = device.runtime.context(module)
    again = _Again(device, module, once, context)
    result = device.run_once(module, once, context=context)
    assert request.explore is not None
    result.explored = again.explore(result, request.explore, deadline)
    return result


def _check(device: Device, module: Loadable, request: Request, host: HostMap | None) -> None:
    if TrapKind.RACECHECK not in device.checks:
        raise LaunchError("explore: racecheck says what can be reversed: --check racecheck is needed")
    if host is not None or device.host_addresses:
        raise LaunchError("explore: memory of the host cannot be put back, so the launch cannot run again")
    if device.engine != "native":
        raise LaunchError("explore: only the native engine lets warps wait for their turn")
    if device.observers:
        raise LaunchError("explore: the launch runs many times: with no trace, profile, debugger or other observers")
    program = device.program(module, request.kernel)
    served = sorted(device.runtime.calls(program) - {"vprintf"})
    if served:
        raise LaunchError(f"explore: the kernel calls {served[0]}, whose effects cannot be put back")
    if device.arena.used > _MOST_BYTES:
        raise LaunchError(f"explore: {device.arena.used:,} bytes of device memory are too many to keep")


class _Again:
    """A launch with the memory that it begins with."""

    def __init__(self, device: Device, module: Loadable, request: Request, context: LaunchContext) -> None:
        self._device, self._module, self._request, self._context = device, module, request, context
        self._memory = device.arena.view(device.arena.base, device.arena.used)
        self._before = bytes(self._memory)
        self._restore = [watch.saved() for watch in context.watches]
        self._frontier = explorers.find("orders")
        self._programs: dict[Any, Program] = {}
        self._known: dict[Any, Finding] = {}
        self._decisive: set[Any] = set()

    def explore(self, result: RunResult, most: int, deadline: float | None) -> Exploration:
        """Run it up to `most` times, until `deadline`."""
        deciders = {what for watch in self._context.watches for what in watch.deciders}
        races = _races([*result.reports, *result.silenced])
        if not races and not deciders:
            return Exploration()
        device = self._device
        after = bytes(self._memory)
        kept = device.on_print, device.runtime.state.get(RACING)
        device.on_print, device.runtime.state[RACING] = None, frozenset()
        self._look_closer(result)
        for finding in (*result.reports, *result.silenced):
            self._known[_key(finding)] = finding
        try:
            found = self._schedules(result, after, most, deadline)
        finally:
            device.on_print, device.runtime.state[RACING] = kept
            self._memory[:] = after
        return replace(found, complete=found.complete and deciders <= _REVERSIBLE)

    def _schedules(self, result: RunResult, after: bytes, most: int, deadline: float | None) -> Exploration:
        failed: list[tuple[int, str]] = []
        differs: list[tuple[int, str]] = []
        done, complete, device = 0, False, self._device
        for number in range(1, most + 2):
            observer = self._frontier.next()
            left = None if deadline is None else deadline - time.monotonic()
            if observer is None:
                complete = self._frontier.whole
                break
            if number > most or (left is not None and left <= 0):
                break
            try:
                more = self._run(observer, left)
                self._add(result.reports, more.reports, number)
                self._add(result.silenced, more.silenced, number)
                where = self._difference(after)
                if where:
                    differs.append((number, where))
            except Trap as trap:
                if trap.kind is TrapKind.INTERRUPTED or (
                    trap.kind is TrapKind.TIMEOUT and deadline is not None and time.monotonic() >= deadline
                ):
                    break
                failed.append((number, f"{trap.kind}: {trap.reason}"))
                mine, known = heard(device, [_finding(trap, number)], self._context.places.source)
                self._add(result.reports, [*trap.findings, *mine], number)
                self._add(result.silenced, known, number)
            done = number
            self._frontier.learn(observer)
            self._look_closer(result)
        return Exploration(done, self._frontier.count, complete, tuple(failed), tuple(differs))

    def _run(self, observer: object, left: float | None) -> RunResult:
        self._memory[:] = self._before
        for put_back in self._restore:
            put_back()
        device = self._device
        launches = device.launches
        try:
            with device.watched(observer, self._programs):
                return device.run_once(self._module, replace(self._request, timeout=left))
        finally:
            device.launches = launches

    def _look_closer(self, result: RunResult) -> None:
        """Where other lines race than those that are known, their orders count as well: begin anew."""
        races = _races([*result.reports, *result.silenced])
        lines, state = self._lines(races), self._device.runtime.state
        if lines != state[RACING]:
            state[RACING] = lines
            self._programs.clear()
            self._frontier = explorers.find("orders")

    def _lines(self, races: list[Finding]) -> frozenset[Any]:
        """The lines that race, and those that the verdict names."""
        program, places = self._device.program(self._module, self._request.kernel), self._context.places
        wanted = {(one.file, one.line) for one in races}
        self._decisive |= {place for watch in self._context.watches for place in watch.decisive}
        wanted |= self._decisive
        wanted |= {(other.file, other.line) for race in races for other in race.others}
        lines = enumerate(program.lines)
        return frozenset(line for where, line in lines if places.line_of(program, where) in wanted)

    def _add(self, reports: list[Finding], findings: list[Finding], number: int) -> None:
        """What is new of the findings of a schedule."""
        for finding in findings:
            known = self._known.get(_key(finding))
            if known is None:
                self._known[_key(finding)] = finding
                finding.details += (f"in schedule {number} of --explore",)
                reports.append(finding)

    def _difference(self, after: bytes) -> str:
        """The first byte of device memory that is not as the first run has left it."""
        now, then = np.frombuffer(self._memory, np.uint8), np.frombuffer(after, np.uint8)
        places = np.flatnonzero(now != then)
        if not len(places):
            return ""
        address = self._device.arena.base + int(places[0])
        image = self._device.load(self._module)
        allocations = Allocations(self._device, image, self._request.kernel, self._request.params)
        around = allocations.around(address) or f"global {address:#x}"
        return f"{len(places):,} byte{'s' * (len(places) > 1)}, the first in {around}"


def _races(reports: list[Finding]) -> list[Finding]:
    """Those that are about two accesses."""
    return [one for one in reports if one.checker == TrapKind.RACECHECK and one.others]


def _key(finding: Finding) -> Any:
    others = tuple((other.file, other.line) for other in finding.others)
    return finding.checker, finding.kind, finding.file, finding.line, others


def _finding(trap: Trap, number: int) -> Finding:
    """A schedule that fails as a report of racecheck."""
    message = f"schedule {number} ends with {trap.kind}: {trap.reason}"
    who = trap.kernel, trap.cta, trap.thread
    details = tuple(line for line in trap.details if not line.startswith("reported before: "))
    return Finding(
        TrapKind.RACECHECK, message, *who, trap.file, trap.line, trap.text, details, trap.source, kind=str(trap.kind)
    )
