"""cvt against exact rationals, Python integers and ml_dtypes."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cache

import ml_dtypes
import numpy as np
import pytest

from ptxtools import isa
from ptxtools.isa import Opcode
from ptxtools.semantics.types import element_of
from tests.rows import rows

from . import oracle
from .harness import all_opcodes, dtype_of, exhaustive, operands, run_numpy, signature
from .test_floating import float_of, flush

COUNT = 32
FLOATS = ("f16", "bf16", "f32", "f64")


@cache
def cvt() -> list[Opcode]:
    return [op for op in all_opcodes() if op.name == "cvt"]


def scalar() -> list[Opcode]:
    return [op for op in cvt() if all(t in FLOATS or (t[0] in "us" and t[1:].isdigit()) for t in op.types)]


def mode_of(op: Opcode) -> str:
    if op.has("rna"):
        return "rna"
    return next((m[:2] for m in ("rni", "rzi", "rmi", "rpi", "rn", "rz", "rm", "rp") if op.has(m)), "rz")


def rounded_integer(x: oracle.Number, mode: str) -> int:
    value = oracle.exact(x)
    magnitude = oracle.round_integer(abs(value), mode, value < 0)
    return -magnitude if value < 0 else magnitude


def to_integer(op: Opcode, target: str, source: str, pattern: int) -> int:
    if source not in FLOATS:
        value = oracle.number(pattern, source)
        return oracle.clamp(value, target) if op.has("sat") else value
    x = oracle.decode(flush(pattern, source, op.has("ftz") and source == "f32"), source)
    if isinstance(x, float) and math.isnan(x):
        bits = int(target[1:])
        return 1 << (bits - 1) if source == "f64" or bits == 64 else 0
    if oracle.is_special(x):
        return oracle.limits(target)[x > 0]
    return oracle.clamp(rounded_integer(x, mode_of(op)), target)


def to_float(op: Opcode, target: str, source: str, pattern: int) -> int:
    ftz = op.has("ftz")
    if source in FLOATS:
        x = oracle.decode(flush(pattern, source, ftz and source == "f32"), source)
    else:
        value = oracle.number(pattern, source)
        x = Fraction(value) if value else 0.0
    if any(op.has(m) for m in ("rni", "rzi", "rmi", "rpi")) and not oracle.is_special(x) and x != 0:
        integer = rounded_integer(x, mode_of(op))
        x = Fraction(integer) if integer else math.copysign(0.0, -1.0 if oracle.is_negative(x) else 1.0)
    rounding = next((m for m in ("rz", "rm", "rp") if op.has(m)), "rn")
    result = oracle.encode(x, target, rounding, satfinite=op.has("satfinite"))
    result = flush(result, target, ftz and target == "f32")
    number = oracle.decode(result, target)
    if op.has("sat"):
        return 0 if math.isnan(number) or number <= 0 else min(result, oracle.encode(Fraction(1), target))
    if op.has("relu") and not math.isnan(number) and oracle.is_negative(number):
        return 0
    return 0 if op.has("pzo") and number == 0 else result


@rows("op", scalar, ids=lambda op: op.text, share=3)
def test_scalar_conversion(op: Opcode) -> None:
    target, source = op.types
    x = operands(source, COUNT, np.random.default_rng(len(op.text) + ord(source[-1])))
    got = run_numpy(op, [x])[0]
    for i, pattern in enumerate(map(int, x)):
        if target in FLOATS:
            want = to_float(op, target, source, pattern)
            if target == "f64" and math.isnan(float_of(want)):
                assert math.isnan(float_of(int(got[i])))
                continue
        else:
            bits = max(16, int(target[1:]))
            want = to_integer(op, target, source, pattern)
            want = oracle.number(want, target) & ((1 << bits) - 1)
        assert int(got[i]) == want, (op.text, hex(pattern), hex(got[i]), hex(want))


@pytest.mark.share(3)
@pytest.mark.parametrize("text", ["cvt.f32.f16", "cvt.f64.bf16", "cvt.rn.bf16.f16", "cvt.rzi.s16.f16", "cvt.rn.f16.s8",
                                  "cvt.rni.f16.f16", "cvt.rpi.u8.bf16"])  # fmt: skip
def test_every_pattern_of_16_bit_sources(text: str) -> None:
    op = isa.resolve(text)
    x = exhaustive(op.types[1])
    assert x is not None
    got = run_numpy(op, [x])[0]
    for i in range(0, 1 << 16, 23):
        pattern = int(x[i])
        want = (to_float if op.types[0] in FLOATS else to_integer)(op, *op.types, pattern)
        if op.types[0] not in FLOATS:
            want = oracle.number(want, op.types[0]) & 0xFFFF
        if op.types[0] == "f64" and math.isnan(float_of(want)):
            continue
        assert int(got[i]) == want, (hex(pattern), hex(got[i]), hex(want))


def half_pair(op: Opcode, form: str, values: list[int]) -> int:
    return int(sum(narrow_one(op, form, v) << 16 * (1 - i) for i, v in enumerate(values)))


def narrow_one(op: Opcode, form: str, pattern: int) -> int:
    """One f32 to a narrow format: rounding, .satfinite, .relu, .pzo, NaN."""
    return narrow_number(op, form, oracle.decode(pattern, "f32"))


def narrow_number(op: Opcode, form: str, x: oracle.Number) -> int:
    if isinstance(x, float) and math.isnan(x):
        return {"f16": 0x7FFF, "bf16": 0x7FFF, "e4m3": 0x7F, "e5m2": 0x7F}.get(form, oracle.LAYOUTS[form].largest)
    if op.has("relu") and oracle.is_negative(x):
        return 0
    result = oracle.encode(x, form, mode_of(op), satfinite=op.has("satfinite"))
    return 0 if op.has("pzo") and result == oracle.LAYOUTS[form].sign else result


def packed() -> list[Opcode]:
    return [op for op in cvt() if op.types[0] in ("f16x2", "bf16x2", "e4m3x2", "e5m2x2", "e2m3x2", "e3m2x2", "e2m1x2")
              and op.types[1] == "f32" and not op.has("rs")]  # fmt: skip


def scaled() -> list[Opcode]:
    return [op for op in packed() if op.has("scaled::n1::ue8m0")]


def stored_bits(form: str) -> int:
    """Bits from one number of a narrow format to the next in a pair."""
    return {"f16": 16, "bf16": 16, "e2m1": 4}.get(form, 8)


@rows("op", lambda: [op for op in packed() if op not in scaled()], ids=lambda op: op.text, share=3)
def test_packed_conversion(op: Opcode) -> None:
    form = op.types[0][:-2]
    bits = stored_bits(form)
    rng = np.random.default_rng(1)
    a, b = near_format(form, 300, rng), near_format(form, 300, rng)
    got = run_numpy(op, [a, b])[0]
    for i in range(len(a)):
        want = narrow_one(op, form, int(a[i])) << bits | narrow_one(op, form, int(b[i]))
        assert int(got[i]) == want, (op.text, hex(a[i]), hex(b[i]), hex(got[i]), hex(want))


def divided(op: Opcode, form: str, values: list[int]) -> int:
    """Both sources divided by one power of two, then rounded; 255 is no number."""
    *parts, scale = values
    if op.types[1] != "f32":
        half, _ = element_of(op.types[1])
        parts = [oracle.encode(oracle.decode(p, half), "f32") for p in (parts[0] >> 16, parts[0] & 0xFFFF)]
    result = 0
    for pattern in parts:
        x = oracle.decode(pattern, "f32") if scale & 255 != 255 else math.nan
        if not isinstance(x, float):
            x = x / Fraction(2) ** ((scale & 255) - 127)
        result = result << stored_bits(form) | narrow_number(op, form, x)
    return result


@rows("op", scaled, ids=lambda op: op.text, share=3)
def test_packed_conversion_with_a_scale(op: Opcode) -> None:
    """Sources whose quotients lie near the format's values, and any with the least and the greatest scales."""
    form = op.types[0][:-2]
    rng = np.random.default_rng(1)
    scale = np.concatenate([rng.integers(118, 137, 240), np.repeat([0, 1, 127, 253, 254, 255], 10)])
    exponent = np.where(np.abs(scale - 127) < 10, scale - 127, 0)
    with np.errstate(over="ignore", invalid="ignore"):
        a, b = (np.ldexp(near_format(form, 300, rng).view(np.float32), exponent).view(np.uint32) for _ in "ab")
    got = run_numpy(op, [a, b, scale.astype(dtype_of("b8"))])[0]
    for x, y, s, result in zip(a.tolist(), b.tolist(), scale.tolist(), got.tolist(), strict=True):
        want = divided(op, form, [x, y, s])
        assert result == want, (op.text, hex(x), hex(y), s, hex(result), hex(want))


