"""Kernels of all features as litmus tests, by launch files. The simulator does nothing with them that is not allowed."""

import pytest

from tests.model.launches import FEATURES
from tests.rows import rows

ROWS = [(name, mark) for name, feature in FEATURES.items() for mark in ("", *feature.marks, *feature.idle)]


@rows("name, mark", ROWS)
def test_launch_files(name, mark, tmp_path):
    """The whole kernel has one outcome; without a line that orders something it has others."""
    feature = FEATURES[name]
    found, states = feature.allowed(feature.write(tmp_path, mark))
    assert feature.right in states and not found.incomplete
    assert found.holds == (mark not in feature.marks), states


@rows("name, mark", ROWS, share=3)
@pytest.mark.parametrize("memory", ["strong", "weak"])
def test_the_simulator_shows_what_is_allowed(name, mark, memory, tmp_path):
    feature = FEATURES[name]
    path = feature.write(tmp_path, mark)
    _, states = feature.allowed(path)
    for seed in range(3):
        outcome = feature.outcome(path, seed, memory)
        assert outcome is None or outcome in states, (seed, outcome, states)
