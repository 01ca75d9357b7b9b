"""Where the manual's formulas and CuTe's canonical layouts put things: written once more, element by element."""

from __future__ import annotations

from functools import cache

import numpy as np

#: Bytes of a row and the XOR of an address, by swizzling mode.
SWIZZLES = {
    "none": (16, lambda a: a),
    "32": (32, lambda a: a ^ (a >> 3 & 0x10)),
    "64": (64, lambda a: a ^ (a >> 3 & 0x30)),
    "128": (128, lambda a: a ^ (a >> 3 & 0x70)),
    "128/32": (128, lambda a: a ^ (a >> 2 & 0x60)),
}
WARPGROUP_CODES = {"none": 0, "128": 1, "64": 2, "32": 3}
TENSOR_CODES = {"none": 0, "128/32": 1, "128": 2, "64": 4, "32": 6}


def byte_of(start: int, mn: int, k: int, bits: int, mode: str, mn_major: bool, lbo: int, sbo: int) -> int:
    """Byte address of the element in row (column) mn and column (row) k; for 4 bits that of its byte.

    The layouts of 9.7.16.3.3: ((8,m),(T,2k)):((W*T,SBO),(1,T or LBO)) where K leads, ((T,W,m),(8,k)):((1,T,LBO),
    (W*T,SBO)) where mn does, ((T,1,m),(8,k)):((1,T,SBO),(T,LBO)) without a swizzle; T elements of 16 bytes.
    """
    width, swizzle = SWIZZLES[mode]
    per = 128 // bits
    if not mn_major:
        inner, chunk = k % per * bits // 8, k // per
        row = mn % 8 * width + mn // 8 * sbo
        offset = row + chunk * (lbo if mode == "none" else 16)
    else:
        inner, chunk = mn % per * bits // 8, mn // per
        if mode == "none":
            offset = chunk * sbo + k % 8 * 16 + k // 8 * lbo
        else:
            wide, deep = width // 16, 4 if mode == "128/32" else 8
            offset = chunk % wide * 16 + chunk // wide * lbo + k % deep * width + k // deep * sbo
    return swizzle(start + offset) + inner


def strides(mn: int, k: int, bits: int, mode: str, mn_major: bool) -> tuple[int, int]:
    """LBO and SBO for a tile without gaps."""
    width = SWIZZLES[mode][0]
    if not mn_major:
        if mode == "none":
            return 128, 128 * max(2, k * bits // 128)
        return 16, 8 * width
    if mode == "none":
        return 128 * max(1, mn * bits // 128), 128
    deep = 4 if mode == "128/32" else 8
    block = deep * width
    return block * max(1, k // deep), block


@cache
def bytes_of(start: int, shape: tuple[int, int], bits: int, mode: str, mn_major: bool) -> np.ndarray:
    """Byte addresses of all elements of a matrix without gaps (mn x k)."""
    mn, k = shape
    steps = strides(mn, k, bits, mode, mn_major)
    return np.array(
        [[byte_of(start, row, column, bits, mode, mn_major, *steps) for column in range(k)] for row in range(mn)]
    )


def put(memory: np.ndarray, start: int, codes: np.ndarray, bits: int, mode: str, mn_major: bool) -> tuple[int, int]:
    """Write a matrix (mn x k of codes) into bytes of shared memory; returns LBO and SBO."""
    mn, k = codes.shape
    places = bytes_of(start, (mn, k), bits, mode, mn_major)
    if bits == 4:
        np.bitwise_or.at(memory, places, (codes << (np.arange(k) % 2 * 4).astype(codes.dtype)).astype(np.uint8))
    else:
        for byte in range(bits // 8):
            memory[places + byte] = (codes >> codes.dtype.type(8 * byte) & codes.dtype.type(255)).astype(np.uint8)
    return strides(mn, k, bits, mode, mn_major)


def descriptor(start: int, lbo: int, sbo: int, mode: str, *, tensor: bool) -> int:
    """The 64-bit matrix descriptor of wgmma, or of tcgen05."""
    fields = start >> 4 | (lbo >> 4) << 16 | (sbo >> 4) << 32
    if tensor:
        return fields | 1 << 46 | TENSOR_CODES[mode] << 61
    return fields | WARPGROUP_CODES[mode] << 62


def accumulator_place(row: int, column: int) -> tuple[int, int]:
    """Thread of the warpgroup and running element of D (9.7.15.5.1)."""
    thread = 32 * (row // 16) + 4 * (row % 8) + column % 8 // 2
    return thread, 4 * (column // 8) + 2 * (row % 16 // 8) + column % 2
