"""Element formats, and unpacking of 6- and 4-bit containers."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from ptxtools.machine.products import Products
from ptxtools.native.tiles.products import PRODUCTS
from ptxtools.sim.tensor import numbers

TYPES = {
    "e4m3": ml_dtypes.float8_e4m3fn, "e5m2": ml_dtypes.float8_e5m2, "e2m3": ml_dtypes.float6_e2m3fn,
    "e3m2": ml_dtypes.float6_e3m2fn, "fp4": ml_dtypes.float4_e2m1fn,
}  # fmt: skip


@pytest.fixture(params=["native", "defined"])
def products(request: pytest.FixtureRequest) -> Products:
    """Both ways of decoding."""
    return PRODUCTS if request.param == "native" else Products()


@pytest.mark.parametrize("t", list(TYPES))
def test_narrow_floats(products: Products, t: str) -> None:
    bits = {"e2m3": 6, "e3m2": 6, "fp4": 4}.get(t, 8)
    codes = np.arange(1 << bits, dtype=np.uint8)
    found = products.numbers(t, codes)
    np.testing.assert_array_equal(found.values, codes.view(TYPES[t]).astype(np.float64))


def test_padding_of_containers_does_not_count(products: Products) -> None:
    codes = np.arange(256, dtype=np.uint8)
    np.testing.assert_array_equal(products.numbers("e2m1", codes).values, products.numbers("fp4", codes >> 2).values)
    np.testing.assert_array_equal(products.numbers("e3m2", codes).values, products.numbers("e3m2", codes & 63).values)


def test_wide_floats_and_their_powers(products: Products) -> None:
    halves = np.arange(1 << 16, dtype=np.uint16)
    found = products.numbers("f16", halves)
    np.testing.assert_array_equal(found.values, halves.view(np.float16).astype(np.float64))
    finite = np.isfinite(found.values) & (found.values != 0)
    exponents = np.maximum(np.frexp(found.values[finite])[1] - 1, -14)
    np.testing.assert_array_equal(found.powers[finite], np.ldexp(1.0, exponents))
    assert (found.powers[found.values == 0] == 0).all() and np.isinf(found.powers[np.isinf(found.values)]).all()
    brain = products.numbers("bf16", halves)
    with np.errstate(invalid="ignore"):
        np.testing.assert_array_equal(brain.values, halves.view(ml_dtypes.bfloat16).astype(np.float64))


def test_tf32_is_cut_off(products: Products) -> None:
    one = np.float32(1 + 2**-10 + 2**-11).view(np.uint32)
    assert products.numbers("tf32", np.array([one])).values[0] == 1 + 2**-10


def test_scale_factors(products: Products) -> None:
    every = np.arange(256, dtype=np.uint8)
    found = products.scales("ue8m0", every)
    values, powers = found.values, found.powers
    assert values[127] == 1 and values[0] == 2.0**-127 and np.isnan(values[255]) and powers[130] == 8
    found = products.scales("ue4m3", every)
    values, powers = found.values, found.powers
    assert values[0x38] == values[0xB8] == 1 and values[1] == 2.0**-9 and powers[1] == 2.0**-6 and np.isnan(values[127])
    assert not found.finite and found.part(slice(100)).finite


@pytest.mark.parametrize("bits", [4, 6])
def test_containers(bits: int) -> None:
    rng = np.random.default_rng(bits)
    codes = rng.integers(0, 1 << bits, (5, 32), dtype=np.uint8)
    packed = np.full((5, 32), 0xA5, np.uint8)  # padding holds anything
    for row in range(5):
        for group in range(2):
            word = sum(int(c) << bits * i for i, c in enumerate(codes[row, 16 * group : 16 * group + 16]))
            packed[row, 16 * group : 16 * group + 2 * bits] = list(word.to_bytes(2 * bits, "little"))
    np.testing.assert_array_equal(numbers.unpack_containers(bits, packed), codes << (2 if bits == 4 else 0))


def test_fours_and_bits() -> None:
    assert numbers.unpack_fours(np.array([0x21, 0x43], np.uint8)).tolist() == [1, 2, 3, 4]
    assert numbers.unpack_bits(np.array([0x05], np.uint8)).tolist() == [1, 0, 1, 0, 0, 0, 0, 0]
