"""Whatever the simulator does with a litmus test, the model allows."""

from ptxtools.model.executions import run
from tests.model.simulated import Kernel, TranslationError
from tests.model.suite import NO_CYCLES, loaded
from tests.rows import rows

#: tools/sweep_litmus.py takes more.
SEEDS = range(2)
#: Tests that hang by intention, or need a barrier that not all warps of the CTA come to.
HANGS = {"Bar+deadlock", "MP+bar-ids"}


#: Why tests are no kernels here: what they have, or an instruction by the first part of its name.
REASONS = {"aliases", "a long array", "several grids", "an address in a register", "tcgen05", "wgmma", "mbarrier", "cp",
           "fence", "st.async", "red.async", "bar", "barrier", "inc", "selp", "clusters"}  # fmt: skip


def kernel_of(path):
    try:
        return Kernel(loaded(path))
    except TranslationError:
        return None


def _skipped():
    """Why each test that is no kernel is none."""
    found = {}
    for path in NO_CYCLES:
        try:
            Kernel(loaded(path))
        except TranslationError as error:
            reason = str(error)
            first = ".".join(reason.split()[0].split(".")[: 1 + (".async" in reason and reason[:3] in ("st.", "red"))])
            found[path.stem] = reason if reason in REASONS else first
    return found


SKIPPED = _skipped()
KERNELS = {path.stem: path for path in NO_CYCLES if path.stem not in HANGS and path.stem not in SKIPPED}


def test_most_tests_of_loads_stores_and_fences_are_kernels():
    """The others are listed with the reason: `pytest -s` prints them."""
    for reason in sorted(REASONS):
        names = [name for name, why in SKIPPED.items() if why == reason]
        print(f"{reason}: {len(names)} tests: {' '.join(names)}")
    assert set(SKIPPED.values()) == REASONS
    assert len(KERNELS) > 220


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
