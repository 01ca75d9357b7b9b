"""tcgen05.mma from end to end: each kind, layout and operand source against NumPy's product of whole numbers."""

from __future__ import annotations

import itertools
from functools import cache
from types import SimpleNamespace
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import ptxtools
from ptxtools.diagnostics import Trap
from ptxtools.isa import resolve
from ptxtools.isa.targets import chip_of
from ptxtools.program.details import NamedOperands
from ptxtools.program.program import Op
from ptxtools.sim.tensor import call
from tests.rows import rows

from . import kernels, places

NUMPY = {
    "f16": np.float16, "bf16": ml_dtypes.bfloat16, "tf32": np.float32, "e4m3": ml_dtypes.float8_e4m3fn,
    "e5m2": ml_dtypes.float8_e5m2, "e2m3": ml_dtypes.float6_e2m3fn, "e3m2": ml_dtypes.float6_e3m2fn,
    "e2m1": ml_dtypes.float4_e2m1fn, "s8": np.int8, "u8": np.uint8,
}  # fmt: skip
BITS = {"f16": 16, "bf16": 16, "tf32": 32}
CODE = {"f16": 0, "bf16": 1, "tf32": 2, "e4m3": 0, "e5m2": 1, "e2m3": 3, "e3m2": 4, "e2m1": 5, "u8": 0, "s8": 1}
PACKED = {"e2m3": 6, "e3m2": 6, "e2m1": 4}
DEPTH = {"f16": 16, "tf32": 8, "f8f6f4": 32, "i8": 32, "mxf8f6f4": 32, "mxf4": 64, "mxf4nvf4": 64}
A_AT, B_AT, SHARED = 0, 20 << 10, 56 << 10


