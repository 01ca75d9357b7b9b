"""What comes to one phase of a barrier of the CTA: all give the same thread count, and those that reduce meet no others
(9.7.13.1). In most programs constants show that no others can come; then nothing is noted."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from itertools import combinations_with_replacement
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ptxtools.program.details import Meeting
from ptxtools.program.program import LANES
from ptxtools.records import dataclass, field

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ptxtools.isa import Opcode
    from ptxtools.machine.events import View
    from ptxtools.machine.observers import Array
    from ptxtools.program.program import Op, Program

    from .session import Session

_NAME = "synccheck"
_PHASES = "phases of barriers that operations may not agree on"
_EVERYBODY = 0
EVERY_LANE = (1 << LANES) - 1


class _Terms(NamedTuple):
    """Of a barrier operation, as far as constants show them: its barrier, its thread count, whether it reduces."""

    number: int | None
    threads: int | None
    reduces: bool


def disagreeing(program: Program) -> frozenset[int]:
    """Places of barrier operations that may meet one with other terms."""
    places: defaultdict[_Terms, set[int]] = defaultdict(set)
    for op, known in _ends(program):
        if op.kind == "bar":
            barrier, threads = op.src[0], op.src[1]
            count = _EVERYBODY if threads is None else known.get(threads.slot)
            terms = _Terms(None if barrier is None else known.get(barrier.slot), count, _reduces(op))
            places[terms].add(op.where)
    found: set[int] = set()
    for one, other in combinations_with_replacement(places, 2):
        meet = None in (one.number, other.number) or one.number == other.number
        if meet and (
            None in (one.threads, other.threads) or (one.threads, one.reduces) != (other.threads, other.reduces)
        ):
            found |= places[one] | places[other]
    return frozenset(found)


def partly(program: Program) -> frozenset[int]:
    """Places of instructions of a warp whose member mask may leave out lanes, in a program with the events at them."""
    return frozenset(op.where for op, known in _ends(program) if _names(op, known))


def _names(op: Op, known: dict[int, int]) -> bool:
    if op.kind == "observe.leave" and op.of(Meeting).what == "warp":
        mask = op.src[0]
    elif op.kind == "observe.together" and op.opcode is not None and is_masked(op.opcode):
        mask = op.src[-1]
    else:
        return False
    return mask is None or known.get(mask.slot) != EVERY_LANE


def is_masked(opcode: Opcode) -> bool:
    """Whether an instruction of a warp has a member mask."""
    return opcode.has("sync") and not opcode.has("aligned")


def _ends(program: Program) -> Iterator[tuple[Op, dict[int, int]]]:
    """Operations at ends of blocks, with the constants of their functions."""
    constants: list[dict[int, int]] = [
        {slot: one for slot, _, one in function.constants} for function in program.functions
    ]
    firsts = [function.first for function in program.functions]
    for number, block in enumerate(program.blocks):
        if block.terminator.op is not None:
            yield block.terminator.op, constants[bisect_right(firsts, number) - 1]


def _reduces(op: Op) -> bool:
    return op.opcode is not None and op.opcode.has("red")


@dataclass(slots=True)
class _Phase:
    """A phase that is not complete: where the first came to it, and on which terms; whole: only warps as a whole have
    come, so that it is certain to be open; arrived: where warps have that do not wait; came: lanes, by warp."""

    where: int
    count: int
    reduces: bool
    whole: bool = True
    arrived: dict[int, int] = field(default_factory=dict)
    came: dict[int, int] = field(default_factory=dict)


def came(session: Session, at: View, lanes: Array) -> None:
    """Lanes come to barriers. A phase is over when as many have come as the last one says."""
    phases: dict[int, _Phase] = at.cta.state.setdefault(_PHASES, {})
    x, y, z = at.launch.block
    everybody = -(-x * y * z // LANES) * LANES
    numbers, counts = at.source(0)[lanes], None if at.op.src[1] is None else at.source(1)[lanes]
    for number in np.unique(numbers).tolist():
        some = numbers == number
        count = everybody if counts is None else int(counts[some][0]) or everybody
        mask = int(np.bitwise_or.reduce(1 << lanes[some]))
        phase = phases.get(number)
        if phase is not None and phase.whole and phase.came.get(at.warp, 0) & mask and at.warp in phase.arrived:
            _twice(session, at, int(lanes[some][0]), number, phase)
        if phase is None or phase.came.get(at.warp, 0) & mask:  # else the warp would still wait
            phase = phases[number] = _Phase(at.op.where, count, _reduces(at.op))
        elif (count, _reduces(at.op)) != (phase.count, phase.reduces):
            _report(session, at, int(lanes[some][0]), number, count, phase)
        phase.came[at.warp] = phase.came.get(at.warp, 0) | mask
        others = sum(part.bit_count() for warp, part in phase.came.items() if warp != at.warp)
        mine = phase.came[at.warp]
        phase.whole &= not at.living & ~mask
        if at.op.of(Meeting).what == "arrive":
            phase.arrived[at.warp] = at.op.where
        if not at.living & ~mine:  # lanes that have exited count as well
            mine = phase.came[at.warp] = EVERY_LANE
        if others + mine.bit_count() >= count:
            del phases[number]


def left(at: View, lanes: Array) -> None:
    """Lanes go on behind barriers: their phases are over."""
    phases: dict[int, _Phase] = at.cta.state.get(_PHASES, {})
    for number in np.unique(at.source(0)[lanes]).tolist():
        phase = phases.get(number)
        if phase is not None and phase.came.get(at.warp, 0):
            del phases[number]


def _twice(session: Session, at: View, lane: int, number: int, phase: _Phase) -> None:
    message = f"the warp comes to barrier {number} again before the barrier is complete at which it has arrived"
    before = phase.arrived[at.warp]
    others = (session.site(at.launch.program, before, at.cta.place),)
    key = (*sorted((at.op.where, before)), "again")
    session.report(at, lane, _NAME, message, key, kind="again", others=others, help="one arrival for each phase")


def _report(session: Session, at: View, lane: int, number: int, count: int, phase: _Phase) -> None:
    if count != phase.count:
        message = f"{count} threads are to meet at barrier {number}, and {phase.count} for those that have come before"
        kind, advice = "count", "one thread count for all that meet at a barrier"
    else:
        message = f"at barrier {number} some come to reduce, and some to .sync or .arrive: what happens is undefined"
        kind, advice = "reduction", "another barrier for one of the two"
    others = (session.site(at.launch.program, phase.where, at.cta.place),)
    key = (*sorted((at.op.where, phase.where)), kind)
    session.report(at, lane, _NAME, message, key, kind=kind, others=others, help=advice)
