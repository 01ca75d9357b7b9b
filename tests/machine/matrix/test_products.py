"""Every form of mma and mma.sp against sums in Python's integers, on both engines."""

from __future__ import annotations

import functools
import re

import numpy as np
import pytest

from . import model
from .harness import product_kernel, run

BITS = {"f64": 64, "tf32": 32, "f16": 16, "bf16": 16, "s8": 8, "u8": 8, "s4": 4, "u4": 4, "b1": 1,
        "e4m3": 8, "e5m2": 8, "e3m2": 8, "e2m3": 8, "e2m1": 8, "fp4": 4}  # fmt: skip
VALUE_BITS = {"e3m2": 6, "e2m3": 6, "e2m1": 4, "fp4": 4}

#: Bits kept and bytes of K added at once, by generation (MMA-Sim).
CHIPS = {"turing": (24, 16), "ampere": (24, 16), "ada": (24, 16), "hopper": (25, 32), "blackwell": (25, 32),
         "rtx_blackwell": (25, 32)}  # fmt: skip


class Form:
    """The types and sizes of an instruction, from its text."""

    def __init__(self, text: str) -> None:
        self.text = text
        words = text.split(".")
        shape = next(w for w in words if re.fullmatch(r"m\d+n\d+k\d+", w))
        self.m, self.n, self.k = (int(x) for x in re.findall(r"\d+", shape))
        types = [w for w in words[words.index("col") + 1 :] if w in BITS or w in ("s32", "f32")]
        self.dtype, self.atype, self.btype, self.ctype = types[:4]
        if "mxf4" in text:
            self.atype = self.btype = "fp4"
        self.sparse = ".sp" in text
        self.abits, self.bbits = BITS[self.atype], BITS[self.btype]
        self.stored = self.k // 2 if self.sparse else self.k
        self.na = self.m * self.stored * self.abits // 1024 if self.abits < 64 else self.m * self.stored // 32
        self.nb = self.n * self.k * self.bbits // 1024 if self.bbits < 64 else self.n * self.k // 32
        self.nd = self.m * self.n // 32 // (2 if self.dtype == "f16" else 1)
        self.nc = self.m * self.n // 32 // (2 if self.ctype == "f16" else 1)

    def kernel(self, extra: str = "", extras: int = 0) -> str:
        target = "sm_120a" if "kind" in self.text or (self.dtype == "f16" and self.abits == 8) else "sm_90"
        return product_kernel(
            self.text, (self.nd, self.na, self.nb, self.nc), self.atype == "f64", extra, extras, target
        )

    def pack(self, matrix: np.ndarray, which: str) -> np.ndarray:
        """Registers x lanes of A or B; of several matrices one after another."""
        bits = self.abits if which == "a" else self.bbits
        count = self.na if which == "a" else self.nb
        rows, columns = self._places(which, count, max(1, 32 // bits))
        return _joined(matrix[..., rows, columns], bits)

    def pack_c(self, matrix: np.ndarray, count: int, t: str) -> np.ndarray:
        rows, columns = self._places("c", count, 2 if t == "f16" else 1)
        return _joined(matrix[..., rows, columns], 16)

    def unpack_d(self, registers: np.ndarray) -> np.ndarray:
        per = 2 if self.dtype == "f16" else 1
        words = registers.astype(np.uint64)[..., None] >> _shifts(per, 16)
        out = np.zeros((*registers.shape[:-2], self.m, self.n), np.uint64)
        out[(..., *self._places("c", self.nd, per))] = words & np.uint64(0xFFFF) if per == 2 else words
        return out

    @functools.cache  # noqa: B019 - there are few forms
    def _places(self, which: str, count: int, packed: int) -> tuple[np.ndarray, np.ndarray]:
        """Row and column of each element: registers x lanes x elements of a register."""

        def place(register: int, lane: int, element: int) -> tuple[int, int]:
            if which == "a":
                return model.position_a(lane, register, element, packed, self.m == 16)
            if which == "b":
                return model.position_b(lane, register, element, packed)
            return model.position_c(lane, packed * register + element)

        found = [place(*numbers) for numbers in np.ndindex(count, 32, packed)]
        rows, columns = np.array(found).T.reshape(2, count, 32, packed)
        return rows, columns


def _shifts(packed: int, bits: int) -> np.ndarray:
    return np.uint64(bits) * np.arange(packed, dtype=np.uint64)


def _joined(elements: np.ndarray, bits: int) -> np.ndarray:
    """Elements of a register, along the last axis, as a word."""
    words: np.ndarray = np.bitwise_or.reduce(elements.astype(np.uint64) << _shifts(elements.shape[-1], bits), axis=-1)
    return words


def bits_of(rng: np.random.Generator, t: str, shape: tuple[int, ...]) -> np.ndarray:
    """Numbers of a type: the upper half of the rows of like sizes, the lower of any, with some that are not finite."""
    width = VALUE_BITS.get(t, {"f32": 32}.get(t, BITS.get(t, 32)))
    wild = rng.integers(0, 1 << width, shape, np.uint64)
    if t not in model.FORMATS:
        return wild
    exponent_bits, fraction, bias, top = model.FORMATS[t]
    shift = 13 if t == "tf32" else 0
    low = shift + fraction
    field = np.uint64((1 << exponent_bits) - 1 << low)
    near = wild & ~field | rng.integers(max(0, bias - 3), min(bias + 4, (1 << exponent_bits) - 1), shape,
                                        np.uint64) << np.uint64(low)  # fmt: skip
    near[rng.random(shape) < 0.1] = 0
    if top == "ieee":  # finite but for a few
        finite = (wild & field) != field
        wild = np.where(finite | (rng.random(shape) < 0.05), wild, near)
        near = np.where((near & field) == field, near & ~field, near)
    half = shape[0] // 2
    return np.concatenate([near[:half], wild[half:]])


def numbers(matrix: np.ndarray, t: str) -> list[list[model.Number]]:
    t = "e2m1" if t == "fp4" else t
    decode = functools.cache(lambda bits: model.decode(bits, t))
    return [[decode(int(bits)) for bits in row] for row in matrix]


def contained(rng: np.random.Generator, matrix: np.ndarray, t: str) -> np.ndarray:
    """As the instruction wants narrow elements: in bytes, with anything in the bits that do not count."""
    if t == "e2m1":
        return (
            matrix << np.uint64(2)
            | rng.integers(0, 4, matrix.shape, np.uint64)
            | rng.integers(0, 4, matrix.shape, np.uint64) << np.uint64(6)
        )
    if t in ("e3m2", "e2m3"):
        return matrix | rng.integers(0, 4, matrix.shape, np.uint64) << np.uint64(6)
    return matrix


def expected(form: Form, a: np.ndarray, b: np.ndarray, c: np.ndarray, numerics: str) -> np.ndarray:
    fraction, size = CHIPS[numerics]
    wide = 2 if form.sparse else 1
    chunk = size * wide // {"tf32": 4, "f16": 2, "bf16": 2}.get(form.atype, 1)
    out = form.dtype
    if form.abits == 8 and numerics == "ada":
        fraction, out = 13, "f16" if form.dtype == "f16" else "e8m13"
    rows, columns = numbers(a, form.atype), list(zip(*numbers(b, form.btype), strict=True))
    known: dict[tuple[bytes, bytes, int], int] = {}  # equal rows and columns have equal products

    def dot(i: int, j: int) -> int:
        key = (a[i].tobytes(), b[:, j].tobytes(), int(c[i, j]))
        if key not in known:
            known[key] = model.chip_dot(rows[i], list(columns[j]), key[2], form.ctype, fraction, chunk, out)
        return known[key]

    return np.array([[dot(i, j) for j in range(form.n)] for i in range(form.m)], np.uint64)


FLOATS = [
    ("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32", ("turing", "hopper")),
    ("mma.sync.aligned.m16n8k8.row.col.f16.f16.f16.f16", ("turing", "hopper")),
    ("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", ("hopper", "ampere")),
    ("mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16", ("ampere", "hopper")),
    ("mma.sync.aligned.m16n8k8.row.col.f32.bf16.bf16.f32", ("ampere",)),
    ("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32", ("hopper", "ada")),
    ("mma.sync.aligned.m16n8k4.row.col.f32.tf32.tf32.f32", ("ampere",)),
    ("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32", ("ampere", "hopper")),
    ("mma.sync.aligned.m16n8k16.row.col.f32.e4m3.e5m2.f32", ("ada",)),
    ("mma.sync.aligned.m16n8k32.row.col.f32.e5m2.e4m3.f32", ("ada", "rtx_blackwell")),
    ("mma.sync.aligned.m16n8k32.row.col.f16.e4m3.e4m3.f16", ("ada", "rtx_blackwell")),
    ("mma.sync.aligned.m16n8k32.row.col.kind::f8f6f4.f32.e3m2.e2m1.f32", ("rtx_blackwell",)),
    ("mma.sync.aligned.m16n8k32.row.col.kind::f8f6f4.f16.e2m3.e5m2.f16", ("rtx_blackwell",)),
]


@pytest.mark.share(3)
@pytest.mark.parametrize(("text", "chips"), FLOATS, ids=lambda v: v if isinstance(v, str) else "")
def test_floats(text: str, chips: tuple[str, ...]) -> None:
    form = Form(text)
    rng = np.random.default_rng(len(text) * 1000 + form.k)
    a, b = bits_of(rng, form.atype, (form.m, form.k)), bits_of(rng, form.btype, (form.n, form.k)).T
    c = bits_of(rng, form.ctype, (form.m, form.n))
    inputs = np.concatenate([
        form.pack(contained(rng, a, form.atype), "a"), form.pack(contained(rng, b, form.btype), "b"),
        form.pack_c(c, form.nc, form.ctype),
    ]).astype(np.uint32)  # fmt: skip
    for number, chip in enumerate(chips):
        wanted = expected(form, a, b, c, chip)
        for engine in ("native", "reference") if not number else ("reference",):
            got = form.unpack_d(run(form.kernel(), inputs, form.nd, engine, chip))
            assert_equal(got, wanted, f"{chip} on the {engine} engine")


def assert_equal(got: np.ndarray, wanted: np.ndarray, where: str) -> None:
    wrong = np.argwhere(got != wanted)
    lines = [f"{tuple(map(int, w))}: {int(got[tuple(w)]):#x}, not {int(wanted[tuple(w)]):#x}" for w in wrong[:5]]
    assert not len(wrong), f"{where}: {len(wrong)} elements differ: {lines}"


INTEGERS = [
    "mma.sync.aligned.m8n8k16.row.col.s32.u8.s8.s32",
    "mma.sync.aligned.m16n8k16.row.col.s32.s8.u8.s32",
    "mma.sync.aligned.m16n8k32.row.col.satfinite.s32.s8.s8.s32",
    "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32",
    "mma.sync.aligned.m8n8k32.row.col.satfinite.s32.s4.u4.s32",
    "mma.sync.aligned.m16n8k32.row.col.s32.u4.s4.s32",
    "mma.sync.aligned.m16n8k64.row.col.s32.s4.s4.s32",
    "mma.sync.aligned.m8n8k128.row.col.s32.b1.b1.s32.xor.popc",
    "mma.sync.aligned.m16n8k128.row.col.s32.b1.b1.s32.and.popc",
    "mma.sync.aligned.m16n8k256.row.col.s32.b1.b1.s32.xor.popc",
]


def whole(value: np.ndarray, t: str) -> np.ndarray:
    bits, numbers = int(t[1:]), value.astype(np.int64)
    return numbers - (numbers >> bits - 1 << bits) if t[0] == "s" else numbers


def integer_product(form: Form, a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    """Sums of at most 256 products of 8 bits each: exact in 64."""
    if form.atype == "b1":
        x, y = a.astype(np.int64)[:, :, None], b.astype(np.int64)[None]
        products = x & y if ".and" in form.text else x ^ y
    else:
        products = whole(a, form.atype)[:, :, None] * whole(b, form.btype)[None]
    total = whole(c, "s32") + products.sum(axis=1)
    if "satfinite" in form.text:
        total = total.clip(-(1 << 31), (1 << 31) - 1)
    return (total & 0xFFFFFFFF).astype(np.uint64)


@pytest.mark.share(3)
@pytest.mark.parametrize("text", INTEGERS)
def test_integers(text: str) -> None:
    form = Form(text)
    rng = np.random.default_rng(form.k)
    a = rng.integers(0, 1 << form.abits, (form.m, form.k), np.uint64)
    b = rng.integers(0, 1 << form.bbits, (form.k, form.n), np.uint64)
    c = rng.integers(0, 1 << 32, (form.m, form.n), np.uint64)
    c[0], c[1] = 0x7FFFFFFF, 0x80000000
    inputs = np.concatenate([form.pack(a, "a"), form.pack(b, "b"), form.pack_c(c, form.nc, "s32")]).astype(np.uint32)
    wanted = integer_product(form, a, b, c)
    for engine in ("native", "reference"):
        got = form.unpack_d(run(form.kernel(), inputs, form.nd, engine))
        assert_equal(got, wanted, engine)


@pytest.mark.share(3)
@pytest.mark.parametrize("rounding", ["", ".rz", ".rm", ".rp"])
@pytest.mark.parametrize("shape", ["m8n8k4", "m16n8k16"])
def test_doubles(shape: str, rounding: str) -> None:
    """A chain of fused multiply-adds in the order of k, each rounded: exact in fractions."""
    form = Form(f"mma.sync.aligned.{shape}.row.col{rounding}.f64.f64.f64.f64")
    rng = np.random.default_rng(form.k)
    a, b, c = (rng.standard_normal(s) * 2.0 ** rng.integers(-20, 20, s)
               for s in ((form.m, form.k), (form.k, form.n), (form.m, form.n)))  # fmt: skip
    parts = [form.pack(a.view(np.uint64), "a"), form.pack(b.view(np.uint64), "b"),
             form.pack_c(c.view(np.uint64), form.nc, "f64")]  # fmt: skip
    wanted = np.array([[double_chain(a[i], b[:, j], c[i, j], rounding) for j in range(form.n)] for i in range(form.m)])
    for engine in ("native", "reference"):
        got = form.unpack_d(run(form.kernel(), np.concatenate(parts), form.nd, engine)).view(np.float64)
        assert np.array_equal(got, wanted), engine


def double_chain(a: np.ndarray, b: np.ndarray, c: float, rounding: str) -> float:
    total = float(c)
    for x, y in zip(a, b, strict=True):
        exact = model.exact(float(x)) * model.exact(float(y)) + model.exact(total)
        total = model.to_double(exact, rounding or ".rn")
    return total


SPARSE = [
    ("mma.sp.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", "ampere"),
    ("mma.sp::ordered_metadata.sync.aligned.m16n8k32.row.col.f16.f16.f16.f16", "hopper"),
    ("mma.sp::ordered_metadata.sync.aligned.m16n8k32.row.col.f32.bf16.bf16.f32", "hopper"),
    ("mma.sp.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32", "hopper"),
    ("mma.sp::ordered_metadata.sync.aligned.m16n8k16.row.col.f32.tf32.tf32.f32", "hopper"),
    ("mma.sp.sync.aligned.m16n8k64.row.col.f32.e4m3.e5m2.f32", "ada"),
    ("mma.sp::ordered_metadata.sync.aligned.m16n8k64.row.col.kind::f8f6f4.f32.e2m1.e3m2.f32", "rtx_blackwell"),
    ("mma.sp.sync.aligned.m16n8k32.row.col.satfinite.s32.s8.u8.s32", ""),
    ("mma.sp::ordered_metadata.sync.aligned.m16n8k64.row.col.s32.u8.s8.s32", ""),
    ("mma.sp.sync.aligned.m16n8k64.row.col.s32.s4.s4.s32", ""),
    ("mma.sp::ordered_metadata.sync.aligned.m16n8k128.row.col.s32.u4.s4.s32", ""),
]

#: (bits, K) -> selectors, and (lane in the quad, nibble) of a row's chunk: the tables of 9.7.14.6.1.
METADATA = {
    (16, 16): (4, lambda f, upper, chunk: (f, 4 * upper + chunk)),
    (16, 32): (2, lambda f, upper, chunk: (2 * f + chunk // 4, 4 * upper + chunk % 4)),
    (32, 8): (4, lambda f, upper, chunk: (f, 4 * upper + chunk)),
    (32, 16): (2, lambda f, upper, chunk: (2 * f + chunk // 4, 4 * upper + chunk % 4)),
    (8, 32): (2, lambda f, upper, chunk: (2 * f + upper, chunk)),
    (8, 64): (1, lambda f, upper, chunk: (upper + 2 * (chunk // 8), chunk % 8)),
    (4, 64): (2, lambda f, upper, chunk: (2 * f + upper, chunk)),
    (4, 128): (1, lambda f, upper, chunk: (upper + 2 * (chunk // 8), chunk % 8)),
}  # fmt: skip


def sparse_a(rng: np.random.Generator, form: Form, stored: np.ndarray, selector: int) -> tuple[np.ndarray, np.ndarray]:
    """A in full, and the metadata of the lanes."""
    full = np.zeros((form.m, form.k), np.uint64)
    metadata = rng.integers(0, 1 << 32, 32, np.uint64)
    _, place = METADATA[form.abits, form.k]
    ordered = "ordered" in form.text
    span, kept = {32: (2, 1), 4: (8, 4)}.get(form.abits, (4, 2))
    for row in range(form.m):
        for chunk in range(form.k // span):
            if form.abits == 32:
                at = int(rng.integers(2))
                nibble, columns = (0b0100, 0b1110)[at], [at]
            else:
                pair = rng.permutation(4)[:2]
                low, high = (int(x) for x in (sorted(pair) if ordered else pair))
                nibble = low | high << 2
                columns = [low, high] if kept == 2 else [2 * low, 2 * low + 1, 2 * high, 2 * high + 1]
            for i, column in enumerate(columns):
                full[row, span * chunk + column] = stored[row, kept * chunk + i]
            lane, number = place(selector, row // 8, chunk)
            lane += 4 * (row % 8)
            mask = 15 << 4 * number
            metadata[lane] = np.uint64(int(metadata[lane]) & ~mask | nibble << 4 * number)
    return full, metadata


@pytest.mark.share(3)
@pytest.mark.parametrize(("text", "chip"), SPARSE, ids=lambda v: v)
def test_sparse(text: str, chip: str) -> None:
    form = Form(text)
    selectors, _ = METADATA[form.abits, form.k]
    rng = np.random.default_rng(form.k + form.abits)
    integer = form.dtype == "s32"
    for selector in range(selectors):
        if integer:
            stored = rng.integers(0, 1 << form.abits, (form.m, form.stored), np.uint64)
            b = rng.integers(0, 1 << form.bbits, (form.k, form.n), np.uint64)
        else:
            stored = bits_of(rng, form.atype, (form.m, form.stored))
            b = bits_of(rng, form.btype, (form.n, form.k)).T
        c = bits_of(rng, form.ctype, (form.m, form.n))
        a, metadata = sparse_a(rng, form, stored, selector)
        inputs = np.concatenate([
            form.pack(contained(rng, stored, form.atype), "a"), form.pack(contained(rng, b, form.btype), "b"),
            form.pack_c(c, form.nc, form.ctype), metadata[None],
        ]).astype(np.uint32)  # fmt: skip
        wanted = integer_product(form, a, b, c) if integer else expected(form, a, b, c, chip)
        for engine in ("native", "reference") if selector in (0, 3) else ("reference",):
            kernel = form.kernel(f", %e0, {selector}", 1)
            got = form.unpack_d(run(kernel, inputs, form.nd, engine, chip or "ieee"))
            assert_equal(got, wanted, f"selector {selector}, {engine}")


SCALED = [
    ("mma.sync.aligned.m16n8k32.row.col.kind::mxf8f6f4.block_scale.f32.e4m3.e5m2.f32.ue8m0", 1),
    ("mma.sync.aligned.m16n8k32.row.col.kind::mxf8f6f4.block_scale.scale_vec::1X.f32.e3m2.e2m1.f32.ue8m0", 1),
    ("mma.sync.aligned.m16n8k64.row.col.kind::mxf4.block_scale.f32.e2m1.e2m1.f32.ue8m0", 2),
    ("mma.sync.aligned.m16n8k64.row.col.kind::mxf4nvf4.block_scale.scale_vec::2X.f32.e2m1.e2m1.f32.ue8m0", 2),
    ("mma.sync.aligned.m16n8k64.row.col.kind::mxf4nvf4.block_scale.scale_vec::4X.f32.e2m1.e2m1.f32.ue4m3", 4),
    ("mma.sp::ordered_metadata.sync.aligned.m16n8k64.row.col.kind::mxf8f6f4.block_scale.f32.e4m3.e4m3.f32.ue8m0", 1),
    ("mma.sp::ordered_metadata.sync.aligned.m16n8k128.row.col.kind::mxf4nvf4.block_scale.scale_vec::4X"
     ".f32.e2m1.e2m1.f32.ue4m3", 4),
]  # fmt: skip


@pytest.mark.share(3)
@pytest.mark.parametrize(("text", "blocks"), SCALED, ids=lambda v: v if isinstance(v, str) else "")
def test_scaled(text: str, blocks: int) -> None:
    form = Form(text)
    rng = np.random.default_rng(form.k + blocks)
    stored = bits_of(rng, form.atype, (form.m, form.stored))
    b = bits_of(rng, form.btype, (form.n, form.k)).T
    c = bits_of(rng, "f32", (form.m, form.n))
    metadata: list[np.ndarray] = []
    a = stored
    if form.sparse:
        a, words = sparse_a(rng, form, stored, 0)
        metadata = [words[None]]
    kind = text.rsplit(".", 1)[1]
    near = (60, 90) if kind == "ue4m3" else (110, 140)
    factors = [rng.integers(*near, (32, 4), np.uint64) for _ in "ab"]
    for table in factors:
        table[rng.random(table.shape) < 0.05] = 0xFF
    words = [sum(table[:, byte] << np.uint64(8 * byte) for byte in range(4)) for table in factors]
    inputs = np.concatenate([
        form.pack(contained(rng, stored, form.atype), "a"), form.pack(contained(rng, b, form.btype), "b"),
        form.pack_c(c, form.nc, "f32"), *metadata, words[0][None], words[1][None],
    ]).astype(np.uint32)  # fmt: skip
    rows, columns = numbers(a, form.atype), list(zip(*numbers(b, form.btype), strict=True))
    dot = model.scaled_dot if blocks == 1 else model.grouped_dot
    first = len(metadata)
    for selectors in ((0, 0, 0, 0), (4 - blocks, 1, 4 - blocks, 3)):
        wanted = np.zeros((form.m, form.n), np.uint64)
        for i, j in np.ndindex(wanted.shape):
            scales = scales_of(factors, selectors, kind, blocks, i, j)
            wanted[i, j] = dot(rows[i], list(columns[j]), int(c[i, j]), scales)
        byte_a, thread_a, byte_b, thread_b = selectors
        extra = f"{', %e0, 0' if form.sparse else ''}, %e{first}, {{{byte_a}, {thread_a}}}"
        extra += f", %e{first + 1}, {{{byte_b}, {thread_b}}}"
        for engine in ("native", "reference"):
            got = form.unpack_d(run(form.kernel(extra, first + 2), inputs, form.nd, engine, "rtx_blackwell"))
            assert_equal(got, wanted, f"selectors {selectors}, {engine}")


def scales_of(
    factors: list[np.ndarray], selectors: tuple[int, int, int, int], kind: str, blocks: int, i: int, j: int
) -> list[tuple[model.Number, model.Number]]:
    """The factors of row i and column j, block after block (9.7.14.5.12)."""
    byte_a, thread_a, byte_b, thread_b = selectors
    a = factors[0][4 * (i % 8) + 2 * thread_a + i // 8]
    b = factors[1][4 * j + thread_b]
    return [(model.scale(int(a[byte_a + s]), kind), model.scale(int(b[byte_b + s]), kind)) for s in range(blocks)]
