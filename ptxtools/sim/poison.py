"""The content of unallocated device memory: a pattern that is a NaN in every float type of 16 bits and up.

Kernels that read it get no number that could pass for a result, and an address made of it is outside of device memory.
If it is intact after a launch, nothing was written there.
"""

from __future__ import annotations

from functools import lru_cache

#: The least bytes between two allocations: the range of a whole warp that goes one step too far (32 x 8 bytes).
ZONE = 256
_PAIR = b"\xfd\xff"  # 0xFFFD, 0xFFFDFFFD, 0xFFFDFFFDFFFDFFFD


def poison(address: int, size: int) -> bytes:
    """The poison bytes for an address."""
    return _pattern(address & 1, size)


@lru_cache(1024)  # gaps have few sizes, and all are compared after each launch
def _pattern(skip: int, size: int) -> bytes:
    return (_PAIR * (size // 2 + 1))[skip : skip + size]


def differs(got: bytes, wanted: bytes) -> tuple[int, int]:
    """Indices of the first and the last differing byte of two different ranges."""
    places = [n for n, (a, b) in enumerate(zip(got, wanted, strict=True)) if a != b]
    return places[0], places[-1]


#: The pattern as registers hold it, by storage class.
REGISTERS = {f"b{bits}": int.from_bytes(_PAIR * (bits // 16), "little") for bits in (16, 32, 64)}
