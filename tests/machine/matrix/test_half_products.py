"""Products of f16 with f32 sums, which have native code of their own: bit for bit as the reference engine has them, with
factors of any size, addends above and below all products, and numbers that are not finite."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from . import harness

CTAS = 24
NOT_FINITE = [0x7C00, 0xFC00, 0x7E00, 0x7C01]


def halves(rng: np.random.Generator, count: int) -> np.ndarray[Any, Any]:
    """Of one sort: all exponents, some, subnormal numbers, or many zeros; sometimes with one that is not finite."""
    sort = rng.integers(4)
    if sort == 0:
        bits = rng.integers(0, 31, count) << 10 | rng.integers(0, 1024, count)
    elif sort == 1:
        bits = (rng.integers(12, 18, count) + rng.integers(-8, 8)) << 10 | rng.integers(0, 1024, count)
    elif sort == 2:
        bits = rng.integers(0, 1024, count)
    else:
        bits = np.where(rng.random(count) < 0.6, 0, rng.integers(0, 31 << 10, count))
    bits |= rng.integers(0, 2, count) << 15
    if rng.random() < 0.15:
        bits[rng.integers(count)] = rng.choice(NOT_FINITE)
    return bits.astype(np.uint16)


def singles(rng: np.random.Generator, count: int) -> np.ndarray[Any, Any]:
    """Of one sort: of one size, of all sizes, any bits, or zeros."""
    sort = rng.integers(4)
    if sort == 2:
        return rng.integers(0, 1 << 32, count, dtype=np.uint64).astype(np.uint32)
    powers = rng.integers(-50, 50, count if sort == 1 else None)
    found = (rng.standard_normal(count) * 2.0**powers).astype(np.float32) * np.float32(sort != 3)
    return found.view(np.uint32)


@pytest.mark.parametrize("k", [8, 16])
@pytest.mark.parametrize("generation", ["turing", "ampere", "hopper"])
def test_sums(generation: str, k: int) -> None:
    rng = np.random.default_rng([len(generation), k])
    counts = (4, k // 4, k // 8, 4)
    text = harness.product_kernel(f"mma.sync.aligned.m16n8k{k}.row.col.f32.f16.f16.f32", counts)
    inputs = np.zeros((CTAS, sum(counts[1:]), 32), np.uint32)
    for one in inputs:
        for rows in (slice(0, k // 4), slice(k // 4, k // 4 + k // 8)):
            one[rows] = halves(rng, 2 * one[rows].size).view(np.uint32).reshape(-1, 32)
        one[-4:] = singles(rng, 128).reshape(4, 32)
    found = [harness.run(text, inputs, 4, engine, generation) for engine in ("native", "reference")]
    np.testing.assert_array_equal(*found)
    assert len(np.unique(found[0])) > 1000
