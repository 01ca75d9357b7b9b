"""Factors that are hard to add, through whole instructions: native code must not take a short cut where it is wrong.

Every case runs as wgmma (twice: at first a service does it, then native code) and as tcgen05.mma, on both engines;
elements of D are held against sums in fractions.
"""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from ptxtools.machine import events
from ptxtools.machine.events import Service, View
from ptxtools.semantics.accumulation import Rule
from ptxtools.semantics.tensorcore import LEAST, NAN32
from ptxtools.sim import services
from ptxtools.sim.tensor import mma
from tests.rows import rows

from . import kernels, places
from .sums import expected
from .test_wgmma import to_registers

BITS = {"f16": 16, "bf16": 16, "tf32": 32, "e4m3": 8, "e5m2": 8}
MANTISSA = {"f16": 10, "bf16": 7, "tf32": 23, "e4m3": 3, "e5m2": 2}
BIAS = {"f16": 15, "bf16": 127, "tf32": 127, "e4m3": 7, "e5m2": 15}
CODES = {8: np.uint8, 16: np.uint16, 32: np.uint32}
NARROW = {"e4m3": ml_dtypes.float8_e4m3fn, "e5m2": ml_dtypes.float8_e5m2, "bf16": ml_dtypes.bfloat16, "f16": np.float16}
COLUMNS, CHECKED = 24, 220


def values_of(t: str, codes: np.ndarray) -> np.ndarray:
    with np.errstate(invalid="ignore"):
        if t == "tf32":  # the low 13 bits do not count
            return (codes & np.uint32(0xFFFF_E000)).view(np.float32).astype(np.float64)
        return codes.view(NARROW[t]).astype(np.float64)


def with_exponents(t: str, rng: np.random.Generator, shape: tuple[int, int], low: int, high: int) -> np.ndarray:
    """Random signs and fractions, exponents from low to high where the format has them."""
    bits, mantissa, bias = BITS[t], MANTISSA[t], BIAS[t]
    least, most = 1, (1 << bits - 1 - mantissa) - 2
    fields = np.clip(rng.integers(low, high + 1, shape) + bias, least, most).astype(np.uint64)
    fraction = rng.integers(0, 1 << mantissa, shape, dtype=np.uint64)
    sign = rng.integers(0, 2, shape, dtype=np.uint64)
    return (sign << np.uint64(bits - 1) | fields << np.uint64(mantissa) | fraction).astype(CODES[bits])


def finite(t: str, codes: np.ndarray) -> np.ndarray:
    codes[~np.isfinite(values_of(t, codes))] = 0
    return codes


class Case:
    """A (M x K), B (N x K) and C (M x N)."""

    def __init__(self, t: str, m: int) -> None:
        self.t, self.m, self.k = t, m, 256 // BITS[t]
        self.rng = np.random.default_rng(m + self.k)
        self.a, self.b = (self.exponents(rows, -6, 6) for rows in (m, COLUMNS))
        self.c = self.addends(-10, 10)

    def exponents(self, rows: int, low: int, high: int) -> np.ndarray:
        return with_exponents(self.t, self.rng, (rows, self.k), low, high)

    def addends(self, low: int, high: int) -> np.ndarray:
        shape = (self.m, COLUMNS)
        found = self.rng.uniform(-2, 2, shape) * 2.0 ** self.rng.integers(low, high + 1, shape)
        found[self.rng.random(shape) < 0.2] = 0
        return found.astype(np.float32)


def any_bits(case: Case) -> None:
    """The whole range of the format, subnormal numbers and zeros included."""
    bits = BITS[case.t]
    for name in ("a", "b"):
        codes = case.rng.integers(0, 1 << bits, getattr(case, name).shape, dtype=np.uint64).astype(CODES[bits])
        codes[case.rng.random(codes.shape) < 0.1] = 0
        setattr(case, name, finite(case.t, codes))
    case.c = case.addends(-140, 120)


def wide_spread(case: Case) -> None:
    case.a, case.b = case.exponents(case.m, -60, 60), case.exponents(COLUMNS, -60, 60)
    case.c = case.addends(-100, 100)


