"""wmma: load, multiply and store through memory, every shape, type and layout, with strides."""

from __future__ import annotations

import numpy as np
import pytest

from . import model
from .harness import ENGINES, Memory, launch_of, vector
from .test_products import assert_equal, bits_of, numbers

#: Bytes of an element in memory; fractions of one below that.
BITS = {"f16": 16, "bf16": 16, "tf32": 32, "f32": 32, "s32": 32, "f64": 64, "s8": 8, "u8": 8, "s4": 4, "u4": 4, "b1": 1}
DTYPES = {8: np.uint8, 16: np.uint16, 32: np.uint32, 64: np.uint64}
#: Registers of A and B (9.7.14.4.1).
FACTORS = {"f16": {"m16n16k16": (8, 8), "m8n32k16": (8, 8), "m32n8k16": (8, 8)},
           "bf16": {"m16n16k16": (4, 4), "m8n32k16": (2, 8), "m32n8k16": (8, 2)},
           "s8": {"m16n16k16": (2, 2), "m8n32k16": (1, 4), "m32n8k16": (4, 1)}}  # fmt: skip
FACTORS["u8"] = FACTORS["s8"]


def registers(shape: str, t: str) -> tuple[int, int]:
    return FACTORS[t][shape] if t in FACTORS else (4, 4) if t == "tf32" else (1, 1)


def sizes(shape: str) -> tuple[int, int, int]:
    m, rest = shape[1:].split("n")
    n, k = rest.split("k")
    return int(m), int(n), int(k)


def in_memory(matrix: np.ndarray, bits: int, layout: str, stride: int) -> np.ndarray:
    """Row after row, or column after column, `stride` elements apart, as bytes."""
    rows = matrix if layout == "row" else matrix.T
    wide = np.full((len(rows), stride), 0xAB & (1 << min(bits, 8)) - 1, np.uint64)
    wide[:, : rows.shape[1]] = rows
    if bits >= 8:
        return wide.astype(DTYPES[bits]).view(np.uint8).reshape(-1)
    each = np.unpackbits(wide.astype(np.uint8)[..., None], axis=-1, count=bits, bitorder="little")
    return np.packbits(each.reshape(-1), bitorder="little")


def from_memory(data: np.ndarray, bits: int, layout: str, stride: int, m: int, n: int) -> np.ndarray:
    count = m if layout == "row" else n
    rows = data.view(DTYPES[bits]).reshape(count, stride)[:, : n if layout == "row" else m]
    return (rows if layout == "row" else rows.T).astype(np.uint64)


