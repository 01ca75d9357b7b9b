"""Whoever comes to a cluster's barrier as a whole warp is passed natively; all else is said as ever."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import ptxtools
from ptxtools.native.loop import events
from ptxtools.observe import synccheck

from .programs import module

HEAD = ".version 8.0\n.target sm_90\n.address_size 64\n"
STEPS = (
    "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;", "barrier.cluster.arrive; barrier.cluster.wait;",
    "@%p barrier.cluster.arrive.aligned; @!%p barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;",
    "@%p barrier.cluster.arrive; @!%p barrier.cluster.arrive; barrier.cluster.wait;", "barrier.cluster.arrive;",
    "barrier.cluster.arrive.relaxed; @%p barrier.cluster.wait; @!%p barrier.cluster.wait;", "barrier.cluster.wait;",
    "barrier.cluster.arrive; @%p st.shared.u32 [bars], 1; barrier.cluster.wait;", "bar.sync 0;",
)  # fmt: skip


def _program(seed: int) -> str:
    """Steps of which some divide a warp, and few arrive twice, or wait without having arrived."""
    random = np.random.default_rng(seed)
    weights = np.array([6, 4, 1, 2, 0.2, 2, 0.1, 1, 1])
    steps = [STEPS[n] for n in random.choice(len(STEPS), random.integers(3, 9), p=weights / weights.sum())]
    return "\n".join([f"setp.lt.u32 %p, %l, {random.choice([16, 20, 32])};", *steps])


def _found(seed: int, more: str = "") -> Any:
    outer = ".visible .shared .align 8 .b64 bars[2];\n"
    text = module(_program(seed) + more, head=HEAD, outer=outer)
    device, grid = ptxtools.Device("sm_90", checks="synccheck"), 4
    try:
        with_clusters = device.launch(text["k"], grid, (64, 50)[seed % 2], [np.zeros(1, np.uint32)], cluster=2)
    except ptxtools.Trap as trap:
        return trap.kind, trap.reason, trap.details
    return [(one.line, one.message, one.thread, one.cta, one.count, one.details) for one in with_clusters.reports]


@pytest.mark.share(8)
@pytest.mark.parametrize("seed", range(60))
def test_what_passes_natively_is_nothing_to_report(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    found = _found(seed)
    monkeypatch.setattr(synccheck.SyncCheck, "passing", lambda self, op: None)
    assert found == _found(seed, " // told of")


def test_nobody_is_told_of_whole_warps(monkeypatch: pytest.MonkeyPatch) -> None:
    told, find = list[str](), events.find
    monkeypatch.setattr(events, "find", lambda launch, kind: told.append(kind) or find(launch, kind))
    text = module("mov.u32 %r1, 0; LOOP: barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;"
                  "add.u32 %r1, %r1, 1; setp.lt.u32 %p, %r1, 9; @%p bra LOOP;", head=HEAD)  # fmt: skip
    device = ptxtools.Device("sm_90", checks="synccheck")
    assert not device.launch(text["k"], 4, 64, [np.zeros(1, np.uint32)], cluster=2).reports
    assert not {"observe.arrive", "observe.leave"} & set(told)
