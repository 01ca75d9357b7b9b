"""Every operation, type and vector of multimem.ld_reduce, .st and .red over three devices (9.7.9.14)."""

from __future__ import annotations

import itertools
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import ptxtools
from tests.rows import rows
from tests.work import HANG

ENGINES = pytest.mark.parametrize("engine", ["native", "reference"])
Array = np.ndarray[Any, Any]
THREADS, DEVICES = 32, 3

FORMATS: dict[str, Any] = {
    "b32": np.uint32, "u32": np.uint32, "s32": np.int32, "b64": np.uint64, "u64": np.uint64, "s64": np.int64,
    "f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32, "f64": np.float64,
    "e5m2": ml_dtypes.float8_e5m2, "e4m3": ml_dtypes.float8_e4m3fn,
}  # fmt: skip
CHANGES: dict[str, Any] = {
    "add": lambda a, b: a + b, "min": np.minimum, "max": np.maximum, "and": lambda a, b: a & b,
    "or": lambda a, b: a | b, "xor": lambda a, b: a ^ b,
}  # fmt: skip
WHOLE = [
    *[(o, t, 1, "") for o in ("and", "or", "xor") for t in ("b32", "b64")],
    *[(o, t, 1, "") for o in ("min", "max") for t in ("u32", "u64", "s32", "s64")],
    *[("add", t, 1, "") for t in ("u32", "u64", "s32")],
]
#: Types and vectors that make 32, 64 or 128 bits.
VECTORS = [
    *[(t, n) for t in ("f16", "bf16") for n in (2, 4, 8)], *[(t, n) for t in ("f16x2", "bf16x2") for n in (1, 2, 4)],
    ("f32", 1), ("f32", 2), ("f32", 4), ("f64", 1),
]  # fmt: skip
EIGHTS = [
    *[(t, n) for t in ("e5m2", "e4m3") for n in (4, 8)], *[(t, n) for t in ("e5m2x2", "e4m3x2") for n in (2, 4, 8)],
    *[(t, n) for t in ("e5m2x4", "e4m3x4") for n in (1, 2, 4)],
]  # fmt: skip
LOADS = [
    *WHOLE, *[("add", t, n, "") for t, n in (*VECTORS, *EIGHTS)],
    *[("add", t, n, ".acc::f32") for t, n in VECTORS if "16" in t], *[("add", t, n, ".acc::f16") for t, n in EIGHTS],
    *[(o, t, n, "") for o in ("min", "max") for t, n in (*VECTORS, *EIGHTS) if t not in ("f32", "f64")],
]  # fmt: skip
ORDERS = itertools.cycle((".relaxed.gpu", ".relaxed.sys", "", ".relaxed.cta"))


def parts(type_: str) -> tuple[str, int]:
    """Type of an element, and how many there are in a register."""
    element, _, count = type_.partition("x")
    return element, int(count or 1)


def values(element: str, count: int, seed: int) -> Array:
    rng, dtype = np.random.default_rng(seed), np.dtype(FORMATS[element])
    if dtype.kind in "ui":
        return rng.integers(np.iinfo(dtype).min, np.iinfo(dtype).max, count, dtype, endpoint=True)
    return rng.normal(size=count).astype(dtype)


def step(operation: str, element: str, a: Array, b: Array, between: Any) -> Array:
    """One step of a reduction, rounded to `between`."""
    if element in ("b32", "u32", "s32", "b64", "u64", "s64"):
        with np.errstate(over="ignore"):
            return np.asarray(CHANGES[operation](a, b))
    return np.asarray(CHANGES[operation](a.astype(np.float64), b.astype(np.float64))).astype(between)


def bits_of(type_: str) -> int:
    element, count = parts(type_)
    return int(np.dtype(FORMATS[element]).itemsize) * 8 * count


