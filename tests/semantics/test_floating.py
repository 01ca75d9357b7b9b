"""f32, f64 and half arithmetic against exact rationals, in every rounding mode."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest

from ptxtools import isa, semantics
from ptxtools.isa import Opcode
from tests.rows import rows

from . import oracle
from .harness import LANES, Native, all_opcodes, dtype_of, operands, run_numpy, signature

COUNT = 64
ROUNDINGS = ("rn", "rz", "rm", "rp")


def opcodes() -> list[Opcode]:
    """Forms whose result is one IEEE operation: scalar f32, f64, f16, bf16."""
    names = {"add", "sub", "mul", "fma", "mad", "div", "rcp", "sqrt"}
    chapters = {"floating", "half", "mixed"}
    return [
        op
        for op in all_opcodes()
        if op.family in names and semantics.chapter_of(op) in chapters and op.type in oracle.LAYOUTS
    ]


def expected(op: Opcode, patterns: list[int], element: str | None = None) -> int:
    """The result's pattern; `element`: of one element of a packed type."""
    types = signature(op).inputs if element is None else (element,) * len(patterns)
    t = element or signature(op).outputs[0]
    flushes = op.has("ftz")
    values = [flush(oracle.encode(oracle.decode(p, s), t), t, flushes) if s != t else flush(p, t, flushes)
              for p, s in zip(patterns, types, strict=True)]  # fmt: skip
    operation = {"sub": "add", "mad": "fma", "rcp": "div"}.get(op.family, op.family)
    if op.family == "rcp":
        values = [_one(t), *values]
    if op.family == "sub":
        values[1] ^= oracle.LAYOUTS[t].sign
    mode = next((r for r in ROUNDINGS if op.has(r)), "rn")
    result = flush(oracle.arithmetic(operation, t, mode, *values), t, flushes)
    number = oracle.decode(result, t)
    if op.has("sat"):
        return 0 if math.isnan(number) or number <= 0 else min(result, _one(t))
    if op.has("relu") and not math.isnan(number) and oracle.is_negative(number):
        return 0
    if op.has("oob") and any(p & 0x7FFF == 0x7FF7 for p in patterns[:2]):
        return 0
    return result


def _one(t: str) -> int:
    return oracle.encode(oracle.Fraction(1), t)


def flush(pattern: int, t: str, flushes: bool) -> int:
    form = oracle.LAYOUTS[t]
    tiny = (pattern & (form.sign - 1)) < (1 << form.mantissa)
    return pattern & form.sign if flushes and tiny else pattern


