"""Boxes of tensors against their definition, element by element (5.5.3 to 5.5.7)."""

from __future__ import annotations

import itertools
import random
from typing import Any

import numpy as np
import pytest

from ptxtools.sim.tensormap import TYPES, TensorMap, TensorMapError, boxes, swizzle, tiles

ARENA = np.random.default_rng(3).integers(0, 256, 1 << 20, np.uint8)


def memory_of(arena: np.ndarray) -> Any:
    def memory(address: int, size: int, write: bool) -> np.ndarray:
        assert address >= 0 and address + size <= len(arena), "outside of memory"
        return arena[address : address + size]

    return memory


def element(map_: TensorMap, x: tuple[int, ...], arena: np.ndarray = ARENA) -> bytes:
    """The element at a coordinate, or what stands for it."""
    size = map_.type.memory
    if not all(0 <= c < n for c, n in zip(x, map_.shape, strict=True)):
        return {"zero": 0, "nan": 0x7EFF}[map_.fill].to_bytes(size, "little")
    at = map_.address + x[0] * size + sum(c * s for c, s in zip(x[1:], map_.strides, strict=True))
    return bytes(arena[at : at + size])


def loaded(map_: TensorMap, mode: str, coordinates: tuple[int, ...], offsets: tuple[int, ...] = ()) -> bytes:
    region = boxes.region(map_, mode, coordinates, offsets)
    room = np.zeros(-(-tiles.shared_bytes(map_, region) // 128) * 128, np.uint8)
    tiles.load(map_, region, memory_of(ARENA), room, 0)
    return bytes(room[: tiles.shared_bytes(map_, region)])


def tile_maps() -> list[TensorMap]:
    generator = random.Random(5)
    made = []
    for _ in range(60):
        rank = generator.randint(1, 5)
        type_ = TYPES[generator.choice(["u8", "f16", "f32", "u64"])]
        shape = tuple(generator.randint(1, 9) for _ in range(rank))
        strides, stride = [], 0
        for size in shape[:-1]:
            stride = max(16, -(-(size * max(stride, type_.memory)) // 16) * 16)
            strides.append(stride)
        box = (16 // type_.memory * generator.randint(1, 2), *(generator.randint(1, 5) for _ in range(rank - 1)))
        steps = (1, *(generator.randint(1, 3) for _ in range(rank - 1)))
        fill = "nan" if type_.name == "f16" else "zero"
        made.append(TensorMap(256, type_, shape, tuple(strides), box, steps, fill=fill))
    return made


@pytest.mark.parametrize("map_", tile_maps())
def test_tiles(map_: TensorMap) -> None:
    """Dimension 0 is always dense; a step leaves out elements of the others."""
    map_.check()
    generator = random.Random(map_.encode())
    for _ in range(4):
        start = tuple(generator.randint(-4, 9) for _ in map_.shape)
        counts = [-(-n // s) for n, s in zip(map_.box, map_.element_strides, strict=True)]
        wanted = b"".join(
            element(map_, tuple(c + i * s for c, i, s in zip(start, place[::-1], map_.element_strides, strict=True)))
            for place in itertools.product(*map(range, reversed(counts)))
        )
        assert loaded(map_, "tile", start) == wanted


def test_stores_leave_out_what_does_not_exist() -> None:
    map_ = TensorMap(64, TYPES["f32"], (10, 6), (48,), (8, 4))
    arena = np.zeros(1024, np.uint8)
    tile = np.arange(1, 33, dtype=np.uint32)
    region = boxes.region(map_, "tile", (-3, 4))
    region.store(memory_of(arena), tiles.take(map_, region, tile.view(np.uint8), 0))
    got = np.ndarray((6, 12), np.uint32, arena, 64, (48, 4))
    wanted = np.zeros((6, 12), np.uint32)
    wanted[4:6, 0:5] = tile.reshape(4, 8)[:2, 3:]
    assert (got == wanted).all() and arena.astype(int).sum() == wanted.view(np.uint8).astype(int).sum()


def test_nothing_of_a_box_exists() -> None:
    map_ = TensorMap(64, TYPES["f32"], (8, 8), (32,), (8, 2))
    for at in ((8, 0), (-8, 0), (0, 8), (0, -2), (1 << 30, 0), (0, -(1 << 31))):
        assert loaded(map_, "tile", at) == bytes(64)


def test_four_rows() -> None:
    map_ = TensorMap(512, TYPES["f16"], (40, 9), (80,), (16, 1))
    wanted = b"".join(element(map_, (30 + i, r)) for r in (3, 11, 0, -1) for i in range(16))
    assert loaded(map_, "tile::gather4", (30, 3, 11, 0, -1)) == wanted
    arena = np.zeros(2048, np.uint8)
    region = boxes.region(map_, "tile::scatter4", (32, 8, 2, 9, 5))
    tile = np.arange(64, dtype=np.uint16)
    region.store(memory_of(arena), tile.view(np.uint8))
    got = np.ndarray((9, 40), np.uint16, arena, 512, (80, 2))
    assert (got[8, 32:] == tile[:8]).all() and (got[2, 32:] == tile[16:24]).all() and (got[5, 32:] == tile[48:56]).all()
    assert got.sum() == sum(int(x) for i in (0, 16, 48) for x in tile[i : i + 8])


@pytest.mark.parametrize(("rank", "padding", "stride"), [(3, 1, 1), (4, 1, 1), (4, 2, 2), (5, 1, 2)])
def test_im2col_is_the_matrix_of_a_convolution(rank: int, padding: int, stride: int) -> None:
    """All filter positions of a 3-wide convolution: rows of the implicit matrix, one after the other."""
    spatial, count, channels, images = rank - 2, 7, 8, 3
    shape = (channels, *[count] * spatial, images)
    strides = tuple(channels * 2 * count**i for i in range(rank - 1))
    corner = ((-padding,) * spatial, (padding - 2,) * spatial)
    map_ = TensorMap(128, TYPES["u16"], shape, strides, (), (1, *[stride] * spatial, 1), mode="im2col",
                     lower=corner[0], upper=corner[1], channels=channels, pixels=20)  # fmt: skip
    map_.check()
    starts = range(-padding, count - 1 + padding - 2 + 1, stride)
    pixels = [(*reversed(p), n) for n in range(images) for p in itertools.product(starts, repeat=spatial)]
    for first in (0, 1, len(pixels) - 20):
        for offsets in [(0,) * spatial, (2,) * spatial, (1, *[0] * (spatial - 1))]:
            wanted = b"".join(
                element(map_, (c, *(p + o for p, o in zip(pixel, offsets, strict=False)), pixel[-1]))
                for pixel in pixels[first : first + 20]
                for c in range(channels)
            )
            assert loaded(map_, "im2col", (0, *pixels[first]), offsets) == wanted


def test_im2col_w_halo_follows_the_column() -> None:
    map_ = TensorMap(0, TYPES["u8"], (16, 9, 7, 6), (16, 144, 1008), mode="im2col_w", lower=(0,), upper=(0,),
                     channels=16, pixels=8)  # fmt: skip
    got = loaded(map_, "im2col::w", (0, 7, 2, 3), (2, 0))
    pixels = [(7, 3), (8, 3), (0, 4), (1, 4), (2, 4), (3, 4), (4, 4), (5, 4), (6, 4), (7, 4)]
    assert got == b"".join(element(map_, (c, w, 2, n)) for w, n in pixels for c in range(16))
    assert len(loaded(map_, "im2col::w::128", (0, 7, 2, 0), (2, 0))) == (128 + 8) * 16


def test_interleaved_channels_come_in_slices() -> None:
    map_ = TensorMap(0, TYPES["f16"], (24, 5, 4, 2), (16, 80, 16 * 20 * 3), (16, 3, 2, 1), interleave="16B")
    map_.check()
    got = loaded(map_, "tile", (8, 1, 1, 1))
    wanted = b""
    for s, h, w in itertools.product((1, 2), (1, 2), (1, 2, 3)):
        at = 960 + 320 * s + 80 * h + 16 * w
        wanted += bytes(ARENA[at : at + 16])
    assert got == wanted


# --- swizzle ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["32B", "64B", "128B", "128B_atom_32B", "128B_atom_32B_flip_8B", "128B_atom_64B"])
@pytest.mark.parametrize("start", [0, 128, 384, 1024])
def test_swizzle_is_a_permutation_and_its_own_inverse(mode: str, start: int) -> None:
    tile = np.arange(2048, dtype=np.uint16).view(np.uint8)
    room = np.zeros(4096, np.uint8)
    swizzle.scatter(tile, room, start, mode)
    assert sorted(room.view(np.uint16)) == list(range(2048))
    assert (swizzle.gather(room, 4096, start, mode) == tile).all()
    for at in range(0, 4096, 8):
        where = swizzle.swizzled(start + at, mode) - start
        assert (room[where : where + 8] == tile[at : at + 8]).all()


def test_swizzle_of_the_manual() -> None:
    """5.5.7: 128B mode, rows 0 and 1: chunks 0 1 2 3 …, then 1 0 3 2 …; 64B mode changes every second pair of rows."""
    chunks = lambda mode, row: [swizzle.swizzled(128 * row + 16 * i, mode) // 16 % 8 for i in range(8)]  # noqa: E731
    assert chunks("128B", 0) == [0, 1, 2, 3, 4, 5, 6, 7]
    assert chunks("128B", 1) == [1, 0, 3, 2, 5, 4, 7, 6]
    assert chunks("128B", 2) == [2, 3, 0, 1, 6, 7, 4, 5]
    assert chunks("128B", 7) == [7, 6, 5, 4, 3, 2, 1, 0]
    assert chunks("64B", 1) == [1, 0, 3, 2, 5, 4, 7, 6]
    assert chunks("64B", 3) == [3, 2, 1, 0, 7, 6, 5, 4]
    assert chunks("32B", 1) == [1, 0, 3, 2, 5, 4, 7, 6]
    assert chunks("128B_atom_32B", 1) == [2, 3, 0, 1, 6, 7, 4, 5]
    assert chunks("128B_atom_64B", 1) == [4, 5, 6, 7, 0, 1, 2, 3]


def test_rows_shorter_than_the_swizzle_fill_whole_rows_of_shared_memory() -> None:
    map_ = TensorMap(0, TYPES["u8"], (64, 8), (64,), (32, 3), swizzle="64B")
    region = boxes.region(map_, "tile", (0, 0))
    room = np.zeros(128, np.uint8)
    tiles.load(map_, region, memory_of(ARENA), room, 128)
    assert (tiles.take(map_, region, room, 128).reshape(3, 32) == ARENA[:192].reshape(3, 64)[:, :32]).all()


# --- packed types -----------------------------------------------------------------------------------------------------


def test_padding_of_packed_types() -> None:
    for name, width in (("b4x16_p64", 8), ("b6x16_p32", 12)):
        map_ = TensorMap(0, TYPES[name], (256, 3), (256,), (128, 2))
        map_.check()
        got = np.frombuffer(loaded(map_, "tile", (128, 1)), np.uint8).reshape(2, 8, 16)
        for row, group in itertools.product(range(2), range(8)):
            at = 256 * (1 + row) + width * (8 + group)
            assert (got[row, group, :width] == ARENA[at : at + width]).all()
    map_ = TensorMap(0, TYPES["b4x16"], (64, 3), (32,), (32, 2))
    assert loaded(map_, "tile", (32, 1)) == bytes(ARENA[48:64]) + bytes(ARENA[80:96])


def test_six_bit_elements_are_packed_when_stored() -> None:
    map_ = TensorMap(0, TYPES["b6x16_p32"], (128,), (), (128,))
    values = np.arange(128, dtype=np.uint8) % 64
    arena = np.zeros(256, np.uint8)
    region = boxes.region(map_, "tile", (0,))
    region.store(memory_of(arena), tiles.take(map_, region, values | 0xC0, 0))
    number = int.from_bytes(arena[:96].tobytes(), "little")
    assert [number >> 6 * i & 63 for i in range(128)] == values.tolist() and not arena[96:].any()
    with pytest.raises(TensorMapError, match="to shared memory only"):
        other = TensorMap(0, TYPES["b4x16_p64"], (128,), (), (128,))
        tiles.take(other, boxes.region(other, "tile", (0,)), values, 0)


# --- reductions -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("operation", ["add", "min", "max", "inc", "dec", "and", "or", "xor"])
def test_integer_reductions(operation: str) -> None:
    generator = np.random.default_rng(7)
    old, new = (generator.integers(0, 1 << 32, 64, np.uint64).astype(np.uint32) for _ in range(2))
    old[:4] = [0, 5, 5, 0xFFFF_FFFF]
    new[:4] = [7, 5, 4, 0xFFFF_FFFF]
    model = {
        "add": lambda a, b: (a + b) % (1 << 32), "min": min, "max": max, "and": lambda a, b: a & b,
        "or": lambda a, b: a | b, "xor": lambda a, b: a ^ b, "inc": lambda a, b: 0 if a >= b else a + 1,
        "dec": lambda a, b: b if a == 0 or a > b else a - 1,
    }[operation]  # fmt: skip
    got = tiles.reduction(operation, TYPES["u32"])(old.view(np.uint8), new.view(np.uint8)).view(np.uint32)
    assert got.tolist() == [model(int(a), int(b)) for a, b in zip(old, new, strict=True)]


def test_float_reductions() -> None:
    import ml_dtypes

    generator = np.random.default_rng(9)
    for name, dtype in (("f16", np.float16), ("bf16", ml_dtypes.bfloat16), ("f32", np.float32), ("f64", np.float64)):
        a, b = (generator.normal(size=200).astype(dtype) for _ in range(2))
        got = tiles.reduction("add", TYPES[name])(a.view(np.uint8), b.view(np.uint8)).view(dtype)
        assert (got == (a.astype(np.float64) + b.astype(np.float64)).astype(dtype)).all()
    a = np.array([np.nan, 1, np.nan], np.float16)
    b = np.array([2, np.nan, np.nan], np.float16)
    got = tiles.reduction("max", TYPES["f16"])(a.view(np.uint8), b.view(np.uint8)).view(np.uint16)
    assert got.tolist() == [0x4000, 0x3C00, 0x7FFF]
    with pytest.raises(TensorMapError, match=r"no reduction \.min of f32"):
        tiles.reduction("min", TYPES["f32"])


def test_reductions_touch_only_what_exists() -> None:
    map_ = TensorMap(0, TYPES["s32"], (6, 4), (32,), (8, 4))
    arena = np.ones(128, np.uint8).view(np.uint8)
    region = boxes.region(map_, "tile", (2, 1))
    tile = np.full(32, 5, np.int32).view(np.uint8)
    region.change(memory_of(arena), tile, tiles.reduction("add", map_.type))
    got = np.ndarray((4, 8), np.int32, arena)
    assert (got[1:, 2:6] == 0x01010106).all()
    assert (got[0] == 0x01010101).all() and (got[:, :2] == 0x01010101).all() and (got[:, 6:] == 0x01010101).all()


# --- misfits ----------------------------------------------------------------------------------------------------------


def test_maps_and_instructions_that_do_not_fit() -> None:
    map_ = TensorMap(0, TYPES["f32"], (8, 8), (32,), (8, 2))
    with pytest.raises(TensorMapError, match="2 dimensions in an instruction for 3"):
        boxes.region(map_, "tile", (0, 0, 0))
    with pytest.raises(TensorMapError, match="for tile copies in an instruction for im2col"):
        boxes.region(map_, "im2col", (0, 0), ())
