"""Reports of deadlocks and limits, for both engines: which threads wait for what, and where the others are."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias

from ptxtools.diagnostics import Trap, shown
from ptxtools.program.program import Program
from ptxtools.records import dataclass

from .launch import Dim3
from .polled import Look
from .residents import Cluster, Schedule, Wait

#: The most groups of warps in a report, ranges of CTAs or warps per group, and pieces of pending work.
_MOST, _RANGES, _PENDING = 48, 8, 8

#: What lanes wait for at an instruction that their warp executes as a whole.
PARTED = "for other lanes of the warp"
#: How what warps wait for begins if others of their warpgroup have not issued a product (`sim.tensor.wgmma_groups`).
_GROUP = "for wgmma group"

#: A line about a CTA as a whole (None: about no CTA in particular).
CtaLine: TypeAlias = tuple[Dim3 | None, str]


@dataclass(slots=True)
class Waiting:
    """Lanes of one warp that wait, or (runs) are merely located somewhere. what: such as "at barrier 0"; where: line of
    the instruction, or -1; thread: the first; for_all: for all other threads of the CTA or the cluster."""

    cta: Dim3
    warp: int
    lanes: int
    what: str
    where: int
    thread: Dim3
    runs: bool = False
    for_all: bool = False


def told(
    program: Program, grid: Dim3, gather: Callable[[list[CtaLine], list[Waiting]], None], reason: str, kind: str
) -> Trap:
    """The trap that reports what `gather` adds to its lists. Ctrl-C meanwhile raises `KeyboardInterrupt` from the
    report of what it had added so far."""
    lines: list[CtaLine] = []
    found: list[Waiting] = []
    try:
        gather(lines, found)
        return report(program, grid, lines, found, reason, kind)
    except KeyboardInterrupt as stop:
        lines.append((None, "interrupted while threads were looked for: there may be more"))
        raise stop from report(program, grid, lines, found, reason, kind)


def report(
    program: Program, grid: Dim3, summary: Iterable[CtaLine], waiting: list[Waiting], reason: str, kind: str
) -> Trap:
    """The trap with the report: lines about CTAs as a whole, then each warp with its location.

    CTAs with equal lines, and warps that do the same at the same line, share a line, so that the report of a large grid
    stays readable.
    """
    waiting = sorted(waiting, key=lambda one: (_linear(one.cta, grid), one.warp, one.where, one.thread[::-1]))
    told = [(_ctas(grid, ctas) + ": " if ctas else "") + text for text, ctas in _same(summary).items()]
    places = [-1] * len(told)
    groups = _groups(waiting)
    for group in groups[:_MOST]:
        first = group[0]
        text = f" ({_short(program, first.where)})" if first.where >= 0 else ""
        told.append(f"{_who(grid, group)}{' ' + first.what if first.what else ''}{text}")
        places.append(first.where)
    if len(groups) > _MOST:
        warps = {(one.cta, one.warp) for group in groups[_MOST:] for one in group}
        told.append(f"and {len(warps)} more warps at {len(groups) - _MOST} other lines")
        places.append(-1)
    one = _first(waiting, kind)
    where = one.where if one is not None and one.where >= 0 else None
    trap = Trap(
        reason, kernel=program.kernel, cta=one.cta if one else None, thread=one.thread if one else None,
        kind=kind, where=where, text=program.lines[where][2] if where is not None else "", details=tuple(told),
    )  # fmt: skip
    trap.places = tuple(places)
    trap.parted = _parted(waiting)
    trap.lacking = tuple(dict.fromkeys(one.where for one in waiting if one.what.startswith(_GROUP)))
    return trap


def _parted(waiting: Iterable[Waiting]) -> tuple[int, ...]:
    """Lines where lanes wait for others of their warp, all of which wait so themselves."""
    warps: dict[tuple[Dim3, int], list[Waiting]] = {}
    for one in waiting:
        warps.setdefault((one.cta, one.warp), []).append(one)
    apart = [some for some in warps.values() if all(one.what == PARTED for one in some)]
    return tuple(dict.fromkeys(one.where for some in apart for one in some))


def _first(waiting: list[Waiting], kind: str) -> Waiting | None:
    """The thread that the report is about: a waiting one for a deadlock, a running one for a time limit. Who waits for
    all others at a barrier waits because they do."""
    return min(waiting, key=lambda one: (one.runs != (kind == "timeout"), one.for_all), default=None)


def _same(summary: Iterable[CtaLine]) -> dict[str, list[Dim3]]:
    """The CTAs to which each text applies."""
    found: dict[str, list[Dim3]] = {}
    for cta, text in summary:
        ctas = found.setdefault(text, [])
        if cta is not None:
            ctas.append(cta)
    return found


def _groups(waiting: list[Waiting]) -> list[list[Waiting]]:
    """Warps grouped by location and reason, in CTAs with the same warps."""
    alike: dict[tuple[object, ...], dict[Dim3, list[Waiting]]] = {}
    for one in waiting:
        alike.setdefault((one.where, one.what, one.runs), {}).setdefault(one.cta, []).append(one)
    found: dict[tuple[object, ...], list[Waiting]] = {}
    for key, ctas in alike.items():
        for members in ctas.values():
            found.setdefault((key, tuple(sorted({one.warp for one in members}))), []).extend(members)
    return list(found.values())


def _who(grid: Dim3, group: list[Waiting]) -> str:
    """Such as "CTAs (0,0,0) to (3,0,0), warps 0, 1: 256 threads wait"."""
    warps = sorted({one.warp for one in group})
    numbers = _ranges([(warp, str(warp)) for warp in warps])
    count = sum(one.lanes.bit_count() for one in group)
    does = ("run" if group[0].runs else "wait") + "s" * (count == 1)
    who = f"{_ctas(grid, [one.cta for one in group])}, warp{'s' * (len(warps) != 1)} {numbers}"
    return f"{who}: {count} thread{'s' * (count != 1)} {does}"


def _ctas(grid: Dim3, ctas: Iterable[Dim3]) -> str:
    places = {_linear(cta, grid): f"({','.join(map(str, cta))})" for cta in ctas}
    return f"CTA{'s' * (len(places) != 1)} {_ranges(sorted(places.items()))}"


def _linear(cta: Dim3, grid: Dim3) -> int:
    return cta[0] + grid[0] * (cta[1] + grid[1] * cta[2])


def _ranges(numbered: Sequence[tuple[int, str]]) -> str:
    """Names in order, each with its number: neighbours as "first to last"."""
    runs: list[list[tuple[int, str]]] = []
    for number, name in numbered:
        if runs and runs[-1][-1][0] == number - 1:
            runs[-1].append((number, name))
        else:
            runs.append([(number, name)])
    parts = []
    for run in runs[:_RANGES]:
        parts += [f"{run[0][1]} to {run[-1][1]}"] if len(run) > 2 else [name for _, name in run]
    if len(runs) > _RANGES:
        parts.append(f"and {sum(map(len, runs[_RANGES:]))} more")
    return ", ".join(parts)


def pending(schedule: Schedule, cluster: Cluster | None) -> list[str]:
    """Lines about pending work in a cluster: the first few pieces of it, and how many more there are."""
    if cluster is None:
        return []
    texts = list(schedule.pending(cluster))
    lines = [f"pending: {text}" for text in texts[:_PENDING]]
    return lines if len(texts) <= _PENDING else [*lines, f"pending: {len(texts) - _PENDING} more"]


def overflow(callee: str, depth: int, local: int) -> str:
    """The reason for a trap at a call: local memory has no room for another frame."""
    return (
        f"stack overflow in a call of {shown(callee)}, {depth} calls deep: a thread has {local} bytes of local memory"
    )


def no_member(lane: int, mask: int) -> str:
    """The reason for a trap at a `.sync` operation; the manual leaves this case undefined (9.7.9.6, 9.7.13)."""
    return f"lane {lane} is not in its own member mask {mask:#x}"


def missing(came: int, expected: int) -> str:
    return f"{came} of {expected} threads came, {max(0, expected - came)} are missing"


def in_loop(look: Look | None, *, stuck: bool) -> str:
    """What runnable lanes wait for. look: what their loop polls; stuck: they will never leave it."""
    if look is None:
        return "in a loop that changes nothing" if stuck else ""
    return f"in a loop that changes nothing, for {look.text}" if stuck else f"in a loop that waits for {look.text}"


def is_sleep(wait: Wait) -> bool:
    """Whether lanes only wait for time to pass."""
    return isinstance(wait.key, tuple) and wait.key[0] == "sleep"


def asleep(wait: Wait, look: Look) -> str:
    """What lanes that sleep in a loop wait for."""
    return f"for {wait.text} in a loop that waits for {look.text}"


def above(limit: int) -> str:
    """The reason for a trap at the instruction limit."""
    return f"more than {limit} instruction{'s' * (limit != 1)}"


def _short(program: Program, where: int) -> str:
    return " ".join(program.lines[where][2].split())