def cancellation(case: Case) -> None:
    """Neighbours with opposite signs, and an addend that takes away what is left but for its last bits."""
    sign = case.a.dtype.type(1 << BITS[case.t] - 1)
    case.a[:, 1::2] = case.a[:, ::2] ^ sign
    case.b[:, 1::2] = case.b[:, ::2]
    case.b[:, 1] ^= case.b.dtype.type(1 << MANTISSA[case.t] - 1)
    sums = -(values_of(case.t, case.a) @ values_of(case.t, case.b).T)
    case.c = (sums * (1 + 2.0**-20)).astype(np.float32)


def largest_sums(case: Case) -> None:
    """All products as large as the first: their sum does not fit in 32 bits; one row has the other sign."""
    ones = with_exponents(case.t, case.rng, (1, 1), 3, 3)[0, 0]
    ones = (ones | (1 << MANTISSA[case.t]) - 1) & (1 << BITS[case.t] - 1) - 1
    case.a[:], case.b[:] = ones, ones
    case.a[1] ^= case.a.dtype.type(1 << BITS[case.t] - 1)
    case.a[2, 1:] = case.exponents(1, 2, 3)[0, 1:]
    case.c = np.copysign(case.addends(7, 7), 1).astype(np.float32)


def tiny(case: Case) -> None:
    """Products and addends near the end of f32, or of the format."""
    case.a, case.b = case.exponents(case.m, -75, -55), case.exponents(COLUMNS, -75, -55)
    if case.t in ("f16", "e5m2", "e4m3"):
        bits = np.uint64(1 << BITS[case.t] - 1 | (1 << MANTISSA[case.t]) - 1)
        case.a, case.b = ((m & m.dtype.type(bits)) for m in (case.a, case.b))
    case.c = case.addends(-149, -100)


def nothing(case: Case) -> None:
    """Products that are all zero keep the addend, but for the sign of zero; subnormal addends, too."""
    case.a[:] = case.a & case.a.dtype.type(1 << BITS[case.t] - 1)
    case.a[::3, 0] = case.exponents(1, 0, 0)[0, 0]
    case.c = case.addends(-149, 126)
    case.c[::2, ::2] = -0.0


def huge(case: Case) -> None:
    case.a, case.b = case.exponents(case.m, 50, 70), case.exponents(COLUMNS, 40, 60)
    case.c = case.addends(100, 126)


def infinite_addends(case: Case) -> None:
    case.c[::3, ::2], case.c[1::3, ::2], case.c[::2, 1::2] = np.inf, -np.inf, np.nan


def special_factors(case: Case) -> None:
    """Infinities, NaN, and infinity times zero, here and there."""
    if case.t == "e4m3":
        special = [0x7F, 0xFF]
    else:
        exponent = ((1 << BITS[case.t] - 1) - 1) & ~((1 << MANTISSA[case.t]) - 1)
        special = [exponent, exponent | 1 << BITS[case.t] - 1, exponent | 1 << MANTISSA[case.t] - 1]
    for matrix in (case.a, case.b):
        at = case.rng.random(matrix.shape) < 0.02
        matrix[at] = case.rng.choice(np.array(special, matrix.dtype), at.sum())
    case.b[::5] = 0


MAKERS = (any_bits, wide_spread, cancellation, largest_sums, tiny, nothing, huge, infinite_addends, special_factors)


ENGINES = pytest.mark.parametrize("engine", ["native", "reference"])


def check(case: Case, found: np.ndarray, rule: Rule) -> None:
    """found: bits of D."""
    a, b = values_of(case.t, case.a), values_of(case.t, case.b)
    least = (LEAST[case.t], LEAST[case.t])
    spots = case.rng.permutation(found.size)[:CHECKED]
    for row, column in zip(*np.unravel_index(spots, found.shape), strict=True):
        wanted = np.float32(expected(a[row], b[column], float(case.c[row, column]), rule, least))
        bits = NAN32 if np.isnan(wanted) else int((wanted + np.float32(0)).view(np.uint32))
        assert int(found[row, column]) == bits, (case.t, row, column, hex(int(found[row, column])), hex(bits))


