"""Arrivals at mbarriers that threads of a CTA make before any of them can know of those of others."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping

from ptxtools.ir.nodes import Immediate, Name, Pair
from ptxtools.records import NamedTuple

from .coming import Coming, coming_to
from .constants import constant
from .facts import FunctionFacts, Line
from .lanes import ALL, only_write
from .mbarriers import Word, words
from .values import WARP
from .walk.shapes import declared_shape

#: Instructions of one function that are looked at behind an election, and waits before an arrival.
_NEAR, _SYNCS = 16, 64


class Surplus(NamedTuple):
    """line: the arrival with which there are more than a phase takes; lines: all arrivals at the mbarrier; come: so
    many threads, or so much as they count for; takes: what completes a phase."""

    line: Line
    lines: list[Line]
    come: int
    takes: int


class _Bar(NamedTuple):
    """The instructions at one mbarrier, by where they stand, and which of their operands it is."""

    begun: list[tuple[int, int]]
    arrivals: list[tuple[int, int]]
    waits: list[tuple[int, int]]


def surplus(facts: FunctionFacts) -> Iterator[Surplus]:
    """The mbarriers at which, in the first phase, more threads arrive than it takes: it is over when some of them have.

    What counts are arrivals between a barrier of the whole CTA and the next instruction that may wait for others, of
    which it is known that these threads make them.
    """
    shape = declared_shape(facts.function)
    if shape is None or shape.size != shape.x or "brx" in facts.families or {"%tid.y", "%tid.z"} & facts.targets.keys():
        return
    bars = _bars(facts)
    if not bars:
        return
    families = ("mbarrier", "bar", "barrier", "elect", "bra")
    coming = {id(line.item): come for line, come in coming_to(facts, families, shape.x)}
    syncs = _syncs(facts)
    for bar in bars:
        found = _of_one(facts, bar, coming, syncs, shape.x)
        if found is not None:
            yield found


class FirstRounds:
    """Arrivals of a whole CTA in the first rounds of loops."""

    def __init__(self, facts: FunctionFacts, threads: int) -> None:
        self._facts = facts
        families = ("mbarrier", "bar", "barrier", "elect", "bra", "call")
        found = coming_to(facts, families, threads, True)
        self._coming = {id(line.item): come for line, come in found}
        self._order = {id(line.item): at for at, line in enumerate(facts.lines)}
        self._syncs = [at for at, line in enumerate(facts.lines) if _waits(line)]
        self._known = {id(step.line.item) for step, word, _ in words(facts) if word is not None}

    def at(self, line: Line, place: int) -> int:
        """How many arrivals threads certainly make by an instruction, if it is known to be at one mbarrier, and all of
        them have waited where one has; else 0. place: the operand that is the mbarrier."""
        own, at = self._coming.get(id(line.item)), self._order.get(id(line.item), 0)
        before = bisect_left(self._syncs, at)
        if own is None or before > _SYNCS or id(line.item) not in self._known:
            return 0
        for sync in self._syncs[:before]:
            come = self._coming.get(id(self._facts.lines[sync].item))
            if come is None or (come.threads & own.threads and own.threads & ~come.threads):
                return 0
        return _arrivals(self._facts, line, place, self._coming)


def _bars(facts: FunctionFacts) -> list[_Bar]:
    """The mbarriers that are initialised once, and at which threads arrive and wait."""
    order = {id(line.item): at for at, line in enumerate(facts.lines)}
    bars: dict[Word, _Bar] = {}
    for step, word, place in words(facts):
        if word is None:
            if step.has("init"):
                return []  # it may be any of them
            continue
        bar = bars.setdefault(word, _Bar([], [], []))
        waits = "wait" in step.line.item.opcode
        arrives = step.has("arrive") or step.has("arrive_drop")
        if step.has("init") or arrives or waits:
            where = bar.waits if waits else bar.arrivals if arrives else bar.begun
            where.append((order[id(step.line.item)], place))
    return [bar for bar in bars.values() if len(bar.begun) == 1 and bar.arrivals and bar.waits]


def _syncs(facts: FunctionFacts) -> list[int]:
    """Where threads may wait for others, in source order: loops may, wherever they begin."""
    found, order = set[int](), {id(line.item): at for at, line in enumerate(facts.lines)}
    found.update([at for at, line in enumerate(facts.lines) if _waits(line)])
    found |= {to for branch, to in facts.jumps.items() if to <= order[branch]}
    return sorted(found)


def _waits(line: Line) -> bool:
    """Whether threads wait for others by an instruction."""
    opcode, family = line.item.opcode, line.plan.family
    if family in ("bar", "barrier"):
        return ".warp" not in opcode and ".arrive" not in opcode
    return family == "call" or ".wait" in opcode or "_wait" in opcode


def _of_one(
    facts: FunctionFacts, bar: _Bar, coming: Mapping[int, Coming], syncs: list[int], threads: int
) -> Surplus | None:
    lines = facts.lines
    begun, place = bar.begun[0]
    given = lines[begun].item.operands[place + 1 :]
    count = constant(facts, lines[begun], given[0]) if given else None
    first = min(bar.arrivals)[0]
    behind = bisect_left(syncs, first)
    last = syncs[behind] if behind < len(syncs) else len(lines)
    met = behind > 0 and syncs[behind - 1] > begun and _all_come(lines[syncs[behind - 1]], coming, threads)
    if not count or first < begun or not (met or threads <= WARP):
        return None
    total, line = 0, None
    for at, place in sorted(bar.arrivals):
        if at < last:
            total += _arrivals(facts, lines[at], place, coming)
            line = lines[at] if total > count and line is None else line
    if line is None:
        return None
    parities = {_parity(facts, lines[at], place) for at, place in bar.waits}
    one = len(parities) == 1 and None not in parities
    left = total % count and max(bar.arrivals)[0] < last  # the phase that they begin, nobody completes
    return Surplus(line, [lines[at] for at, _ in bar.arrivals], total, count) if one or left else None


def _all_come(line: Line, coming: Mapping[int, Coming], threads: int) -> bool:
    """Whether an instruction is a barrier of the whole CTA."""
    everybody = Coming((1 << threads) - 1, True, True)
    if line.plan.family not in ("bar", "barrier") or coming.get(id(line.item)) != everybody:
        return False
    count = line.item.operands[1] if len(line.item.operands) > 1 and ".red" not in line.item.opcode else None
    return count is None or (isinstance(count, Immediate) and count.value >= threads)


def _arrivals(facts: FunctionFacts, line: Line, place: int, coming: Mapping[int, Coming]) -> int:
    """How many arrivals threads certainly make by an instruction."""
    own = line.item.operands[place + 1] if len(line.item.operands) > place + 1 else None
    each = 1 if own is None or ".expect_tx" in line.item.opcode else constant(facts, line, own)
    come = coming.get(id(line.item))
    if come is None or each is None or each <= 0:
        return 0
    if come.exact:
        return each * come.threads.bit_count()
    return each * _elected(facts, line, coming)


def _elected(facts: FunctionFacts, line: Line, coming: Mapping[int, Coming]) -> int:
    """The warps of which one lane comes to an instruction, as elect.sync has chosen it."""
    deciding, passing = line, True
    for _ in range(_NEAR):
        guard = deciding.item.guard
        if guard is not None:
            break
        above = facts.before(deciding)
        if above is None:
            return 0
        deciding, passing = above, False
    else:
        return 0
    made = only_write(facts, deciding, guard.name)
    come = coming.get(id(deciding.item))
    if made is None or made.item.opcode != "elect.sync" or made.item.guard is not None or come is None:
        return 0
    if not passing and deciding.plan.family != "bra":
        return 0
    chosen, mask = made.item.operands[0], constant(facts, made, made.item.operands[-1])
    if not isinstance(chosen, Pair) or chosen.second != Name(guard.name) or mask is None or mask & ALL != ALL:
        return 0
    if guard.negated == passing or not come.there:
        return 0
    return sum(come.threads >> first & ALL == ALL for first in range(0, come.threads.bit_length(), WARP))


def _parity(facts: FunctionFacts, line: Line, place: int) -> int | None:
    """The parity of the phase that a wait is for; None if that is not known."""
    operands = line.item.operands
    known = ".parity" in line.item.opcode and len(operands) > place + 1
    number = constant(facts, line, operands[place + 1]) if known else None
    return None if number is None else number & 1
