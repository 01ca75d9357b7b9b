"""Kernels whose threads hand memory over by flags, mbarriers and barriers of a cluster, of a size at which it matters
what checkers cost: a stencil whose grid meets behind each step; warps that fill a ring of buffers for others; sums over
the shared memory of a cluster."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import ptxtools

PTX = Path(__file__).with_suffix(".ptx")


@dataclass
class Handover:
    """One launch of an entry of `handovers.ptx`. args: input, result, a number, and a word for flags."""

    name: str
    args: list[Any]
    expected: np.ndarray
    grid: int
    block: int = 128
    output: int = 1
    shared: int = 0
    device: str = "sm_90"
    path: Path = PTX

    def bound(self, device: ptxtools.Device) -> tuple[list[Any], Callable[[], np.ndarray]]:
        """Arguments for one launch, and what gives its result."""
        args = [arg.copy() if isinstance(arg, np.ndarray) else arg for arg in self.args]
        return args, lambda: args[self.output]

    def check(self, result: np.ndarray) -> None:
        np.testing.assert_array_equal(result, self.expected)


def _numbers(count: int) -> np.ndarray:
    return np.random.default_rng(1).integers(0, 1 << 20, count, dtype=np.uint32)


def grid_steps(n: int = 1 << 18, ctas: int = 8) -> Handover:
    """Four steps of a stencil, from one array into another and back: the second one is left in the first array."""
    first = np.zeros(n + 2, np.uint32)
    first[1:-1] = _numbers(n)
    state, other = first.copy(), np.zeros_like(first)
    for _ in range(4):
        other[1:-1] = state[:-2] + state[1:-1] + state[2:]
        state, other = other, state
    args = [first, np.zeros_like(first), n, np.zeros(1, np.uint32)]
    return Handover("grid_steps", args, state, grid=ctas, output=0)


def ring(rounds: int = 16, ctas: int = 4) -> Handover:
    """Two warps fill 4 KB at a time, two others add neighbours."""
    data = _numbers(ctas * rounds * 1024)
    expected = data.reshape(-1, 4).copy()
    expected[:, 0] += expected[:, 1]
    expected[:, 2] += expected[:, 3]
    return Handover("ring", [data, np.zeros_like(data), rounds, np.zeros(1, np.uint32)], expected.ravel(), ctas)


def cluster_sums(rounds: int = 32, ctas: int = 4) -> Handover:
    """Each CTA sums what the other one of its cluster has loaded."""
    data = _numbers(ctas * rounds * 1024)
    sums = data.reshape(ctas, rounds, 8, 128).sum(axis=(1, 2), dtype=np.uint32)
    expected = sums.reshape(-1, 2, 128)[:, ::-1].ravel()
    args = [data, np.zeros(ctas * 128, np.uint32), rounds, np.zeros(1, np.uint32)]
    return Handover("cluster_sums", args, expected, ctas)


ALL = {
    "grid_steps": grid_steps,
    "grid_steps_128": partial(grid_steps, ctas=128),
    "ring": ring,
    "cluster_sums": cluster_sums,
}
