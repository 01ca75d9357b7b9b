"""The layout of matrices in tensor memory (9.7.16.10.5, 9.7.16.10.7, 9.7.16.10.8.4).

Layouts are arrays of lanes and columns relative to an address, for one CTA of the one or two that work together.
"""

from __future__ import annotations

from functools import cache, lru_cache

import numpy as np

from ptxtools.records import dataclass

from .numbers import Array

LANES, COLUMNS = 128, 512


@dataclass(frozen=True, eq=False)
class Path:
    """How a product uses the lanes in each CTA (table of 9.7.16.10.5). rows: rows of D in this CTA; lane: first lane of
    each row, for the leftmost columns of D; parts: the columns of D are split into that many stretches, each `step`
    lanes further; half: whether only 16 of 32 lanes are used, so that an address may begin at lane 16."""

    name: str
    rows: int
    lane: Array
    parts: int
    step: int
    half: bool


@cache
def path_of(m: int, ctas: int, *, sparse: bool, stationary: bool) -> Path:
    """The layout of a product's D."""
    rows = np.arange(m // ctas)
    spread = 32 * (rows // 16) + rows % 16
    if stationary:
        return Path(*{32: ("G", 32, rows, 4, 32), 64: ("E", 64, rows, 2, 64), 128: ("D", 128, rows, 1, 0)}[m], False)
    if ctas == 1:
        return Path("F", 64, spread, 1, 0, True) if m == 64 else Path("D", 128, rows, 1, 0, False)
    if m == 256:
        return Path("A", 128, rows, 1, 0, False)
    return Path("C", 64, spread, 1, 0, True) if sparse else Path("B", 64, rows, 2, 64, False)


@lru_cache(256)
def accumulator(path: Path, n: int) -> tuple[Array, Array]:
    """Lanes and columns of D: each rows x n."""
    width = n // path.parts
    column = np.arange(n)
    lanes = path.lane[:, None] + path.step * (column // width)[None, :]
    return lanes, np.broadcast_to(column % width, lanes.shape)


@lru_cache(256)
def scale_places(count: int, factors: int, first: int) -> tuple[Array, Array]:
    """Scale factors of `count` rows of A or columns of B: word columns and bytes, each count x factors (9.7.16.10.7).
    The factor of row x is in lane x % 32 of each group of 32 lanes. With K = 96 (3 or 6 factors) the bytes continue in
    further words, one for each 128 rows of x."""
    x, byte = np.arange(count)[:, None], first + np.arange(factors)[None, :]
    words = max(4, -(-count // 128) * 4)
    return x // 32 + words * (byte // 4), np.broadcast_to(byte % 4, (count, factors))


@lru_cache(64)
def metadata_places(t: str, rows: int, chunks: int) -> tuple[Array, Array, Array]:
    """Nibbles that describe a sparse A: lanes (for rows laid out without gaps), columns and bits, each rows x chunks.
    8-bit and narrower types: the nibbles of a row follow one another. 16- and 32-bit types: blocks of 16 rows share
    words."""
    row, chunk = np.arange(rows)[:, None], np.arange(chunks)[None, :]
    if t in ("tf32", "f16", "bf16"):
        lane = row % 8 + 8 * (chunk // 4) + 16 * (row // 16)
        return lane, np.zeros_like(lane), 16 * (row // 8 % 2) + 4 * (chunk % 4)
    lane = np.broadcast_to(row, (rows, chunks))
    return lane, np.broadcast_to(chunk // 8, lane.shape), np.broadcast_to(4 * (chunk % 8), lane.shape)


def zero_columns(m: int, n: int, descriptor: int) -> tuple[Array, int]:
    """Mask of columns of B that count as zero, and the column at which B starts (9.7.16.4.3). Runs of zero bits have
    length `use span` + 1, runs of one bits `skip span` + 1, as in the examples of the manual."""
    shift = descriptor >> 56 & 63
    mask = np.zeros(n, bool)
    if not descriptor >> 39 & 1:
        return mask, shift
    ones, zeros = (descriptor >> 40 & 255) + 1, (descriptor >> 48 & 255) + 1
    parts = 128 // m
    for part in range(parts):
        first = descriptor >> 32 + part & 1
        at = np.arange(n // parts) + (descriptor >> 8 * part & 255)
        phase = at % (ones + zeros)
        mask[part * (n // parts) : (part + 1) * (n // parts)] = phase < ones if first else phase >= zeros
    return mask, shift
