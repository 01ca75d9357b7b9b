"""Matrices in shared memory: the 64-bit descriptor, its layouts and swizzles (9.7.15.5.1.2, 9.7.16.3, 9.7.16.4.1).

Everything is counted in chunks of 16 bytes, whose elements are contiguous. A layout gives the position of the chunk for
row `mn` (of A; column of B) and part `c` of K or, if mn is the leading dimension, for part `c` of mn and column k. A
swizzle then combines some of the address bits 4 to 6 with bits 7 to 9 by exclusive or.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from ptxtools.isa.descriptors import TENSOR_SWIZZLES, TENSOR_ZEROS, WARPGROUP_ZEROS, DescriptorError
from ptxtools.machine.claims import Span
from ptxtools.machine.residents import Cta
from ptxtools.records import NamedTuple, dataclass

from .numbers import Array

CHUNK = 16
#: Rows of K that one repetition of a layout has, or rows of mn: 8, but 4 where atoms are 32 bytes and mn leads.
_ROWS = 8


class Swizzle(NamedTuple):
    """Bytes of a row of the pattern; how far address bits are shifted, and which of them are exchanged."""

    name: str
    bytes: int
    shift: int
    mask: int


NONE = Swizzle("no", 16, 3, 0x00)
SWIZZLE_32 = Swizzle("32-byte", 32, 3, 0x10)
SWIZZLE_64 = Swizzle("64-byte", 64, 3, 0x30)
SWIZZLE_128 = Swizzle("128-byte", 128, 3, 0x70)
SWIZZLE_128_32 = Swizzle("128-byte (32-byte atoms)", 128, 2, 0x60)

_WARPGROUP_MODES = {0: NONE, 1: SWIZZLE_128, 2: SWIZZLE_64, 3: SWIZZLE_32}
_TENSOR_MODES = dict(zip(TENSOR_SWIZZLES, (NONE, SWIZZLE_128_32, SWIZZLE_128, SWIZZLE_64, SWIZZLE_32), strict=True))


@dataclass(frozen=True)
class Descriptor:
    """A decoded matrix descriptor; addresses and offsets in bytes. absolute: the leading offset is an address."""

    start: int
    leading: int
    stride: int
    base: int
    swizzle: Swizzle
    absolute: bool = False


def _bytes(value: int, low: int) -> int:
    return (value >> low & 0x3FFF) << 4


@lru_cache(1024)
def warpgroup_descriptor(value: int) -> Descriptor:
    """The descriptor of wgmma (9.7.15.5.1.2.2). Raises DescriptorError."""
    _zero(value, WARPGROUP_ZEROS)
    swizzle = _WARPGROUP_MODES[value >> 62 & 3]
    return _descriptor(value, swizzle, absolute=False)


@lru_cache(1024)
def tensor_descriptor(value: int, *, absolute_allowed: bool = False) -> Descriptor:
    """The descriptor of tcgen05 (9.7.16.4.1). Raises DescriptorError."""
    _zero(value, TENSOR_ZEROS)
    if value >> 46 & 7 != 1:
        raise DescriptorError(f"matrix descriptor: bits 46-48 are {value >> 46 & 7:#05b}; they must be 0b001")
    swizzle = _TENSOR_MODES.get(value >> 61 & 7)
    if swizzle is None:
        raise DescriptorError(f"matrix descriptor: swizzling mode (bits 61-63) {value >> 61 & 7} is invalid")
    absolute = bool(value >> 52 & 1)
    if absolute and not absolute_allowed:
        raise DescriptorError("matrix descriptor: leading dimension stride mode (bit 52) 1 requires sm_103a")
    return _descriptor(value, swizzle, absolute=absolute)


def _descriptor(value: int, swizzle: Swizzle, *, absolute: bool) -> Descriptor:
    base = value >> 49 & 7
    if base and swizzle is NONE:
        raise DescriptorError(f"matrix descriptor: base offset (bits 49-51) {base} without swizzling")
    return Descriptor(_bytes(value, 0), _bytes(value, 16), _bytes(value, 32), base, swizzle, absolute)


def _zero(value: int, ranges: tuple[tuple[int, int], ...]) -> None:
    for low, high in ranges:
        found = value >> low & ((1 << high - low + 1) - 1)
        if found:
            raise DescriptorError(f"matrix descriptor: bits {low}-{high} are {found:#x}; they must be 0")


def layout_bit(mn_major: bool) -> int:
    """A bit, added to those of a wgmma descriptor, for the major of its matrix."""
    return mn_major << 61


# --- layouts ----------------------------------------------------------------------------------------------------------


@lru_cache(2048)
def chunk_numbers(descriptor: Descriptor, rows: int, parts: int, *, mn_major: bool) -> tuple[Array, int]:
    """Positions of chunks: numbers of 16-byte chunks of shared memory, and the highest number. K leads: `rows` of mn x
    `parts` of K. mn leads: `rows` of K x `parts` of mn."""
    offsets = (_mn_major if mn_major else _k_major)(descriptor, rows, parts)
    numbers = _swizzled(descriptor, offsets) // CHUNK
    numbers.setflags(write=False)
    return numbers, int(numbers.max())


def _k_major(d: Descriptor, rows: int, parts: int) -> Array:
    mn, c = np.arange(rows)[:, None], np.arange(parts)[None, :]
    pitch = d.swizzle.bytes
    down = mn % _ROWS * pitch + mn // _ROWS * d.stride
    if d.swizzle is NONE:
        return d.start + down + c * d.leading
    if d.absolute:  # chunks after the end of the 128-byte row are in the tile at the leading address
        across = d.start % 128 // CHUNK + c
        other = d.leading + down + (across - 8) * CHUNK
        return np.where(across < 8, d.start + down + c * CHUNK, other)
    return d.start + down + c * CHUNK


def _mn_major(d: Descriptor, rows: int, parts: int) -> Array:
    k, c = np.arange(rows)[:, None], np.arange(parts)[None, :]
    wide = d.swizzle.bytes // CHUNK
    if d.swizzle is NONE:
        return d.start + c * d.stride + k % _ROWS * CHUNK + k // _ROWS * d.leading
    deep = _ROWS // 2 if d.swizzle is SWIZZLE_128_32 else _ROWS
    down = k % deep * d.swizzle.bytes + k // deep * d.stride
    return d.start + c % wide * CHUNK + c // wide * d.leading + down


def _swizzled(d: Descriptor, addresses: Array) -> Array:
    """The swizzle acts on absolute addresses; a base offset moves the row at which its pattern starts."""
    swizzle = d.swizzle
    swizzled: Array = addresses ^ (addresses - 128 * d.base >> swizzle.shift & swizzle.mask)
    return swizzled


def gather(
    memory: Array, descriptor: Descriptor, rows: int, parts: int, *, mn_major: bool, some: slice | None = None
) -> Array:
    """Bytes of a matrix from shared memory (u8): rows x 16*parts; of `some` of the rows, if given.

    Raises DescriptorError outside of the memory.
    """
    numbers, highest = chunk_numbers(descriptor, rows, parts, mn_major=mn_major)
    if some is not None:
        numbers = numbers[some]
    whole = len(memory) // CHUNK
    if highest >= whole:
        raise outside(CHUNK * (highest + 1), len(memory))
    chunks = memory[: whole * CHUNK].view(_CHUNKS)
    return chunks[numbers].view(np.uint8).reshape(len(numbers), parts * CHUNK)


def outside(end: int, size: int) -> DescriptorError:
    """The message for a matrix that ends outside of the shared memory of the CTA."""
    return DescriptorError(
        f"matrix descriptor: the matrix extends to byte {end:#x}, past the CTA's shared memory ({size:#x} bytes)"
    )


_CHUNKS = np.dtype("V16")


def matrix(
    memory: Array, descriptor: Descriptor, mn: int, k: int, bits: int, *, mn_major: bool, some: slice | None = None
) -> Array:
    """A matrix of mn x k elements of 4 (two in a byte), 8, 16 or 32 bits, as bytes, u16 or u32; of 1 bit as bytes.
    Elements of 1 and 4 bits stay packed: the second dimension counts bytes. some: the rows of mn that are wanted."""
    if mn_major:
        width = mn * bits // 8
        rows = gather(memory, descriptor, k, -(-width // CHUNK), mn_major=True)[:, :width]
        found = np.ascontiguousarray(_typed(rows, bits).T)
        return found if some is None else found[some]
    width = k * bits // 8
    chunks = gather(memory, descriptor, mn, -(-width // CHUNK), mn_major=False, some=some)
    return _typed(chunks[:, :width], bits)


def chunks_of(descriptor: Descriptor, mn: int, k: int, bits: int, *, mn_major: bool) -> Array:
    """Numbers of the 16-byte chunks in which a matrix of mn x k elements lies."""
    rows, width = (k, mn * bits // 8) if mn_major else (mn, k * bits // 8)
    return chunk_numbers(descriptor, rows, -(-width // CHUNK), mn_major=mn_major)[0]


@lru_cache
def _rows_of(descriptor: Descriptor, mn: int, k: int, bits: int, mn_major: bool) -> Array:
    """Offsets of these chunks, ascending."""
    rows = CHUNK * np.unique(chunks_of(descriptor, mn, k, bits, mn_major=mn_major))
    rows.flags.writeable = False
    return rows


def span_of(cta: Cta, descriptor: Descriptor, mn: int, k: int, bits: int, *, mn_major: bool) -> Span:
    """What is read of such a matrix, for observers. Equal matrices have one array of rows."""
    rows = _rows_of(descriptor, mn, k, bits, mn_major)
    return Span(cta, int(rows[0]), int(rows[-1]) + CHUNK, "read", rows=rows, row=CHUNK)


def _typed(rows: Array, bits: int) -> Array:
    if bits <= 8:
        return rows
    return np.ascontiguousarray(rows).view(np.uint16 if bits == 16 else np.uint32)
