"""Matrix descriptors and the layouts of matrices in shared memory."""

from __future__ import annotations

import numpy as np
import pytest

from ptxtools.sim.tensor import shared
from tests.rows import rows

from . import places

CASES = [
    (bits, mode, mn_major)
    for bits in (8, 16, 32)
    for mode in places.SWIZZLES
    for mn_major in (False, True)
    if not (mn_major and (mode == "128/32") != (bits == 32)) or (mn_major and mode == "none")
]


def put(bits: int, mode: str, mn_major: bool, mn: int, k: int, start: int = 1024) -> tuple[np.ndarray, int, np.ndarray]:
    rng = np.random.default_rng(bits)
    dtype = {8: np.uint8, 16: np.uint16, 32: np.uint32}[bits]
    codes = rng.integers(0, 1 << bits, (mn, k), dtype=np.uint64).astype(dtype)
    memory = np.zeros(1 << 16, np.uint8)
    lbo, sbo = places.put(memory, start, codes, bits, mode, mn_major)
    return memory, places.descriptor(start, lbo, sbo, mode, tensor=True), codes


@rows(("bits", "mode", "mn_major"), CASES)
def test_elements_come_from_their_places(bits: int, mode: str, mn_major: bool) -> None:
    memory, value, codes = put(bits, mode, mn_major, 128, 256 // bits)
    found = shared.matrix(memory, shared.tensor_descriptor(value), 128, 256 // bits, bits, mn_major=mn_major)
    np.testing.assert_array_equal(found, codes)


@pytest.mark.parametrize("mode", list(places.SWIZZLES))
@pytest.mark.parametrize("mn_major", [False, True])
def test_no_two_chunks_share_a_place(mode: str, mn_major: bool) -> None:
    lbo, sbo = places.strides(256, 64, 16, mode, mn_major)
    found = shared.tensor_descriptor(places.descriptor(0, lbo, sbo, mode, tensor=True))
    rows, parts = (64, 32) if mn_major else (256, 2)
    numbers, highest = shared.chunk_numbers(found, rows, parts, mn_major=mn_major)
    assert len(np.unique(numbers)) == numbers.size and highest == numbers.max()


def test_steps_along_k_inside_of_an_atom() -> None:
    memory, value, codes = put(16, "128", False, 64, 64)
    for step in range(4):  # 32 bytes further: 2 in units of 16
        found = shared.tensor_descriptor(value + 2 * step)
        part = shared.matrix(memory, found, 64, 16, 16, mn_major=False)
        np.testing.assert_array_equal(part, codes[:, 16 * step : 16 * step + 16])


def test_base_offset_moves_the_pattern() -> None:
    """A tile that starts 128 bytes behind a multiple of 1024, with base offset 1, looks like one at the multiple."""
    memory, value, codes = put(16, "128", False, 8, 64)
    moved = np.zeros_like(memory)
    moved[128:] = memory[:-128]
    found = shared.tensor_descriptor(value + 8 | 1 << 49)
    np.testing.assert_array_equal(shared.matrix(moved, found, 8, 64, 16, mn_major=False), codes)


def test_leading_offset_as_an_address() -> None:
    """K = 96 of fp4 at byte 96 of a row: the third chunk is the first of the tile that the leading address names."""
    memory = np.arange(1 << 14, dtype=np.uint16).astype(np.uint8)
    value = places.descriptor(96, 4096, 1024, "none", tensor=True) | 2 << 61 | 1 << 52
    found = shared.tensor_descriptor(value, absolute_allowed=True)
    numbers, _ = shared.chunk_numbers(found, 8, 3, mn_major=False)
    rows = np.arange(8)
    swizzled = lambda a: (a ^ (a >> 3 & 0x70)) // 16  # noqa: E731
    np.testing.assert_array_equal(numbers[:, 0], swizzled(96 + 128 * rows))
    np.testing.assert_array_equal(numbers[:, 1], swizzled(112 + 128 * rows))
    np.testing.assert_array_equal(numbers[:, 2], swizzled(4096 + 128 * rows))
    assert memory.size == 1 << 14


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1 << 14, "bits 14-15"),
        (1 << 30, "bits 30-31"),
        (1 << 53, "bits 53-60"),
        (3 << 61, "swizzling mode (bits 61-63) 3"),
        (1 << 49, "base offset (bits 49-51) 1"),
        (1 << 52, "leading dimension stride mode (bit 52)"),
    ],
)
def test_illegal_fields_of_tcgen05_are_named(value: int, text: str) -> None:
    with pytest.raises(shared.DescriptorError) as error:
        shared.tensor_descriptor(value | 1 << 46)
    assert text in str(error.value)


def test_the_constant_of_tcgen05_is_needed() -> None:
    with pytest.raises(shared.DescriptorError, match="bits 46-48 are 0b000"):
        shared.tensor_descriptor(0)


@pytest.mark.parametrize(("value", "text"), [(1 << 46, "46-48"), (1 << 52, "52-61"), (1 << 49, "base offset")])
def test_illegal_fields_of_wgmma_are_named(value: int, text: str) -> None:
    with pytest.raises(shared.DescriptorError) as error:
        shared.warpgroup_descriptor(value)
    assert text in str(error.value)


@pytest.mark.parametrize("mode", list(places.WARPGROUP_CODES))
def test_both_descriptors_mean_the_same(mode: str) -> None:
    one = shared.warpgroup_descriptor(places.descriptor(2048, 128, 512, mode, tensor=False))
    assert one == shared.tensor_descriptor(places.descriptor(2048, 128, 512, mode, tensor=True))
    assert (one.start, one.leading, one.stride) == (2048, 128, 512)


def test_what_lies_outside_of_shared_memory_is_an_error() -> None:
    found = shared.tensor_descriptor(places.descriptor(1024, 128, 256, "none", tensor=True))
    with pytest.raises(shared.DescriptorError, match="past the CTA's shared memory"):
        shared.matrix(np.zeros(2048, np.uint8), found, 128, 16, 16, mn_major=False)
