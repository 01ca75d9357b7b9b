"""All executions of a litmus test that a model allows.

The search chooses, for each combination of paths, the Fence-SC order, then the order of morally strong writes, then
what each read reads from. Every relation of the model grows with these choices, so that an
axiom that is broken once stays broken: after each choice the axioms are checked, and the branch is left if one fails.
Values follow from reads-from: a path whose conditions cannot hold is left as well.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import TypeAlias

from . import DEFAULT_MODEL
from .axioms import Model, model
from .compiled import check_for
from .events import Path
from .features import refuse_unknown
from .paths import DEFAULT_UNROLL, Paths
from .programs import Barrier, Test
from .relations import Events, Relation, members
from .structures import Node, Skeleton, barrier_orders, skeleton
from .terms import CHOICE, ORDER, PROGRAM, Axiom, Step

#: Executions that are counted at most; beyond, the result says that it is incomplete.
MOST_EXECUTIONS = 50_000


@dataclass(slots=True)
class Execution:
    """One execution: its events, its relations by name, its final state. threads: their names; lines: of the test, for
    each event, 0 for an initial write; values: what each event read and wrote, as unsigned bytes; broken: axioms that
    forbid it, with the steps of a cycle."""

    threads: list[str]
    nodes: list[Node]
    lines: list[int]
    values: list[tuple[int | None, int | None]]
    relations: dict[str, list[Events]]
    state: dict[str, int]
    broken: list[tuple[Axiom, list[Step]]] = field(default_factory=list)


@dataclass(slots=True)
class Outcomes:
    """What a model allows of a test.

    executions: how many; states: final values of the observed names, with the number of executions that end there;
    matching: how many of these states satisfy the condition; witness: an execution that decides the verdict;
    cut: paths longer than the bound of unrolling were left out; left_over: executions in which a thread waits for ever
    at a barrier at which others have met; races: executions with a data race (8.7.1), and with
    one of accesses of different sizes (8.7.2), for which the axioms do not hold; undefined: those
    that use an mbarrier object that is none, or that break its counts.
    """

    test: Test
    version: str
    unroll: int
    names: tuple[str, ...]
    executions: int = 0
    states: dict[tuple[int, ...], int] = field(default_factory=dict)
    matching: int = 0
    witness: Execution | None = None
    cut: bool = False
    incomplete: bool = False
    left_over: int = 0
    races: int = 0
    mixed_races: int = 0
    undefined: int = 0

    @property
    def holds(self) -> bool:
        """Whether the condition holds as quantified; True for a test without one."""
        if self.test.quantifier == "exists":
            return self.matching > 0
        if self.test.quantifier == "~exists":
            return self.matching == 0
        return self.matching == len(self.states) or not self.test.quantifier

    @property
    def conclusive(self) -> bool:
        """Whether the verdict stands: all executions were counted, or one was found that decides it."""
        return not self.incomplete or self.witness is not None

    @property
    def allowed(self) -> bool:
        """Whether some state satisfies the condition."""
        return self.matching > 0

    @property
    def observation(self) -> str:
        """ "Always", "Sometimes" or "Never": how many of the final states satisfy the condition."""
        if not self.matching:
            return "Never"
        return "Always" if self.matching == len(self.states) else "Sometimes"


def observed_names(test: Test) -> tuple[str, ...]:
    """What makes a final state: the registers and locations of the condition and of `locations`, or all."""
    names = list(test.observed)
    if test.condition is not None:
        names += test.condition.names
    if not names:
        for thread in test.threads:
            for instruction in thread.instructions:
                results = getattr(instruction, "results", ()) or (getattr(instruction, "result", ""),)
                names += [f"{thread.name}:{register}" for register in results if register]
        names += test.locations
    return tuple(dict.fromkeys(names))


def run(
    test: Test,
    version: str = DEFAULT_MODEL,
    unroll: int = DEFAULT_UNROLL,
    most: int = MOST_EXECUTIONS,
    without: str = "",
    first: bool = False,
) -> Outcomes:
    """Find all executions. without: the name of an axiom to leave out; first: end at the first that decides the
    verdict. Raises PtxError if the test is not modelled."""
    chosen = model(version, without)
    refuse_unknown(test, version)
    outcomes = Outcomes(test, version, unroll, observed_names(test))
    wanted = test.quantifier != "forall"
    for found, state in _complete(test, chosen, unroll, outcomes, most):
        key = tuple(state[name] for name in outcomes.names)
        outcomes.states[key] = outcomes.states.get(key, 0) + 1
        if outcomes.witness is None and test.condition is not None and test.condition.holds(state) == wanted:
            outcomes.witness = found.execution(state)
            if first:
                break
    if test.condition is not None:
        condition = test.condition
        outcomes.matching = sum(
            condition.holds(dict(zip(outcomes.names, key, strict=True))) for key in outcomes.states
        )  # fmt: skip
    return outcomes


def nearest(
    test: Test, version: str = DEFAULT_MODEL, unroll: int = DEFAULT_UNROLL, most: int = 300
) -> Execution | None:
    """For a condition that no execution satisfies: one that would, and breaks the fewest axioms, of the first `most`
    that the search meets. None if no choice of reads leads there."""
    best: Execution | None = None
    met = 0
    wanted = test.quantifier != "forall"
    chosen = model(version)
    # Without No-Thin-Air there are no values to look at.
    kept = tuple(axiom for axiom in chosen.axioms if axiom.name in ("No-Thin-Air", "Coherence"))
    for search in _searches(test, chosen, Paths(test, unroll), kept):
        for state in search.states():
            if test.condition is None or test.condition.holds(state) != wanted:
                continue
            if test.filter is not None and not test.filter.holds(state):
                continue
            execution = search.execution(state)
            met += 1
            if execution.broken and (best is None or len(execution.broken) < len(best.broken)):
                best = execution
            if met >= most or (best is not None and len(best.broken) == 1):
                return best
    return best


def _complete(
    test: Test, chosen: Model, unroll: int, outcomes: Outcomes, most: int
) -> Iterator[tuple[_Search, dict[str, int]]]:
    """Every final state of every allowed execution, with the search that stands there."""
    paths = Paths(test, unroll)
    for search in _searches(test, chosen, paths, chosen.axioms):
        counted = -1
        for state in search.states():
            if test.filter is not None and not test.filter.holds(state):
                continue
            if counted != search.leaves:
                counted = search.leaves
                outcomes.executions += 1
                if outcomes.executions > most:
                    outcomes.incomplete = True
                    return
                outcomes.left_over += any(path.unreached is not None for path in search.found.paths)
                races, mixed = search.races()
                outcomes.races += races
                outcomes.mixed_races += mixed
                outcomes.undefined += search.is_undefined()
            yield search, state
    outcomes.cut = paths.cut


def _searches(test: Test, chosen: Model, paths: Paths, axioms: tuple[Axiom, ...]) -> Iterator[_Search]:
    initial = {}
    for location in test.locations.values():
        if location.memory == location.name:
            bits = 8 * max(location.size, 8)
            initial[location.name] = paths.initial(location.initial) & ((1 << bits) - 1)
    wanted = {*observed_names(test), *(test.filter.names if test.filter else ())}
    for combination in product(*[paths.of(thread) for thread in test.threads]):
        if any(path.unreached is not None and not _can_be_left(path, combination, wanted) for path in combination):
            continue
        found = skeleton(test, combination, initial)
        for barrier in barrier_orders(found):
            found.structure.given["barrier"] = barrier
            found.structure.changed(PROGRAM)
            yield _Search(test, found, chosen, axioms, paths, initial)


def _can_be_left(path: Path, others: Sequence[Path], wanted: set[str]) -> bool:
    """Whether an execution in which a thread never leaves a barrier has an outcome: what the condition asks for must
    have its value, and no thread may wait for this one at a barrier without a count."""
    for instruction in path.unreached or ():
        results = getattr(instruction, "results", ()) or (getattr(instruction, "result", ""),)
        if any(f"{path.thread.name}:{register}" in wanted for register in results):
            return False
        if isinstance(instruction, Barrier) and instruction.count is None:
            cta = [other for other in others if other is not path and other.thread.shares("cta", path.thread)]
            if any(event.kind == "B" and event.count is None for other in cta for event in other.events):
                return False
    return True


#: A read, a piece of memory, and the writes that it may read this piece from.
_Choice: TypeAlias = tuple[int, int, list[int]]


class _Search:
    """The executions of one combination of paths. leaves: how many it has found."""

    def __init__(
        self,
        test: Test,
        found: Skeleton,
        chosen: Model,
        axioms: tuple[Axiom, ...],
        paths: Paths,
        initial: dict[str, int],
    ) -> None:
        self.test, self.found, self.chosen, self.axioms = test, found, chosen, axioms
        self.paths, self.initial, self.leaves = paths, initial, 0
        named = [*observed_names(test), *(test.filter.names if test.filter else ())]
        self.asked = dict.fromkeys([*test.locations, *(name for name in named if "[" in name)])
        x = self.x = found.structure
        self.check = check_for(x, axioms, (chosen.coherence.term, chosen.cause.term))
        self.n = x.universe.n
        for name in ("rf", "rf^-1", "sc", "ordered"):
            x.given[name] = 0
        related = chosen.morally_strong.rows(x)
        strong = self.strong = x.universe.rows(related)
        writes = x.sets["W"]
        self.open = [(a, b) for a, b in x.universe.pairs(related) if a < b and writes >> a & 1 and writes >> b & 1]
        self.fences = [(a, b) for a, b in found.fences if strong[a] >> b & 1]
        mixed = any(len(node.pieces) > 1 for node in found.nodes)
        every = x.sets["_"]
        x.parts = [[0, x.universe.product(every, writers)] for writers in found.writers] if mixed else []
        self.sources: dict[tuple[int, int], int] = {}
        #: For each thread the reads all of whose pieces have a source.
        self.chosen_reads = [0] * len(found.paths)
        self.known: dict[int, int | None] = {}

    # --- the search ---

    def states(self) -> Iterator[dict[str, int]]:
        """The final states of all executions; one execution may have several, if writes race."""
        candidates = self._candidates(self._possible)
        if candidates is None or not self._order_by_itself():
            return
        candidates = self._candidates(self._allowed, candidates)
        if candidates is None:
            return
        for _ in self._fence_orders(0):
            for _ in self._write_orders(self.open):
                for _ in self._reads(0, candidates):
                    for _ in self._write_orders(self._caused_writes()):
                        self.leaves += 1
                        yield from self._final_states()

    def _allowed(self) -> bool:
        return self.check(self.x)

    def _order_by_itself(self) -> bool:
        """Order those pairs of writes that only one order is possible for when nothing else is known: of one thread,
        for instance. False if there is none."""
        given, left = self.x.given, []
        by_program = any(axiom.name == "SC-per-Location" for axiom in self.axioms)
        for a, b in self.open:
            if by_program and self.x.universe.holds(given["po"], a, b):  # which spares two checks
                given["ordered"] |= 1 << a * self.n + b
                continue
            possible, before = [], given["ordered"]
            for early, late in ((a, b), (b, a)):
                given["ordered"] = before | 1 << early * self.n + late
                self.x.changed(ORDER)
                if self._allowed():
                    possible.append(given["ordered"])
            if not possible:
                return False
            given["ordered"] = possible[0] if len(possible) == 1 else before
            if len(possible) == 2:
                left.append((a, b))
        self.x.changed(ORDER)
        self.open = left
        return True

    def _candidates(self, check: Callable[[], bool], before: list[_Choice] | None = None) -> list[_Choice] | None:
        """For each read and piece of memory the writes that it may read from when nothing else is known: those that
        pass a check when only this is chosen. None if a read has none."""
        found = []
        all_ = before or [
            (read, piece, list(members(self.found.writers[piece] & ~(1 << read))))
            for read, piece in self.found.slots
        ]  # fmt: skip
        for read, piece, possible in all_:
            writes = []
            for write in possible:
                self._set(read, piece, write)
                if check():
                    writes.append(write)
                self._clear(read, piece, write)
            if not writes:
                return None
            found.append((read, piece, writes))
        return found

    def _set(self, read: int, piece: int, write: int) -> None:
        self.x.given["rf"] |= 1 << write * self.n + read
        self.x.given["rf^-1"] |= 1 << read * self.n + write
        if self.x.parts:
            self.x.parts[piece][0] |= 1 << read * self.n + write
        self.sources[read, piece] = write
        node = self.found.nodes[read]
        if all((read, other) in self.sources for other in node.pieces):
            self.chosen_reads[node.thread] |= 1 << node.at
        self.x.changed(CHOICE if self.strong[write] >> read & 1 else ORDER)

    def _clear(self, read: int, piece: int, write: int) -> None:
        del self.sources[read, piece]
        if self.x.parts:
            self.x.parts[piece][0] &= ~(1 << read * self.n + write)
        node = self.found.nodes[read]
        self.chosen_reads[node.thread] &= ~(1 << node.at)
        if not any(self.sources.get((read, other)) == write for other in node.pieces):
            self.x.given["rf"] &= ~(1 << write * self.n + read)
            self.x.given["rf^-1"] &= ~(1 << read * self.n + write)
        self.x.changed(CHOICE if self.strong[write] >> read & 1 else ORDER)

    def _fence_orders(self, at: int) -> Iterator[None]:
        """Every direction of each pair of morally strong fence.sc (8.9.3), as an acyclic relation."""
        if at == len(self.fences):
            yield
            return
        a, b = self.fences[at]
        before = self.x.given["sc"]
        for early, late in ((a, b), (b, a)):
            self.x.given["sc"] = before | 1 << early * self.n + late
            self.x.changed(CHOICE)
            if self.x.universe.is_acyclic(self.x.given["sc"]) and self._allowed():
                yield from self._fence_orders(at + 1)
        self.x.given["sc"] = before
        self.x.changed(CHOICE)

    def _reads(self, at: int, candidates: list[_Choice]) -> Iterator[None]:
        if at == len(candidates):
            if self._possible():
                yield
            return
        read, piece, writes = candidates[at]
        for write in writes:
            self._set(read, piece, write)
            if self._possible() and self._allowed():
                yield from self._reads(at + 1, candidates)
            self._clear(read, piece, write)

    def _write_orders(self, pairs: list[tuple[int, int]]) -> Iterator[None]:
        """Every direction of each pair of writes that nothing orders yet (8.9.6)."""
        order, holds = self.chosen.coherence.rows(self.x), self.x.universe.holds
        pair = next(((a, b) for a, b in pairs if not (holds(order, a, b) or holds(order, b, a))), None)
        if pair is None:
            yield
            return
        before = self.x.given["ordered"]
        for early, late in (pair, pair[::-1]):
            self.x.given["ordered"] = before | 1 << early * self.n + late
            self.x.changed(ORDER)
            if self._allowed():
                yield from self._write_orders(pairs)
        self.x.given["ordered"] = before
        self.x.changed(ORDER)

    def _caused_writes(self) -> list[tuple[int, int]]:
        """Without the axiom Coherence: the writes that causality relates, which may be ordered either way."""
        if self.chosen.without != "Coherence":
            return []
        caused, writes = self.chosen.cause.rows(self.x) & self.x.given["overlap"], self.x.sets["W"]
        return [(a, b) for a, b in self.x.universe.pairs(caused) if writes >> a & writes >> b & 1]

    # --- values ---

    def _possible(self) -> bool:
        """Whether the conditions of the paths can still hold, as far as reads have values."""
        self.known = {}
        for index, path in enumerate(self.found.paths):
            for value, wanted in path.conditions:
                if value.needs & ~self.chosen_reads[index]:
                    continue
                reads = self._read_values(index, path, value.needs)
                if reads is not None and bool(value.of(reads)) != wanted:
                    return False
        return True

    def _read_values(self, thread: int, path: Path, needs: int) -> list[int] | None:
        """What the reads of a path returned, 0 where it is not needed; None if one of them is not known yet."""
        reads = [0] * len(path.events)
        first = self.found.first[thread]
        for at in members(needs):
            value = self._read_value(first + at)
            if value is None:
                return None
            reads[at] = value
        return reads

    def _read_value(self, read: int) -> int | None:
        """None if it is not known yet, or follows from itself."""
        if read in self.known:
            return self.known[read]
        self.known[read] = None
        node, result = self.found.nodes[read], 0
        for piece in node.pieces:
            source = self.sources.get((read, piece))
            if source is None:
                return None
            value = self._written_value(source, piece)
            if value is None:
                return None
            result |= value << 8 * (self.found.pieces[piece][1] - node.start)
        self.known[read] = result
        return result

    def _written_value(self, write: int, piece: int) -> int | None:
        """The bytes of a piece of memory as a write leaves them, as an unsigned number."""
        node = self.found.nodes[write]
        name, start, end = self.found.pieces[piece]
        if node.thread < 0:
            value = self.initial[name]
        else:
            written = node.event.value
            assert written is not None
            reads = self._read_values(node.thread, self.found.paths[node.thread], written.needs)
            if reads is None:
                return None
            value = written.of(reads)
        return value >> 8 * (start - node.start) & ((1 << 8 * (end - start)) - 1)

    # --- results ---

    def _final_states(self) -> Iterator[dict[str, int]]:
        self.known = {}
        state: dict[str, int] = {}
        for name, initial in self.test.registers.items():
            state[name] = self.paths.initial(initial)
        for index, path in enumerate(self.found.paths):
            for register, value in path.registers.items():
                reads = self._read_values(index, path, value.needs)
                if reads is None:
                    assert self.chosen.without == "No-Thin-Air", "that axiom gives every read a value"
                    return
                state[f"{path.thread.name}:{register}"] = value.of(reads)
        for name in self._read_names():
            state.setdefault(name, 0)
        memory = [list(dict.fromkeys(self._last_values(piece))) for piece in range(len(self.found.pieces))]
        for chosen in product(*memory):
            yield {**state, **self._memory(chosen)}

    def _read_names(self) -> Iterator[str]:
        for condition in (self.test.condition, self.test.filter):
            yield from (name for name in (condition.names if condition else ()) if ":" in name)
        yield from (name for name in self.test.observed if ":" in name)

    def _last_values(self, piece: int) -> Iterator[int]:
        """What the writes leave that no other one follows in the coherence order: several, if they race."""
        order, writers = self.x.universe.rows(self.chosen.coherence.rows(self.x)), self.found.writers[piece]
        for write in members(writers):
            if not order[write] & writers:
                value = self._written_value(write, piece)
                assert value is not None, "No-Thin-Air gives every write a value"
                yield value

    def _memory(self, chosen: Sequence[int]) -> dict[str, int]:
        """The value of each location and of the elements asked for, of its type, when its pieces have these bytes."""
        found = {}
        for asked in self.asked:
            name, _, index = asked.partition("[")
            location, type_ = self.test.locations[name], self.paths.types[name]
            first = int(index[:-1]) * type_.bits // 8 if index else 0
            last = first + type_.bits // 8
            value = self.initial[location.memory] >> 8 * first
            for (memory, start, end), bytes_ in zip(self.found.pieces, chosen, strict=True):
                early, late = max(start, first), min(end, last)
                if memory == location.memory and early < late:
                    mask = (1 << 8 * (late - early)) - 1
                    at = 8 * (early - first)
                    value = value & ~(mask << at) | (bytes_ >> 8 * (early - start) & mask) << at
            found[asked] = type_.wrap(value)
        return found

    def execution(self, state: dict[str, int]) -> Execution:
        """The execution at which the search stands."""
        self.known = {}
        values: list[tuple[int | None, int | None]] = []
        for n, node in enumerate(self.found.nodes):
            read = self._read_value(n) if node.event.kind in "RU" else None
            written: int | None = None
            if node.event.kind in "WU":
                written = 0
                for piece in node.pieces:
                    part = self._written_value(n, piece) or 0
                    written |= part << 8 * (self.found.pieces[piece][1] - node.start)
            values.append((read, written))
        found: dict[str, Relation] = {**self.x.given}
        found.update((definition.name, definition.rows(self.x)) for definition in self.chosen.definitions)
        relations = {name: self.x.universe.rows(relation) for name, relation in found.items()}
        broken = [(axiom, axiom.violation(self.x)) for axiom in self.chosen.axioms if not axiom.allows(self.x)]
        threads = [path.thread.name for path in self.found.paths]
        position = self.test.source.position
        lines = [0 if node.thread < 0 else position(node.instruction.span[0])[0] for node in self.found.nodes]
        return Execution(threads, self.found.nodes, lines, values, relations, state, broken)

    def is_undefined(self) -> bool:
        """Whether an operation on an mbarrier finds none, or leaves none (9.7.13.15)."""
        for n, node in enumerate(self.found.nodes):
            if node.event.mbarrier and getattr(node.instruction, "kind", "") != "inval":
                if node.event.kind in "RU" and self._read_value(n) == 0:
                    return True
                if node.event.kind in "WU" and self._written_value(n, node.pieces[0]) == 0:
                    return True
        return False

    def races(self) -> tuple[bool, bool]:
        """Whether two conflicting operations race (8.7.1), and whether two of different sizes do (8.7.2)."""
        x = self.x
        cause, strong = x.universe.rows(self.chosen.cause.rows(x)), self.strong
        race = mixed = False
        for a, row in enumerate(x.universe.rows(x.given["overlap"])):
            if self.found.nodes[a].thread < 0 or not x.sets["W"] >> a & 1:
                continue
            for b in members(row & ~strong[a] & ~cause[a]):
                if self.found.nodes[b].thread < 0 or self.found.follow(a, b) or cause[b] >> a & 1:
                    continue
                race = True
                mixed |= not x.universe.holds(x.given["overlap-completely"], a, b)
        return race, mixed