def tuples(op: Opcode, count: int, seed: int) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    inputs = [operands(t, count, rng) for t in signature(op).inputs]
    if len(inputs) >= 2 and signature(op).inputs[0] == signature(op).inputs[-1]:
        # Cancellation and near ties: a quarter of the last operands follow from the others.
        near = inputs[0][: count // 4] ^ dtype_of(op.type or "")(oracle.LAYOUTS[op.type or ""].sign)
        inputs[-1][: count // 4] = near + rng.integers(0, 3, count // 4).astype(near.dtype)
    return inputs


def same(t: str, got: int, want: int, patterns: list[int]) -> bool:
    """f64 NaNs keep payloads: any NaN will do here, the rule has its own test."""
    if t == "f64" and math.isnan(float_of(want)):
        return math.isnan(float_of(got))
    return got == want


def float_of(pattern: int) -> float:
    return float(np.uint64(pattern).view(np.float64))


@rows("op", opcodes, ids=lambda op: op.text, share=3)
def test_correctly_rounded(op: Opcode) -> None:
    inputs = tuples(op, COUNT, len(op.text))
    got = run_numpy(op, inputs)[0]
    t = signature(op).outputs[0]
    for i in range(COUNT):
        patterns = [int(x[i]) for x in inputs]
        want = expected(op, patterns)
        assert same(t, int(got[i]), want, patterns), (op.text, [hex(p) for p in patterns], hex(got[i]), hex(want))


@pytest.mark.share(3)
@pytest.mark.parametrize("features", [None, ("avx", "avx2", "fma", "f16c"), ()], ids=["host", "avx2", "plain"])
def test_native_directed_rounding(features: tuple[str, ...] | None) -> None:
    """The vector code of each CPU class against exact rationals; f64 has its own algorithms there."""
    native = Native(features)
    texts = [f"{name}.{r}.f64" for name in ("add", "mul", "fma", "div", "sqrt") for r in ROUNDINGS]
    texts += [f"{name}.{r}.f32" for name in ("add", "mul", "fma", "div", "sqrt") for r in ("rz", "rm", "rp")]
    jobs = [(op, native.add(op, signature(op).inputs)) for op in map(isa.resolve, texts)]
    for op, number in jobs:
        inputs = tuples(op, 2 * LANES, number)
        got = native.run(number, inputs, [dtype_of(op.type or "")])[0]
        for i in range(2 * LANES):
            patterns = [int(x[i]) for x in inputs]
            want = expected(op, patterns)
            assert same(op.type or "", int(got[i]), want, patterns), (op.text, [hex(p) for p in patterns])


def test_overflow_and_underflow_by_mode() -> None:
    """The four modes at both ends of the range."""
    big, tiny = np.array([0x7F7F_FFFF], np.uint32), np.array([1], np.uint32)
    two, half = np.array([0x4000_0000], np.uint32), np.array([0x3F00_0000], np.uint32)
    ends = {"rn": (0x7F80_0000, 0), "rz": (0x7F7F_FFFF, 0), "rm": (0x7F7F_FFFF, 0), "rp": (0x7F80_0000, 1)}
    for mode, (high, low) in ends.items():
        op = isa.resolve(f"mul.{mode}.f32")
        assert run_numpy(op, [big, two])[0][0] == high
        assert run_numpy(op, [tiny, half])[0][0] == low


def test_fma_rounds_once() -> None:
    rng = random.Random(5)
    op = isa.resolve("fma.rn.f32")
    for _ in range(50):
        a, b = rng.getrandbits(23) | 0x3F80_0000, rng.getrandbits(23) | 0x3F80_0000
        c = oracle.arithmetic("mul", "f32", "rn", a, b) ^ 0x8000_0000
        got = int(run_numpy(op, [np.array([v], np.uint32) for v in (a, b, c)])[0][0])
        assert got == oracle.arithmetic("fma", "f32", "rn", a, b, c)


def test_f64_keeps_nan_payloads() -> None:
    op = isa.resolve("fma.rn.f64")
    nan_a, nan_c = 0x7FF0_0000_0000_0123, 0xFFF8_0000_0000_0456
    one = 0x3FF0_0000_0000_0000
    columns = np.array([[nan_a, one, nan_c], [one, one, nan_c], [0x7FF0 << 48, 0, one]], np.uint64).T
    got = [int(v) for v in run_numpy(op, list(columns))[0]]
    assert got == [nan_a | 1 << 51, nan_c, 0xFFF8_0000_0000_0000]


def reference_extreme(op: Opcode, t: str, patterns: list[int]) -> int:
    """min and max of the manual's pseudocode (9.7.3.11, 9.7.4.7)."""
    form = oracle.LAYOUTS[t]
    values = [flush(p, t, op.has("ftz")) for p in patterns]
    sign = (values[0] ^ values[1]) & form.sign
    if op.has("abs"):
        values = [v & (form.sign - 1) for v in values]
    best = values[0]
    for v in values[1:]:
        a, b = oracle.decode(best, t), oracle.decode(v, t)
        a_nan, b_nan = math.isnan(a), math.isnan(b)
        if (a_nan and b_nan) or (op.has("NaN") and (a_nan or b_nan)):
            best = oracle.CANONICAL[t]
        elif a_nan or b_nan:
            best = v if a_nan else best
        else:
            key_a, key_b = (a, not oracle.is_negative(a)), (b, not oracle.is_negative(b))
            best = (best if key_a < key_b else v) if op.family == "min" else (best if key_a > key_b else v)
    if op.has("xorsign") and not math.isnan(oracle.decode(best, t)):
        best = best & (form.sign - 1) | sign
    return best


@rows(
    "op",
    lambda: [op for op in all_opcodes() if op.family in ("min", "max") and op.type in ("f32", "f64", "f16", "bf16")],
    ids=lambda op: op.text,
    share=3,
)
def test_min_max(op: Opcode) -> None:
    t = op.type or ""
    inputs = [operands(t, 400, np.random.default_rng(i)) for i in range(len(signature(op).inputs))]
    got = run_numpy(op, inputs)[0]
    for i in range(400):
        patterns = [int(x[i]) for x in inputs]
        want = reference_extreme(op, t, patterns)
        assert same(t, int(got[i]), want, patterns), ([hex(p) for p in patterns], hex(got[i]), hex(want))


@pytest.mark.parametrize("t", ["f32", "f64"])
def test_testp_partitions_the_patterns(t: str) -> None:
    x = operands(t, 2000, np.random.default_rng(2))
    answers = {p: run_numpy(isa.resolve(f"testp.{p}.{t}"), [x])[0]
               for p in ("finite", "infinite", "number", "notanumber", "normal", "subnormal")}  # fmt: skip
    numbers = x.view(np.float32 if t == "f32" else np.float64)
    assert np.array_equal(answers["finite"], np.isfinite(numbers))
    assert np.array_equal(answers["infinite"], np.isinf(numbers))
    assert np.array_equal(answers["notanumber"], np.isnan(numbers))
    assert np.array_equal(answers["number"], ~np.isnan(numbers))
    least = np.finfo(numbers.dtype).tiny
    subnormal = (np.abs(numbers) < least) & (numbers != 0)
    assert np.array_equal(answers["subnormal"], subnormal)
    assert np.array_equal(answers["normal"], np.isfinite(numbers) & ~subnormal)


@pytest.mark.parametrize("t", ["f32", "f64"])
def test_copysign(t: str) -> None:
    rng = np.random.default_rng(4)
    a, b = operands(t, 500, rng), operands(t, 500, rng)
    real = np.float32 if t == "f32" else np.float64
    want = np.copysign(b.view(real), a.view(real)).view(a.dtype)
    assert np.array_equal(run_numpy(isa.resolve(f"copysign.{t}"), [a, b])[0], want)
