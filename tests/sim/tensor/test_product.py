"""The sum as the chips make it, held against exact arithmetic with fractions (docs/numerics.md)."""

from __future__ import annotations

import numpy as np
import pytest
from gmpy2 import mpq

from ptxtools.machine.products import Numbers, Products
from ptxtools.native.tiles.numbers import TileNumbers
from ptxtools.native.tiles.products import PRODUCTS
from ptxtools.semantics.accumulation import Rule
from ptxtools.semantics.tensorcore import LEAST
from tests.rows import rows

from .sums import cut, expected, exponent, power, to_float


def random_matrix(products: Products, rng: np.random.Generator, t: str, rows: int, k: int) -> Numbers:
    """Numbers of all sizes, with zeros, subnormal ones and cancellation."""
    bits = {"tf32": 32, "f16": 16, "bf16": 16}.get(t, 8)
    codes = rng.integers(0, 1 << bits, (rows, k), dtype=np.uint64)
    dtype = {8: np.uint8, 16: np.uint16, 32: np.uint32}[bits]
    if t in ("tf32", "bf16"):  # exponents near each other, so that much is cut off but not all
        near = rng.integers(118, 136, (rows, k), dtype=np.uint64) << np.uint64(bits - 9)
        mask = np.uint64((1 << bits - 9) - 1 | 1 << bits - 1)
        codes = codes & mask | near
    codes[rng.random((rows, k)) < 0.1] = 0
    found = products.numbers(t, codes.astype(dtype))
    bad = ~np.isfinite(found.values)
    found.values[bad] = found.powers[bad] = 1.0
    return found


RULES = [
    ("f16", Rule(25, 16, "f32")), ("f16", Rule(25, 16, "f16")), ("f16", Rule(24, 8, "f32")),
    ("bf16", Rule(25, 16, "f32")), ("tf32", Rule(25, 8, "f32")), ("e4m3", Rule(13, 32, "e8m13")),
    ("e5m2", Rule(13, 32, "f16")), ("e5m2", Rule(25, 32, "f32")), ("e2m3", Rule(25, 32, "f32")),
]  # fmt: skip


@pytest.fixture(params=["native", "defined"])
def products(request: pytest.FixtureRequest) -> Products:
    """Both ways of computing a tile."""
    return PRODUCTS if request.param == "native" else Products()


def matrix(values: np.ndarray, powers: np.ndarray) -> TileNumbers:
    """Numbers for both."""
    return TileNumbers(values, powers)


@rows(("t", "rule"), RULES, share=3)
def test_sums_follow_the_rule(products: Products, t: str, rule: Rule) -> None:
    rng = np.random.default_rng(7)
    k = {"tf32": 8, "f16": 16, "bf16": 16}.get(t, 32)
    a, b = random_matrix(products, rng, t, 12, k), random_matrix(products, rng, t, 10, k)
    c = (rng.standard_normal((12, 10)) * 2.0 ** rng.integers(-20, 12, (12, 10))).astype(np.float32)
    c[rng.random(c.shape) < 0.2] = 0
    if rule.result == "f16":
        c = c.astype(np.float16)
    if rule.result == "e8m13":
        c = (c.view(np.uint32) & np.uint32(0xFFFFFC00)).view(np.float32)
    found = products.multiply(a, b, c, rule)
    least = (LEAST[t], LEAST[t])
    wanted = [[expected(x, y, float(c[i, j]), rule, least) for j, y in enumerate(b.values)]
              for i, x in enumerate(a.values)]  # fmt: skip
    np.testing.assert_array_equal(found.astype(np.float64), np.array(wanted))


@pytest.mark.parametrize("t", ["f16", "bf16"])
def test_addends_of_any_size(products: Products, t: str) -> None:
    """Subnormal addends, huge ones, and none beside products that are all zero."""
    rng = np.random.default_rng(11)
    a, b = random_matrix(products, rng, t, 8, 16), random_matrix(products, rng, t, 8, 16)
    a.values[:4] = a.powers[:4] = 0
    c = (rng.standard_normal((8, 8)) * 2.0 ** rng.integers(-150, 127, (8, 8))).astype(np.float32)
    rule = Rule(25, 16, "f32")
    found = products.multiply(a, b, c, rule)
    wanted = [[expected(x, y, float(c[i, j]), rule, (LEAST[t],) * 2) for j, y in enumerate(b.values)]
              for i, x in enumerate(a.values)]  # fmt: skip
    np.testing.assert_array_equal(found, np.array(wanted, np.float32))


def test_numbers_beyond_f32(products: Products) -> None:
    """Products of bf16 whose exponents add up to more than f32 has."""
    rng = np.random.default_rng(13)
    codes = rng.integers(0, 0x7F80, (8, 16), dtype=np.uint16)
    a = products.numbers("bf16", codes)
    assert a.values.dtype == np.float64
    rule = Rule(25, 16, "f32")
    c = rng.standard_normal((8, 8)).astype(np.float32)
    wanted = [[expected(x, y, float(c[i, j]), rule, (-126, -126)) for j, y in enumerate(a.values)]
              for i, x in enumerate(a.values)]  # fmt: skip
    np.testing.assert_array_equal(products.multiply(a, a, c, rule), np.array(wanted))


