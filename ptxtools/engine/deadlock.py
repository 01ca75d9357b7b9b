"""Who waits for what: the report when nobody can move, the same for both engines."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ptxtools.diagnostics import Trap

from .grid import Dim3
from .program import Program
from .residents import Cluster, Schedule

#: Warps that are named one by one.
_MOST = 24


@dataclass(slots=True)
class Waiting:
    """Lanes of one warp that wait. what: such as "at barrier 0"; where: line of the instruction; thread: the first."""

    cta: Dim3
    warp: int
    lanes: int
    what: str
    where: int
    thread: Dim3


def report(program: Program, summary: Iterable[str], waiting: list[Waiting], reason: str, kind: str) -> Trap:
    """The trap that tells it: first what holds for a CTA as a whole, then each warp with the place it waits at."""
    lines = list(summary)
    places = [-1] * len(lines)
    for one in waiting[:_MOST]:
        text = f" ({_short(program, one.where)})" if one.where >= 0 else ""
        count = one.lanes.bit_count()
        who = f"CTA ({_show(one.cta)}), warp {one.warp}: {count} thread{'s' * (count != 1)} wait{'s' * (count == 1)}"
        lines.append(f"{who} {one.what}{text}")
        places.append(one.where)
    if len(waiting) > _MOST:
        lines.append(f"and {len(waiting) - _MOST} more")
        places.append(-1)
    first = waiting[0] if waiting else None
    where = first.where if first is not None and first.where >= 0 else None
    trap = Trap(
        reason, kernel=program.kernel, cta=first.cta if first else None, thread=first.thread if first else None,
        kind=kind, where=where, text=program.lines[where][2] if where is not None else "", details=tuple(lines),
    )  # fmt: skip
    trap.places = tuple(places)
    return trap


def pending(schedule: Schedule, cluster: Cluster | None) -> list[str]:
    """Lines for work that is pending in a cluster."""
    return [] if cluster is None else [f"pending: {text}" for text in schedule.pending(cluster)]


def overflow(callee: str, depth: int, local: int) -> str:
    """Why a call is a trap: a thread's local memory has no room for another frame."""
    return f"stack overflow in a call of {callee}, {depth} calls deep: a thread has {local} bytes of local memory"


def no_member(lane: int, mask: int) -> str:
    """Why a `.sync` operation of a warp is a trap: the manual leaves open what it does then (9.7.9.6, 9.7.13)."""
    return f"lane {lane} is not in its own member mask {mask:#x}"


def missing(came: int, expected: int) -> str:
    return f"{came} of {expected} threads came, {max(0, expected - came)} are missing"


def _show(place: Dim3) -> str:
    return ",".join(map(str, place))


def _short(program: Program, where: int) -> str:
    return " ".join(program.lines[where][2].split())
