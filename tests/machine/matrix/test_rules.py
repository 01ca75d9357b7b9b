"""Rules that are not one fused sum: 8-bit floats of sm_90 and sm_100, m8n8k4, IEEE arithmetic; and who has which."""

from __future__ import annotations

import numpy as np
import pytest

from ptxtools.semantics.accumulation import IEEE
from ptxtools.semantics.generations import generation_of

from . import model
from .harness import ENGINES, product_kernel, run
from .test_products import Form, assert_equal, bits_of, numbers


def add(x: int, y: int, t: str) -> int:
    """The sum of two f32 or f16, to nearest."""
    integer, real = {"f32": (np.uint32, np.float32), "f16": (np.uint16, np.float16)}[t]
    with np.errstate(all="ignore"):
        total = np.array(x, integer).view(real) + np.array(y, integer).view(real)
    return (model.NAN32 if t == "f32" else model.NAN16) if np.isnan(total) else int(total.view(integer))


@pytest.mark.share(3)
@pytest.mark.parametrize("chip", ["hopper", "blackwell"])
@pytest.mark.parametrize(
    "text",
    ["mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e5m2.f32", "mma.sync.aligned.m16n8k16.row.col.f32.e5m2.e5m2.f32",
     "mma.sync.aligned.m16n8k32.row.col.f16.e4m3.e4m3.f16"],
)  # fmt: skip
def test_8_bit_floats_become_two_f16_products(text: str, chip: str) -> None:
    """The lower halves of all registers, then the upper ones, from zero; c is added last."""
    form = Form(text)
    rng = np.random.default_rng(form.k)
    a, b = bits_of(rng, form.atype, (form.m, form.k)), bits_of(rng, form.btype, (form.n, form.k)).T
    c = bits_of(rng, form.ctype, (form.m, form.n))
    order = [k for k in range(form.k) if k % 4 < 2] + [k for k in range(form.k) if k % 4 >= 2]
    rows, columns = numbers(a[:, order], form.atype), list(zip(*numbers(b[order], form.btype), strict=True))
    wanted = np.zeros((form.m, form.n), np.uint64)
    for i, j in np.ndindex(wanted.shape):
        partial = model.chip_dot(rows[i], list(columns[j]), 0, form.ctype, 25, form.k // 2, form.dtype)
        wanted[i, j] = add(partial, int(c[i, j]), form.dtype)
    inputs = np.concatenate([form.pack(a, "a"), form.pack(b, "b"), form.pack_c(c, form.nc, form.ctype)])
    for engine in ENGINES:
        got = form.unpack_d(run(form.kernel(), inputs.astype(np.uint32), form.nd, engine, chip))
        assert_equal(got, wanted, engine)


# --- m8n8k4 of f16: four products -------------------------------------------------------------------------------------


def factor_spot(lane: int, i: int, by_row: bool) -> tuple[int, int]:
    """Row of A (or column of B) and k of a lane's element i (9.7.14.5.1)."""
    upper = 4 if lane >= 16 else 0
    return (lane % 4 + upper, i) if by_row else (i + upper, lane % 4)


def result_spot(lane: int, i: int, t: str) -> tuple[int, int]:
    upper = 4 if lane >= 16 else 0
    if t == "f16":
        return lane % 4 + upper, i
    return (lane & 1) + (i & 2) + upper, (i & 4) + (lane & 2) + (i & 1)


def quad_of(lane: int) -> int:
    return lane % 16 // 4


def chain(a: list[model.Number], b: list[model.Number], c: int) -> int:
    """f32 multiply-adds from zero, then c."""
    total = np.float32(0)
    for x, y in zip(a, b, strict=True):
        product = np.float64(x.m * y.m) * 2.0 ** (x.e + y.e - x.f - y.f)  # exact, and so is the sum of two
        total = np.float32(product + np.float64(total))
    return add(int(total.view(np.uint32)), c, "f32")


@pytest.mark.share(3)
@pytest.mark.parametrize("chip", ["volta", "turing", "ampere"])
@pytest.mark.parametrize(("alayout", "blayout", "dtype", "ctype"), [
    ("row", "col", "f32", "f32"), ("col", "row", "f32", "f16"), ("col", "col", "f16", "f16"),
    ("row", "row", "f32", "f32"),
])  # fmt: skip
def test_m8n8k4(alayout: str, blayout: str, dtype: str, ctype: str, chip: str) -> None:
    rng = np.random.default_rng(len(chip))
    a, b = (rng.choice(np.float16([0.5, -1.25, 3, 1 / 3, 100, -0.007]), (4, 8, 4)).view(np.uint16) for _ in "ab")
    c = rng.standard_normal((4, 8, 8)).astype({"f16": np.float16, "f32": np.float32}[ctype])
    cbits = c.view({"f16": np.uint16, "f32": np.uint32}[ctype])
    nc, nd = (4 if t == "f16" else 8 for t in (ctype, dtype))
    inputs = np.zeros((4 + nc, 32), np.uint32)
    for lane in range(32):
        for i in range(4):
            row, k = factor_spot(lane, i, alayout == "row")
            inputs[i // 2, lane] |= np.uint32(int(a[quad_of(lane), row, k]) << 16 * (i % 2))
            column, k = factor_spot(lane, i, blayout == "col")
            inputs[2 + i // 2, lane] |= np.uint32(int(b[quad_of(lane), column, k]) << 16 * (i % 2))
        for i in range(8):
            bits = int(cbits[(quad_of(lane), *result_spot(lane, i, ctype))])
            register, shift = (i // 2, 16 * (i % 2)) if ctype == "f16" else (i, 0)
            inputs[4 + register, lane] |= np.uint32(bits << shift)
    text = f"mma.sync.aligned.m8n8k4.{alayout}.{blayout}.{dtype}.f16.f16.{ctype}"
    fraction = {"volta": 23, "turing": 24}.get(chip, 0)
    for engine in ENGINES:
        got = run(product_kernel(text, (nd, 2, 2, nc), target="sm_75"), inputs, nd, engine, chip)
        for lane in range(32):
            for i in range(8):
                row, column = result_spot(lane, i, dtype)
                quad = quad_of(lane)
                x, y = numbers(a[quad], "f16")[row], numbers(b[quad], "f16")[column]
                addend = int(np.float32(c[quad, row, column]).view(np.uint32)) if dtype == "f32" else 0
                if fraction:
                    given = addend if dtype == "f32" else int(cbits[quad, row, column])
                    wanted = model.chip_dot(x, y, given, dtype, fraction, 4, dtype)
                else:
                    wanted = chain(x, y, int(np.float32(c[quad, row, column]).view(np.uint32)))
                    if dtype == "f16":
                        wanted = int(np.uint32(wanted).view(np.float32).astype(np.float16).view(np.uint16))
                word = int(got[i // 2, lane]) >> 16 * (i % 2) & 0xFFFF if dtype == "f16" else int(got[i, lane])
                assert word == wanted, (engine, lane, i, hex(word), hex(wanted))


# --- IEEE arithmetic --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32",
                                  "mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16",
                                  "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32"])  # fmt: skip
def test_ieee_is_a_chain_of_multiply_adds(text: str) -> None:
    """f32, in the order of k, rounded to the result's type in the end."""
    form = Form(text)
    rng = np.random.default_rng(form.k)
    wide = rng.standard_normal((form.m + form.n, form.k)).astype(np.float32)
    given = wide.astype(np.float16).view(np.uint16) if form.abits == 16 else wide.view(np.uint32)
    a, b = given[: form.m].astype(np.uint64), given[form.m :].T.astype(np.uint64)
    c = rng.standard_normal((form.m, form.n)).astype(np.float16 if form.ctype == "f16" else np.float32)
    cbits = c.view(np.uint16 if form.ctype == "f16" else np.uint32).astype(np.uint64)
    wanted = np.zeros((form.m, form.n), np.uint64)
    rows, columns = numbers(a, form.atype), list(zip(*numbers(b, form.btype), strict=True))
    for i, j in np.ndindex(wanted.shape):
        total = np.float32(c[i, j])
        for x, y in zip(rows[i], columns[j], strict=True):
            exact = model.exact(float(x.m * y.m)) * model.exact(2.0 ** (x.e + y.e - x.f - y.f))
            total = to_single(exact + model.exact(float(total)))
        wanted[i, j] = (
            total.astype(np.float16).view(np.uint16) if form.dtype == "f16" else total.view(np.uint32)
        ).item()
    inputs = np.concatenate([form.pack(a, "a"), form.pack(b, "b"), form.pack_c(cbits, form.nc, form.ctype)])
    for engine in ENGINES:
        got = form.unpack_d(run(form.kernel(), inputs.astype(np.uint32), form.nd, engine, IEEE))
        assert_equal(got, wanted, engine)


def to_single(x: object) -> np.float32:
    """A fraction to the nearest f32, ties to even: through f64 rounded to odd."""
    near = float(x)  # type: ignore[arg-type]
    if model.exact(near) != x and not np.float64(near).view(np.uint64) & np.uint64(1):
        near = float(np.nextafter(near, np.inf if model.exact(near) < x else -np.inf))
    return np.float32(near)


def test_generations() -> None:
    chips = {"sm_75": "turing", "sm_70": "volta", "sm_80": "ampere", "sm_86": "ampere", "sm_87": "ampere",
             "sm_89": "ada", "sm_90a": "hopper", "sm_100a": "blackwell", "sm_103f": "blackwell", "sm_110": "blackwell",
             "sm_120a": "rtx_blackwell", "sm_121": "rtx_blackwell", "compute_80": "ampere"}  # fmt: skip
    assert {target: generation_of(target) for target in chips} == chips
