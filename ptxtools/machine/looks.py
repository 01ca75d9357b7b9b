"""Serves the events that `program.passes.instrument` puts into a program: tells the observers."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from ptxtools.program.details import Called, Groups, Guard, Look, Meeting, Touch
from ptxtools.program.operations import strength
from ptxtools.program.program import (
    CODE_BASE,
    CODE_STEP,
    LANES,
    Op,
)
from ptxtools.records import replace

from .events import SPACE_OF_WINDOW, View, serves
from .observers import Access, Listeners

Array: TypeAlias = npt.NDArray[Any]

_INSIDE = np.uint64((1 << 56) - 1)
_EVERY_BIT = (1 << 64) - 1
_BITS = np.arange(LANES, dtype=np.uint64)
#: Keys in the state of a CTA: lanes that run the current instruction of a warp, and lanes that have exited.
_RUNNING, _LEFT = "lanes of an instruction", "lanes that left"


def listeners_of(view: View) -> Listeners:
    """The observers of the launch that an event belongs to."""
    listeners = view.launch.observers
    assert listeners is not None
    return listeners


def guarded(view: View, place: int, negated: bool) -> Array:
    """Numbers of the lanes whose guard (the source at `place`) holds."""
    lanes: Array = lanes_of(view.mask)
    if view.op.src[place] is None:
        return lanes
    found: Array = lanes[view.source(place)[lanes] != negated]
    return found


@lru_cache(1024)
def lanes_of(mask: int) -> Array:
    """Numbers of the lanes of a mask, ascending; nobody may change them."""
    found = np.flatnonzero(np.uint64(mask) >> _BITS & np.uint64(1))
    found.setflags(write=False)
    return found


def accesses(view: View) -> list[Access]:
    """The accesses at a look, split by state space."""
    look = view.op.of(Look)
    action, size, order = look.action, look.size, strength(view.op.opcode)
    lanes = guarded(view, 1, look.negated)
    lanes = lanes[lanes < look.lanes]
    addresses = view.addresses()[lanes]
    space = {"cluster": "shared", "const": "global"}.get(view.op.space, view.op.space)
    if space == "shared":
        addresses = view.shared_places(addresses, _EVERY_BIT)
    if space != "generic":
        return [Access(space, lanes, addresses, size, action, order)] if len(lanes) else []
    found = []
    rest = np.ones(len(lanes), np.bool_)
    for window, name in SPACE_OF_WINDOW.items():
        here = addresses >> np.uint64(56) == np.uint64(window)
        if here.any():
            places = addresses[here] & _INSIDE
            if name == "shared":
                places = view.shared_places(places, _EVERY_BIT)
            found.append(Access(name, lanes[here], places, size, action, order))
            rest &= ~here
    if rest.any():
        found.append(Access("global", lanes[rest], addresses[rest], size, action, order))
    return found


def _permitted(listeners: Listeners, view: View, parts: list[Access]) -> list[Access]:
    """The accesses that observers permit; the result of the look says which lanes make them."""
    good = np.zeros(LANES, np.bool_)
    left = []
    for part in parts:
        for permit in listeners.of("permit") if part.space != "param" else ():
            bad = permit(view, part)
            if bad is not None:
                part = replace(part, lanes=part.lanes[~bad], addresses=part.addresses[~bad])
        good[part.lanes] = True
        if len(part.lanes):
            left.append(part)
    if view.op.dst:
        view.result(0, good)
    return left


@serves("observe.access")
def access(view: View) -> None:
    """An access, before it is made."""
    listeners = listeners_of(view)
    if any(delays(view) for delays in listeners.of("delays")):
        return
    parts = accesses(view)
    if listeners.hear("permit"):
        parts = _permitted(listeners, view, parts)
    for part in parts:
        if part.space != "param":
            listeners.tell("access", view, part)


def sized_late(op: Op) -> bool:
    """Whether an event is about a source of which a copy reads what its third source says."""
    return op.kind == "observe.fetch" and len(op.src) > 2


def _read_of(view: View, part: Access) -> list[Access]:
    """The accesses of lanes to the source of a copy by what they read of it."""
    if not sized_late(view.op):
        return [part]
    last = view.source(2)[part.lanes]
    ignores = view.op.src_types[2] == "pred"
    sizes = np.where(last, 0, part.size) if ignores else np.minimum(last.astype(np.int64), part.size)
    return [
        replace(part, lanes=part.lanes[sizes == size], addresses=part.addresses[sizes == size], size=size)
        for size in np.unique(sizes[sizes > 0]).tolist()
    ]


@serves("observe.fetch")
def fetch(view: View) -> None:
    """What a copy reads: nothing, or less than it writes, if a third source says so."""
    for part in accesses(view):
        for less in _read_of(view, part):
            listeners_of(view).tell("fetched", view, less)


@serves("observe.ahead")
def ahead(view: View) -> None:
    """Several accesses in front of their block: each is looked at in its turn."""
    view.result(0, np.zeros(LANES, np.bool_))


def _tell(view: View, event: str) -> None:
    meeting = view.op.of(Meeting)
    lanes = guarded(view, 2, meeting.negated)
    if len(lanes):
        listeners_of(view).tell(event, view, meeting.what, lanes)


@serves("observe.arrive")
def arrive(view: View) -> None:
    """Lanes come to a barrier."""
    _tell(view, "arrive")


@serves("observe.leave")
def leave(view: View) -> None:
    """Lanes continue after it."""
    _tell(view, "leave")


@serves("observe.fence")
def fence(view: View) -> None:
    lanes = guarded(view, 2, view.op.of(Meeting).negated)
    if len(lanes):
        listeners_of(view).tell("fence", view, lanes)


@serves("observe.group")
def group(view: View) -> None:
    """Lanes put their copies into a group, or wait for groups."""
    groups = view.op.of(Groups)
    listeners_of(view).tell("grouped", view, groups.commit, groups.pending)


# --- registers and warps ----------------------------------------------------------------------------------------------


def _told(view: View, event: str, negated: bool) -> None:
    lanes = guarded(view, 0, negated)
    if len(lanes):
        listeners_of(view).tell(event, view, lanes)


@serves("observe.together")
def together(view: View) -> None:
    _told(view, "together", view.op.of(Guard).negated)


@serves("observe.control")
def control(view: View) -> None:
    _told(view, "control", view.op.of(Guard).negated)


@serves("observe.branch")
def branch(view: View) -> None:
    if view.op.src_types[0] == "pred":
        taken = guarded(view, 0, view.op.of(Guard).negated)
    else:  # the lanes that go where the first one does
        index, lanes = view.source(0), lanes_of(view.mask)
        taken = lanes[index[lanes] == index[lanes[0]]]
    listeners_of(view).tell("branch", view, taken)


@serves("observe.unwritten")
def unwritten(view: View) -> None:
    """Lanes whose guard nobody has written are told of, too."""
    listeners_of(view).tell("unwritten", view, guarded(view, 0, view.op.of(Touch).negated))


@serves("observe.in_flight")
def in_flight(view: View) -> None:
    _told(view, "in_flight", view.op.of(Touch).negated)


# --- instructions -----------------------------------------------------------------------------------------------------


def _mask(lanes: Array) -> int:
    return sum(1 << lane for lane in lanes.tolist())


@serves("observe.line")
def line(view: View) -> None:
    """Lanes come to an instruction. Which of them run it is remembered: the guard may have changed when it retires."""
    lanes = guarded(view, 0, view.op.of(Guard).negated)
    listeners = listeners_of(view)
    if listeners.hear("retired"):
        running = view.cta.state.setdefault(_RUNNING, {})
        running[view.warp] = running.get(view.warp, 0) & ~view.mask | _mask(lanes)
    if listeners.gate is None or listeners.gate.comes(view):
        listeners.tell("instruction", view, lanes)


@serves("observe.retired")
def retired(view: View) -> None:
    running = view.cta.state[_RUNNING][view.warp]
    lanes = np.flatnonzero(np.uint64(running & view.mask) >> _BITS & np.uint64(1))
    listeners_of(view).tell("retired", view, lanes)


# --- calls, beginnings and ends ---------------------------------------------------------------------------------------


@serves("observe.call")
def call(view: View) -> None:
    """One event for each function if lanes call different ones; an address of no function traps in the call itself."""
    called, program, listeners = view.op.of(Called), view.launch.program, listeners_of(view)
    lanes = np.array(list(view.lanes()))
    if called.function >= 0:
        listeners.tell("called", view, program.functions[called.function].name, lanes)
        return
    addresses = view.addresses()[lanes].astype(np.int64)
    for address in np.unique(addresses).tolist():
        place, rest = divmod(address - CODE_BASE, CODE_STEP)
        if rest == 0 and 0 <= place < len(called.targets) and called.targets[place] >= 0:
            name = program.functions[called.targets[place]].name
            listeners.tell("called", view, name, lanes[addresses == address])


@serves("observe.return")
def return_(view: View) -> None:
    lanes = guarded(view, 0, view.op.of(Guard).negated)
    if len(lanes):
        listeners_of(view).tell("returned", view, lanes)


@serves("observe.begin")
def begin(view: View) -> None:
    """The lanes of a warp come to the kernel's first instruction, all at once."""
    listeners, state = listeners_of(view), view.cta.state
    if _LEFT not in state:
        state[_LEFT] = {}
        listeners.tell("cta_begun", view.cta)
    if view.warp not in state[_LEFT]:
        state[_LEFT][view.warp] = 0
        listeners.tell("warp_begun", view)


@serves("observe.exit")
def exit_(view: View) -> None:
    """Lanes are about to exit; with the last of them the warp ends."""
    x, y, z = view.launch.block
    everybody = (1 << min(LANES, x * y * z - LANES * view.warp)) - 1
    left = view.cta.state[_LEFT]
    left[view.warp] |= _mask(guarded(view, 0, view.op.of(Guard).negated))
    if left[view.warp] == everybody:
        left[view.warp] = -1
        listeners_of(view).tell("warp_ended", view)
