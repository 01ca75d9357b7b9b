"""All executions of a litmus test that a model allows: those that the search (`search.py`) finds for each combination
of paths, and each way in which barriers meet."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import product
from math import prod

from ptxtools.records import dataclass, field

from . import DEFAULT_MODEL
from .axioms import Model, model
from .barriers import barrier_orders, dependencies
from .events import Path
from .feasible import WORTH, Feasible
from .features import refuse_unknown
from .meetings import Meetings
from .paths import DEFAULT_UNROLL, Paths
from .programs import Barrier, Goal, Test
from .relations import Events, Relation
from .search import Search
from .structures import Node, Skeleton, skeleton
from .terms import PROGRAM, Axiom, Step
from .valuations import observed_names

#: Executions that are gone through at most to count them; what differs only in reads that nobody asks for is one.
MOST_EXECUTIONS = 2_000
#: Checks of the axioms that counting may take: some ten times as many as the longest test of four threads needs.
MOST_CHECKS_TO_COUNT = 4_000
#: Checks of the axioms that the search for one execution that decides the verdict may take, if counting has ended.
MOST_CHECKS = 20_000
#: The same for one choice of paths at a first look at all of them: what is possible mostly is so within a few hundred.
FEW_CHECKS = 600
#: What to begin with another choice of paths counts for, in checks.
CHECKS_OF_A_START = 10
#: Final values of memory that are looked at together.
_MOST_LAST = 500
#: Choices of paths whose events and relations are kept.
_MOST_KEPT = 2_000


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
    racing: how many of the executions that end in a state have a data race (8.7.1);
    matching: how many of these states satisfy the condition; witness: an execution that decides the verdict;
    incomplete: counting has ended early; excluded: no execution that is not counted decides the verdict otherwise;
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
    racing: dict[tuple[int, ...], int] = field(default_factory=dict)
    matching: int = 0
    witness: Execution | None = None
    cut: bool = False
    incomplete: bool = False
    excluded: bool = False
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
        """Whether the verdict stands: all executions were counted, or one was found that decides it, or none can."""
        return not self.incomplete or self.witness is not None or self.excluded

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
    choices = Choices(test, Paths(test, unroll))
    for found, state in complete(test, chosen, choices, outcomes, most):
        key = tuple(state[name] for name in outcomes.names)
        outcomes.states[key] = outcomes.states.get(key, 0) + found.weight
        if found.races[0]:
            outcomes.racing[key] = outcomes.racing.get(key, 0) + found.weight
        if outcomes.witness is None and test.condition is not None and test.condition.holds(state) == wanted:
            outcomes.witness = execution_of(found, state)
            if first:
                break
    if outcomes.incomplete and outcomes.witness is None and test.condition is not None:
        _decide(test, chosen, choices, outcomes, wanted)
    if test.condition is not None:
        condition = test.condition
        outcomes.matching = sum(
            condition.holds(dict(zip(outcomes.names, key, strict=True))) for key in outcomes.states
        )  # fmt: skip
    return outcomes


def _decide(test: Test, chosen: Model, choices: Choices, outcomes: Outcomes, wanted: bool) -> None:
    """Look for an execution that decides the verdict, leaving every branch that cannot lead to one."""
    assert test.condition is not None
    steps, done = 0, set()
    for share in (FEW_CHECKS, MOST_CHECKS):
        for number, goal in enumerate(test.condition.goals[wanted]):
            if not choices.may_reach(goal):
                continue
            for search in choices.searches(chosen, chosen.axioms):
                if (number, search.way) in done:
                    continue
                search.look_for(wanted, goal)
                search.most_steps = min(share, MOST_CHECKS - steps)
                if _has_witness(test, search, outcomes, wanted):
                    return
                steps += search.steps + CHECKS_OF_A_START
                if steps >= MOST_CHECKS:
                    return
                if search.steps <= search.most_steps:
                    done.add((number, search.way))
    outcomes.excluded, outcomes.cut = True, choices.paths.cut


def _has_witness(test: Test, search: Search, outcomes: Outcomes, wanted: bool) -> bool:
    """Whether a search comes to an execution that decides the verdict, which becomes the witness."""
    for state in search.states():
        if test.condition is None or test.condition.holds(state) != wanted:
            continue
        if test.filter is None or test.filter.holds(state):
            key = tuple(state[name] for name in outcomes.names)
            outcomes.states.setdefault(key, search.weight)
            outcomes.witness = execution_of(search, state)
            return True
    return False


def complete(
    test: Test,
    chosen: Model,
    choices: Choices,
    outcomes: Outcomes,
    most: int,
    checks: int = MOST_CHECKS_TO_COUNT,
) -> Iterator[tuple[Search, dict[str, int]]]:
    """Every final state of every allowed execution, with the search that stands there; most, checks: how many
    executions, and checks of the axioms, may be gone through."""
    leaves = steps = 0
    for search in choices.searches(chosen, chosen.axioms):
        counted, search.most_steps = -1, checks - steps
        for state in search.states():
            if test.filter is not None and not test.filter.holds(state):
                continue
            if counted != search.leaves:
                counted = search.leaves
                leaves += search.steps_found is None
                if leaves > most:
                    outcomes.incomplete = True
                    return
                weight = search.weight
                races, mixed = search.races
                outcomes.executions += weight
                outcomes.left_over += weight * any(path.unreached is not None for path in search.found.paths)
                outcomes.races += weight * races
                outcomes.mixed_races += weight * mixed
                outcomes.undefined += weight * search.is_undefined()
            yield search, state
        steps += search.steps + CHECKS_OF_A_START
        if steps > checks:
            outcomes.incomplete = True
            return
    outcomes.cut = choices.paths.cut


class Choices:
    """The combinations of paths of a test, and the ways in which barriers meet in each. What has been found out about
    them is kept, for those who go through them again."""

    def __init__(self, test: Test, paths: Paths) -> None:
        self.test, self.paths = test, paths
        self.initial = {}
        for location in test.locations.values():
            if location.memory == location.name:
                bits = 8 * max(location.size, 8)
                self.initial[location.name] = paths.initial_of(location) & ((1 << bits) - 1)
        self.combinations: list[tuple[Path, ...]] | None = None
        self.skeletons: dict[int, Skeleton] = {}
        self.impossible: set[tuple[int, int]] = set()
        self.feasible: Feasible | None = None

    def searches(self, chosen: Model, axioms: tuple[Axiom, ...]) -> Iterator[Search]:
        """One search for each combination and way that may have executions."""
        if self.combinations is None:
            self.combinations = list(self._combinations(chosen, axioms))
        for number, combination in enumerate(self.combinations):
            found = self.skeletons.get(number) or skeleton(self.test, combination, self.initial)
            if number < _MOST_KEPT:
                self.skeletons[number] = found
            for way, (barrier, relaxed) in enumerate(barrier_orders(found)):
                if (number, way) in self.impossible:
                    continue
                found.structure.given["barrier"] = barrier
                found.structure.given["relaxed-barrier"] = relaxed
                found.structure.given["dep"] = dependencies(found)
                found.structure.changed(PROGRAM)
                search = Search(self.test, found, chosen, axioms, self.paths, self.initial)
                search.way = number, way
                yield search
                if search.is_impossible:
                    self.impossible.add((number, way))

    def may_reach(self, goal: Goal) -> bool:
        """Whether some of the values that memory may hold in the end leave a goal open, whatever registers hold."""
        names = [name for name in self.test.locations if name in goal[1]] if self.feasible is not None else []
        values: dict[str, list[int]] = {}
        for name in names:
            location = self.test.locations[name]
            found = self.feasible.last(location.memory) if self.feasible is not None else None
            bits = self.paths.types[name].bits
            if found is not None and location.memory == name and location.size <= bits // 8:
                values[name] = [self.paths.types[name].wrap(value) for value in found]
        if prod(map(len, values.values())) > _MOST_LAST:
            return True
        return any(goal[0](dict(zip(values, state, strict=True))) is not False for state in product(*values.values()))

    def _combinations(self, chosen: Model, axioms: tuple[Axiom, ...]) -> Iterator[tuple[Path, ...]]:
        ways = [self.paths.of(thread) for thread in self.test.threads]
        whole = axioms == chosen.axioms and not chosen.without
        if whole and prod(map(len, ways)) >= WORTH:
            self.feasible = Feasible(self.test, ways, self.initial, chosen.version)
            ways = self.feasible.chosen()
        combinations: Iterable[tuple[Path, ...]] = product(*ways)
        if whole and prod(map(len, ways)) >= WORTH:
            meetings = Meetings(self.test, ways, self.initial)
            combinations = (meetings.choices() if meetings.apply else None) or combinations
        wanted = {*observed_names(self.test), *(self.test.filter.names if self.test.filter else ())}
        for combination in combinations:
            if all(path.unreached is None or _can_be_left(path, combination, wanted) for path in combination):
                yield combination


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


def values_of(search: Search) -> list[tuple[int | None, int | None]]:
    """What each event of the execution at which a search stands has read and written, as unsigned bytes."""
    search.known = {}
    values: list[tuple[int | None, int | None]] = []
    for n, node in enumerate(search.found.nodes):
        read = search.read_value(n) if node.event.kind in "RU" else None
        written: int | None = None
        if node.event.kind in "WU":
            written = 0
            for piece in node.pieces:
                part = search.written_value(n, piece) or 0
                written |= part << 8 * (search.found.pieces[piece][1] - node.start)
        values.append((read, written))
    return values


def execution_of(search: Search, state: dict[str, int]) -> Execution:
    """The execution at which a search stands. state: the values that are known to be its final ones."""
    judge = model(search.chosen.version)
    search.complete()
    state = {**search.whole_state(), **state}
    values = values_of(search)
    found: dict[str, Relation] = {**search.x.given}
    found.update((definition.name, definition.rows(search.x)) for definition in judge.definitions)
    relations = {name: search.x.universe.rows(relation) for name, relation in found.items()}
    broken = [(axiom, axiom.violation(search.x)) for axiom in judge.axioms if not axiom.allows(search.x)]
    threads = [path.thread.name for path in search.found.paths]
    position = search.test.source.position
    lines = [0 if node.thread < 0 else position(node.instruction.span[0])[0] for node in search.found.nodes]
    search.resume()
    return Execution(threads, search.found.nodes, lines, values, relations, state, broken)
