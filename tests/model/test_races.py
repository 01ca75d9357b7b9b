"""racecheck against the model: a run is racy exactly when the executions with its outcome have a data race (8.7.1).

racecheck keeps, of each word, the last write and the reads since. A thread that accesses a location by a strong
operation first, and then by one that races with what was before, hides that race. So each thread accesses a location
once. Stores have values of their own: racecheck passes by those that change nothing.
"""

import random
import re

from ptxtools.model.executions import run
from tests.model.simulated import Kernel
from tests.model.suite import read
from tests.model.test_random import random_test
from tests.rows import rows


def texts(seed, count):
    """Tests of two and three threads, on one GPU as a launch is."""
    generator, found = random.Random(seed), []
    while len(found) < count:
        text = random_test(generator, 2 + len(found) % 2, 3)
        columns = zip(*(line.rstrip(" ;").split("|") for line in text.splitlines()[3:]), strict=True)
        places = [re.findall(r"\b[xy]\b", " ".join(column)) for column in columns]
        if all(len(names) == len(set(names)) for names in places):
            found.append(text.replace("cta 0,gpu 1", "cta 2,gpu 0"))
    return found


@rows("text", texts(5, 64), ids=[f"races-{at}" for at in range(64)], share=6)
def test_races_are_those_of_the_model(text):
    outcomes = run(read(text))
    (state,), result = Kernel(read(text)).run(1, outcomes.names, 1, engine="reference", checks="racecheck")
    racing, executions = outcomes.racing.get(state, 0), outcomes.states[state]
    if racing in (0, executions):  # else the outcome does not tell
        assert bool(result.reports) == bool(racing), (text, state, result.reports)


def test_both_kinds_are_among_them():
    """Of the tests that `make test` takes, too."""
    racing = [bool(run(read(text)).races) for text in texts(5, 20)]
    assert 3 < sum(racing) < 18