def near_format(form: str, count: int, rng: np.random.Generator) -> np.ndarray:
    """f32 patterns at, and just beside, a narrow format's values and the middles between them, and edge cases."""
    layout = oracle.LAYOUTS[form]
    patterns = rng.integers(0, layout.largest + 2, count)
    values = [
        oracle.encode(oracle.decode(int(p), form) if p <= layout.largest else Fraction(500), "f32") for p in patterns
    ]
    near = np.array(values, np.uint32) + (rng.integers(0, 3, count) << rng.integers(0, 23, count)).astype(np.uint32)
    near = near + rng.integers(-1, 2, count).astype(np.int32).view(np.uint32)
    near ^= (rng.integers(0, 2, count) << 31).astype(np.uint32)
    return np.where(rng.integers(0, 4, count) == 0, operands("f32", count, rng), near)


@pytest.mark.share(3)
@pytest.mark.parametrize(
    ("text", "dtype"),
    [("cvt.rn.satfinite.e4m3x2.f32", ml_dtypes.float8_e4m3fn), ("cvt.rn.satfinite.e5m2x2.f32", ml_dtypes.float8_e5m2),
     ("cvt.rn.satfinite.e2m3x2.f32", ml_dtypes.float6_e2m3fn), ("cvt.rn.satfinite.e3m2x2.f32", ml_dtypes.float6_e3m2fn),
     ("cvt.rn.bf16x2.f32", ml_dtypes.bfloat16)],
)  # fmt: skip
def test_agrees_with_ml_dtypes(text: str, dtype: type) -> None:
    """In range, where both round to nearest even."""
    op = isa.resolve(text)
    rng = np.random.default_rng(9)
    x = near_format(op.types[0][:-2], 4000, rng)
    largest = float(ml_dtypes.finfo(dtype).max)
    numbers = x.view(np.float32)
    inside = np.isfinite(numbers) & (np.abs(numbers) <= largest)
    x, numbers = x[inside], numbers[inside]
    got = run_numpy(op, [x, x])[0]
    want = numbers.astype(dtype).view(np.uint16 if op.types[0].startswith("bf16") else np.uint8)
    mask = 0xFFFF if op.types[0].startswith("bf16") else 0xFF
    assert np.array_equal(got & mask, want)


