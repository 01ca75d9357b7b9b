"""Elements of matrices in memory: their widths, and how packed ones are taken apart (5.2.3, 9.7.16.10.4)."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Array: TypeAlias = npt.NDArray[Any]

#: Bits of an element in memory; 6- and 4-bit floats take a byte each, except "fp4": two e2m1 in a byte.
BITS = {
    "tf32": 32, "f16": 16, "bf16": 16, "e4m3": 8, "e5m2": 8, "e3m2": 8, "e2m3": 8, "e2m1": 8, "fp4": 4, "s8": 8,
    "u8": 8, "b1": 1,
}  # fmt: skip


def unpack_fours(data: Array) -> Array:
    """Bytes with two 4-bit elements each, the lower first, as one byte for each: the last axis doubles."""
    pairs = np.stack((data & np.uint8(15), data >> np.uint8(4)), axis=-1)
    return pairs.reshape(*data.shape[:-1], -1)


def unpack_containers(bits: int, data: Array) -> Array:
    """Groups of 16 elements of 6 or 4 bits, packed at the low end of 16 bytes, as 16 bytes (9.7.16.10.4.4). The last
    axis is a multiple of 16. A 6-bit element is put into bits 0 to 5 of its byte, a 4-bit one into bits 2 to 5."""
    groups = data.reshape(*data.shape[:-1], -1, 16)
    if bits == 4:
        return (unpack_fours(groups[..., :8]) << np.uint8(2)).reshape(data.shape)
    triples = groups[..., :12].reshape(*groups.shape[:-1], 4, 3).astype(np.uint32)
    words = triples[..., 0] | triples[..., 1] << np.uint32(8) | triples[..., 2] << np.uint32(16)
    sixes = words[..., None] >> np.array([0, 6, 12, 18], np.uint32) & np.uint32(63)
    found: Array = sixes.astype(np.uint8).reshape(data.shape)
    return found


def unpack_bits(data: Array) -> Array:
    """Bytes as single bits, the lowest first: the last axis grows by 8."""
    return np.unpackbits(data, axis=-1, bitorder="little")
