"""wgmma from end to end: whole numbers as data, so that every sum is exact, and NumPy's product as the expectation."""

from __future__ import annotations

import itertools

import ml_dtypes
import numpy as np
import pytest

from ptxtools.diagnostics import Trap

from . import kernels, places

NUMPY = {
    "f16": np.float16, "bf16": ml_dtypes.bfloat16, "tf32": np.float32, "e4m3": ml_dtypes.float8_e4m3fn,
    "e5m2": ml_dtypes.float8_e5m2, "s8": np.int8, "u8": np.uint8,
}  # fmt: skip
BITS = {"f16": 16, "bf16": 16, "tf32": 32}
DEPTH = {"tf32": 8, "f16": 16, "bf16": 16}
CODES = {8: np.uint8, 16: np.uint16, 32: np.uint32}


def matrix(rng: np.random.Generator, t: str, rows: int, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Small whole numbers: values in f64, and their bits."""
    low = 0 if t == "u8" else -3
    values = rng.integers(low, 4, (rows, k))
    return values.astype(np.float64), values.astype(NUMPY[t]).view(CODES[BITS.get(t, 8)])


def to_registers(values: np.ndarray) -> np.ndarray:
    """D (64 x N, f16, f32 or s32) as registers x 128 threads."""
    half = values.dtype == np.float16
    n = values.shape[1]
    words = np.zeros((n // 2, 128), values.dtype)
    for row, column in itertools.product(range(64), range(n)):
        thread, element = places.accumulator_place(row, column)
        words[element, thread] = values[row, column]
    if half:
        pairs = words.view(np.uint16).astype(np.uint32)
        return pairs[0::2] | pairs[1::2] << np.uint32(16)
    return words.view(np.uint32)


def from_registers(words: np.ndarray, n: int, dtype: str) -> np.ndarray:
    words = np.ascontiguousarray(words)
    if dtype == "f16":
        halves = np.empty((n // 2, 128), np.uint16)
        halves[0::2], halves[1::2] = words & np.uint32(0xFFFF), words >> np.uint32(16)
        elements = halves.view(np.float16)
    else:
        elements = words.view(np.int32 if dtype == "s32" else np.float32)
    found = np.empty((64, n), np.float64)
    for row, column in itertools.product(range(64), range(n)):
        thread, element = places.accumulator_place(row, column)
        found[row, column] = elements[element, thread]
    return found


def a_registers(codes: np.ndarray, bits: int) -> np.ndarray:
    """A (64 x K) in registers: 4 x 128 threads (9.7.15.5.1)."""
    per = 32 // bits
    words = np.zeros((4, 128), np.uint64)
    for row, column in itertools.product(range(64), range(codes.shape[1])):
        thread = 32 * (row // 16) + 4 * (row % 8) + column % (4 * per) // per
        register = 2 * (column // (4 * per)) + row % 16 // 8
        words[register, thread] |= np.uint64(int(codes[row, column]) << bits * (column % per))
    return words.astype(np.uint32)


def product(
    t: str, n: int, *, mode_a: str = "128", mode_b: str = "128", trans_a: bool = False, trans_b: bool = False,
    dtype: str = "f32", btype: str | None = None, registers: bool = False, scale_d: int = 1,
    signs: tuple[int, int] = (1, 1), mods: str = "", **options: object,
) -> None:  # fmt: skip
    """One product. mods: further words of the opcode, behind the shape."""
    btype = btype or t
    bits, k = BITS.get(t, 8), DEPTH.get(t, 32)
    rng = np.random.default_rng(n)
    a, a_codes = matrix(rng, t, 64, k)
    b, b_codes = matrix(rng, btype, n, k)
    c = rng.integers(-50, 50, (64, n)).astype({"f16": np.float16, "s32": np.int32}.get(dtype, np.float32))
    shared = np.zeros(48 << 10, np.uint8)
    descriptors = []
    if not registers:
        lbo, sbo = places.put(shared, 1024, a_codes, bits, mode_a, trans_a)
        descriptors.append(places.descriptor(1024, lbo, sbo, mode_a, tensor=False))
    lbo, sbo = places.put(shared, 16384, b_codes, bits, mode_b, trans_b)
    descriptors.append(places.descriptor(16384, lbo, sbo, mode_b, tensor=False))
    tail = "" if dtype == "s32" else f", {signs[0]}, {signs[1]}"
    if t in ("f16", "bf16"):
        tail += f", {int(trans_b)}" if registers else f", {int(trans_a)}, {int(trans_b)}"
    opcode = f"wgmma.mma_async.sync.aligned.m64n{n}k{k}{mods}.{dtype}.{t}.{btype}"
    out = kernels.wgmma(
        opcode, shared, to_registers(c), tail, a=a_registers(a_codes, bits) if registers else None,
        descriptors=tuple(descriptors), scale_d=scale_d, **options,
    )  # fmt: skip
    wanted = signs[0] * signs[1] * (a @ b.T) + (c if scale_d else 0)
    np.testing.assert_array_equal(from_registers(out, n, dtype), wanted)


@pytest.mark.parametrize("t", ["f16", "bf16", "tf32", "e4m3", "e5m2"])
@pytest.mark.parametrize("registers", [False, True])
def test_types(t: str, registers: bool) -> None:
    product(t, 24, registers=registers)


@pytest.mark.parametrize(("t", "btype"), [("s8", "s8"), ("u8", "s8"), ("s8", "u8"), ("u8", "u8")])
def test_whole_numbers(t: str, btype: str) -> None:
    product(t, 32, dtype="s32", btype=btype)
    product(t, 8, dtype="s32", btype=btype, registers=True)


@pytest.mark.share(3)
@pytest.mark.parametrize("mode", list(places.WARPGROUP_CODES))
@pytest.mark.parametrize(("trans_a", "trans_b"), [(False, False), (True, False), (False, True), (True, True)])
def test_swizzles_and_transposes(mode: str, trans_a: bool, trans_b: bool) -> None:
    product("f16", 64, mode_a=mode, mode_b=mode, trans_a=trans_a, trans_b=trans_b)


@pytest.mark.parametrize("n", [8, 56, 256])
@pytest.mark.parametrize("dtype", ["f16", "f32"])
def test_columns(n: int, dtype: str) -> None:
    product("f16", n, dtype=dtype)


def test_mixed_8_bit_floats_to_halves() -> None:
    product("e4m3", 16, dtype="f16", btype="e5m2")


def test_signs_and_scale_d() -> None:
    product("f16", 16, signs=(-1, 1))
    product("f16", 16, signs=(-1, -1), registers=True)
    product("tf32", 16, signs=(1, -1), scale_d=0)


def test_on_the_reference_engine() -> None:
    product("f16", 16, engine="reference")
    product("e4m3", 8, dtype="f16", registers=True, engine="reference")


def test_shuffled() -> None:
    product("f16", 16, seed=3)


@pytest.mark.parametrize("registers", [False, True])
def test_single_bits(registers: bool) -> None:
    single_bits(16, registers)


def single_bits(n: int, registers: bool) -> None:
    rng = np.random.default_rng(2)
    a, b = rng.integers(0, 2, (64, 256), np.uint8), rng.integers(0, 2, (n, 256), np.uint8)
    packed = [np.packbits(m, axis=1, bitorder="little") for m in (a, b)]
    shared = np.zeros(32 << 10, np.uint8)
    descriptors = []
    for start, codes in zip((1024, 16384), packed, strict=True):
        lbo, sbo = places.put(shared, start, codes, 8, "32", False)
        descriptors.append(places.descriptor(start, lbo, sbo, "32", tensor=False))
    c = rng.integers(-9, 9, (64, n)).astype(np.int32)
    opcode = f"wgmma.mma_async.sync.aligned.m64n{n}k256.s32.b1.b1.and.popc"
    out = kernels.wgmma(
        opcode, shared, to_registers(c), "", a=a_registers(packed[0], 8) if registers else None,
        descriptors=tuple(descriptors[registers:]),
    )  # fmt: skip
    np.testing.assert_array_equal(from_registers(out, n, "s32"), a.astype(int) @ b.T.astype(int) + c)


@pytest.mark.share(3)
@pytest.mark.parametrize(("t", "k", "selector"), [("f16", 32, 0), ("f16", 32, 1), ("tf32", 16, 1), ("e4m3", 64, 0)])
@pytest.mark.parametrize("registers", [False, True])
def test_sparse(t: str, k: int, selector: int, registers: bool) -> None:
    sparse_product(t, k, selector, registers)


def sparse_product(
    t: str, k: int, selector: int, registers: bool, *, n: int = 16, dtype: str = "f32", btype: str = "", mods: str = ""
) -> None:
    """Metadata as tables 9.7.15.6.1 put it: a nibble for each chunk of a row."""
    btype = btype or t
    bits = BITS.get(t, 8)
    rng = np.random.default_rng(k + selector)
    stored, codes = matrix(rng, t, 64, k // 2)
    b, b_codes = matrix(rng, btype, n, k)
    wide = 2 if t == "tf32" else 4
    dense = np.zeros((64, k))
    metadata = np.zeros(128, np.uint32)
    for row, chunk in itertools.product(range(64), range(k // wide)):
        if t == "tf32":
            nibble = int(rng.choice([0b0100, 0b1110]))
            dense[row, 2 * chunk + (nibble == 0b1110)] = stored[row, chunk]
        else:
            nibble = int(rng.choice([0b0100, 0b1000, 0b1100, 0b1001, 0b1101, 0b1110]))
            for half in range(2):
                dense[row, 4 * chunk + (nibble >> 2 * half & 3)] = stored[row, 2 * chunk + half]
        upper = row % 16 // 8
        if bits == 8:
            lane, place = upper + 2 * (chunk // 8), chunk % 8
        else:
            lane, place = 2 * selector + chunk // 4, 4 * upper + chunk % 4
        metadata[32 * (row // 16) + 4 * (row % 8) + lane] |= np.uint32(nibble << 4 * place)
    shared = np.zeros(64 << 10, np.uint8)
    descriptors = []
    for start, matrix_codes in ((1024, codes), (16384, b_codes)):
        if start == 1024 and registers:
            continue
        lbo, sbo = places.put(shared, start, matrix_codes, bits, "128", False)
        descriptors.append(places.descriptor(start, lbo, sbo, "128", tensor=False))
    tail = "" if dtype == "s32" else ", 1, 1"
    if bits == 16:
        tail += ", 0" if registers else ", 0, 0"
    zeros = np.zeros((64, n), {"f16": np.float16, "s32": np.int32}.get(dtype, np.float32))
    out = kernels.wgmma(
        f"wgmma.mma_async.sp.sync.aligned.m64n{n}k{k}{mods}.{dtype}.{t}.{btype}", shared, to_registers(zeros), tail,
        a=a_registers(codes, bits) if registers else None, descriptors=tuple(descriptors), metadata=metadata,
        selector=selector,
    )  # fmt: skip
    np.testing.assert_array_equal(from_registers(out, n, dtype), dense @ b.T)


def test_saturation() -> None:
    rng = np.random.default_rng(0)
    _, codes = matrix(rng, "u8", 64, 32)
    shared = np.zeros(32 << 10, np.uint8)
    lbo, sbo = places.put(shared, 1024, np.full((64, 32), 255, np.uint8), 8, "32", False)
    pair = (places.descriptor(1024, lbo, sbo, "32", tensor=False),) * 2
    c = np.full((64, 8), 0x7FFF_FFF0, np.int32)
    for suffix, wanted in ((".satfinite", 0x7FFF_FFFF), ("", 0x7FFF_FFF0 + 32 * 255 * 255 - 2**32)):
        opcode = f"wgmma.mma_async.sync.aligned.m64n8k32{suffix}.s32.u8.u8"
        out = kernels.wgmma(opcode, shared, to_registers(c), "", descriptors=pair)
        assert (from_registers(out, 8, "s32") == wanted).all()
    assert codes.shape == (64, 32)


def test_illegal_descriptors_are_traps_that_name_the_field() -> None:
    shared = np.zeros(4096, np.uint8)
    d = np.zeros((4, 128), np.uint32)
    opcode, tail = "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16", ", 1, 1, 0, 0"
    with pytest.raises(Trap, match=r"b-desc: matrix descriptor: bits 46-48"):
        kernels.wgmma(opcode, shared, d, tail, descriptors=(0, 1 << 46))
    with pytest.raises(Trap, match="past the CTA's shared memory"):
        kernels.wgmma(opcode, shared, d, tail, descriptors=(0, 0x3FFF))


def test_a_warpgroup_must_be_whole() -> None:
    text = """
.visible .entry k() {
    .reg .f32 %d<4>; .reg .b64 %a;
    mov.u64 %a, 0;
    wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%d0, %d1, %d2, %d3}, %a, %a, 0, 1, 1, 0, 0;
    ret;
}
"""
    with pytest.raises(Trap, match="requires a whole warpgroup"):
        kernels.run(text, 96, [], target="sm_90a")


def test_a_group_is_complete_when_all_warps_have_issued() -> None:
    text = """
.visible .entry k() {
    .reg .f32 %d<4>; .reg .b64 %a; .reg .b32 %r; .reg .pred %p;
    .shared .align 128 .b8 smem[4096];
    mov.u64 %a, 0;
    mov.u32 %r, %tid.x;
    setp.ge.u32 %p, %r, 96;
    @%p bra wait;
    wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%d0, %d1, %d2, %d3}, %a, %a, 0, 1, 1, 0, 0;
    wgmma.commit_group.sync.aligned;
wait:
    wgmma.wait_group.sync.aligned 0;
    ret;
}
"""
    with pytest.raises(Trap, match="warp 3 has not issued its part"):
        kernels.run(text, 128, [], target="sm_90a")