@pytest.mark.parametrize(
    ("source", "dtype"),
    [("e4m3x2", ml_dtypes.float8_e4m3fn), ("e5m2x2", ml_dtypes.float8_e5m2), ("e2m3x2", ml_dtypes.float6_e2m3fn),
     ("e3m2x2", ml_dtypes.float6_e3m2fn), ("e2m1x2", ml_dtypes.float4_e2m1fn)],
)  # fmt: skip
def test_narrow_to_half_is_exact(source: str, dtype: type) -> None:
    bits = {"e4m3x2": 8, "e5m2x2": 8, "e2m1x2": 4}.get(source, 6)
    step = 4 if bits == 4 else 8
    codes = np.arange(1 << bits, dtype=np.uint8)
    want = codes.view(dtype).astype(np.float16).view(np.uint16)
    want = np.where((want & 0x7FFF) > 0x7C00, 0x7FFF, want)
    pairs = codes.astype(np.uint16) << step | codes[::-1]
    got = run_numpy(isa.resolve(f"cvt.rn.f16x2.{source}"), [pairs])[0]
    assert np.array_equal(got >> 16, want)
    assert np.array_equal(got & 0xFFFF, want[::-1])


def test_half_pairs_to_eight_bits() -> None:
    x = operands("b32", 2000, np.random.default_rng(3))
    for form in ("e4m3", "e5m2"):
        op = isa.resolve(f"cvt.rn.satfinite.{form}x2.f16x2")
        got = run_numpy(op, [x])[0]
        for i, pattern in enumerate(map(int, x)):
            high, low = (oracle.encode(oracle.decode(p, "f16"), "f32") for p in (pattern >> 16, pattern & 0xFFFF))
            assert int(got[i]) == narrow_one(op, form, high) << 8 | narrow_one(op, form, low), hex(pattern)


def test_tf32() -> None:
    x = near_format("tf32", 1000, np.random.default_rng(5))
    for text in ("cvt.rna.tf32.f32", "cvt.rn.tf32.f32", "cvt.rz.relu.tf32.f32", "cvt.rna.satfinite.tf32.f32"):
        op = isa.resolve(text)
        for pattern, got in zip(map(int, x), map(int, run_numpy(op, [x])[0]), strict=True):
            value = oracle.decode(pattern, "f32")
            if isinstance(value, float) and math.isnan(value):
                assert got == 0x7FFF_FFFF
            elif op.has("relu") and oracle.is_negative(value):
                assert got == 0
            else:
                assert got == oracle.encode(value, "tf32", mode_of(op), satfinite=op.has("satfinite")) << 13


