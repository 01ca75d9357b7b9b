"""Kernels as real programs have them: `programs.cu`, and two of Triton's from the test data; with results by NumPy."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from kernels import Case, _floats

DATA = Path(__file__).resolve().parents[1] / "testdata"
SIZE = 1 << 20


@dataclass
class Program(Case):
    """file: where it is; shared: bytes of dynamic shared memory."""

    file: str = ""
    shared: int = 0
    atol: float = 0.0

    @property
    def path(self) -> Path:
        return DATA / (self.file or f"bench/programs/{self.name}.ptx")

    def check(self, result: np.ndarray) -> None:
        np.testing.assert_allclose(result.astype(np.float64), self.expected, rtol=self.rtol, atol=self.atol)


def _words(count: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 1 << 32, count, dtype=np.uint32)


def stencil(nx: int = 128, ny: int = 128, nz: int = 64) -> Program:
    cube = _floats(nx * ny * nz, 11).reshape(nz, ny, nx)
    wide = np.pad(cube, 1)
    around = sum(np.roll(wide, step, axis)[1:-1, 1:-1, 1:-1] for axis in range(3) for step in (1, -1))
    expected = np.float32(0.4) * cube + np.float32(0.1) * around
    args = [cube.ravel(), np.zeros(cube.size, np.float32), nx, ny, nz]
    return Program("stencil", (nx // 32, ny // 8), (32, 8), args, 1, expected.ravel(), 1e-5, atol=1e-6)


def histogram(n: int = SIZE) -> Program:
    """The bins of an array of zeros are counted, too: they are added to what is there."""
    words = _words(n, 12)
    bins = np.bincount(words.view(np.uint8), minlength=256).astype(np.uint32)
    return Program("histogram", (64,), (256,), [words, np.zeros(256, np.uint32), n], 1, bins)


def spmv(rows: int = 16384, each: int = 64) -> Program:
    random = np.random.default_rng(13)
    counts = random.integers(0, 2 * each, rows)
    start = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
    columns = random.integers(0, rows, start[-1], dtype=np.int32)
    values, x = _floats(int(start[-1]), 14), _floats(rows, 15)
    sums = np.concatenate([[0.0], np.cumsum(values.astype(np.float64) * x[columns])])
    args = [start, columns, values, x, np.zeros(rows, np.float32), rows]
    return Program("spmv", (rows // 8,), (256,), args, 4, sums[start[1:]] - sums[start[:-1]], 1e-4, atol=1e-5)


def scan(n: int = SIZE) -> Program:
    words = _words(n, 16)
    sums = np.cumsum(words.reshape(-1, 1024), axis=1, dtype=np.uint32).ravel()
    args = [words, np.zeros(n, np.uint32), np.zeros(n // 1024, np.uint32)]
    return Program("scan", (n // 1024,), (256,), args, 1, sums)


def radix(n: int = SIZE, shift: int = 8) -> Program:
    words = _words(n, 17).reshape(-1, 1024)
    order = np.argsort(words >> shift & 15, axis=1, kind="stable")
    expected = np.take_along_axis(words, order, axis=1).ravel()
    return Program("radix", (n // 1024,), (1024,), [words.ravel(), np.zeros(n, np.uint32), shift], 1, expected)


def gemm_async(n: int = 256) -> Program:
    a, b = _floats(n * n, 18), _floats(n * n, 19)
    product = (a.reshape(n, n).astype(np.float64) @ b.reshape(n, n)).ravel()
    args = [a, b, np.zeros(n * n, np.float32), n]
    return Program("gemm_async", (n // 64, n // 64), (256,), args, 2, product, 1e-4, atol=1e-4)


def softmax(rows: int = 1024, columns: int = 777) -> Program:
    x = 4 * _floats(rows * 784, 20).reshape(rows, 784)
    top = np.exp(x[:, :columns].astype(np.float64) - x[:, :columns].max(1, keepdims=True))
    expected = np.zeros((rows, 800))
    expected[:, :columns] = top / top.sum(1, keepdims=True)
    args = [np.zeros(rows * 800, np.float32), x.ravel(), 784, 800, columns, 0, 0]
    where = "cases/tri_softmax_sm75/kernel.ptx"
    return Program("softmax", (rows,), (128,), args, 0, expected.ravel(), 2e-5, where, 16, 1e-8)


def attention(n: int = 1024, scale: float = 0.18) -> Program:
    q, k, v = ((4 * _floats(64 * n, seed)).astype(np.float16).reshape(n, 64) for seed in (21, 22, 23))
    scores = scale * (q.astype(np.float64) @ k.T.astype(np.float64))
    weights = np.exp2(scores - scores.max(1, keepdims=True))
    expected = (weights / weights.sum(1, keepdims=True)) @ v.astype(np.float64)
    args = [q.ravel(), k.ravel(), v.ravel(), np.zeros(64 * n, np.float16), n, scale, 0, 0]
    where = "cases/tri_attn_sm80/kernel.ptx"
    return Program("attn", (n // 64,), (128,), args, 3, expected.ravel(), 2e-3, where, 24576, 4e-3)


ALL = {
    "attention": attention,
    "softmax": softmax,
    "gemm_async": gemm_async,
    "radix": radix,
    "scan": scan,
    "spmv": spmv,
    "stencil": stencil,
    "histogram": histogram,
}