def test_block_scaled_fp4_adds_groups_exactly(products: Products) -> None:
    rng = np.random.default_rng(5)
    codes = [rng.integers(0, 16, (8, 64), dtype=np.uint8) for _ in range(2)]
    codes[0][::2, :16] = 0  # groups that add nothing, some of them by cancellation
    codes[0][1::2, 16:32:2] = codes[0][1::2, 17:32:2] ^ 8
    codes[1][:, 16:32:2] = codes[1][:, 17:32:2]
    a, b = (products.numbers("fp4", c) for c in codes)
    bytes_ = [rng.integers(1, 120, (8, 4), dtype=np.uint8) for _ in range(2)]
    scales = tuple(products.scales("ue4m3", s) for s in bytes_)
    c = rng.standard_normal((8, 8)).astype(np.float32)
    found = products.multiply(a, b, c, Rule(35, 64, "f32", group=16), (scales[0], scales[1]))
    for i in range(8):
        for j in range(8):
            terms, exponents = [mpq(float(c[i, j]))], [exponent(mpq(float(c[i, j])), -126)]
            for g in range(4):
                some = slice(16 * g, 16 * g + 16)
                pairs = zip(a.values[i, some].tolist(), b.values[j, some].tolist(), strict=True)
                dot = sum(mpq(float(x)) * mpq(float(y)) for x, y in pairs)
                x, y = mpq(float(scales[0].values[i, g])), mpq(float(scales[1].values[j, g]))
                terms.append(dot * x * y)
                exponents.append(exponent(x, -6) + exponent(y, -6))  # of a sum of zero, too
            unit = power(max(exponents) - 35)
            assert float(found[i, j]) == to_float(sum(cut(t, unit) for t in terms), "f32")


@pytest.mark.parametrize("result", ["f32", "f16"])
def test_what_is_not_finite(products: Products, result: str) -> None:
    a = np.zeros((4, 16))
    a[0, 3], a[1, 3], a[2, 3], a[3, 3] = np.inf, np.nan, -np.inf, 1.0
    b = np.ones((2, 16))
    b[1, 3] = 0.0
    with np.errstate(invalid="ignore"):
        powers = [np.where(np.isfinite(m), np.abs(m), np.inf) for m in (a, b)]
    c = np.zeros((4, 2), np.float16 if result == "f16" else np.float32)
    c[3, 1] = np.inf
    found = products.multiply(matrix(a, powers[0]), matrix(b, powers[1]), c, Rule(25, 16, result))
    nan = 0x7FFF if result == "f16" else 0x7FFFFFFF
    bits = found.view(np.uint16 if result == "f16" else np.uint32)
    assert found[0, 0] == np.inf and found[2, 0] == -np.inf and found[3, 0] == 1 and found[3, 1] == np.inf
    assert bits[0, 1] == bits[1, 0] == bits[1, 1] == bits[2, 1] == nan


def test_addends_that_are_not_finite(products: Products) -> None:
    ones = matrix(np.ones((4, 16), np.float32), np.ones((4, 16), np.float32))
    c = np.array([[np.inf, -np.inf, np.nan, 0]] * 4, np.float32)
    found = products.multiply(ones, ones, c, Rule(25, 16, "f32"))
    assert found[0, 0] == np.inf and found[0, 1] == -np.inf and found[0, 3] == 16
    assert found.view(np.uint32)[0, 2] == 0x7FFF_FFFF


def test_plain_arithmetic(products: Products) -> None:
    rng = np.random.default_rng(1)
    a, b = rng.standard_normal((8, 16)), rng.standard_normal((8, 16))
    found = products.multiply(matrix(a, a), matrix(b, b), None, Rule(0, 16, "f32"))
    np.testing.assert_allclose(found, a @ b.T, rtol=1e-5, atol=1e-5)


def test_rounding_at_the_ends(products: Products) -> None:
    factors = [(2.0**64, 2.0**64), (-(2.0**65), 2.0**64), (2.0**-75, 3 * 2.0**-75), (2.0**-75, 2.0**-75), (-1.0, 0.0),
               (1 + 2.0**-24, 1.0), (1 + 2.0**-24, -1.0), (1 + 2.0**-13 + 2.0**-14, 1.0)]  # fmt: skip
    a, b = np.zeros((len(factors), 8)), np.zeros((len(factors), 8))
    a[:, 5], b[:, 5] = np.array(factors).T
    powers = [np.where(m == 0, 0, 2.0 ** np.floor(np.log2(np.abs(np.where(m == 0, 1, m))))) for m in (a, b)]
    left, right = matrix(a, powers[0]), matrix(b, powers[1])
    found = products.multiply(left, right, None, Rule(25, 8, "f32")).diagonal()
    assert found[:7].tolist() == [np.inf, -np.inf, 2.0**-149, 0.0, 0.0, 1.0, -1.0] and not np.signbit(found[4])
    assert products.multiply(left, right, None, Rule(25, 8, "e8m13"))[7, 7] == 1 + 2.0**-13


def test_integers_wrap_or_saturate(products: Products) -> None:
    a, b = np.full((4, 32), 255, np.uint8), np.full((1, 32), 255, np.uint8)
    left, right, low = products.whole("u8", a), products.whole("u8", b), products.whole("s8", a ^ np.uint8(0x7F))
    c = np.full((4, 1), 0x7FFF_FFFF, np.uint32)
    assert products.multiply_whole(left, right, c, saturate=True)[0, 0] == 0x7FFF_FFFF
    assert products.multiply_whole(left, right, c, saturate=False)[0, 0] == 0x7FFF_FFFF + 32 * 255 * 255
    assert products.multiply_whole(low, right, None, saturate=True).view(np.int32)[0, 0] == -32 * 128 * 255