def test_scales_are_powers_of_two() -> None:
    """ue8m0: 2**(byte - 127), rounded down or up; 255 is NaN."""
    x = operands("f32", 150, np.random.default_rng(6))
    for text in (
        "cvt.rz.ue8m0x2.f32",
        "cvt.rp.ue8m0x2.f32",
        "cvt.rz.satfinite.ue8m0x2.f32",
        "cvt.rp.satfinite.ue8m0x2.f32",
    ):
        op = isa.resolve(text)
        got = run_numpy(op, [x, x])[0]
        for pattern, scale in zip(map(int, x), map(int, got), strict=True):
            assert scale >> 8 == scale & 0xFF == scale_of(op, pattern), (text, hex(pattern), hex(scale))


def scale_of(op: Opcode, pattern: int) -> int:
    value = oracle.decode(pattern & 0x7FFF_FFFF, "f32")
    if oracle.is_special(value):
        return 0xFE if op.has("satfinite") and value == math.inf else 0xFF
    if value == 0:
        return 0
    byte = next(b for b in range(256) if oracle.exact(value) <= Fraction(2) ** (b - 127))
    if op.has("rz") and oracle.exact(value) < Fraction(2) ** (byte - 127):
        byte = max(byte - 1, 0)
    return min(byte, 0xFE) if op.has("satfinite") else byte


def test_scales_to_bf16() -> None:
    codes = np.arange(256, dtype=np.uint16)
    got = run_numpy(isa.resolve("cvt.rn.bf16x2.ue8m0x2"), [codes << 8 | codes])[0]
    want = [oracle.encode(Fraction(2) ** (b - 127), "bf16") for b in range(255)] + [0x7FFF]
    assert [int(v) for v in got] == [w << 16 | w for w in want]


@rows("op", lambda: [op for op in cvt() if op.has("rs")], ids=lambda op: op.text, share=6)
def test_stochastic_rounding_stays_between_the_neighbours(op: Opcode) -> None:
    """No random bits truncate, all of them round away unless exact; both beside the value."""
    form = op.types[0][:-2]
    count = 2 if op.types[0].endswith("x2") else 4
    rng = np.random.default_rng(8)
    x = [near_format(form, 256, rng) for _ in range(count)]
    zeros, ones = np.zeros(256, np.uint32), np.full(256, 0xFFFF_FFFF, np.uint32)
    bits = {"f16": 16, "bf16": 16, "e2m1": 4}.get(form, 8)
    low, high = run_numpy(op, [*x, zeros])[0], run_numpy(op, [*x, ones])[0]
    form_layout = oracle.LAYOUTS[form]
    for i in range(256):
        for j in range(count):
            shift = bits * (count - 1 - j)
            pattern = int(x[j][i])
            value = oracle.decode(pattern, "f32")
            down, up = (int(v[i]) >> shift & ((1 << bits) - 1) for v in (low, high))
            if (op.has("relu") and oracle.is_negative(value)) or isinstance(value, float):
                assert down == up
                continue
            away = oracle.encode(value, form, "rm" if value < 0 else "rp", satfinite=op.has("satfinite"))
            if away & (form_layout.sign - 1) == form_layout.infinity:
                continue  # beyond the range: not said
            assert down == oracle.encode(value, form, "rz", satfinite=op.has("satfinite")), hex(pattern)
            exponent = pattern >> 23 & 255
            if exponent - 127 >= 1 - form_layout.bias:  # normal in the target: every discarded bit meets a random one
                tail = pattern & ((1 << max(0, 23 - form_layout.mantissa - 16)) - 1)
                assert up == away or tail, hex(pattern)
            assert up in (down, away)


@rows("op", lambda: [op for op in all_opcodes() if op.name == "cvt.pack"], ids=lambda op: op.text)
def test_cvt_pack(op: Opcode) -> None:
    rng = np.random.default_rng(2)
    inputs = [operands("s32", 300, rng) for _ in signature(op).inputs]
    target = op.types[0]
    bits = int(target[1:])
    mask = (1 << bits) - 1
    for values, got in zip(zip(*inputs, strict=True), run_numpy(op, inputs)[0], strict=True):
        a, b = (oracle.clamp(oracle.number(int(v), "s32"), target) & mask for v in values[:2])
        rest = int(values[2]) << 2 * bits if len(values) == 3 else 0
        assert int(got) == (rest | a << bits | b) & 0xFFFF_FFFF
