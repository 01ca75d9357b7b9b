"""The looks of `program.passes.instrument`: which bytes of which space the lanes access, and who meets where."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from ptxtools.machine.events import View, serves
from ptxtools.program.details import Look, Meeting
from ptxtools.program.program import LANES, LOCAL_WINDOW, PARAM_WINDOW, SHARED_WINDOW

from ..poison import REGISTERS
from .session import session_of

if TYPE_CHECKING:
    from .memcheck import MemCheck
    from .session import Session

Array: TypeAlias = npt.NDArray[Any]

_WINDOWS = ((SHARED_WINDOW, "shared"), (LOCAL_WINDOW, "local"), (PARAM_WINDOW, "param"))
_INSIDE = np.uint64((1 << 56) - 1)
_BITS = np.arange(LANES, dtype=np.uint64)


@dataclass(slots=True)
class Access:
    """Accesses of some lanes to one space: lane numbers, their addresses (u64), bytes of each."""

    space: str
    lanes: Array
    addresses: Array
    size: int
    action: str
    strong: bool

    @property
    def writes(self) -> bool:
        return self.action != "read"


def guarded(view: View, place: int, negated: bool) -> Array:
    """Numbers of the lanes whose guard holds."""
    here = (np.uint64(view.mask) >> _BITS & np.uint64(1)).astype(np.bool_)
    if view.op.src[place] is not None:
        here &= view.source(place) != negated
    return np.flatnonzero(here)


def accesses(view: View) -> list[Access]:
    """What a look at an access sees, by state space."""
    look = view.op.of(Look)
    action, size, strong = look.action, look.size, look.strong
    lanes = guarded(view, 1, look.negated)
    lanes = lanes[lanes < look.lanes]
    addresses = view.addresses()[lanes]
    space = {"cluster": "shared", "const": "global"}.get(view.op.space, view.op.space)
    if space != "generic":
        return [Access(space, lanes, addresses, size, action, strong)] if len(lanes) else []
    found = []
    rest = np.ones(len(lanes), np.bool_)
    for window, name in _WINDOWS:
        here = addresses >> np.uint64(56) == np.uint64(window >> 56)
        if here.any():
            found.append(Access(name, lanes[here], addresses[here] & _INSIDE, size, action, strong))
            rest &= ~here
    if rest.any():
        found.append(Access("global", lanes[rest], addresses[rest], size, action, strong))
    return found


def _only_good(session: Session, memory: MemCheck, view: View, parts: list[Access]) -> list[Access]:
    """What memcheck leaves of accesses; the look's result is who may make them, and what the others load is poison."""
    good = np.zeros(LANES, np.bool_)
    spoiled = 0
    left = []
    for part in parts:
        bad = None if part.space == "param" else memory.access(session, view, part)
        if bad is not None:
            spoiled |= sum(1 << int(lane) for lane in part.lanes[bad])
            part = replace(part, lanes=part.lanes[~bad], addresses=part.addresses[~bad])
        good[part.lanes] = True
        if len(part.lanes):
            left.append(part)
    if view.op.dst:
        view.result(0, good)
        for ref in view.op.src[2:] if spoiled and view.op.of(Look).action != "write" else ():
            if ref is not None:
                view.set_values(ref, _poisoned(ref.type), spoiled)
    return left


def _poisoned(storage: str) -> Any:
    if storage == "pred":
        return np.zeros(LANES, np.bool_)
    if storage == "b128":
        return (_poisoned("b64"), _poisoned("b64"))
    return np.full(LANES, REGISTERS[storage], f"u{int(storage[1:]) // 8}")


@serves("check.access")
def access(view: View) -> None:
    """Show an access to the checkers, before it is made."""
    session = session_of(view)
    parts = accesses(view)
    if session.memory is not None:
        parts = _only_good(session, session.memory, view, parts)
    for part in parts:
        if part.space == "param":
            continue
        if session.initial is not None:
            session.initial.access(session, view, part)
        if session.meetings is not None and part.space == "shared":
            session.meetings.access(session, view, part)
        if session.outstanding is not None:
            session.outstanding.access(view, part)
        if session.races is not None and part.space == "shared" and part.action != "copy":
            session.races.access(session, view, part)


@serves("check.arrive")
def arrive(view: View) -> None:
    """Show who comes to a barrier."""
    session = session_of(view)
    meeting = view.op.of(Meeting)
    what, lanes = meeting.what, guarded(view, 2, meeting.negated)
    if not len(lanes):
        return
    if session.meetings is not None:
        session.meetings.arrive(session, view, what, lanes)
    if session.races is not None and what != "warp":
        session.races.arrive(view, what, lanes)
    if session.outstanding is not None:
        session.outstanding.proxies.arrive(view, what, lanes)


@serves("check.leave")
def leave(view: View) -> None:
    """Show who leaves a barrier."""
    session = session_of(view)
    meeting = view.op.of(Meeting)
    what, lanes = meeting.what, guarded(view, 2, meeting.negated)
    if not len(lanes):
        return
    if session.meetings is not None:
        session.meetings.leave(session, view, what, lanes)
    if session.races is not None and what != "warp":
        session.races.leave(view, what, lanes)
    if session.outstanding is not None:
        session.outstanding.proxies.leave(view, what, lanes)


@serves("check.fence")
def fence(view: View) -> None:
    """Show a fence between proxies."""
    session, lanes = session_of(view), guarded(view, 2, view.op.of(Meeting).negated)
    if session.outstanding is not None and len(lanes):
        session.outstanding.proxies.fence(view, lanes)
