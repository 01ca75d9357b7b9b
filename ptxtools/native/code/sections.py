"""Sections of kernels in unison: what the warps of a CTA do between two barriers, one warp behind the other.

A slot whose contents are the same in all threads of a CTA whenever they come to a place (a loop's counter, mostly) is
one scalar for all of them within sections. A section is made of blocks that all threads come to or none; where lanes
part, those of one side meet the others again before anything else (`Section.apart`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from ptxtools.program.details import Run, SpecialRegister
from ptxtools.program.operations import LANEWISE
from ptxtools.program.program import SLOT_BYTES, Slot
from ptxtools.records import NamedTuple

from .live_words import Key
from .unison import Stage, grouped

#: Most steps of all sections of a kernel: they are compiled in addition to its blocks.
MOST_STEPS = 240
#: Most slots that are scalars in sections: they are bits of a word.
MOST_KEYS = 48
#: Storage classes of which one element is a scalar.
_STORAGE = frozenset({"pred", "b16", "b32", "b64"})
#: Special registers that are the same in all threads of a CTA.
_OF_CTA = ("%ctaid.", "%nctaid.", "%ntid.")
_END = -1


class Section(NamedTuple):
    """start: the block it begins with; stages: its blocks in order; cost: what a warp uses of its slice at most; apart:
    blocks that only some lanes may run, each with the block where the others wait; whole: those of them that need all
    lanes of a warp."""

    start: int
    stages: tuple[int, ...]
    cost: int
    apart: dict[int, int]
    whole: frozenset[int]


def runs_in(stage: Stage) -> list[Run] | None:
    """What a block does if all lanes of a warp are there; None if it calls records for it."""
    runs: list[Run] = []
    for group in grouped(stage.parts):
        found = [group[0].whole] if group[0].whole is not None else [part.run for part in group]
        for run in found:
            if run is None:
                return None
            runs.append(run)
    return runs


def same_numbers(run: Run, same: frozenset[Key]) -> frozenset[int]:
    """Numbers of the operands of a run that are the same in all threads if the contents of these slots are."""
    numbers = {number for number, slot, storage in run.read if (slot, storage) in same} | {-1}
    for step in run.steps:
        if step.kind == "sreg":
            alike = isinstance(step.detail, SpecialRegister) and step.detail.name.startswith(_OF_CTA)
        else:
            needed = {number for number, _, _ in step.sources} | {step.guard, *step.before}
            alike = step.kind in LANEWISE and needed <= numbers
        if alike and all(storage in _STORAGE for _, storage, _ in step.targets):
            numbers |= {number for number, _, _ in step.targets}
    return frozenset(numbers - {-1})


class Found(NamedTuple):
    """keys: slots that are scalars at some places in sections; same: those at the start of each block, as far as they
    are read later; live: all that are read later; inside: blocks that some lanes may come to and others not."""

    keys: tuple[Key, ...]
    same: tuple[frozenset[Key], ...]
    live: tuple[frozenset[Key], ...]
    inside: frozenset[int]
    constants: frozenset[Key]
    sections: list[Section]


_NOTHING = Found((), (), (), frozenset(), frozenset(), [])


def find(stages: Sequence[Stage], constants: Iterable[Key]) -> Found:
    """The sections of a kernel with barriers: those behind them, and the one at the start. Without any it gains
    nothing (a sum of vectors that waits for memory took 0.8 ms for 0.5)."""
    stages = reached(stages)
    if all(stage.kind != "barrier" for stage in stages):
        return _NOTHING
    bodies = [runs_in(stage) for stage in stages]
    if any(body is None for body in bodies) or any(not _plain(stage) for stage in stages):
        return _NOTHING
    runs = [body or [] for body in bodies]
    fixed = frozenset(constants)
    same, live, parting, inside = _same_slots(stages, runs, fixed)
    if any(stages[number].kind == "barrier" for number in inside):
        return _NOTHING
    starts = sorted({0, *(stage.other for stage in stages if stage.kind == "barrier")})
    found = [_section(start, stages, runs, parting, inside) for start in starts]
    sections = [section for section in found if section is not None]
    steps = sum(len(run.steps) for section in sections for number in section.stages for run in runs[number])
    kept = set[Key]()
    for number in {number for section in sections for number in section.stages}:
        now = same[number]
        for run in runs[number]:
            kept |= now
            now = behind(run, now, fixed, inside=number in inside)
        kept |= now
    keys = sorted(kept)
    if not sections or steps > MOST_STEPS or len(keys) > MOST_KEYS:
        return _NOTHING
    return Found(tuple(keys), tuple(same), tuple(live), frozenset(inside), fixed, sections)


def reached(stages: Sequence[Stage]) -> list[Stage]:
    """The blocks, but for those that warps come to in records only: these do the same as others, access by access."""
    found, todo = set[int](), [0]
    while todo:
        number = todo.pop()
        if number not in found:
            found.add(number)
            todo += [to for to in next_stages(stages[number]) if to != _END]
    return [stage if number in found else _NOWHERE for number, stage in enumerate(stages)]


#: A block that no section comes to.
_NOWHERE = Stage((), "exit", -1, False, -1, -1, 0, 0, 0)


def _plain(stage: Stage) -> bool:
    """Whether threads that come to the end of a block go on in this kernel, or all exit."""
    if stage.kind == "warpsync":
        return stage.members < 0
    return stage.kind in ("jump", "branch", "barrier", "met", "served") or (stage.kind == "exit" and stage.guard < 0)


def next_stages(stage: Stage) -> tuple[int, ...]:
    """The blocks behind a block; `_END` for none."""
    if stage.kind == "branch":
        return stage.target, stage.other
    return (stage.target,) if stage.kind == "jump" else (_END,) if stage.kind == "exit" else (stage.other,)


# --- what is the same in all threads ----------------------------------------------------------------------------------


def behind(run: Run, same: frozenset[Key], constants: frozenset[Key], *, inside: bool) -> frozenset[Key]:
    """Slots whose contents are the same in all threads behind a run, of those in front of it; inside: only some lanes
    may be there."""
    numbers = frozenset[int]() if inside else same_numbers(run, same | constants)
    for number, slot, storage in run.kept:
        key = (slot, storage)
        same = frozenset(other for other in same if not overlap(key, other))
        if number in numbers and storage in _STORAGE:
            same |= {key}
    return same


def _written(run: Run) -> set[Key]:
    return {(slot, storage) for _, slot, storage in run.kept}


def overlap(key: Key, other: Key) -> bool:
    return key[0] < other[0] + _bytes(other[1]) and other[0] < key[0] + _bytes(key[1])


def _bytes(storage: str) -> int:
    return 4 if storage == "pred" else SLOT_BYTES[storage]


def _same_slots(
    stages: Sequence[Stage], runs: list[list[Run]], constants: frozenset[Key]
) -> tuple[list[frozenset[Key]], list[frozenset[Key]], set[int], set[int]]:
    """At the start of each block: slots whose contents are the same in all threads and are read later, and all
    that are; blocks at whose branch lanes may part, and the blocks that follow these until they meet."""
    parting = set[int]()
    while True:
        inside = _between(stages, parting)
        live, mixed = _live(stages, runs, inside)
        everything = frozenset(key for body in runs for run in body for key in _written(run)) - mixed
        same = [everything & live[number] for number in range(len(stages))]
        same[0] = frozenset()
        changed = True
        while changed:
            changed = False
            for number, body in enumerate(runs):
                now = same[number]
                for run in body:
                    now = behind(run, now, constants, inside=number in inside) - mixed
                for to in next_stages(stages[number]):
                    if to != _END and same[to] - now:
                        same[to] &= now
                        changed = True
            for number in inside:
                lost = {key for run in runs[number] for key in _written(run)} & same[number]
                if lost:
                    same[number] -= lost
                    changed = True
        found = {
            number for number, stage in enumerate(stages)
            if stage.kind == "branch" and stage.target != stage.other
            and not is_same(stage, runs[number], same[number], constants)
        }  # fmt: skip
        if found <= parting:
            return same, live, parting, inside
        parting |= found


def is_same(stage: Stage, runs: Sequence[Run], same: frozenset[Key], constants: frozenset[Key]) -> bool:
    """Whether the guard of a block's branch is the same in all threads; same: slots at the start of the block."""
    for run in runs[:-1]:
        same = behind(run, same, constants, inside=False)
    if stage.number >= 0:
        return guard_number(stage) in same_numbers(runs[-1], same | constants)
    for run in runs[-1:]:
        same = behind(run, same, constants, inside=False)
    return (stage.guard, "pred") in same | constants


