"""The layout of matrix elements in the registers of a warp (9.7.14.4.1, 9.7.14.5).

One description for all users: loads and stores of fragments, products, metadata and scale factors, and the tests. An
element is at (lane, register, bit): the lane of the warp, the number of the register within its operand, and the place
of the element's lowest bit in that register.

In what follows g = lane // 4 and t = lane % 4. A register that 32 lanes hold is a tile of 8 rows, one for each g, and
each row is 16 bytes (32 bytes for f64). Most layouts are nothing more.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from ptxtools.records import dataclass

#: Lane, register of the operand, lowest bit.
RegisterBits: TypeAlias = tuple[int, int, int]


@dataclass(frozen=True)
class Fragment:
    """A matrix of `rows` x `columns` elements, each `bits` wide, in `registers` registers of `width` bits a lane."""

    rows: int
    columns: int
    bits: int
    registers: int
    width: int
    place: Callable[[int, int], RegisterBits]

    def places(self) -> list[list[RegisterBits]]:
        """The place of every element, by row and column."""
        return [[self.place(row, column) for column in range(self.columns)] for row in range(self.rows)]

    @property
    def packed(self) -> int:
        """Elements in one register."""
        return self.width // self.bits


def factor_a(m: int, k: int, bits: int) -> Fragment:
    """A of m x k: 16 rows a tile pair, or 8 where m is 8; bits 64 is f64, one element a register (9.7.14.5)."""
    width = max(32, bits)
    packed = width // bits
    wide = 4 * packed  # columns of one register
    halves = 2 if m >= 16 else 1
    per_block = halves * k // wide

    def place(row: int, column: int) -> RegisterBits:
        block, inner = divmod(row, 8 * halves)
        register = per_block * block + halves * (column // wide) + inner // 8
        return 4 * (row % 8) + column % wide // packed, register, bits * (column % packed)

    return Fragment(m, k, bits, per_block * max(1, m // (8 * halves)), width, place)


def factor_b(k: int, n: int, bits: int) -> Fragment:
    """B of k x n: 8 columns a tile (9.7.14.5)."""
    width = max(32, bits)
    packed = width // bits
    wide = 4 * packed
    per_block = k // wide

    def place(row: int, column: int) -> RegisterBits:
        register = per_block * (column // 8) + row // wide
        return 4 * (column % 8) + row % wide // packed, register, bits * (row % packed)

    return Fragment(k, n, bits, per_block * (n // 8), width, place)


def accumulator(m: int, n: int, bits: int) -> Fragment:
    """C and D of m x n: tiles of 8 x 8, those of 16 rows together; 16, 32 or 64 bits (9.7.14.5)."""
    width = max(32, bits)
    halves = 2 if m >= 16 else 1
    tiles = n // 8

    def place(row: int, column: int) -> RegisterBits:
        block, inner = divmod(row, 8 * halves)
        tile = (block * tiles + column // 8) * halves + inner // 8
        index = 2 * tile + column % 2
        lane = 4 * (row % 8) + column % 8 // 2
        return (lane, index // 2, 16 * (index % 2)) if bits == 16 else (lane, index, 0)

    return Fragment(m, n, bits, m * n * bits // (32 * width), width, place)


# --- m8n8k4 of f16: four products, each by eight lanes (9.7.14.5.1) ---------------------------------------------------


def _quad_lane(quad: int, index: int) -> int:
    """Lane that holds row (or column) `index` of product `quad`."""
    return 4 * quad + index % 4 + 16 * (index // 4)


def quad_factor_a(quad: int, layout: str) -> Fragment:
    """A of 8 x 4 of one of the four products of m8n8k4, as `layout` "row" or "col" has it."""

    def place(row: int, column: int) -> RegisterBits:
        if layout == "row":
            return _quad_lane(quad, row), column // 2, 16 * (column % 2)
        element = row % 4
        return 4 * quad + column + 16 * (row // 4), element // 2, 16 * (element % 2)

    return Fragment(8, 4, 16, 2, 32, place)


def quad_factor_b(quad: int, layout: str) -> Fragment:
    """B of 4 x 8 of one of the four products of m8n8k4."""
    other = quad_factor_a(quad, "col" if layout == "row" else "row").place
    return Fragment(4, 8, 16, 2, 32, lambda row, column: other(column, row))


def quad_accumulator(quad: int, bits: int) -> Fragment:
    """C and D of 8 x 8 of one of the four products of m8n8k4."""

    def place(row: int, column: int) -> RegisterBits:
        if bits == 16:
            return _quad_lane(quad, row), column // 2, 16 * (column % 2)
        lane = 4 * quad + (row % 2) + (column & 2) + 16 * (row // 4)
        return lane, (column & 1) + (row & 2) + (column & 4), 0

    return Fragment(8, 8, bits, 4 if bits == 16 else 8, 32, place)


# --- sparse A (9.7.14.6.1) --------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Stored:
    """One stored element of a sparse A: its logical column is `base` + (2-bit field at (lane, bit)) * `step`.

    For tf32 the field is 2 bits of which the upper counts (`half`): only 0b0100 and 0b1110 are legal.
    """

    row: int
    column: int
    lane: int
    bit: int
    base: int
    step: int
    half: bool


def sparse_elements(type_bits: int, m: int, k: int, selector: int) -> list[Stored]:
    """What each element of the stored m x k/2 matrix stands for; `type_bits` 32 (tf32), 16, 8 or 4."""
    return [_stored(type_bits, k, selector, row, column) for row in range(m) for column in range(k // 2)]


def _stored(bits: int, k: int, selector: int, row: int, column: int) -> Stored:
    if bits == 32:  # 1 of 2
        chunk, second, base, step = column, 0, 2 * column, 1
    elif bits == 4:  # pairs, 2 of 4
        chunk, second = column // 4, column % 4 // 2
        base, step = 8 * chunk + column % 2, 2
    else:  # 2 of 4
        chunk, second = divmod(column, 2)
        base, step = 4 * chunk, 1
    lane, nibble = _metadata(bits, k, selector, row, chunk)
    return Stored(row, column, lane, 4 * nibble + 2 * second, base, step, bits == 32)


def _metadata(bits: int, k: int, selector: int, row: int, chunk: int) -> tuple[int, int]:
    """Lane and nibble that describe a chunk of a row."""
    upper, wide = row // 8, k * bits == 512  # the wide shapes spread a row's metadata over two lanes
    if bits >= 16:
        lane, nibble = (2 * selector + chunk // 4, chunk % 4) if wide else (selector, chunk)
        nibble += 4 * upper
    else:
        lane, nibble = (upper + 2 * (chunk // 8), chunk % 8) if wide else (2 * selector + upper, chunk)
    return 4 * (row % 8) + lane, nibble


# --- scale factors of .block_scale (9.7.14.5.12) ----------------------------------------------------------------------


def scale_lane_a(row: int, thread: int) -> int:
    """Lane whose register holds the scale factors of a row of A; `thread` is thread-id-a, 0 or 1."""
    return 4 * (row % 8) + 2 * thread + row // 8


def scale_lane_b(column: int, thread: int) -> int:
    """Lane whose register holds the scale factors of a column of B; `thread` is thread-id-b, 0 to 3."""
    return 4 * column + thread


# --- 8 x 8 matrices of 16 bits and their kin, as ldmatrix and stmatrix move them (9.7.14.5.15) ------------------------


def matrix_row(lane: int, half: int, *, transposed: bool) -> tuple[int, int]:
    """Row and column in memory of a lane's 16-bit half `half` of an m8n8 matrix."""
    row, column = lane // 4, 2 * (lane % 4) + half
    return (column, row) if transposed else (row, column)


def byte_load_16x16(lane: int, register: int, byte: int) -> tuple[int, int]:
    """Row and byte in memory of a byte that ldmatrix .m16n16 .trans loads: two registers a matrix."""
    return 4 * (lane % 4) + byte, lane // 4 + 8 * register


def byte_load_8x16(lane: int, byte: int) -> tuple[int, int]:
    """Row and element in memory of a byte that ldmatrix .m8n16 loads: one register a matrix."""
    return lane // 4, 4 * (lane % 4) + byte


def byte_store_16x8(lane: int, byte: int) -> tuple[int, int]:
    """Row and byte in memory of a byte that stmatrix .m16n8 .trans stores."""
    return 2 * (lane % 4) + byte % 2, lane // 4 + 8 * (byte // 2)
