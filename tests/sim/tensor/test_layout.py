"""Layouts of tensor memory, data movement shapes, masks and metadata."""

from __future__ import annotations

import numpy as np
import pytest

from ptxtools.sim.tensor import layout, sparse
from ptxtools.sim.tensor.transfer import copy_lanes, places
from tests.rows import rows

PATHS = [
    (128, 1, False, False, "D"), (64, 1, False, False, "F"), (256, 2, False, False, "A"), (128, 2, False, False, "B"),
    (128, 2, True, False, "C"), (32, 1, False, True, "G"), (64, 1, False, True, "E"), (128, 1, True, True, "D"),
]  # fmt: skip


@pytest.mark.parametrize(("m", "ctas", "sparse_a", "stationary", "name"), PATHS)
def test_every_element_of_d_has_a_place_of_its_own(
    m: int, ctas: int, sparse_a: bool, stationary: bool, name: str
) -> None:
    path = layout.path_of(m, ctas, sparse=sparse_a, stationary=stationary)
    assert path.name == name and path.rows == m // ctas
    lanes, columns = layout.accumulator(path, 128)
    assert lanes.shape == columns.shape == (m // ctas, 128)
    places_ = {(int(lane), int(column)) for lane, column in zip(lanes.flat, columns.flat, strict=True)}
    assert len(places_) == lanes.size and lanes.max() < 128 and columns.max() == 128 // path.parts - 1


def test_places_by_the_table() -> None:
    lanes, columns = layout.accumulator(layout.path_of(64, 1, sparse=False, stationary=False), 32)
    assert (lanes[37, 5], columns[37, 5]) == (32 * 2 + 5, 5)
    lanes, columns = layout.accumulator(layout.path_of(128, 2, sparse=False, stationary=False), 32)
    assert (lanes[37, 20], columns[37, 20]) == (37 + 64, 4)
    lanes, columns = layout.accumulator(layout.path_of(32, 1, sparse=False, stationary=True), 64)
    assert (lanes[7, 50], columns[7, 50]) == (7 + 96, 2)


COUNTS = {"32x32b": 1, "16x64b": 1, "16x128b": 2, "16x256b": 4, "16x32bx2": 1}


@rows("shape", list(COUNTS))
@rows("repeats", [1, 2, 8, 32])
def test_data_movement_covers_a_rectangle(shape: str, repeats: int) -> None:
    count = COUNTS[shape] * repeats
    lanes, columns = places(shape, count)
    halves = [slice(0, 16), slice(16, 32)] if shape == "16x32bx2" else [slice(0, 32)]
    for half in halves:
        found = set(zip(lanes[:, half].flat, columns[:, half].flat, strict=True))
        rows, width = max(lane for lane, _ in found) + 1, max(column for _, column in found) + 1
        assert len(found) == lanes[:, half].size == rows * width
        assert rows == (32 if shape == "32x32b" else 16)


def test_data_movement_by_the_figures() -> None:
    lanes, columns = places("16x256b", 8)
    assert (lanes[3, 13], columns[3, 13]) == (3 + 8, 3) and (lanes[4, 13], columns[4, 13]) == (3, 10)
    lanes, columns = places("16x64b", 4)
    assert (lanes[2, 31], columns[2, 31]) == (15, 5)


def test_lanes_of_copies() -> None:
    assert copy_lanes("128x256b", "").tolist() == [list(range(128))]
    assert copy_lanes("4x256b", "").tolist() == [[0, 32, 64, 96]]
    assert copy_lanes("32x128b", "warpx4")[:, 5].tolist() == [5, 37, 69, 101]
    assert copy_lanes("64x128b", "warpx2::02_13")[:, 40].tolist() == [40, 104]
    assert copy_lanes("64x128b", "warpx2::01_23")[:, 40].tolist() == [72, 104]


def mask(m: int, n: int, counts: list[int], firsts: list[int], skip: int, use: int, shift: int = 0) -> tuple[str, int]:
    value = 1 << 39 | skip << 40 | use << 48 | shift << 56
    for i, (count, first) in enumerate(zip(counts, firsts, strict=True)):
        value |= count << 8 * i | first << 32 + i
    bits, at = layout.zero_columns(m, n, value)
    return "".join("01"[int(b)] for b in bits), at


def test_zero_columns_by_the_examples() -> None:
    """Examples 2 to 4 of 9.7.16.4.3, least significant bit first."""
    assert mask(128, 16, [0] * 4, [0] * 4, 2, 3) == ("0000111000011100", 0)
    assert mask(64, 32, [0] * 4, [1, 0, 0, 0], 2, 3)[0] == "1110000111000011" + "0000111000011100"
    bits, shift = mask(32, 64, [0, 1, 2, 1], [1, 1, 0, 0], 2, 3, 2)
    assert bits == "1110000111000011" + "1100001110000111" + "0011100001110000" + "0001110000111000" and shift == 2
    assert not layout.zero_columns(128, 64, 4 << 40)[0].any()


@pytest.mark.parametrize(("t", "k"), [("tf32", 16), ("f16", 32), ("e4m3", 64), ("fp4", 128)])
def test_metadata_has_a_place_for_every_nibble(t: str, k: int) -> None:
    chunks = k // sparse.grain_of(t).chunk
    lanes, columns, bits = layout.metadata_places(t, 128, chunks)
    found = set(zip(lanes.flat, columns.flat, bits.flat, strict=True))
    assert len(found) == 128 * chunks and lanes.max() == 127 and columns.max() == (0 if t in ("tf32", "f16") else 1)


def test_sparse_columns() -> None:
    nibbles = np.array([[0b1001, 0b1110]], np.uint8)
    assert sparse.columns("f16", nibbles).tolist() == [[1, 2, 6, 7]]
    assert sparse.columns("tf32", np.array([[0b0100, 0b1110]], np.uint8)).tolist() == [[0, 3]]
    assert sparse.columns("fp4", nibbles).tolist() == [[2, 3, 4, 5, 12, 13, 14, 15]]
    stored = np.array([[5, 6, 7, 8]], np.uint16)
    assert sparse.expand(stored, sparse.columns("f16", nibbles)).tolist() == [[0, 5, 6, 0, 0, 0, 7, 8]]


def test_scale_factors_of_long_k_run_on() -> None:
    columns, bytes_ = layout.scale_places(128, 6, 2)
    assert (columns[33].tolist(), bytes_[33].tolist()) == ([1, 1, 5, 5, 5, 5], [2, 3, 0, 1, 2, 3])
