"""Why a condition cannot come true: an execution in which it would, with the axioms that forbid it."""

from __future__ import annotations

from . import DEFAULT_MODEL
from .axioms import model
from .executions import Choices, Execution, execution_of
from .paths import DEFAULT_UNROLL, Paths
from .programs import State, Test

#: Checks of the axioms that one kind of search may take.
MOST_CHECKS = 10_000
#: What is searched for, one after the other: the axiom that the model is without, and those of the others that hold.
#: With No-Thin-Air every read has a value to look at; with Coherence, memory has the final values of the model.
_KINDS = (
    ("", ("No-Thin-Air", "Coherence")),
    ("Coherence", ("No-Thin-Air", "Coherence-Order")),
    ("No-Thin-Air", ("Coherence",)),
)


def nearest(
    test: Test, version: str = DEFAULT_MODEL, unroll: int = DEFAULT_UNROLL, most: int = 300
) -> Execution | None:
    """For a condition that no execution satisfies: one that would, and breaks the fewest axioms, of the first `most`
    that a search meets within `MOST_CHECKS`. Where values are their own reason, one in which they could satisfy it.
    None if no choice of reads leads there, or none was met."""
    for without, kept in _KINDS:
        found = _nearest(test, version, unroll, most, without, kept)
        if found is not None:
            return found
    return None


def _nearest(test: Test, version: str, unroll: int, most: int, without: str, kept: tuple[str, ...]) -> Execution | None:
    best: Execution | None = None
    chosen, met, steps = model(version, without), 0, 0
    wanted = test.quantifier != "forall"
    axioms = tuple(axiom for axiom in chosen.axioms if axiom.name in kept)
    for search in Choices(test, Paths(test, unroll)).searches(chosen, axioms):
        search.look_for(wanted)
        search.most_steps = MOST_CHECKS - steps
        search.from_nothing = without == "No-Thin-Air"
        for state in search.states():
            if not _may_satisfy(test, state, wanted):
                continue
            execution = execution_of(search, state)
            met += 1
            if execution.broken and (best is None or len(execution.broken) < len(best.broken)):
                best = execution
            if met >= most or (best is not None and len(best.broken) == 1):
                return best
        steps += search.steps
        if steps >= MOST_CHECKS:
            break
    return best


def _may_satisfy(test: Test, state: State, wanted: bool) -> bool:
    """Whether what has a value in the state satisfies the condition, and the filter, or leaves them open."""
    if test.condition is None or test.condition.decided(state) not in (None, wanted):
        return False
    return test.filter is None or test.filter.decided(state) is not False