def matrix(rng: np.random.Generator, t: str, rows: int, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Small whole numbers: f64, and the bits of single elements."""
    values = rng.integers(0 if t == "u8" else -3, 4, (rows, k))
    dtype = {16: np.uint16, 32: np.uint32}.get(BITS.get(t, 8), np.uint8)
    return values.astype(np.float64), values.astype(np.float32).astype(NUMPY[t]).view(dtype)


def in_memory(t: str, codes: np.ndarray, kind: str) -> tuple[np.ndarray, int]:
    """Codes as they lie in shared memory, and their bits: packed with padding, or two to a byte."""
    if "mxf4" in kind:
        return codes, 4
    if t not in PACKED:
        return codes, BITS.get(t, 8)
    bits, found = PACKED[t], np.zeros(codes.shape, np.uint8)
    for row, group in itertools.product(range(codes.shape[0]), range(codes.shape[1] // 16)):
        some = slice(16 * group, 16 * group + 16)
        word = sum(int(c) << bits * i for i, c in enumerate(codes[row, some]))
        found[row, 16 * group : 16 * group + 2 * bits] = list(word.to_bytes(2 * bits, "little"))
    return found, 8


def place(rows: int, count: int, m: int, n: int, *, ctas: int, sparse: bool, stationary: bool) -> tuple[int, int, int]:
    """CTA, lane and column of element (m, n) of a D of rows x count: the table of 9.7.16.10.5 and its figures."""
    if stationary:
        parts = 128 // rows
        return 0, m + rows * (n // (count // parts)), n % (count // parts)
    if ctas == 1:
        return (0, m, n) if rows == 128 else (0, 32 * (m // 16) + m % 16, n)
    cta, m = m // (rows // 2), m % (rows // 2)
    if rows == 256:
        return cta, m, n
    if sparse:
        return cta, 32 * (m // 16) + m % 16, n
    return cta, m + 64 * (n >= count // 2), n % (count // 2)


@cache
def places_of(
    rows: int, count: int, *, ctas: int, sparse: bool, stationary: bool
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """CTAs, lanes and columns of all elements of D, each rows x count."""
    found = [
        [place(rows, count, m, n, ctas=ctas, sparse=sparse, stationary=stationary) for n in range(count)]
        for m in range(rows)
    ]
    cta, lane, column = np.moveaxis(np.array(found), 2, 0)
    return cta, lane, column


class Product:
    """One instruction with random operands."""

    def __init__(self, kind: str, atype: str, btype: str = "", *, m: int = 128, n: int = 32, ctas: int = 1,
                 dtype: str = "f32", sparse: bool = False, stationary: bool = False, mode: str = "128",
                 a_major: bool = False, b_major: bool = False, a_tensor: bool = False, negate: int = 0,
                 lane: int = 0, k: int = 0, same_rows: bool = False) -> None:  # fmt: skip
        self.kind, self.atype, self.btype = kind, atype, btype or atype
        self.m, self.n, self.ctas, self.dtype = m, n, ctas, dtype
        self.sparse, self.stationary, self.mode = sparse, stationary, mode
        self.a_major, self.b_major, self.a_tensor, self.negate, self.lane = a_major, b_major, a_tensor, negate, lane
        self.k = k or DEPTH[kind] * (2 if sparse else 1)
        self.rng = np.random.default_rng(m + n)
        stored = self.k // 2 if sparse else self.k
        self.a, self.a_codes = matrix(self.rng, atype, m, stored)
        if same_rows:
            self.a[:], self.a_codes[:] = self.a[0], self.a_codes[0]
        self.b, self.b_codes = matrix(self.rng, self.btype, n, self.k)
        self.shared = np.zeros((ctas, SHARED), np.uint8)
        self.cells = self.rng.integers(0, 1 << 32, (ctas, 128, 512), dtype=np.uint32)
        self.c = self.rng.integers(-99, 99, (m, n)).astype(np.float64)
        self.dense = self.a
        self._store_c()
        self.a_desc = "" if a_tensor else self._store("a", self.a_codes, A_AT, a_major)
        self.b_desc = self._store("b", self.b_codes, B_AT, b_major)
        if a_tensor:
            self._store_a()
        if sparse:
            self._store_metadata()

    def places(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Index of D in the cells."""
        cta, lane, column = places_of(
            self.m, self.n, ctas=self.ctas, sparse=self.sparse, stationary=self.stationary
        )  # fmt: skip
        return cta, lane + self.lane, column

    def _store_c(self) -> None:
        self.cells[self.places()] = self._bits(self.c)

    def _bits(self, values: np.ndarray) -> np.ndarray:
        if self.dtype == "s32":
            return values.astype(np.int32).view(np.uint32)
        if self.dtype == "f16":
            return values.astype(np.float16).view(np.uint16).astype(np.uint32)
        return values.astype(np.float32).view(np.uint32)

    def _store(self, which: str, codes: np.ndarray, start: int, mn_major: bool) -> str:
        share = len(codes) // self.ctas
        for cta in range(self.ctas):
            memory, bits = in_memory(self.atype if which == "a" else self.btype, codes, self.kind)
            part = memory[share * cta : share * (cta + 1)]
            lbo, sbo = places.put(self.shared[cta], start, part, bits, self.mode, mn_major)
        return str(places.descriptor(start, lbo, sbo, self.mode, tensor=True))

    def _store_a(self) -> None:
        """A in tensor memory at column 256: containers follow one another; copies for each stretch of D's columns."""
        bits = 4 if "mxf4" in self.kind else BITS.get(self.atype, 8)
        codes = self.a_codes.astype(np.uint32) << np.uint32(2 if self.atype == "e2m1" and bits == 8 else 0)
        per = 32 // bits
        words = np.zeros((self.m, codes.shape[1] // per), np.uint32)
        for i in range(per):
            words |= codes[:, i::per] << np.uint32(bits * i)
        cta, lane, _ = self.places()
        for n in range(0, self.n, 8):
            for column in range(words.shape[1]):
                self.cells[cta[:, n], lane[:, n], 256 + column] = words[:, column]

    def _store_metadata(self) -> None:
        """Metadata at column 300, by the table of section 9.7.16.10.8.4's figures; the dense matrix follows from it."""
        t = self.atype
        wide = 2 if t == "tf32" else 8 if "mxf4" in self.kind else 4
        legal = [0b0100, 0b1110] if t == "tf32" else [0b0100, 0b1000, 0b1100, 0b1001, 0b1101, 0b1110]
        self.dense = np.zeros((self.m, self.k))
        self.cells[:, :, 300:304] = 0
        rows = self.m // self.ctas
        nibbles = self.rng.choice(legal, (self.m, self.k // wide))
        for m, chunk in itertools.product(range(self.m), range(self.k // wide)):
            nibble = int(nibbles[m, chunk])
            first, second = nibble & 3, nibble >> 2
            if t == "tf32":
                self.dense[m, 2 * chunk + first // 2] = self.a[m, chunk]
            elif wide == 8:
                for i, pair in enumerate((first, second)):
                    at = 8 * chunk + 2 * pair
                    self.dense[m, at : at + 2] = self.a[m, 4 * chunk + 2 * i : 4 * chunk + 2 * i + 2]
            else:
                self.dense[m, 4 * chunk + first] = self.a[m, 2 * chunk]
                self.dense[m, 4 * chunk + second] = self.a[m, 2 * chunk + 1]
            cta, row = m // rows, m % rows
            if BITS.get(t, 8) >= 16:
                lane, column, bit = (
                    row % 8 + 8 * (chunk // 4) + 16 * (row // 16),
                    0,
                    16 * (row // 8 % 2) + 4 * (chunk % 4),
                )
            else:
                lane, column, bit = row, chunk // 8, 4 * (chunk % 8)
            if rows == 64 and not self.stationary:
                lane = 32 * (lane // 16) + lane % 16
            for copy in range(128 // self.m if self.stationary else 1):
                self.cells[cta, lane + self.lane + self.m * copy, 300 + column] |= np.uint32(nibble << bit)

    def idesc(self) -> int:
        m = self.m >> 7 << 27 if self.kind.startswith("mx") else self.m >> 4 << 24
        d = {"f16": 0, "f32": 1, "s32": 2}[self.dtype] if not self.kind.startswith("mx") else 0
        a, b = (1, 1) if "mxf4" in self.kind and "f8" not in self.kind else (CODE[self.atype], CODE[self.btype])
        return (self.sparse << 2 | d << 4 | a << 7 | b << 10 | self.negate << 13 | self.a_major << 15
                | self.b_major << 16 | self.n >> 3 << 17 | m)  # fmt: skip

    def run(self, *, more: int = 0, modifiers: str = "", before: str = "", scales: str = "", enable: int = 1,
            tail: str = "", lines: str = "", **options: Any) -> np.ndarray:  # fmt: skip
        """D as the instruction leaves it: f64."""
        text = self.text(more, modifiers, before, scales, enable, tail, lines)
        options.setdefault("target", "sm_100a")
        found = kernels.tcgen05(text, self.shared, self.cells, group=self.ctas, **options)
        bits = found[self.places()]
        if self.dtype == "f16":
            assert (bits < 1 << 16).all()
            bits = bits.astype(np.uint16)
        out = bits.view({"s32": np.int32, "f16": np.float16, "f32": np.float32}[self.dtype]).astype(np.float64)
        self.found = found
        return out

    def text(self, more: int = 0, modifiers: str = "", before: str = "", scales: str = "", enable: int = 1,
             tail: str = "", lines: str = "") -> str:  # fmt: skip
        """The instruction, and what its operands need."""
        name = "tcgen05.mma" + (".ws" if self.stationary else "") + (".sp" if self.sparse else "")
        a = "[%q1]" if self.a_tensor else "%w0"
        meta = "[%q2], " if self.sparse else ""
        return f"""
    {"" if self.a_tensor else f"mov.u64 %w0, {self.a_desc};"}
    mov.u64 %w1, {self.b_desc};
    add.u32 %q0, %t, {self.lane << 16}; add.u32 %q1, %q0, 256; add.u32 %q2, %q0, 300;
    add.u32 %q4, %t, 320; add.u32 %q5, %t, 340;
    mov.u32 %q3, {self.idesc() | more};
    setp.ne.u32 %z0, {enable}, 0;
    {lines}
    {name}.cta_group::{self.ctas}.kind::{self.kind}{modifiers} [%q0], {a}, %w1, {meta}%q3, {scales}{before}%z0{tail};
"""

    def check(self, **options: Any) -> None:
        sign = -1 if self.negate in (1, 2) else 1
        np.testing.assert_array_equal(self.run(**options), sign * (self.dense @ self.b.T) + self.c)


FLOATS = [("f16", "f16", "f16"), ("f16", "bf16", "bf16"), ("tf32", "tf32", "tf32"), ("f8f6f4", "e4m3", "e5m2"),
          ("f8f6f4", "e2m3", "e3m2"), ("f8f6f4", "e2m1", "e4m3")]  # fmt: skip


@pytest.mark.share(3)
@pytest.mark.parametrize(("kind", "atype", "btype"), FLOATS)
@pytest.mark.parametrize("a_tensor", [False, True])
def test_types(kind: str, atype: str, btype: str, a_tensor: bool) -> None:
    Product(kind, atype, btype, a_tensor=a_tensor).check()


@pytest.mark.share(3)
@pytest.mark.parametrize(("atype", "btype"), [("s8", "u8"), ("u8", "s8"), ("s8", "s8")])
@pytest.mark.parametrize("a_tensor", [False, True])
def test_whole_numbers(atype: str, btype: str, a_tensor: bool) -> None:
    Product("i8", atype, btype, dtype="s32", a_tensor=a_tensor).check()


SHAPES = [
    (128, 8, 1, False, False, 0), (128, 256, 1, False, False, 0), (64, 40, 1, False, False, 0),
    (64, 40, 1, False, False, 16), (256, 32, 2, False, False, 0), (128, 64, 2, False, False, 0),
    (32, 64, 1, True, False, 0), (64, 128, 1, True, False, 0), (128, 64, 1, True, False, 0),
    (128, 32, 1, False, True, 0), (64, 32, 1, False, True, 16), (256, 32, 2, False, True, 0),
    (128, 32, 2, False, True, 0), (128, 32, 2, False, True, 16), (32, 64, 1, True, True, 0),
    (64, 64, 1, True, True, 0),
]  # fmt: skip


@rows(("m", "n", "ctas", "stationary", "sparse", "lane"), SHAPES, share=8)
@rows("a_tensor", [False, True])
def test_layouts(m: int, n: int, ctas: int, stationary: bool, sparse: bool, lane: int, a_tensor: bool) -> None:
    Product("f16", "f16", m=m, n=n, ctas=ctas, stationary=stationary, sparse=sparse, lane=lane,
            a_tensor=a_tensor).check()  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "t", "dtype"), [("tf32", "tf32", "f32"), ("f8f6f4", "e5m2", "f32"), ("i8", "s8", "s32")]
)
@pytest.mark.parametrize("m", [64, 128])
def test_sparse_kinds(kind: str, t: str, dtype: str, m: int) -> None:
    Product(kind, t, m=m, dtype=dtype, sparse=True).check()


MAJORS = [
    (kind, t, mode, a, b)
    for kind, t in (("f16", "f16"), ("f8f6f4", "e4m3"))
    for mode in ("none", "32", "64", "128")
    for a, b in ((False, True), (True, False), (True, True))
]


@rows(("kind", "t", "mode", "a_major", "b_major"), MAJORS, share=3)
def test_majors(kind: str, t: str, mode: str, a_major: bool, b_major: bool) -> None:
    Product(kind, t, n=128, mode=mode, a_major=a_major, b_major=b_major).check()


@pytest.mark.parametrize("mode", list(places.TENSOR_CODES))
def test_swizzles(mode: str) -> None:
    Product("f16", "f16", mode=mode).check()


def test_tf32_with_mn_leading() -> None:
    Product("tf32", "tf32", mode="128/32", a_major=True, b_major=True).check()


def test_halves_as_results() -> None:
    Product("f16", "f16", dtype="f16").check()
    Product("f8f6f4", "e4m3", dtype="f16", m=64).check()


@pytest.mark.parametrize("negate", [1, 2, 3])
def test_negation(negate: int) -> None:
    Product("f16", "f16", negate=negate).check()


def test_enable_and_scale_of_d() -> None:
    case = Product("f16", "f16")
    np.testing.assert_array_equal(case.run(enable=0), case.a @ case.b.T)
    np.testing.assert_array_equal(case.run(tail=", 2"), case.a @ case.b.T + case.c / 4)


def test_disabled_lanes() -> None:
    case = Product("f16", "f16")
    lines = "mov.u32 %q8, 0xF0; mov.u32 %q9, 0; mov.u32 %q10, 0xFFFFFFFF; mov.u32 %q11, 0x80000000;"
    found = case.run(lines=lines, before="{%q8, %q9, %q10, %q11}, ")
    off = [*range(4, 8), *range(64, 96), 127]
    wanted = case.a @ case.b.T + case.c
    wanted[off] = case.c[off]
    np.testing.assert_array_equal(found, wanted)


def test_disabled_lanes_of_a_pair() -> None:
    case = Product("f16", "f16", m=256, ctas=2)
    lines = "mov.u32 %q8, 0; mov.u32 %q9, 1;"
    found = case.run(lines=lines, before="{%q8, %q9, %q8, %q8, %q8, %q8, %q8, %q9}, ")
    wanted = case.a @ case.b.T + case.c
    wanted[[32, 224]] = case.c[[32, 224]]
    np.testing.assert_array_equal(found, wanted)


def test_shifted_a() -> None:
    case = Product("f16", "f16", a_tensor=True)
    rows = np.arange(128)
    rows = np.where(rows % 32 == 31, rows, rows + 1)
    np.testing.assert_array_equal(case.run(modifiers=".ashift"), case.a[rows] @ case.b.T + case.c)


def test_zero_columns_and_column_shift() -> None:
    case = Product("f16", "f16", m=128, n=64, stationary=True)
    value = 1 << 39 | 2 << 40 | 3 << 48  # 4 columns used, 3 zero
    found = case.run(lines=f"mov.u64 %w2, {value};", tail=", %w2")
    used = np.arange(64) % 7 < 4
    np.testing.assert_array_equal(found, case.a @ (case.b * used[:, None]).T + case.c)


def test_saturation() -> None:
    case = Product("i8", "u8", dtype="s32")
    case.c[:] = 0x7FFF_FFF0
    case._store_c()
    wanted = np.minimum(case.a @ case.b.T + case.c, 0x7FFF_FFFF)
    np.testing.assert_array_equal(case.run(more=1 << 3), wanted)


def test_other_engine_and_shuffled() -> None:
    Product("f16", "f16", n=16).check(engine="reference")
    Product("f16", "f16", m=256, n=16, ctas=2).check(seed=5)


# --- block scaling ----------------------------------------------------------------------------------------------------


def scale_words(
    case: Product, factors: int, scale_a: int, scale_b: int, t: str = "ue8m0"
) -> tuple[np.ndarray, np.ndarray]:
    """Random powers of two, written to columns 320 and 340 of all lanes by 9.7.16.10.7; the values."""
    found = []
    case.cells[:, :, 320:360] = 0xFFFF_FFFF
    for base, count, first in ((320, case.m, scale_a), (340, case.n, scale_b)):
        exponents = case.rng.integers(-2, 3, (count, factors))
        codes = exponents + 127 if t == "ue8m0" else exponents + 7 << 3
        for x, factor in itertools.product(range(count), range(factors)):
            ctas = [x // 128] if base == 320 and case.ctas == 2 else range(case.ctas)
            row = x % 128 if base == 320 else x
            for cta, group in itertools.product(ctas, range(4)):
                word, byte = divmod(first + factor, 4)
                at = cta, row % 32 + 32 * group, base + row // 32 + 4 * word
                clear = ~np.uint32(255 << 8 * byte)
                case.cells[at] = case.cells[at] & clear | np.uint32(int(codes[x, factor]) << 8 * byte)
        found.append(np.exp2(exponents))
    return found[0], found[1]


SCALED = [
    ("mxf8f6f4", "e4m3", "e2m1", ".block_scale.scale_vec::1X", 1, 2, 3),
    ("mxf8f6f4", "e3m2", "e5m2", ".block_scale.block32", 1, 0, 1),
    ("mxf4", "e2m1", "e2m1", ".block_scale.scale_vec::2X", 2, 2, 0),
    ("mxf4nvf4", "e2m1", "e2m1", ".block_scale.scale_vec::4X", 4, 0, 0),
]


@pytest.mark.share(3)
@pytest.mark.parametrize(("kind", "atype", "btype", "modifiers", "factors", "first_a", "first_b"), SCALED)
@pytest.mark.parametrize(("m", "n", "ctas", "sparse"), [(128, 64, 1, False), (256, 96, 2, False), (128, 32, 1, True)])
def test_block_scaling(
    kind: str, atype: str, btype: str, modifiers: str, factors: int, first_a: int, first_b: int, m: int, n: int,
    ctas: int, sparse: bool,
) -> None:  # fmt: skip
    case = Product(kind, atype, btype, m=m, n=n, ctas=ctas, sparse=sparse)
    scale_a, scale_b = scale_words(case, factors, first_a, first_b)
    target = "sm_100f" if "block32" in modifiers else "sm_100a"
    more = 1 << 23 | first_a << 29 | first_b << 4
    found = case.run(more=more, modifiers=modifiers, scales="[%q4], [%q5], ", target=target)
    wide = case.k // factors
    left, right = case.dense * np.repeat(scale_a, wide, 1), case.b * np.repeat(scale_b, wide, 1)
    np.testing.assert_array_equal(found, left @ right.T + case.c)


def test_scale_factors_with_fractions() -> None:
    """ue4m3: bit 23 of the instruction descriptor is 0."""
    case = Product("mxf4nvf4", "e2m1", n=64)
    scale_a, scale_b = scale_words(case, 4, 0, 0, "ue4m3")
    found = case.run(modifiers=".block_scale.scale_vec::4X", scales="[%q4], [%q5], ")
    left, right = case.a * np.repeat(scale_a, 16, 1), case.b * np.repeat(scale_b, 16, 1)
    np.testing.assert_array_equal(found, left @ right.T + case.c)


@pytest.mark.parametrize(("block", "factors", "first"), [("block32", 3, 0), ("block32", 3, 2), ("block16", 6, 2)])
def test_k_of_96(block: str, factors: int, first: int) -> None:
    case = Product("mxf4nvf4", "e2m1", k=96)
    scale_a, scale_b = scale_words(case, factors, first, first)
    more = 1 << 23 | 1 << 31 | first << 29 | first << 4
    found = case.run(
        more=more, modifiers=f".block_scale.{block}", scales="[%q4], [%q5], ", target="sm_103a"
    )  # fmt: skip
    wide = 96 // factors
    left, right = case.a * np.repeat(scale_a, wide, 1), case.b * np.repeat(scale_b, wide, 1)
    np.testing.assert_array_equal(found, left @ right.T + case.c)


@pytest.mark.parametrize("a_tensor", [False, True])
def test_fp4_in_tensor_memory(a_tensor: bool) -> None:
    case = Product("mxf4", "e2m1", a_tensor=a_tensor)
    scale_a, scale_b = scale_words(case, 2, 0, 2)
    found = case.run(more=1 << 23 | 2 << 4, modifiers=".block_scale", scales="[%q4], [%q5], ")
    left, right = case.a * np.repeat(scale_a, 32, 1), case.b * np.repeat(scale_b, 32, 1)
    np.testing.assert_array_equal(found, left @ right.T + case.c)


# --- misuse -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("options", "text"), [
    ({"more": 1 << 6}, "instruction descriptor: bit 6"),
    ({"lines": "mov.u64 %w0, 0;"}, "a-desc: matrix descriptor: bits 46-48"),
    ({"lines": "mov.u64 %w1, 0x6000400000000000;"}, "b-desc: matrix descriptor: swizzling mode (bits 61-63) 3"),
    ({"lines": "add.u32 %q0, %q0, 0x100000;"}, "D at lane 16 of tensor memory; layout D requires 0"),
    ({"lines": "add.u32 %q0, %q0, 500;"}, "tcgen05.mma: D extends to column 531"),
    ({"lines": "mov.u64 %w1, 0x4000404000013fff;"}, "b-desc: matrix descriptor: the matrix extends"),
])  # fmt: skip
def test_misuse_is_a_trap_that_names_the_field(options: dict[str, Any], text: str) -> None:
    with pytest.raises(Trap) as error:
        Product("f16", "f16").run(**options)
    assert text in str(error.value)


def test_tf32_majors_need_wide_atoms() -> None:
    with pytest.raises(
        Trap, match=r"swizzling mode \(bits 61-63\) 128-byte is illegal for a transposed matrix of tf32"
    ):
        Product("tf32", "tf32", a_major=True).run()


@pytest.mark.parametrize("order", [("sm_100a", "sm_103a"), ("sm_103a", "sm_100a")])
def test_devices_that_share_a_module(order: tuple[str, str]) -> None:
    """K = 96 of fp4 is known to sm_103 only; who ran the module before changes nothing."""
    case = Product("mxf4", "e2m1", k=96)
    text = case.text(more=1 << 31 | 1 << 23, modifiers=".block_scale.block32", scales="[%q4], [%q5], ")
    module = kernels.tcgen05_module(text, case.shared, target="sm_100f")
    for target in order:
        arrays = [np.ascontiguousarray(case.shared), case.cells.copy()]
        if target == "sm_103a":
            ptxtools.Device(target=target).launch(module["k"], 1, 128, arrays)
            continue
        with pytest.raises(Trap, match=r"K dimension \(bit 31\) 1 is illegal for this target"):
            ptxtools.Device(target=target).launch(module["k"], 1, 128, arrays)


def test_what_is_known_of_an_opcode_belongs_to_the_device() -> None:
    """The same operation, first on one device and then on the other."""
    op = Op("tcgen05.mma", resolve("tcgen05.mma.cta_group::1.kind::mxf4.block_scale.block32"))
    op.detail = NamedOperands({}, {}, {}, {})
    for target in ("sm_100a", "sm_103a", "sm_100a"):
        view = SimpleNamespace(op=op, launch=SimpleNamespace(device=SimpleNamespace(chip=chip_of(target))))
        assert call.variant_of(view).wide is (target == "sm_103a")  # type: ignore[arg-type]


def test_issued_again_it_takes_what_memory_has_become() -> None:
    """One instruction twice, with the same operands; in between the first row of A becomes zero."""
    case = Product("f16", "f16")
    found = case.run(
        lines="mov.u32 %r15, 2; mov.u32 %r16, 0;\ntwice:",
        tail="; st.shared.v4.b32 [smem], {%r16, %r16, %r16, %r16};"
        " st.shared.v4.b32 [smem+16], {%r16, %r16, %r16, %r16};"
        " sub.u32 %r15, %r15, 1; setp.ne.u32 %z1, %r15, 0; @%z1 bra twice",
    )
    once = case.a @ case.b.T
    assert once[0].any()
    wanted = once + case.c
    wanted[1:] += once[1:]
    np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("a_tensor", [False, True])
def test_issued_again_it_needs_its_columns_still(a_tensor: bool) -> None:
    text = f""".version 8.6\n.target sm_100a\n.address_size 64
.visible .entry k()
.reqntid 32
{{
    .shared .align 1024 .b8 smem[24576];
    .shared .align 4 .b32 place;
    .reg .b32 %q<6>; .reg .b64 %w<2>; .reg .pred %z<3>; .reg .b32 %t, %r<3>;
    mov.u32 %r0, %tid.x; setp.eq.u32 %z1, %r0, 0; mov.u32 %r1, 2;
    tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [place], 512;
    ld.shared.u32 %t, [place];
again:
    @!%z1 bra others;
{Product("f16", "f16", a_tensor=a_tensor).text(enable=0)}
others:
    bar.warp.sync -1;
    tcgen05.dealloc.cta_group::1.sync.aligned.b32 %t, 512;
    sub.u32 %r1, %r1, 1; setp.ne.u32 %z2, %r1, 0; @%z2 bra again;
    ret;
}}"""
    which = "A uses columns 256 to 263" if a_tensor else "D uses columns 0 to 31"
    with pytest.raises(Trap, match=f"tcgen05.mma: {which} of tensor memory, not all of which"):
        ptxtools.Device("sm_100a").launch(ptxtools.loads(text)["k"], 1, 32, [])