class Case:
    """One multiplication: types, shape, layouts of A, B, and of C and D."""

    def __init__(self, shape: str, types: tuple[str, str, str], layouts: tuple[str, str, str], mods: str = "") -> None:
        self.shape, self.layouts = shape, layouts
        self.t, self.ctype, self.dtype = types
        self.m, self.n, self.k = sizes(shape)
        self.counts = registers(shape, self.t)
        self.words = self.text(mods)

    def text(self, mods: str) -> str:
        a, b, _ = self.layouts
        if self.t == "f16":
            types = f"{self.dtype}.{self.ctype}"
        else:
            types = f"{self.dtype}.{self.t}.{self.t}.{self.ctype}"
        operation = ".xor.popc" if mods == "xor" else ".and.popc" if mods == "and" else ""
        rounding = mods if mods.startswith(".r") else ""
        satfinite = mods if mods == ".satfinite" else ""
        return f"wmma.mma{operation}.sync.aligned.{a}.{b}.{self.shape}{rounding}.{types}{satfinite}"

    def strides(self, extra: int) -> list[int]:
        a, b, c = self.layouts
        least = [self.k if a == "row" else self.m, self.n if b == "row" else self.k, self.n if c == "row" else self.m]
        return [size + extra for size in least]

    def kernel(self, strides: list[int], given: bool) -> str:
        nc, nd = (self.m * self.n // 32 // (2 if t == "f16" else 1) for t in (self.ctype, self.dtype))
        kind = "b64" if self.t == "f64" else "b32"
        a, b, c = self.layouts
        s = [f", {strides[0]}", f", %s{1}", f", {strides[2]}"] if given else ["", "", ""]
        return f"""
.version 8.0\n.target sm_90\n.address_size 64
.visible .entry k(.param .u64 a, .param .u64 b, .param .u64 c, .param .u64 d) {{
.reg .u64 %p<4>, %g; .reg .b32 %s<4>; .reg .{kind} %a<{self.counts[0]}>, %b<{self.counts[1]}>, %c<{nc}>, %d<{nd}>;
ld.param.u64 %p0, [a]; ld.param.u64 %p1, [b]; ld.param.u64 %p2, [c]; ld.param.u64 %p3, [d]; mov.u32 %s1, {strides[1]};
wmma.load.a.sync.aligned.{a}.{self.shape}.global.{self.t} {vector("a", self.counts[0])}, [%p0]{s[0]};
wmma.load.b.sync.aligned.{b}.{self.shape}.{self.t} {vector("b", self.counts[1])}, [%p1]{s[1]};
wmma.load.c.sync.aligned.{c}.{self.shape}.global.{self.ctype} {vector("c", nc)}, [%p2]{s[2]};
{self.words} {vector("d", nd)}, {vector("a", self.counts[0])}, {vector("b", self.counts[1])}, {vector("c", nc)};
wmma.store.d.sync.aligned.{c}.{self.shape}.global.{self.dtype} [%p3], {vector("d", nd)}{s[2]};
ret; }}"""

    def run(self, matrices: list[np.ndarray], engine: str, numerics: str, extra: int) -> np.ndarray:
        memory, strides = Memory(), self.strides(extra)
        bits = [BITS[self.t], BITS[self.t], BITS[self.ctype]]
        places = [
            memory.put(in_memory(matrix, size, layout, stride))
            for matrix, size, layout, stride in zip(matrices, bits, self.layouts, strides, strict=True)
        ]
        size = BITS[self.dtype] // 8
        count = (self.m if self.layouts[2] == "row" else self.n) * strides[2] * size
        places.append(memory.put(np.zeros(count, np.uint8)))
        launch = launch_of(self.kernel(strides, extra > 0), memory, places)
        launch.numerics = numerics
        ENGINES[engine](launch)
        data = memory.get(places[3], np.uint8, count)
        return from_memory(data, BITS[self.dtype], self.layouts[2], strides[2], self.m, self.n)


def check(case: Case, matrices: list[np.ndarray], wanted: np.ndarray, numerics: str, extra: int) -> None:
    for engine in ENGINES:
        assert_equal(case.run(matrices, engine, numerics, extra), wanted, engine)


FLOATS = [
    ("m16n16k16", ("f16", "f32", "f32"), ("row", "col", "row"), "hopper"),
    ("m16n16k16", ("f16", "f16", "f16"), ("col", "row", "col"), "turing"),
    ("m8n32k16", ("f16", "f16", "f32"), ("row", "row", "row"), "hopper"),
    ("m32n8k16", ("f16", "f32", "f16"), ("col", "col", "row"), "ampere"),
    ("m16n16k16", ("bf16", "f32", "f32"), ("col", "row", "col"), "ampere"),
    ("m8n32k16", ("bf16", "f32", "f32"), ("row", "col", "row"), "hopper"),
    ("m32n8k16", ("bf16", "f32", "f32"), ("row", "row", "col"), "hopper"),
    ("m16n16k8", ("tf32", "f32", "f32"), ("row", "col", "col"), "ampere"),
]


@pytest.mark.share(2)
@pytest.mark.parametrize(("shape", "types", "layouts", "chip"), FLOATS)
def test_floats(shape: str, types: tuple[str, str, str], layouts: tuple[str, str, str], chip: str) -> None:
    case = Case(shape, types, layouts)
    rng = np.random.default_rng(sum(map(ord, shape + chip)))
    a, b = bits_of(rng, case.t, (case.m, case.k)), bits_of(rng, case.t, (case.n, case.k)).T
    c = bits_of(rng, case.ctype, (case.m, case.n))
    fraction, size = {"turing": (24, 16), "ampere": (24, 16), "hopper": (25, 32)}[chip]
    chunk = size // (BITS[case.t] // 8)
    rows, columns = numbers(a, case.t), list(zip(*numbers(b, case.t), strict=True))
    wanted = np.zeros((case.m, case.n), np.uint64)
    for i, j in np.ndindex(wanted.shape):
        addend, ctype = int(c[i, j]), case.ctype
        if ctype != case.dtype:  # c becomes a number of d's type first
            addend, ctype = convert(addend, ctype, case.dtype), case.dtype
        wanted[i, j] = model.chip_dot(rows[i], list(columns[j]), addend, ctype, fraction, chunk, case.dtype)
    check(case, [a, b, c], wanted, chip, 8)


def convert(bits: int, source: str, target: str) -> int:
    view = {"f16": (np.uint16, np.float16), "f32": (np.uint32, np.float32)}
    with np.errstate(all="ignore"):
        value = np.array(bits, view[source][0]).view(view[source][1]).astype(view[target][1])
    return int(value.view(view[target][0]))


INTEGERS = [
    ("m16n16k16", "s8", ("row", "row", "col"), ".satfinite"), ("m16n16k16", "u8", ("col", "col", "row"), ""),
    ("m8n32k16", "u8", ("col", "row", "row"), ""), ("m32n8k16", "s8", ("row", "col", "row"), ".satfinite"),
    ("m8n8k32", "s4", ("row", "col", "row"), ""), ("m8n8k32", "u4", ("row", "col", "col"), ".satfinite"),
    ("m8n8k128", "b1", ("row", "col", "row"), "xor"), ("m8n8k128", "b1", ("row", "col", "col"), "and"),
]  # fmt: skip


@pytest.mark.share(3)
@pytest.mark.parametrize(("shape", "t", "layouts", "mods"), INTEGERS)
def test_integers(shape: str, t: str, layouts: tuple[str, str, str], mods: str) -> None:
    case = Case(shape, (t, "s32", "s32"), layouts, mods)
    rng = np.random.default_rng(case.k)
    a = rng.integers(0, 1 << BITS[t], (case.m, case.k), np.uint64)
    b = rng.integers(0, 1 << BITS[t], (case.k, case.n), np.uint64)
    c = rng.integers(0, 1 << 32, (case.m, case.n), np.uint64)
    c[0] = 0x7FFFFFFF
    x, y = a.astype(np.int64), b.astype(np.int64)
    if t[0] == "s":
        x, y = (v - (v >> BITS[t] - 1 << BITS[t]) for v in (x, y))
    total = c.astype(np.uint32).view(np.int32).astype(np.int64).reshape(case.m, case.n)
    if t == "b1":
        pairs = x[:, :, None], y[None]
        total = total + (pairs[0] & pairs[1] if mods == "and" else pairs[0] ^ pairs[1]).sum(1)
    else:
        total = total + x @ y
    if mods == ".satfinite":
        total = np.clip(total, -(1 << 31), (1 << 31) - 1)
    check(case, [a, b, c], (total & 0xFFFFFFFF).astype(np.uint64), "ieee", 32 if BITS[t] < 8 else 16)


@pytest.mark.parametrize("layouts", [("row", "col", "row"), ("col", "row", "col")])
def test_doubles(layouts: tuple[str, str, str], rounding: str = ".rz") -> None:
    case = Case("m8n8k4", ("f64", "f64", "f64"), layouts, rounding)
    rng = np.random.default_rng(5)
    a, b, c = (rng.standard_normal(s) for s in ((8, 4), (4, 8), (8, 8)))
    wanted = np.zeros((8, 8))
    for i, j in np.ndindex(8, 8):
        total = c[i, j]
        for k in range(4):
            exact = model.exact(a[i, k]) * model.exact(b[k, j]) + model.exact(float(total))
            total = model.to_double(exact, rounding or ".rn")
        wanted[i, j] = total
    check(case, [x.view(np.uint64) for x in (a, b, c)], wanted.view(np.uint64), "ieee", 2)


def test_the_stride_may_be_left_out() -> None:
    case = Case("m16n16k16", ("f16", "f32", "f32"), ("row", "col", "row"))
    a = np.eye(16).astype(np.float16).view(np.uint16).astype(np.uint64)
    b = np.arange(256).reshape(16, 16).astype(np.float16)
    wanted = b.astype(np.float32).view(np.uint32).astype(np.uint64)
    check(case, [a, b.view(np.uint16).astype(np.uint64), np.zeros((16, 16), np.uint64)], wanted, "hopper", 0)