@pytest.mark.share(12)
@ENGINES
@pytest.mark.parametrize("make", MAKERS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("t", BITS)
def test_wgmma(t: str, make: object, engine: str, times: int = 2) -> None:
    case = Case(t, 64)
    assert callable(make)
    make(case)
    shared = np.zeros(32 << 10, np.uint8)
    descriptors = []
    for start, codes in ((1024, case.a), (16384, case.b)):
        lbo, sbo = places.put(shared, start, codes, BITS[t], "128", False)
        descriptors.append(places.descriptor(start, lbo, sbo, "128", tensor=False))
    tail = ", 1, 1, 0, 0" if BITS[t] == 16 else ", 1, 1"
    opcode = f"wgmma.mma_async.sync.aligned.m64n{COLUMNS}k{case.k}.f32.{t}.{t}"
    out = kernels.wgmma(
        opcode, shared, to_registers(case.c), tail, descriptors=tuple(descriptors), times=times, engine=engine
    )
    spots = np.array([[places.accumulator_place(row, n) for n in range(COLUMNS)] for row in range(64)])
    bits = out[spots[..., 1], spots[..., 0]]
    check(case, bits, Rule(13, case.k, "e8m13") if BITS[t] == 8 else Rule(25, case.k, "f32"))


KINDS = {"f16": ("f16", 0), "bf16": ("f16", 1), "tf32": ("tf32", 2), "e4m3": ("f8f6f4", 0), "e5m2": ("f8f6f4", 1)}


@ENGINES
@rows("make", MAKERS, ids=lambda f: f.__name__, share=12)
@rows("t", BITS)
def test_tcgen05(t: str, make: object, engine: str) -> None:
    """The columns of tensor memory behind D stay as they are."""
    case = Case(t, 128)
    assert callable(make)
    make(case)
    kind, code = KINDS[t]
    columns = 16
    shared = np.zeros((1, 56 << 10), np.uint8)
    descriptors = []
    for start, codes in ((0, case.a), (20 << 10, case.b[:columns])):
        lbo, sbo = places.put(shared[0], start, codes, BITS[t], "128", False)
        descriptors.append(places.descriptor(start, lbo, sbo, "128", tensor=True))
    cells = np.zeros((1, 128, 32), np.uint32)
    cells[0, :, :columns] = case.c[:, :columns].view(np.uint32)
    cells[0, :, columns:] = 77
    idesc = 1 << 4 | code << 7 | code << 10 | columns // 8 << 17 | 128 // 16 << 24
    lines = f"""
    mov.u64 %w0, {descriptors[0]};
    mov.u64 %w1, {descriptors[1]};
    mov.u32 %q0, {idesc};
    setp.eq.u32 %z0, %q0, %q0;
    tcgen05.mma.cta_group::1.kind::{kind} [%t], %w0, %w1, %q0, %z0;
"""
    out = kernels.tcgen05(lines, shared, cells, columns=32, engine=engine)[0]
    assert (out[:, columns:] == 77).all()
    case.b, case.c = case.b[:columns], case.c[:, :columns]
    check(case, out[:, :columns], Rule(25, case.k, "f32"))


def test_native_code_does_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of twenty times four warps only the first instructions come to a service; tcgen05.mma takes the fast way."""
    calls: dict[str, int] = {}
    for kind in ("wgmma.mma_async", "wgmma.commit_group", "wgmma.wait_group"):
        services.load(kind)

        def counted(view: View, kind: str = kind, serve: Service = events.HANDLERS[kind]) -> None:
            calls[kind] = calls.get(kind, 0) + 1
            serve(view)

        monkeypatch.setitem(events.HANDLERS, kind, counted)
    test_wgmma("f16", wide_spread, "native", times=20)
    assert calls.pop("wgmma.mma_async") == 1
    assert set(calls) == {"wgmma.commit_group", "wgmma.wait_group"}
    assert max(calls.values()) < 10
    monkeypatch.setattr(mma, "_run_in", None)
    test_tcgen05("bf16", wide_spread, "native")