def guard_number(stage: Stage) -> int:
    """Number of the guard of a block's branch in its last run, or -1."""
    last = list(grouped(stage.parts))[-1] if stage.number >= 0 else ()
    return last[0].number if last and last[0].whole is not None else stage.number


def _live(
    stages: Sequence[Stage], runs: list[list[Run]], inside: set[int]
) -> tuple[list[frozenset[Key]], frozenset[Key]]:
    """Slots that may be read before they are written by all lanes, at the start of each block; and those that are read
    as parts of others."""
    live: list[frozenset[Key]] = [frozenset() for _ in stages]
    mixed = set[Key]()
    changed = True
    while changed:
        changed = False
        for number in reversed(range(len(stages))):
            keys = set[Key]()
            for to in next_stages(stages[number]):
                keys |= live[to] if to != _END else set()
            if stages[number].kind == "branch" and stages[number].number < 0:
                keys.add((Slot(stages[number].guard), "pred"))
            for run in reversed(runs[number]):
                mixed |= {key for key in keys for other in keys if key != other and overlap(key, other)}
                if number not in inside:
                    keys -= _written(run)
                keys |= {(slot, storage) for _, slot, storage in run.read}
            mixed |= {key for key in keys for other in keys if key != other and overlap(key, other)}
            if keys - live[number]:
                live[number] |= keys
                changed = True
    return live, frozenset(mixed)


