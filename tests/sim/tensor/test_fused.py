"""Products with one multiply-add a term give the bits of `blocks`, whose sums other tests hold against fractions."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from ptxtools.machine.products import GROUP
from ptxtools.native.tiles import blocks, converted, fused
from ptxtools.native.tiles import interface as tiles
from ptxtools.native.tiles.factors import NO_EXPONENT, TOGETHER
from ptxtools.semantics.tensorcore import LEAST

from . import test_tiles

pytestmark = pytest.mark.skipif(not tiles.fuses(), reason="this CPU has neither AVX-512 nor AVX2")

Array = np.ndarray[Any, Any]
_POINTER, _LONG, _WORD = ctypes.c_void_p, ctypes.c_int64, ctypes.c_int32
_MASK, _UNSIGNED = ctypes.c_uint64, ctypes.c_uint32
_RULE = [_WORD, _MASK, _MASK, _UNSIGNED, _UNSIGNED, _WORD]
_OTHER = {
    "warp": [_POINTER] * 6 + [_LONG] * 2 + [*_RULE, ctypes.c_bool],
    "rows": [_POINTER] * 6 + [_LONG] * 5 + [*_RULE, ctypes.c_bool],
}
_FUSED = {
    "warp": [_POINTER] * 7 + [_LONG, _LONG, _WORD] + [_POINTER] * 7 + [_WORD] + [_POINTER] * 2 + _RULE,
    "rows": [_POINTER] * 7 + [_LONG, _LONG, _WORD, _LONG] + [_POINTER] * 5 + _RULE,
}
_CONVERSION = [_POINTER] * 2 + [_LONG] * 2 + [_WORD] * 2 + [_POINTER] * 3
_TYPES = ("f16", "bf16", "tf32", "e5m2")
#: Fraction bits below the largest exponent, and bits of an f64 that a result does not have.
_RULES = ((25, 29), (24, 29), (13, 39))


def room(count: int, kind: Any) -> Array:
    """Zeros, aligned to cache lines."""
    size = count * np.dtype(kind).itemsize
    memory = np.zeros(size + 64, np.uint8)
    start = -tiles.address_of(memory) % 64
    return memory[start : start + size].view(kind)


def function(name: str, result: Any, types: list[Any]) -> Callable[..., Any]:
    return ctypes.CFUNCTYPE(result, *types)(tiles.addresses()[name])


@pytest.fixture(params=["well", "brief", "avx2", "avx2 brief"], autouse=True)
def level(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """How the functions are compiled, and for which CPU."""
    if request.param != "well":
        addresses = test_tiles.functions_for(request.param)
        monkeypatch.setattr(tiles, "addresses", lambda: addresses)


def rounded(values: Array, t: str) -> Array:
    """Finite numbers of a type, as f32."""
    single = values.astype(np.float32)
    if t in ("f16", "e5m2"):
        codes = np.clip(single, -57344, 57344).astype(np.float16).view(np.uint16)
        return (codes & np.uint16(0xFFFF if t == "f16" else 0xFF00)).view(np.float16).astype(np.float32)
    return (single.view(np.uint32) & np.uint32(0xFFFF_0000 if t == "bf16" else 0xFFFF_E000)).view(np.float32)


def factor(chance: np.random.Generator, shape: tuple[int, int], t: str) -> Array:
    plain = chance.standard_normal(shape)
    wide = t in ("bf16", "tf32")
    kinds = [
        plain,
        plain * 2.0 ** chance.integers(-24, 10, shape),
        plain * 2.0 ** chance.integers(-3, 3, shape),
        chance.integers(-3, 4, shape),
        np.where(chance.random(shape) < 0.7, 0, plain),
        plain * (chance.random((shape[0], 1)) < 0.6),
        np.full(shape, 1.999) * np.where(chance.random(shape) < 0.02, -1, 1),
        plain * 2.0**-20,
        plain * 2.0 ** chance.integers(*((-130, 40) if wide else (-20, 12))),
        np.ldexp(chance.choice([-1.0, -0.0, 1.0], shape), chance.integers(-14, 15, shape)),
    ]
    return rounded(kinds[chance.integers(len(kinds))], t)


def addends(chance: np.random.Generator, size: int, exponent: int) -> Array:
    plain = chance.standard_normal(size)
    kinds = [
        plain,
        np.zeros(size),
        plain * 2.0 ** chance.integers(-40, 40, size),
        plain * 2.0 ** chance.integers(-3, 6, size),
        plain * 2.0**exponent,
        np.where(chance.random(size) < 0.5, 0, 1e-39),
        chance.integers(0, 1 << 32, size, dtype=np.uint32).view(np.float32),
    ]
    with np.errstate(over="ignore"):
        return kinds[chance.integers(len(kinds))].astype(np.float32)


@dataclass
class Factor:
    """A factor as `factors` arranges it: values [group][k][16], exponents [four groups][k][64]; the greatest."""

    values: Array
    exponents: Array
    most: int

    @classmethod
    def of(cls, matrix: Array, t: str) -> Factor:
        count, k = matrix.shape
        fours = -(-count // (GROUP * TOGETHER)) * GROUP * TOGETHER
        exponents = np.full((fours, k), NO_EXPONENT, np.int16)
        own = np.maximum(np.frexp(matrix)[1] - 1, LEAST[t])
        exponents[:count] = np.where(matrix == 0, NO_EXPONENT, own)
        found = cls(room(matrix.size, np.float32), room(fours * k, np.int16), int(exponents.max()))
        found.values[:] = matrix.reshape(-1, GROUP, k).transpose(0, 2, 1).ravel()
        found.exponents[:] = exponents.reshape(-1, GROUP * TOGETHER, k).transpose(0, 2, 1).ravel()
        return found

    def converted(self, name: str, k: int, first: int, groups: int, sign: int) -> tuple[list[Array], int]:
        """f64, exponents and lowest bits of some groups; the base."""
        warp = name == converted.own_of("warp")
        count = GROUP * groups * k
        parts = [room(count * (2 if warp else 1), np.float64)]
        parts += [room(count * (8 if warp else 1), np.int8) for _ in range(2)]
        places = (
            tiles.address_of(self.values) + 4 * GROUP * k * first,
            (tiles.address_of(self.exponents) + 2 * GROUP * k * first),
        )
        base = function(name, _WORD, _CONVERSION)(*places, groups, k, self.most, sign, *map(tiles.address_of, parts))
        return parts, base


class Other:
    """The functions of `blocks` for a layout: for all products; and for what `fused` leaves, with a count of calls."""

    def __init__(self, layout: str) -> None:
        self.calls = 0
        self.own = function(blocks.name_of(layout), None, _OTHER[layout])
        self.rest = function(blocks.name_of(layout, "rest"), None, _OTHER[layout])

        def call(*arguments: Any) -> None:
            self.calls += 1
            self.rest(*arguments)

        self.counted = ctypes.CFUNCTYPE(None, *_OTHER[layout])(call)
        self.address = ctypes.cast(self.counted, ctypes.c_void_p).value


def both(
    layout: str, t: str, a: Array, b: Array, c: Array, rule: tuple[int, int], keep: int = 0xFFFF_FFFF, sign: int = 0
) -> tuple[Array, Array, int] | None:
    """D from `blocks`; D from `fused`, and how many chunks of it are from `blocks`; None if a factor does not fit."""
    (m, k), n = a.shape, len(b)
    left, right = Factor.of(a, t), Factor.of(b, t)
    fraction, lost = rule
    last = (fraction, (1 << 64) - (1 << lost), 0, LEAST["f32"] + 127 << 23, keep, 0)
    wanted, rest, found = (room(c.size, np.float32) for _ in range(3))
    wanted[:] = rest[:] = found[:] = c
    other = Other(layout)
    at = tiles.address_of
    factors = [at(x) for x in (left.values, left.exponents, right.values, right.exponents)]
    if layout == "rows":
        for plain, out in ((other.own, wanted), (other.rest, rest)):
            plain(*factors, at(out), at(out), m, n, k, n, n, *last, False)
        np.testing.assert_array_equal(rest.view(np.uint32), wanted.view(np.uint32))
        lines, base = left.converted(converted.COMMON, k, 0, m // GROUP, 0)
        for strip in range(0, n, GROUP * TOGETHER):
            columns, more = right.converted(converted.own_of("rows"), k, strip // GROUP, TOGETHER, 0)
            if converted.NO_BASE in (base, more):
                return None
            function(fused.name_of("rows"), None, _FUSED["rows"])(
                *map(at, columns), *map(at, lines), at(found) + 4 * strip, m, k, base + more, n, other.address,
                *factors[:2], factors[2] + 4 * strip * k, factors[3] + 2 * strip * k, *last,
            )  # fmt: skip
        return wanted, found, other.calls
    offsets = np.arange(n // 2, dtype=np.int64) * 128
    four = room(64 * k, np.float32), room(64 * k, np.int16)
    signed = sign - (1 << 32) if sign else 0
    expand = function(blocks.EXPAND, None, [_POINTER] * 2 + [_LONG, _WORD] + [_POINTER] * 2)
    expand(*factors[:2], k, signed, *map(at, four))
    for plain, out in ((other.own, wanted), (other.rest, rest)):
        plain(*map(at, four), *factors[2:], at(offsets), at(out), n, k, *last, False)
    np.testing.assert_array_equal(rest.view(np.uint32), wanted.view(np.uint32))
    for x in four:
        x[:] = 1
    lines, base = left.converted(converted.own_of("warp"), k, 0, 1, signed)
    columns, more = right.converted(converted.COMMON, k, 0, n // GROUP, 0)
    if converted.NO_BASE in (base, more):
        return None
    function(fused.name_of("warp"), None, _FUSED["warp"])(
        *map(at, lines), *map(at, columns), at(found), n // 4, k, base + more, at(offsets), other.address, *factors,
        tiles.addresses()[blocks.EXPAND], signed, *map(at, four), *last,
    )  # fmt: skip
    return wanted, found, other.calls


@pytest.mark.parametrize("layout", fused.LAYOUTS)
@pytest.mark.parametrize("t", _TYPES)
def test_bits_are_those_of_blocks(layout: str, t: str) -> None:
    chance = np.random.default_rng([_TYPES.index(t), len(layout)])
    compared = 0
    for _ in range(150):
        k = int(chance.choice([8, 16, 32, 64]))
        m, n = (16, int(chance.choice([16, 64, 256]))) if layout == "warp" else (32, 64 * int(chance.integers(1, 3)))
        a, b = factor(chance, (m, k), t), factor(chance, (n, k), t)
        most = max(Factor.of(x, t).most for x in (a, b))
        if most > blocks.HIGHEST:
            continue
        keep = 0xFFFF_FFFF if chance.random() < 0.8 else 0
        sign = 1 << 31 if layout == "warp" and chance.random() < 0.3 else 0
        c = addends(chance, m * n, 2 * max(most, -40))
        result = both(layout, t, a, b, c, _RULES[chance.integers(len(_RULES))], keep, sign)
        if result is not None:
            compared += 1
            np.testing.assert_array_equal(result[1].view(np.uint32), result[0].view(np.uint32))
    assert compared > 75


@pytest.mark.parametrize("layout", fused.LAYOUTS)
@pytest.mark.parametrize("case", ["usual", "sums", "zeros", "no addend", "large addend", "infinite", "over", "tiny"])
def test_what_is_left_to_blocks(layout: str, case: str) -> None:
    """Only chunks with exponents or sums out of range."""
    chance = np.random.default_rng(7)
    m, n, k = (16, 64, 16) if layout == "warp" else (32, 64, 32)
    a, b = (rounded(chance.standard_normal((rows, k)), "f16") for rows in (m, n))
    c = chance.standard_normal(m * n).astype(np.float32)
    keep = 0xFFFF_FFFF
    if case == "sums":
        a[:], b[:] = 1.25, 1.25
    elif case == "zeros":
        a[3:9], b[::2], c[:] = 0, 0, 0
    elif case == "no addend":
        keep = 0
    elif case == "large addend":
        c *= np.float32(2.0**60)
    elif case == "infinite":
        c[0] = np.inf
    elif case == "over":
        a[:] = b[:] = rounded(np.full(1, 1.999), "f16")
        c[:] = 1.9
    elif case == "tiny":
        a[0], c[0] = 0, 1e-39
    result = both(layout, "f16", a, b, c, _RULES[0], keep)
    assert result is not None
    wanted, found, calls = result
    np.testing.assert_array_equal(found.view(np.uint32), wanted.view(np.uint32))
    chunks = m * n // 128
    expected = {"infinite": 1, "tiny": 1, "over": chunks}.get(case, 0)
    assert calls == expected


@pytest.mark.parametrize("layout", fused.LAYOUTS)
@pytest.mark.parametrize("k", [8, 16, 32, 64])
def test_sums_about_the_largest(layout: str, k: int) -> None:
    """Sums of both signs near 2**31 units, below and above; those that are left to blocks, and others."""
    chance = np.random.default_rng([k, len(layout)])
    m, n = (16, 64) if layout == "warp" else (32, 64)
    left, all_chunks = 0, 0
    for case in range(12):
        size = np.sqrt(min(4.0, 64.0 / k)) * (0.9, 0.97, 0.985, 1.0)[case % 4]
        a, b = (np.clip(size * chance.uniform(0.97, 1.0, (rows, k)), 1, 1.9995) for rows in (m, n))
        a[:, k // 2 :] *= 2.0 ** -(6 * (case % 4 == 0))
        a[:, 0] = 1  # terms below the unit
        b[:, 0] = chance.uniform(2.0**-13, 2.0**-12, n)
        a *= np.where(chance.random((m, 1)) < 0.5, -1, 1)
        c = (1.9 * chance.uniform(-1, 1, m * n)).astype(np.float32)
        result = both(layout, "f16", rounded(a, "f16"), rounded(b, "f16"), c, _RULES[0])
        assert result is not None
        np.testing.assert_array_equal(result[1].view(np.uint32), result[0].view(np.uint32))
        left, all_chunks = left + result[2], all_chunks + m * n // 128
    assert (left == 0) if k == 8 else (left > 0)
    assert left < all_chunks


def test_factors_whose_bits_span_too_much() -> None:
    a = np.ones((16, 16), np.float32)
    a[0, 0], a[0, 1] = 2.0**15, 2.0**-17
    factor = Factor.of(a, "f16")
    assert factor.converted(converted.own_of("warp"), 16, 0, 1, 0)[1] == converted.NO_BASE
    a[0, 1] = 2.0**-16
    assert Factor.of(a, "f16").converted(converted.own_of("warp"), 16, 0, 1, 0)[1] == 0


def test_the_rounding_mode_is_as_it_was() -> None:
    """1 + 1.5 * 2**-24 is rounded up in to-nearest alone; one chunk is left to blocks meanwhile."""
    a, b = np.ones((16, 16), np.float32), np.ones((64, 16), np.float32)
    c = np.ones(16 * 64, np.float32)
    c[0] = np.inf
    result = both("warp", "f16", a, b, c, _RULES[0])
    assert result is not None and result[2] == 1
    assert np.float32(1) + c[1:3] * np.float32(1.5 * 2.0**-24) == pytest.approx(1 + 2.0**-23, rel=1e-9)
