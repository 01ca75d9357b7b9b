"""Whatever the simulator does with a litmus test, the model allows."""

from ptxtools.model.executions import run
from tests.model.simulated import Kernel, TranslationError
from tests.model.suite import NO_CYCLES, loaded
from tests.rows import rows

#: tools/sweep_litmus.py takes more.
SEEDS = range(2)
#: Tests that hang by intention, or need a barrier that not all warps of the CTA come to.
HANGS = {"Bar+deadlock", "MP+bar-ids"}


def kernel_of(path):
    try:
        return Kernel(loaded(path))
    except TranslationError:
        return None


KERNELS = {path.stem: path for path in NO_CYCLES if path.stem not in HANGS and kernel_of(path) is not None}


def test_most_tests_are_kernels():
    """The others have aliases, types, counts or scopes of a cluster: tests/model/simulated.py names what it refuses."""
    assert len(KERNELS) > 90


@rows("name", sorted(KERNELS), share=4)
def test_outcomes_are_allowed(name):
    kernel, allowed = kernel_of(KERNELS[name]), run(loaded(KERNELS[name]), "8.x", unroll=3)
    assert not allowed.cut
    for seed in SEEDS:
        outcome = kernel.outcome(seed, allowed.names)
        assert outcome in allowed.states, (seed, outcome, sorted(allowed.states))


def test_seeds_reach_several_outcomes():
    """The simulator is no single schedule: over the tests, seeds differ."""
    several = 0
    for name in ("SB", "MP", "Atom+add-default", "2+2W", "CoRR"):
        if name in KERNELS:
            outcomes = run(loaded(KERNELS[name]), "8.x")
            kernel = kernel_of(KERNELS[name])
            several += len({kernel.outcome(seed, outcomes.names) for seed in range(8)}) > 1
    assert several
