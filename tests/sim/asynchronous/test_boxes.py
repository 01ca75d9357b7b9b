"""Boxes of tensors against their definition, element by element (5.5.3 to 5.5.7)."""

from __future__ import annotations

import itertools
import random
from typing import Any

import numpy as np
import pytest

from ptxtools.sim.tensormap import TYPES, TensorMap, TensorMapError, modes, swizzle, tiles
from tests.rows import rows

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
        return {"zero": 0, "nan": 0x7FF7}[map_.fill].to_bytes(size, "little")
    at = map_.address + x[0] * size + sum(c * s for c, s in zip(x[1:], map_.strides, strict=True))
    return bytes(arena[at : at + size])


def loaded(map_: TensorMap, mode: str, coordinates: tuple[int, ...], offsets: tuple[int, ...] = ()) -> bytes:
    region = modes.region(map_, mode, coordinates, offsets)
    layout = tiles.layout(map_, region)
    room = np.zeros(layout.extent, np.uint8)
    tiles.load(map_, region, memory_of(ARENA), room, 0)
    return bytes(layout.gather(room, 0)) if map_.swizzle != "none" else bytes(room)


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


@rows("map_", tile_maps())
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
    region = modes.region(map_, "tile", (-3, 4))
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
    region = modes.region(map_, "tile::scatter4", (32, 8, 2, 9, 5))
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


def wide_map(**more: Any) -> TensorMap:
    """C 16, W 9, H 7, N 6 of the manual's examples (5.5.5.3), in bytes."""
    fields: dict[str, Any] = {"lower": (0,), "upper": (0,), "channels": 16, "pixels": 8, "swizzle": "64B"} | more
    map_ = TensorMap(0, TYPES["u8"], (16, 9, 7, 6), (16, 144, 1008), mode="im2col_w", **fields)
    map_.check()
    return map_


def pixels_of(map_: TensorMap, h: int, pixels: list[tuple[int, int]]) -> bytes:
    return b"".join(element(map_, (c, w, h, n)) for w, n in pixels for c in range(16))


def test_im2col_w_halo_pixels_continue_the_walk() -> None:
    pixels = [(7, 3), (8, 3), (0, 4), (1, 4), (2, 4), (3, 4), (4, 4), (5, 4), (6, 4), (7, 4)]
    assert loaded(wide_map(), "im2col::w", (0, 7, 2, 3), (2, 0)) == pixels_of(wide_map(), 2, pixels)
    wrapping = [(5, 0), (6, 0), (7, 0), (8, 0), (0, 1)]
    assert loaded(wide_map(pixels=3), "im2col::w", (0, 5, 2, 0), (2, 0)) == pixels_of(wide_map(), 2, wrapping)


def test_im2col_w_offset_moves_the_bounding_box() -> None:
    """Example 1 of 5.5.5.4: corners -1 and 0, stride 2; two buffers share the pixels of three filter positions."""
    first = [(-1, 0), (1, 0), (3, 0), (5, 0), (7, 0), (-1, 1), (1, 1), (3, 1), (5, 1)]
    second = [(0, 0), (2, 0), (4, 0), (6, 0), (8, 0), (0, 1), (2, 1), (4, 1)]
    map_ = wide_map(lower=(-1,), upper=(0,), element_strides=(1, 2, 1, 1))
    assert loaded(map_, "im2col::w", (0, -1, 2, 0), (1, 0)) == pixels_of(map_, 2, first)
    assert loaded(map_, "im2col::w", (0, -1, 2, 0), (0, 1)) == pixels_of(map_, 2, second)


