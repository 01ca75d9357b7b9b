"""Bits of factors and addends that are hard to add: of every type, by one word."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

#: Bits of an element, and of its fraction, and the exponent's bias.
BITS = {"f16": 16, "bf16": 16, "tf32": 32, "s8": 8, "u8": 8, "b1": 1, "e4m3": 8, "e5m2": 8, "e2m3": 6, "e3m2": 6,
        "e2m1": 4, "fp4": 4}  # fmt: skip
MANTISSA = {"f16": 10, "bf16": 7, "tf32": 23, "e4m3": 3, "e5m2": 2, "e2m3": 3, "e3m2": 2, "e2m1": 1, "fp4": 1}
BIAS = {"f16": 15, "bf16": 127, "tf32": 127, "e4m3": 7, "e5m2": 15, "e2m3": 1, "e3m2": 3, "e2m1": 1, "fp4": 1}
#: Types that have infinities or NaN; e4m3 has one NaN of each sign.
SPECIAL = ("f16", "bf16", "tf32", "e4m3", "e5m2")
Codes = np.ndarray


def container(t: str) -> type:
    return {16: np.uint16, 32: np.uint32}.get(BITS[t], np.uint8)


def any_code(t: str, rng: np.random.Generator, shape: tuple[int, int]) -> Codes:
    """All bits, a tenth zero."""
    codes = rng.integers(0, 1 << BITS[t], shape, dtype=np.uint64).astype(container(t))
    codes[rng.random(shape) < 0.1] = 0
    return codes


def finite_code(t: str, rng: np.random.Generator, shape: tuple[int, int]) -> Codes:
    codes = any_code(t, rng, shape)
    if t in SPECIAL:
        most = (1 << BITS[t] - 1) - 1
        limit = most if t == "e4m3" else most >> MANTISSA[t] << MANTISSA[t]
        codes[(codes & codes.dtype.type(most)) >= limit] = 0
    return codes


def near_code(t: str, rng: np.random.Generator, shape: tuple[int, int], low: int = -6, high: int = 6) -> Codes:
    """Exponents near each other, where the type has them."""
    if t not in MANTISSA:
        return any_code(t, rng, shape)
    most = (1 << BITS[t] - 1 - MANTISSA[t]) - 2
    fields = np.clip(rng.integers(low, high + 1, shape) + BIAS[t], 0, most).astype(np.uint64)
    rest = rng.integers(0, 1 << MANTISSA[t], shape, dtype=np.uint64)
    sign = rng.integers(0, 2, shape, dtype=np.uint64) << np.uint64(BITS[t] - 1)
    return (sign | fields << np.uint64(MANTISSA[t]) | rest).astype(container(t))


def cancelling_code(t: str, rng: np.random.Generator, shape: tuple[int, int]) -> Codes:
    """Neighbours that differ in their sign alone, but for some."""
    codes = near_code(t, rng, shape)
    if t != "b1":
        codes[:, 1::2] = codes[:, ::2] ^ codes.dtype.type(1 << BITS[t] - 1 if rng.integers(2) else 0)
        codes[:, 3] ^= codes.dtype.type(1)
    return codes


def tiny_code(t: str, rng: np.random.Generator, shape: tuple[int, int]) -> Codes:
    """Subnormal numbers and the smallest normal ones; zeros in every second row."""
    codes = near_code(t, rng, shape, -200, -70 if t in ("bf16", "tf32") else -BIAS.get(t, 0))
    codes[::2] = 0
    return codes


def huge_code(t: str, rng: np.random.Generator, shape: tuple[int, int]) -> Codes:
    """The largest numbers, all of one sign in some rows."""
    codes = near_code(t, rng, shape, 55, 127) if t in MANTISSA else any_code(t, rng, shape) | np.uint8(0x60)
    codes &= codes.dtype.type((1 << BITS[t]) - 1)
    codes[::3] &= codes.dtype.type(((1 << BITS[t]) - 1) >> (t != "b1"))
    return codes


@dataclass(frozen=True)
class Maker:
    """Codes of a factor; exponents of the addends. finite: of all factors."""

    name: str
    code: Callable[[str, np.random.Generator, tuple[int, int]], Codes]
    low: int
    high: int
    finite: bool = True

    def __str__(self) -> str:
        return self.name

    def codes(self, t: str, rng: np.random.Generator, count: int, k: int) -> Codes:
        """Count x K."""
        return self.code(t, rng, (count, k))

    def addends(self, dtype: str, rng: np.random.Generator, shape: tuple[int, int]) -> Codes:
        """Words of D: of f32, of two f16, or of s32 near the ends of its range and elsewhere."""
        if dtype == "s32":
            ends = rng.choice(np.array([0, 0x7FFF_F000, 0x8000_0F00], np.uint32), shape)
            return ends + rng.integers(0, 1 << 13, shape, dtype=np.uint32)
        count = 2 if dtype == "f16" else 1
        with np.errstate(over="ignore", under="ignore"):
            size = 2.0 ** rng.integers(self.low, self.high + 1, (*shape, count))
            values = (rng.uniform(-2, 2, (*shape, count)) * size).astype(np.float16 if count == 2 else np.float32)
        values[rng.random(values.shape) < 0.2] = 0
        values[rng.random(values.shape) < 0.05] = -0.0
        if not self.finite:
            for special in (np.inf, -np.inf, np.nan):
                values[rng.random(values.shape) < 0.02] = special
        return values.view(np.uint32)[..., 0]


MAKERS = (
    Maker("any", any_code, -150, 127, finite=False), Maker("finite", finite_code, -140, 120),
    Maker("near", near_code, -12, 12), Maker("cancelling", cancelling_code, -20, 3),
    Maker("tiny", tiny_code, -149, -100), Maker("huge", huge_code, 60, 126),
)  # fmt: skip
