"""The eight benchmark kernels: launch shapes, inputs, and results computed by NumPy."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

PTX = Path(__file__).resolve().parents[1] / "testdata" / "bench" / "ptx"
ITERATIONS = 1000


@dataclass
class Case:
    """One launch. args: arrays and numbers in parameter order; output: index of the result among them."""

    name: str
    grid: tuple[int, ...]
    block: tuple[int, ...]
    args: list[Any]
    output: int
    expected: np.ndarray
    rtol: float = 0.0

    @property
    def path(self) -> Path:
        return PTX / f"{self.name}.ptx"

    def check(self, result: np.ndarray) -> None:
        if self.rtol:
            np.testing.assert_allclose(result, self.expected, rtol=self.rtol, atol=self.rtol)
        else:
            np.testing.assert_array_equal(result, self.expected)


def _floats(count: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).random(count, dtype=np.float32) - np.float32(0.5)


def vecadd(n: int = 1 << 20) -> Case:
    a, b = _floats(n, 1), _floats(n, 2)
    return Case("vecadd", (-(-n // 256),), (256,), [a, b, np.zeros_like(a), n], 2, a + b)


def _sgemm(name: str, n: int) -> Case:
    a, b = _floats(n * n, 3), _floats(n * n, 4)
    product = a.reshape(n, n).astype(np.float64) @ b.reshape(n, n)
    shape = (n // 16, n // 16)
    return Case(name, shape, (16, 16), [a, b, np.zeros_like(a), n], 2, product.ravel(), 1e-4)


def sgemm_naive(n: int = 256) -> Case:
    return _sgemm("sgemm_naive", n)


def sgemm_tiled(n: int = 256) -> Case:
    return _sgemm("sgemm_tiled", n)


def reduce(n: int = 1 << 20) -> Case:
    x = _floats(n, 5)
    level = x.reshape(-1, 256).copy()
    for distance in (128, 64, 32, 16, 8, 4, 2, 1):
        level = level[:, :distance] + level[:, distance : 2 * distance]
    return Case("reduce", (n // 256,), (256,), [x, np.zeros(n // 256, np.float32), n], 1, level[:, 0])


def nbody(n: int = 4096) -> Case:
    p = _floats(4 * n, 6)
    body = p.reshape(n, 4).astype(np.float64)
    acceleration = np.zeros((n, 3))
    for start in range(0, n, 256):
        delta = body[None, :, :3] - body[start : start + 256, None, :3]
        inverse = ((delta**2).sum(-1) + float(np.float32(1e-3))) ** -1.5
        acceleration[start : start + 256] = (delta * (inverse * body[None, :, 3])[..., None]).sum(1)
    args = [p, np.zeros(3 * n, np.float32), n]
    return Case("nbody", (n // 256,), (256,), args, 1, acceleration.ravel(), 2e-2)


def shaloop(n: int = 65536, iterations: int = ITERATIONS) -> Case:
    i = np.arange(n, dtype=np.uint32)
    word = np.uint32
    a, b, c, d = i ^ word(0x6A09E667), i + word(0xBB67AE85), word(0x3C6EF372) ^ (i << word(7)), i + word(0xA54FF53A)

    def rotate(x: np.ndarray, count: int) -> np.ndarray:
        return (x >> word(count)) | (x << word(32 - count))

    for k in range(iterations):
        s0 = rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22)
        majority = (a & b) ^ (a & c) ^ (b & c)
        s1 = rotate(d, 6) ^ rotate(d, 11) ^ rotate(d, 25)
        choice = (d & a) ^ (~d & b)
        d, c, b, a = c, b, a, s0 + majority + s1 + choice + word((0x428A2F98 + k) & 0xFFFFFFFF)
    return Case("shaloop", (n // 256,), (256,), [np.zeros(n, np.uint32), iterations], 0, a ^ b ^ c ^ d)


def _collatz_steps(n: int, odd_step: int) -> np.ndarray:
    x, steps = np.arange(1, n + 1, dtype=np.uint32), np.zeros(n, np.uint32)
    live = np.flatnonzero(x != 1)
    while live.size:
        value = x[live]
        odd = (value & 1).astype(bool)
        x[live] = np.where(odd, 3 * value + np.uint32(1), value >> np.uint32(1))
        steps[live] += np.where(odd, np.uint32(odd_step), np.uint32(1))
        live = live[x[live] != 1]
    return steps


def collatz(n: int = 1 << 18) -> Case:
    return Case("collatz", (n // 256,), (256,), [np.zeros(n, np.uint32), n], 0, _collatz_steps(n, 1))


def branchy(n: int = 1 << 18) -> Case:
    return Case("branchy", (n // 256,), (256,), [np.zeros(n, np.uint32), n], 0, _collatz_steps(n, 2))


ALL = {
    "vecadd": vecadd,
    "sgemm_naive": sgemm_naive,
    "sgemm_tiled": sgemm_tiled,
    "reduce": reduce,
    "nbody": nbody,
    "shaloop": shaloop,
    "collatz": collatz,
    "branchy": branchy,
}

#: The same kernels at sizes that the reference engine runs in about a second each.
SMALL = {
    "vecadd": lambda: vecadd(4096),
    "sgemm_naive": lambda: sgemm_naive(32),
    "sgemm_tiled": lambda: sgemm_tiled(32),
    "reduce": lambda: reduce(4096),
    "nbody": lambda: nbody(256),
    "shaloop": lambda: shaloop(256, 20),
    "collatz": lambda: collatz(512),
    "branchy": lambda: branchy(512),
}


def megabyte(least: int = 1_000_000) -> str:
    """A module of so many bytes at least: the eight kernels repeated, with renamed entries, parameters and labels."""
    head = ".version 9.0\n.target sm_75\n.address_size 64\n"
    bodies = {name: (PTX / f"{name}.ptx").read_text().partition(".address_size 64")[2] for name in ALL}
    parts, size, number = [head], len(head), 0
    while size < least:
        for name, body in bodies.items():
            text = body.replace(name, f"{name}_{number}").replace("$L__BB0", f"$L__BB{number}")
            text = text.replace("_ZZ", f"_ZZ{number}_")
            parts.append(text)
            size += len(text)
            number += 1
    return "".join(parts)