def test_im2col_w_128_halo_pixels_lie_behind_the_column() -> None:
    walk = [(i % 9, i // 9) for i in range(7, 7 + 128 + 3)]
    halo = [walk[32 * (run + 1) + i] for i in range(3) for run in range(4)]
    got = loaded(wide_map(), "im2col::w::128", (0, 7, 2, 0), (3, 0))
    assert got == pixels_of(wide_map(), 2, walk[:128] + halo)


def interleaved(rank: int, slices: str, **more: Any) -> tuple[TensorMap, Any]:
    """A tensor of 5 x 4 x 3 pixels (as many as fit), 3 slices and 2 images, and a function of a pixel's bytes."""
    unit = int(slices[:2])
    shape = (*(5, 4, 3)[: rank - 2], 3, 2)
    strides = tuple(unit * int(np.prod(shape[:d])) for d in range(1, rank))
    swizzle_ = "32B" if unit == 32 else "none"
    map_ = TensorMap(64, TYPES["f16"], shape, strides, interleave=slices, swizzle=swizzle_, fill="nan", **more)
    map_.check()
    whole = ARENA[64:][: unit * int(np.prod(shape))].reshape(*reversed(shape), unit)

    def pixel(*at: int) -> bytes:
        if all(0 <= x < n for x, n in zip(at, shape, strict=True)):
            return bytes(whole[tuple(reversed(at))])
        return np.full(unit // 2, 0x7FF7, np.uint16).tobytes()

    return map_, pixel


@pytest.mark.parametrize("slices", ["16B", "32B"])
@pytest.mark.parametrize("rank", [3, 4, 5])
def test_tiles_of_interleaved_tensors(rank: int, slices: str) -> None:
    """A box is pixels of one slice, whatever the box says of slices; W may have a stride, too."""
    steps = (2, 1, 1, 1, 1)[:rank]
    map_, pixel = interleaved(rank, slices, box=(*(3, 2, 2)[: rank - 2], 2, 1), element_strides=steps)
    start = (-1, 3, 1)[: rank - 2]
    walk = [(-1, 1), (3, 4), (1, 2)][: rank - 2]
    wanted = [pixel(*reversed(at), 2, 1) for at in itertools.product(*reversed(walk))]
    assert loaded(map_, "tile", (*start, 2, 1)) == b"".join(wanted)


@pytest.mark.parametrize("slices", ["16B", "32B"])
@pytest.mark.parametrize("rank", [3, 4, 5])
def test_im2col_of_interleaved_tensors(rank: int, slices: str) -> None:
    spatial = rank - 2
    map_, pixel = interleaved(rank, slices, mode="im2col", lower=(-1,) * spatial, upper=(-1,) * spatial, channels=8,
                              pixels=11)  # fmt: skip
    walk = [
        (*reversed(at), 1, n)
        for n in range(9)
        for at in itertools.product(*(range(-1, s - 1) for s in (3, 4, 5)[-spatial:]))
    ]
    offsets = (2, 1, 0)[:spatial]
    visited = [tuple(x + o for x, o in zip(at, (*offsets, 0, 0), strict=True)) for at in walk[2:13]]
    got = loaded(map_, "im2col", (1, *(-1,) * (spatial - 1), 1, 0), offsets)
    assert got == b"".join(pixel(*at) for at in visited)


# --- swizzle ----------------------------------------------------------------------------------------------------------


@rows("mode", ["32B", "64B", "128B", "128B_atom_32B", "128B_atom_32B_flip_8B", "128B_atom_64B"])
@rows("start", [0, 128, 384, 1024])
def test_swizzle_is_a_permutation_and_its_own_inverse(mode: str, start: int) -> None:
    tile = np.arange(2048, dtype=np.uint16).view(np.uint8)
    layout = swizzle.Layout(mode, 32, 1, 128, 128, 128)
    room = np.zeros(4096, np.uint8)
    layout.scatter(tile, room, start)
    assert sorted(room.view(np.uint16)) == list(range(2048))
    assert (layout.gather(room, start) == tile).all()
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


@pytest.mark.parametrize(("mode", "span"), [("32B", 32), ("64B", 64), ("128B", 128), ("128B_atom_64B", 128)])
def test_rows_shorter_than_the_swizzle_begin_a_span_apart(mode: str, span: int) -> None:
    """As seen on chips: rows of 16 bytes fill the first 16 bytes of each span, before it is swizzled."""
    map_ = TensorMap(0, TYPES["u8"], (64, 9), (64,), (16, 9), swizzle=mode)
    region = modes.region(map_, "tile", (16, 0))
    layout = tiles.layout(map_, region)
    assert (region.bytes, layout.extent) == (144, -(-(8 * span + 16) // 128) * 128)
    room = np.full(layout.extent, 0xCD, np.uint8)
    tiles.load(map_, region, memory_of(ARENA), room, 256)
    wanted = np.full(layout.extent, 0xCD, np.uint8)
    for row in range(9):
        at = swizzle.swizzled(256 + span * row, mode) - 256
        wanted[at : at + 16] = ARENA[64 * row + 16 :][:16]
    assert (room == wanted).all()
    assert (tiles.take(map_, region, room, 256).reshape(9, 16) == ARENA[: 9 * 64].reshape(9, 64)[:, 16:32]).all()


# --- packed types -----------------------------------------------------------------------------------------------------


def test_padding_of_packed_types() -> None:
    """Pads are left alone, and an mbarrier counts bytes without them."""
    for name, width in (("b4x16_p64", 8), ("b6x16_p32", 12)):
        map_ = TensorMap(0, TYPES[name], (256, 3), (256,), (128, 2))
        map_.check()
        region = modes.region(map_, "tile", (128, 1))
        assert region.bytes == 2 * 8 * width
        room = np.full(256, 0xCD, np.uint8)
        tiles.load(map_, region, memory_of(ARENA), room, 0)
        got = room.reshape(2, 8, 16)
        for row, group in itertools.product(range(2), range(8)):
            at = 256 * (1 + row) + width * (8 + group)
            assert (got[row, group, :width] == ARENA[at : at + width]).all()
        assert (got[:, :, width:] == 0xCD).all()
    map_ = TensorMap(0, TYPES["b4x16"], (64, 3), (32,), (32, 2))
    assert loaded(map_, "tile", (32, 1)) == bytes(ARENA[48:64]) + bytes(ARENA[80:96])


def test_six_bit_elements_are_packed_when_stored() -> None:
    map_ = TensorMap(0, TYPES["b6x16_p32"], (128,), (), (128,))
    values = np.arange(128, dtype=np.uint8) % 64
    arena = np.zeros(256, np.uint8)
    region = modes.region(map_, "tile", (0,))
    region.store(memory_of(arena), tiles.take(map_, region, values | 0xC0, 0))
    number = int.from_bytes(arena[:96].tobytes(), "little")
    assert [number >> 6 * i & 63 for i in range(128)] == values.tolist() and not arena[96:].any()


def test_tf32_elements_are_rounded_and_others_are_not() -> None:
    """Ties to even; what rounds up from the largest subnormal is normal; NaNs are canonical; .ftz flushes no copies."""
    bits = [0x3F801000, 0x3F801001, 0x3F803000, 0x80000001, 0x007FFFFF, 0x7F800001, 0xFF800001, 0x7F800000, 0x7F7FFFFF]
    rounded = [0x3F800000, 0x3F802000, 0x3F804000, 0x80000000, 0x00800000, 0x7FFFE000, 0x7FFFE000, 0x7F800000,
               0x7F800000]  # fmt: skip
    arena = np.array([*bits, 0, 0, 0], np.uint32).view(np.uint8)
    for name in ("f32", "f32.ftz", "tf32", "tf32.ftz"):
        map_ = TensorMap(0, TYPES[name], (9,), (), (12,), fill="nan")
        room = np.zeros(48, np.uint8)
        tiles.load(map_, modes.region(map_, "tile", (0,)), memory_of(arena), room, 0)
        wanted = rounded if name.startswith("tf32") else bits
        assert room.view(np.uint32).tolist() == [*wanted, *[0x7FF77FF7] * 3]


# --- reductions and stores --------------------------------------------------------------------------------------------


def test_reductions_touch_only_what_exists() -> None:
    map_ = TensorMap(0, TYPES["s32"], (6, 4), (32,), (8, 4))
    arena = np.ones(128, np.uint8).view(np.uint8)
    region = modes.region(map_, "tile", (2, 1))
    tile = np.full(32, 5, np.int32).view(np.uint8)

    def add(memory: np.ndarray, data: np.ndarray) -> None:
        memory.view(np.int32)[...] += data.view(np.int32)

    region.change(memory_of(arena), tile, add)
    got = np.ndarray((4, 8), np.int32, arena)
    assert (got[1:, 2:6] == 0x01010106).all()
    assert (got[0] == 0x01010101).all() and (got[:, :2] == 0x01010101).all() and (got[:, 6:] == 0x01010101).all()


# --- misfits ----------------------------------------------------------------------------------------------------------


def test_maps_and_instructions_that_do_not_fit() -> None:
    map_ = TensorMap(0, TYPES["f32"], (8, 8), (32,), (8, 2))
    with pytest.raises(TensorMapError, match="2 dimensions in an instruction for 3"):
        modes.region(map_, "tile", (0, 0, 0))
    with pytest.raises(TensorMapError, match="for tile copies in an instruction for im2col"):
        modes.region(map_, "im2col", (0, 0), ())
    with pytest.raises(TensorMapError, match="it must be one row"):
        modes.region(map_, "tile::gather4", (0, 0, 1, 2, 3))
    with pytest.raises(TensorMapError, match="multiple of 128"):
        modes.region(TensorMap(0, TYPES["b6x16_p32"], (256,), (), (128,)), "tile", (64,))
    with pytest.raises(TensorMapError, match="wHalo 32"):
        modes.region(wide_map(), "im2col::w::128", (0, 0, 0, 0), (32, 0))
    with pytest.raises(TensorMapError, match="wOffset 32"):
        modes.region(wide_map(), "im2col::w", (0, 0, 0, 0), (0, 32))
    image = TensorMap(0, TYPES["u8"], (16, 9, 7, 6), (16, 144, 1008), mode="im2col", lower=(0, 0), upper=(0, 0),
                      channels=16, pixels=8)  # fmt: skip
    with pytest.raises(TensorMapError, match="coordinate 9 of dimension 1 is outside of the bounding box 0 to 8"):
        modes.region(image, "im2col", (0, 9, 0, 0), (0, 0))
    with pytest.raises(TensorMapError, match="below 256"):
        modes.region(image, "im2col", (0, 0, 0, 0), (256, 0))


@pytest.mark.parametrize(("change", "reason"), [
    ({"type": TYPES["b4x16_p64"], "shape": (128, 8), "box": (128, 1)}, "to shared memory"),
    ({"swizzle": "128B_atom_32B_flip_8B"}, "to shared memory"),
    ({"mode": "im2col", "lower": (-1,), "upper": (0,)}, "extends outside"),
    ({"mode": "im2col", "lower": (0,), "upper": (1,)}, "extends outside"),
])  # fmt: skip
def test_maps_that_cannot_be_stored_through(change: dict[str, Any], reason: str) -> None:
    fields: dict[str, Any] = {"type": TYPES["f32"], "shape": (8, 8), "box": (4, 2)}
    map_ = TensorMap(0, strides=(64,), **(fields | change))
    with pytest.raises(TensorMapError, match=reason):
        tiles.check_store(map_)
