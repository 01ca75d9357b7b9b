"""The eight benchmark kernels: arguments, launch shapes, and what NumPy says they compute."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

PTX = Path(__file__).parents[2] / "testdata" / "bench" / "ptx"


@dataclass
class Run:
    """args: in order, `out` among them; expected: what `out` must hold."""

    grid: Any
    block: Any
    args: list[Any]
    out: np.ndarray
    expected: np.ndarray
    rtol: float = 0.0


def vecadd(small: bool) -> Run:
    n, blocks = (1000, 4) if small else (100_000, 391)
    rng = np.random.default_rng(0)
    a, b = rng.random(n, dtype=np.float32), rng.random(n, dtype=np.float32)
    out = np.zeros(n, np.float32)
    return Run(blocks, 256, [a, b, out, n], out, a + b)


def _sgemm(n: int, tiled: bool) -> Run:
    rng = np.random.default_rng(1)
    a, b = rng.random((n, n), dtype=np.float32), rng.random((n, n), dtype=np.float32)
    out = np.zeros((n, n), np.float32)
    block = (16, 16)
    return Run((n // 16, n // 16), block, [a, b, out, n], out, a @ b, rtol=1e-5)


def sgemm_naive(small: bool) -> Run:
    return _sgemm(16 if small else 64, tiled=False)


def sgemm_tiled(small: bool) -> Run:
    return _sgemm(32 if small else 64, tiled=True)


def reduce(small: bool) -> Run:
    """Tree sums of 256 elements in the kernel's own order: exact."""
    n, blocks = (300, 2) if small else (10_000, 40)
    x = np.random.default_rng(2).random(n, dtype=np.float32)
    padded = np.zeros(blocks * 256, np.float32)
    padded[:n] = x
    sums = padded.reshape(blocks, 256)
    while sums.shape[1] > 1:
        half = sums.shape[1] // 2
        sums = sums[:, :half] + sums[:, half:]
    out = np.zeros(blocks, np.float32)
    return Run(blocks, 256, [x, out, n], out, sums[:, 0])


def nbody(small: bool) -> Run:
    n = 32 if small else 256
    bodies = np.random.default_rng(3).random((n, 4), dtype=np.float32)
    p = bodies.astype(np.float64)
    d = p[None, :, :3] - p[:, None, :3]
    r2 = (d**2).sum(axis=2) + np.float64(np.float32(1e-3))
    s = p[None, :, 3] / np.sqrt(r2) ** 3
    expected = (d * s[:, :, None]).sum(axis=1)
    out = np.zeros((n, 3), np.float32)
    return Run(1, n, [bodies, out, n], out, expected.astype(np.float32), rtol=2e-4)


def shaloop(small: bool) -> Run:
    blocks, rounds = (1, 5) if small else (4, 100)
    i = np.arange(blocks * 256, dtype=np.uint32)
    a, b = i ^ np.uint32(0x6A09E667), i + np.uint32(0xBB67AE85)
    c, d = np.uint32(0x3C6EF372) ^ (i << np.uint32(7)), np.uint32(0xA54FF53A) + i

    def turn(x: np.ndarray, by: int) -> np.ndarray:
        return (x >> np.uint32(by)) | (x << np.uint32(32 - by))

    for k in range(rounds):
        s0 = turn(a, 2) ^ turn(a, 13) ^ turn(a, 22)
        majority = (a & b) ^ (a & c) ^ (b & c)
        s1 = turn(d, 6) ^ turn(d, 11) ^ turn(d, 25)
        choice = (d & a) ^ (~d & b)
        a, b, c, d = s0 + majority + s1 + choice + np.uint32(0x428A2F98) + np.uint32(k), a, b, c
    out = np.zeros(len(i), np.uint32)
    return Run(blocks, 256, [out, rounds], out, a ^ b ^ c ^ d)


def _collatz(n: int, odd_steps: int) -> np.ndarray:
    x = np.arange(1, n + 1, dtype=np.uint64)
    steps = np.zeros(n, np.uint32)
    while (x != 1).any():
        odd, live = (x & 1).astype(bool), x != 1
        steps += np.where(live, np.where(odd, odd_steps, 1), 0).astype(np.uint32)
        x = np.where(live, np.where(odd, 3 * x + 1, x >> 1), x)
    return steps


def collatz(small: bool) -> Run:
    n, blocks = (50, 1) if small else (3000, 12)
    out = np.zeros(n, np.uint32)
    return Run(blocks, 256, [out, n], out, _collatz(n, 1))


def branchy(small: bool) -> Run:
    n, blocks = (50, 1) if small else (3000, 12)
    out = np.zeros(n, np.uint32)
    return Run(blocks, 256, [out, n], out, _collatz(n, 2))


KERNELS: dict[str, Callable[[bool], Run]] = {
    f.__name__: f for f in (vecadd, sgemm_naive, sgemm_tiled, reduce, nbody, shaloop, collatz, branchy)
}
