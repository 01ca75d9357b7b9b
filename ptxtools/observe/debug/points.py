"""Breakpoints and watchpoints: where they are, whether they stop the run, and how they open the gate."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any

import numpy as np

from ptxtools.machine.events import words_at
from ptxtools.machine.gates import WATCHES, Gate
from ptxtools.machine.registers import named

from .expressions import SIZES, ExpressionError, Lane, Memory, decode, evaluate, fetch, place, register_word
from .goals import Breakpoint, Session, Stop

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ptxtools.machine.events import View
    from ptxtools.machine.launch import Dim3, Launch

    from .code import Code


class Points:
    """The stops of a session. hit_lane: the first lane for which the last breakpoint held."""

    def __init__(self, gate: Gate) -> None:
        self._gate, self.hit_lane = gate, 0
        self._wheres: dict[int, list[Breakpoint]] = {}  # by instruction

    def add(self, session: Session, one: Breakpoint, code: Code | None, at: Lane | None) -> Breakpoint:
        """Add a breakpoint or a watchpoint, which gets a number. Raises `LocationError`, `ExpressionError`."""
        if one.kind == "watch":
            self._place_watch(session, one, at)
        elif code is not None:
            code.find(one.location)
        if one.condition and at is not None:
            check_condition(one.condition, at)
        session.number += 1
        one.number = session.number
        session.breakpoints[one.number] = one
        return one

    def arm(self, session: Session, launch: Launch, code: Code, always: Iterable[int]) -> None:
        """Open the gate at the instructions of the breakpoints, and at those in `always`."""
        self._wheres = {}
        flags = self._gate.armed(launch.program)
        flags[:] = 0
        flags[list(always)] = 1
        for one in session.breakpoints.values():
            if one.enabled and one.kind == "break":
                for where in _found(code, one.location):
                    self._wheres.setdefault(where, []).append(one)
                    flags[where] = 1
        self.watch(session)

    def watch(self, session: Session) -> None:
        """Watch from what the values are now."""
        for one in _watches(session):
            one.value = _value(one)
        self._gate.watch([word for one in _watches(session) for word in one.words])

    # --- hits ---------------------------------------------------------------------------------------------------------

    def hit(self, session: Session, at: View, code: Code, *, counts: bool) -> Stop | None:
        """The watchpoints and breakpoints that stop the run here. counts: as hits."""
        stop = self._watched(session, at, code)
        hit: list[int] = []
        for one in self._wheres.get(at.op.where, ()):
            lane = _lane_of(at, one)
            if lane is None or one.number not in session.breakpoints:
                continue
            if counts:
                one.hits += 1
                if one.ignore:
                    one.ignore -= 1
                    continue
            hit.append(one.number)
            self.hit_lane = lane
            if one.temporary and counts:
                del session.breakpoints[one.number]
        if stop is None and hit:
            stop = Stop("breakpoint", f"breakpoint {', '.join(map(str, hit))}", tuple(hit))
        return stop

    def _watched(self, session: Session, at: View, code: Code) -> Stop | None:
        """The watchpoints whose values have changed."""
        state = self._gate.state
        if not any(self._gate.changed()):
            return None
        told, numbers = [], []
        for one in _watches(session):
            old, one.value = one.value, _value(one)
            if old != one.value:
                one.hits += 1
                numbers.append(one.number)
                told.append(f"watchpoint {one.number}: {one.location}: {shown(old)} -> {shown(one.value)}")
        self.watch(session)
        if not told:
            return None
        before = code.place(int(state.last_where))
        text = f"  after {before}: {before.text}"
        if getattr(at.launch.device, "engine", "") == "native":  # the other one lets several warps run a line together
            text += f", CTA ({state.last_x},{state.last_y},{state.last_z}) warp {state.last_warp}"
        return Stop("watchpoint", "\n".join([*told, text]), tuple(numbers))

    def _place_watch(self, session: Session, one: Breakpoint, at: Lane | None) -> None:
        if at is None:
            raise ExpressionError("nothing runs that could be watched")
        what = place(one.location, at)
        if isinstance(what, str):
            one.words, one.owner = register_word(at, what), at.view.cta.place
            one.type = named(at.view)[what][1]
        else:
            one.words, one.owner = words_of(at, what)
            one.type = what.type
        if sum(len(other.words) for other in _watches(session)) + len(one.words) > WATCHES:
            raise ExpressionError(f"only {WATCHES} words can be watched at a time")
        one.value = _value(one)


def words_of(at: Lane, what: Memory) -> tuple[list[tuple[int, int]], Dim3 | None]:
    """Host memory of a place in memory, and the CTA that it ends with. Raises `ExpressionError`."""
    size = SIZES[what.type]
    fetch(at, what.address, size, what.space)  # whether it is there
    space, address = at.view.resolve(what.address, "" if what.space == "generic" else what.space)
    if space == "shared":
        cta = at.view.shared_owner(address, lane=at.lane)
        start = np.frombuffer(cta.shared, np.uint8).__array_interface__["data"][0]
        return words_at(start + (address & 0xFF_FFFF), size), cta.place
    if space in ("global", "const"):
        memory = at.view.launch.memory
        return words_at(memory.host + address - memory.base, size), None
    raise ExpressionError(f"{space} memory cannot be watched")


def shown(value: Any) -> str:
    """A value for people: whole numbers above 9 in hexadecimal, too."""
    if isinstance(value, bool) or not isinstance(value, int) or -10 < value < 10:
        return str(value)
    return f"{value} ({value:#x})"


def _watches(session: Session) -> list[Breakpoint]:
    return [one for one in session.breakpoints.values() if one.enabled and one.kind == "watch"]


def _value(one: Breakpoint) -> Any:
    """What a watched value is now."""
    contents = [(ctypes.string_at(address, 8), mask) for address, mask in one.words]
    if one.type == "pred":
        return any(int.from_bytes(data, "little") & mask for data, mask in contents)
    data = bytes(content[n] for content, mask in contents for n in range(8) if mask >> 8 * n & 0xFF)
    return decode(data, one.type)


def _lane_of(at: View, one: Breakpoint) -> int | None:
    """The first lane for which a breakpoint holds."""
    if one.cta not in (None, at.cta.place) or one.warp not in (None, at.warp):
        return None
    for lane in at.lanes():
        if one.lane in (None, lane):
            try:
                if not one.condition or evaluate(one.condition, Lane(at, lane)):
                    return lane
            except ExpressionError:  # no value: the condition does not hold
                continue
    return None


def _found(code: Code, location: str) -> list[int]:
    """The instructions at a location; none where the program that runs has no such place."""
    try:
        return code.find(location)
    except ValueError:
        return []


def check_condition(condition: str, at: Lane) -> None:
    """Raise `ExpressionError` for a condition that is malformed; one about a register that is not known yet is fine."""
    try:
        evaluate(condition, at)
    except ExpressionError as error:
        if "known at this line" not in str(error):
            raise
