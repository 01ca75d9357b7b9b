"""Products with f32 sums that have native code of their own: bit for bit as the reference engine has them, with factors
of any size, addends above and below all products, and numbers that are not finite."""

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


def words(rng: np.random.Generator, type_: str, count: int) -> np.ndarray[Any, Any]:
    """Of tf32, or two bf16 each: of one size or of many, near one or far from it, some of them zeros."""
    each = count * (1 if type_ == "tf32" else 2)
    spread, middle = rng.choice([0, 4, 40, 120]), rng.integers(-70, 70) if rng.random() < 0.4 else 0
    exponents = np.clip(127 + middle + rng.integers(-spread, spread + 1, each), 0, 254)
    bits = rng.integers(0, 2, each) << 31 | exponents << 23 | rng.integers(0, 1 << 23, each)
    bits[rng.random(each) < rng.choice([0, 0.3, 1], p=[0.5, 0.4, 0.1])] = 0
    if rng.random() < 0.1:
        bits[rng.integers(each)] = rng.choice([0x7F80_0000, 0xFF80_0000, 0x7FC0_0000])
    return (bits if type_ == "tf32" else bits[::2] >> 16 | bits[1::2] & 0xFFFF_0000).astype(np.uint32)


def singles(rng: np.random.Generator, count: int) -> np.ndarray[Any, Any]:
    """Of one sort: of one size, of all sizes, any bits, or zeros."""
    sort = rng.integers(4)
    if sort == 2:
        return rng.integers(0, 1 << 32, count, dtype=np.uint64).astype(np.uint32)
    powers = rng.integers(-50, 50, count if sort == 1 else None)
    found = (rng.standard_normal(count) * 2.0**powers).astype(np.float32) * np.float32(sort != 3)
    return found.view(np.uint32)


@pytest.mark.parametrize(("type_", "k"), [("f16", 8), ("f16", 16), ("bf16", 8), ("bf16", 16), ("tf32", 4), ("tf32", 8)])
@pytest.mark.parametrize("generation", ["turing", "ampere", "hopper"])
def test_sums(generation: str, type_: str, k: int) -> None:
    rng = np.random.default_rng([len(generation), len(type_), k])
    registers = k // (2 if type_ == "tf32" else 4)
    counts = (4, registers, registers // 2, 4)
    text = harness.product_kernel(f"mma.sync.aligned.m16n8k{k}.row.col.f32.{type_}.{type_}.f32", counts)
    inputs = np.zeros((CTAS, sum(counts[1:]), 32), np.uint32)
    for one in inputs:
        for rows in (slice(0, registers), slice(registers, -4)):
            size = one[rows].size
            given = halves(rng, 2 * size).view(np.uint32) if type_ == "f16" else words(rng, type_, size)
            one[rows] = given.reshape(-1, 32)
        one[-4:] = singles(rng, 128).reshape(4, 32)
    found = [harness.run(text, inputs, 4, engine, generation) for engine in ("native", "reference")]
    np.testing.assert_array_equal(*found)
    assert len(np.unique(found[0])) > 800