# --- where lanes are apart --------------------------------------------------------------------------------------------


def _between(stages: Sequence[Stage], parting: set[int]) -> set[int]:
    """Blocks that some threads may come to and others not: from a branch where they part to where they all meet."""
    behind = _always_behind(stages)
    inside: set[int] = set()
    for number in parting:
        todo = list(next_stages(stages[number]))
        met = behind[number] - {number}
        seen: set[int] = set()
        while todo:
            at = todo.pop()
            if at == _END or at in met or at in seen:
                continue
            seen.add(at)
            todo += next_stages(stages[at])
        inside |= seen
    return inside


def _always_behind(stages: Sequence[Stage]) -> list[set[int]]:
    """For each block, those that all ways from it to the end go through, itself included."""
    everything = set(range(len(stages)))
    behind = [set(everything) for _ in stages]
    changed = True
    while changed:
        changed = False
        for number in reversed(range(len(stages))):
            ways = [behind[to] if to != _END else set[int]() for to in next_stages(stages[number])]
            found = {number} | set.intersection(*ways)
            if found != behind[number]:
                behind[number], changed = found, True
    return behind


# --- sections ---------------------------------------------------------------------------------------------------------


def _section(
    start: int, stages: Sequence[Stage], runs: list[list[Run]], parting: set[int], inside: set[int]
) -> Section | None:
    """The section that begins with a block; None where warps of it may go round, or lanes part for longer."""
    order = _in_order(start, stages) if start not in inside else None
    if order is None:
        return None
    if any(stages[number].kind == "served" for number in order):
        return None
    apart, costs, whole = dict[int, int](), dict[int, int](), set[int]()
    for number in order:
        if number in parting:
            low, high = sorted(next_stages(stages[number]))
            chain = chain_of(stages, low, high)
            if chain is None:
                return None
            if any(part.passed is not None and part.passed[2] >= high for at in chain for part in stages[at].parts):
                return None  # lanes wait there for others
            apart.update(dict.fromkeys(chain, high))
            if any(_needs_all(stages[one]) for one in chain):
                whole.update(chain)
    for number in reversed(order):
        rest = max((costs[to] for to in ways_of(stages[number])), default=0)
        passed = sum(part.passed[0] for part in stages[number].parts if part.passed is not None)
        costs[number] = stages[number].weight + 1 + passed + rest
    if (inside & set(order)) != set(apart) or not _entered_once(order, stages, apart):
        return None
    return Section(start, tuple(order), costs[start], apart, frozenset(whole))


def _in_order(start: int, stages: Sequence[Stage]) -> list[int] | None:
    """The blocks from one to the next barriers, each behind all that lead to it; None where that goes round."""
    order: list[int] = []
    open_, todo = set[int](), [(start, False)]
    while todo:
        number, done = todo.pop()
        if done:
            order.append(number)
            open_.discard(number)
        elif number in open_:
            return None
        elif number not in order:
            open_.add(number)
            todo.append((number, True))
            todo += [(to, False) for to in ways_of(stages[number])]
    return order[::-1]


def _entered_once(order: list[int], stages: Sequence[Stage], apart: dict[int, int]) -> bool:
    """Whether only one block leads to each of those that some lanes run."""
    targets = [to for number in order for to in ways_of(stages[number])]
    return all(targets.count(number) == 1 for number in apart)


def ways_of(stage: Stage) -> Iterator[int]:
    """The blocks of the same section behind a block."""
    if stage.kind not in ("barrier", "exit"):
        yield from next_stages(stage)


def chain_of(stages: Sequence[Stage], low: int, high: int) -> list[int] | None:
    """Blocks that follow one another from `low` to `high`, which is not one of them."""
    chain: list[int] = []
    while low < high:
        stage = stages[low]
        if stage.kind not in ("jump", "warpsync"):
            return None
        chain.append(low)
        (to,) = next_stages(stage)
        if to <= low:
            return None
        low = to
    return chain if low == high else None


def _needs_all(stage: Stage) -> bool:
    """Whether what a block does is for warps of which all lanes are there."""
    return stage.kind == "warpsync" or any(part.whole is not None for part in stage.parts)
