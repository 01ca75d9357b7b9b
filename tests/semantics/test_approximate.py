"""Approximate functions: counts and values measured on hardware where some are published, else the manual's bounds."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from ptxtools import isa

from .harness import Native, operands, run_numpy, signature

FRACTIONS = np.arange(1 << 23, dtype=np.uint32)


@pytest.fixture(scope="module")
def native() -> Callable[[str, np.ndarray], np.ndarray]:
    module = Native()
    texts = ("rcp.approx.f32", "rsqrt.approx.f32", "ex2.approx.f32", "sqrt.approx.f32")
    numbers = {t: module.add(isa.resolve(t), signature(isa.resolve(t)).inputs) for t in texts}

    def run(text: str, x: np.ndarray) -> np.ndarray:
        return module.run(numbers[text], [x], [np.uint32])[0]

    return run


def steps_from(exact: np.ndarray, got: np.ndarray) -> np.ndarray:
    """How many f32 steps `got` lies from the correctly rounded value."""
    return np.abs(exact.astype(np.float32).view(np.int32) - got.view(np.int32))


def test_rcp_has_the_hardware_s_number_of_wrong_bits(native: Callable[[str, np.ndarray], np.ndarray]) -> None:
    """Of 2**23 mantissas, A100, L4 and H100 round 1,108,522 reciprocals to the neighbour."""
    x = FRACTIONS | np.uint32(0x3F80_0000)
    steps = steps_from(1 / x.view(np.float32).astype(np.float64), native("rcp.approx.f32", x))
    assert [np.count_nonzero(steps == 1), np.count_nonzero(steps > 1)] == [1_108_522, 0]


@pytest.mark.parametrize(("start", "one", "two"), [(0x3F80_0000, 1_883_437, 8), (0x4000_0000, 1_750_685, 0)])
def test_rsqrt_has_the_hardware_s_number_of_wrong_bits(
    native: Callable[[str, np.ndarray], np.ndarray], start: int, one: int, two: int
) -> None:
    x = FRACTIONS | np.uint32(start) if start == 0x3F80_0000 else FRACTIONS + np.uint32(start)
    steps = steps_from(1 / np.sqrt(x.view(np.float32).astype(np.float64)), native("rsqrt.approx.f32", x))
    assert [np.count_nonzero(steps == 1), np.count_nonzero(steps == 2), np.count_nonzero(steps > 2)] == [one, two, 0]


def accuracy(text: str, low: float, high: float, exact: Callable[[np.ndarray], np.ndarray], *, relative: bool) -> float:
    """log2 of the largest error over evenly spread arguments."""
    op = isa.resolve(text)
    t = (op.type or "").removesuffix("x2")
    x = np.linspace(low, high, 20_000).astype(np.float32)
    if t == "f16":
        x = x.astype(np.float16)
        bits = x.view(np.uint16)
    elif t == "bf16":
        bits = (x.view(np.uint32) >> 16).astype(np.uint16)
        x = (bits.astype(np.uint32) << 16).view(np.float32)
    else:
        bits = x.view(np.uint32)
    if op.type != t:
        bits = bits.astype(np.uint32) << 16 | bits
    got = run_numpy(op, [bits])[0]
    if op.type != t:
        assert np.array_equal(got >> 16, got & 0xFFFF)
        got = (got >> 16).astype(np.uint16)
    if t == "f16":
        number = got.view(np.float16).astype(np.float64)
    else:
        number = (got.astype(np.uint32) << 16 if t == "bf16" else got).view(np.float32).astype(np.float64)
    want = exact(x.astype(np.float64))
    error = np.abs(number - want)
    if relative:
        error = error[want != 0] / np.abs(want[want != 0])
    return float(np.log2(error.max()))


def test_bounds_of_the_manual() -> None:
    assert accuracy("ex2.approx.f32", -20, 20, np.exp2, relative=True) < -22
    assert accuracy("lg2.approx.f32", 0.5, 2, np.log2, relative=False) < -22
    assert accuracy("sin.approx.f32", -np.pi, np.pi, np.sin, relative=False) < -20.5
    assert accuracy("cos.approx.f32", -np.pi, np.pi, np.cos, relative=False) < -20.5
    assert accuracy("sqrt.approx.f32", 1e-3, 1e3, np.sqrt, relative=True) < -22.9
    assert accuracy("tanh.approx.f32", -6, 6, np.tanh, relative=True) < -11
    assert accuracy("tanh.approx.f16", -5, 5, np.tanh, relative=False) < -10.987
    assert accuracy("tanh.approx.f16x2", -5, 5, np.tanh, relative=False) < -10.987
    assert accuracy("tanh.approx.bf16", -5, 5, np.tanh, relative=False) < -8
    assert accuracy("ex2.approx.f16", -10, 10, np.exp2, relative=True) < -9.9
    assert accuracy("ex2.approx.ftz.bf16x2", -20, 20, np.exp2, relative=True) < -7


@pytest.mark.parametrize("text", ["div.approx.f32", "div.full.f32", "div.approx.ftz.f32", "div.full.ftz.f32"])
def test_division_is_within_two_steps(text: str) -> None:
    rng = np.random.default_rng(1)
    a, b = (np.float32(rng.uniform(1, 2, 20_000) * 2.0 ** rng.integers(-40, 40, 20_000)) for _ in range(2))
    got = run_numpy(isa.resolve(text), [a.view(np.uint32), b.view(np.uint32)])[0]
    assert steps_from(a.astype(np.float64) / b, got).max() <= 2


def bits(*patterns: int) -> np.ndarray:
    return np.array(patterns, np.uint32)


SPECIAL = {
    # arguments: +0 -0 +inf -inf NaN 1.0 -1.0 least subnormal
    "rcp.approx.f32": bits(0x7F800000, 0xFF800000, 0, 0x80000000, 0x7FFFFFFF, 0x3F800000, 0xBF800000, 0x7F800000),
    "sqrt.approx.f32": bits(0, 0x80000000, 0x7F800000, 0x7FFFFFFF, 0x7FFFFFFF, 0x3F800000, 0x7FFFFFFF, 0x1A3504F3),
    "rsqrt.approx.f32": bits(0x7F800000, 0xFF800000, 0, 0x7FFFFFFF, 0x7FFFFFFF, 0x3F800000, 0x7FFFFFFF, 0x64B504F3),
    "lg2.approx.f32": bits(0xFF800000, 0xFF800000, 0x7F800000, 0x7FFFFFFF, 0x7FFFFFFF, 0, 0x7FFFFFFF, 0xC3150000),
    "ex2.approx.f32": bits(0x3F800000, 0x3F800000, 0x7F800000, 0, 0x7FFFFFFF, 0x40000000, 0x3F000000, 0x3F800000),
    "sin.approx.f32": bits(0, 0x80000000, 0x7FFFFFFF, 0x7FFFFFFF, 0x7FFFFFFF, 0x3F576AA0, 0xBF576AA0, 0),
    "cos.approx.f32": bits(
        0x3F800000, 0x3F800000, 0x7FFFFFFF, 0x7FFFFFFF, 0x7FFFFFFF, 0x3F0A5140, 0x3F0A5140, 0x3F800000
    ),
    "rsqrt.approx.ftz.f32": bits(0x7F800000, 0xFF800000, 0, 0x7FFFFFFF, 0x7FFFFFFF, 0x3F800000, 0x7FFFFFFF, 0x7F800000),
}


@pytest.mark.parametrize("text", SPECIAL)
def test_special_arguments(text: str) -> None:
    x = bits(0, 0x80000000, 0x7F800000, 0xFF800000, 0x7FC00001, 0x3F800000, 0xBF800000, 1)
    got = run_numpy(isa.resolve(text), [x])[0]
    exact = {"sin.approx.f32": [5, 6], "cos.approx.f32": [5, 6], "sqrt.approx.f32": [7], "rsqrt.approx.f32": [7]}
    steps = np.abs(got.view(np.int32).astype(np.int64) - SPECIAL[text].view(np.int32))
    for i, distance in enumerate(steps):
        assert distance <= (20 if i in exact.get(text, ()) else 0), (text, hex(x[i]), hex(got[i]))


def test_f64_seeds_have_twenty_bits() -> None:
    x = np.abs(operands("f64", 4000, np.random.default_rng(1)).view(np.float64))
    x = x[np.isfinite(x) & (x > 1e-300) & (x < 1e300)]
    for text, exact in (("rcp.approx.ftz.f64", 1 / x), ("rsqrt.approx.ftz.f64", 1 / np.sqrt(x))):
        got = run_numpy(isa.resolve(text), [x.view(np.uint64)])[0]
        assert not (got & np.uint64(0xFFFF_FFFF)).any()
        assert np.abs(got.view(np.float64) / exact - 1).max() < 2.0**-19.9
    refined = run_numpy(isa.resolve("rsqrt.approx.f64"), [x.view(np.uint64)])[0].view(np.float64)
    assert np.abs(refined * np.sqrt(x) - 1).max() < 2.0**-51
