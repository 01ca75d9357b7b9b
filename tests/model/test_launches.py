"""Kernels of all features as litmus tests, by launch files. The simulator does nothing that is not allowed."""

import numpy as np
import pytest

import ptxtools
from tests.model.exchanges import Exchange
from tests.model.features import HEAD, OUT
from tests.model.launches import FEATURES
from tests.rows import rows

ROWS = [(name, mark) for name, feature in FEATURES.items() for mark in ("", *feature.marks, *feature.idle)]


@rows("name, mark", ROWS, share=3)
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


@rows("seed", range(48), ids=[f"exchange-{seed}" for seed in range(48)], share=6)
def test_random_exchanges(seed, tmp_path):
    """tools/sweep_launches.py goes on with other seeds."""
    feature = Exchange(seed).feature
    path = feature.write(tmp_path)
    found, states = feature.allowed(path)
    assert not found.incomplete
    for memory in ("strong", "weak"):
        for run in range(2):
            outcome = feature.outcome(path, run, memory)
            assert outcome is None or outcome in states, (run, memory, outcome, states)


COPIES = (
    HEAD.format(target="sm_90", parameters=OUT)
    + """    .shared .align 16 .u32 other[4];
    .shared .align 16 .u32 copy[4];
    ld.param.u64 %rd1, [out];
    mov.u32 %r1, %cluster_ctarank;
    cp.async.ca.shared.global [copy], [%rd1], 16;
    cp.async.wait_all;
    ld.shared.u32 %r2, [copy];
    mul.wide.u32 %rd2, %r1, 4;
    add.u64 %rd2, %rd1, %rd2;
    barrier.cluster.arrive;
    barrier.cluster.wait;
    st.global.u32 [%rd2+4], %r2;
    ret;
}
"""
)


def test_late_copies_go_to_the_memory_of_their_own_cta():
    """In a cluster, too, in which addresses have the rank of their CTA."""
    for seed in range(3):
        values = np.array([7, 0, 0, 0], np.uint32)
        ptxtools.Device("sm_90", seed=seed).launch(ptxtools.loads(COPIES)["k"], 2, 1, [values], cluster=2)
        assert values.tolist() == [7, 7, 7, 0]