def run(form: str, type_: str, count: int, arrays: list[Array], given: Array, engine: str) -> tuple[list[Array], Array]:
    """32 threads run a form on registers of the type; the devices' memory afterwards, and what was loaded."""
    bits = bits_of(type_)
    size = bits * count // 8
    letter = {8: "q", 16: "h", 32: "r", 64: "d"}[bits]
    names = [f"%{letter}{i}" for i in range(count)]
    listed = names[0] if count == 1 else "{" + ", ".join(names) + "}"
    loads = "".join(f"ld.global.b{bits} {n}, [%in+{bits // 8 * i}];\n" for i, n in enumerate(names))
    stores = "".join(f"st.global.b{bits} [%out+{bits // 8 * i}], {n};\n" for i, n in enumerate(names))
    text = f""".version 8.7
    .target sm_100a
    .address_size 64
    .visible .entry k(.param .u64 m, .param .u64 in, .param .u64 out) {{
    .reg .b8 %q<8>; .reg .b16 %h<8>; .reg .b32 %r<8>, %t; .reg .b64 %d<8>, %m, %in, %out, %o;
    ld.param.u64 %m, [m]; ld.param.u64 %in, [in]; ld.param.u64 %out, [out]; mov.u32 %t, %tid.x;
    mul.wide.u32 %o, %t, {size}; add.u64 %m, %m, %o; add.u64 %in, %in, %o; add.u64 %out, %out, %o;
    {loads} {form.replace("REGISTERS", listed)} {stores} ret; }}"""
    device = ptxtools.Device("sm_100a", engine=engine)
    buffers = [device.upload(array.view(np.uint8)) for array in arrays]
    out = np.zeros(THREADS * size, np.uint8)
    kernel = ptxtools.loads(text)["k"]
    device.launch(kernel, 1, THREADS, [device.multicast(buffers), given.view(np.uint8), out], timeout=HANG)
    return [buffer.download() for buffer in buffers], out


def vector(count: int) -> str:
    return "" if count == 1 else f".v{count}"


@ENGINES
@rows(("operation", "type_", "count", "accumulate"), LOADS, share=3)
def test_ld_reduce(operation: str, type_: str, count: int, accumulate: str, engine: str) -> None:
    """Devices one after the other; intermediate results have the element's type, or that of .acc."""
    element, packed = parts(type_)
    arrays = [values(element, THREADS * count * packed, seed) for seed in range(DEVICES)]
    between = {".acc::f32": np.float32, ".acc::f16": np.float16, "": FORMATS[element]}[accumulate]
    wanted = arrays[0]
    for array in arrays[1:]:
        wanted = step(operation, element, wanted, array, between)
    form = f"multimem.ld_reduce{next(ORDERS)}.global.{operation}{accumulate}{vector(count)}.{type_} REGISTERS, [%m];"
    after, out = run(form, type_, count, arrays, np.zeros_like(arrays[0]), engine)
    np.testing.assert_array_equal(out, wanted.astype(FORMATS[element]).view(np.uint8))
    for kept, array in zip(after, arrays, strict=True):
        np.testing.assert_array_equal(kept, array.view(np.uint8))


@ENGINES
@rows(("type_", "count"), [
    *[(t, 1) for t in ("b32", "b64", "u32", "u64", "s32", "s64")], *VECTORS, *EIGHTS,
], share=3)  # fmt: skip
def test_st(type_: str, count: int, engine: str) -> None:
    element, packed = parts(type_)
    given, *arrays = (values(element, THREADS * count * packed, seed) for seed in range(1 + DEVICES))
    form = f"multimem.st{next(ORDERS)}.global{vector(count)}.{type_} [%m], REGISTERS;"
    for after in run(form, type_, count, arrays, given, engine)[0]:
        np.testing.assert_array_equal(after, given.view(np.uint8))


@ENGINES
@rows(("operation", "type_", "count"), [(o, t, n) for o, t, n, _ in WHOLE] + [
    ("add", t, n) for t, n in VECTORS
], share=3)  # fmt: skip
def test_red(operation: str, type_: str, count: int, engine: str) -> None:
    element, packed = parts(type_)
    given, *arrays = (values(element, THREADS * count * packed, seed) for seed in range(1 + DEVICES))
    form = f"multimem.red{next(ORDERS)}.global.{operation}{vector(count)}.{type_} [%m], REGISTERS;"
    for after, old in zip(run(form, type_, count, arrays, given, engine)[0], arrays, strict=True):
        np.testing.assert_array_equal(after, step(operation, element, old, given, FORMATS[element]).view(np.uint8))
