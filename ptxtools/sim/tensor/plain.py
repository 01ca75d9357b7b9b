"""Products of warpgroups in plain terms, integers and bytes, for those who have no device: where a matrix descriptor
finds its matrix in shared memory, and what a product of matrices is. Sums are rounded once, at the end. What tcgen05
does, `issued` says. Raises `DescriptorError`, a ValueError."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache

import numpy as np

from ptxtools.isa.descriptors import DescriptorError

from . import shared
from .alone import Issued
from .numbers import BITS, Array

#: A descriptor of wgmma or tcgen05, rows of mn, columns of K, the type of elements, whether mn leads.
Place = tuple[str, int, int, int, str, bool]
_RESULTS = {"f32": (np.float32, np.uint32), "f16": (np.float16, np.uint16), "s32": (np.int64, np.uint32)}


def issued(opcode: str, operands: Mapping[str, Sequence[int]], rank: int) -> Issued:
    """A tcgen05.mma, .cp or .shift."""
    return Issued(opcode, operands, rank)


def _descriptor(place: Place) -> shared.Descriptor:
    decode = shared.warpgroup_descriptor if place[0] == "wgmma" else shared.tensor_descriptor
    return decode(place[1])


@lru_cache(256)
def pieces(place: Place) -> tuple[tuple[int, int], ...]:
    """Where a matrix lies: addresses in shared memory (18 bits) and bytes of its pieces, ascending."""
    _, _, mn, k, t, mn_major = place
    numbers = np.unique(shared.chunks_of(_descriptor(place), mn, k, BITS[t], mn_major=mn_major))
    found: list[tuple[int, int]] = []
    for number in numbers.tolist():
        at = number * shared.CHUNK
        if found and sum(found[-1]) == at:
            found[-1] = found[-1][0], found[-1][1] + shared.CHUNK
        else:
            found.append((at, shared.CHUNK))
    return tuple(found)


@lru_cache(64)
def _matrix(place: Place, content: tuple[bytes, ...]) -> Array:
    """The numbers of a matrix, mn x K, whose pieces have this content."""
    _, _, mn, k, t, mn_major = place
    where = pieces(place)
    memory = np.zeros(sum(where[-1]), np.uint8)
    for (at, size), data in zip(where, content, strict=True):
        memory[at : at + size] = np.frombuffer(data, np.uint8)
    codes = shared.matrix(memory, _descriptor(place), mn, k, BITS[t], mn_major=mn_major)
    return _numbers(t, np.ascontiguousarray(codes))


def _numbers(t: str, codes: Array) -> Array:
    if t == "f16":
        found: Array = codes.view(np.float16).astype(np.float64)
    elif t == "tf32":
        found = (codes & np.uint32(0xFFFF_E000)).view(np.float32).astype(np.float64)
    elif t == "bf16":
        found = (codes.astype(np.uint32) << np.uint32(16)).view(np.float32).astype(np.float64)
    elif t == "e5m2":
        found = (codes.astype(np.uint16) << np.uint16(8)).view(np.float16).astype(np.float64)
    elif t in ("s8", "u8"):
        found = codes.view(np.int8 if t == "s8" else np.uint8).astype(np.float64)
    else:
        raise DescriptorError(f"elements of {t} are not modelled")
    return found


def product(left: Place, right: Place, contents: Sequence[tuple[bytes, ...]], elements: Sequence[tuple[int, int]],
            added: Sequence[int] | None, result: str, *, negated: bool = False) -> list[int]:  # fmt: skip
    """Elements, as (row, column), of the product of A and the transposed B, as bits of the result's type. added: bits
    of what each is added to."""
    a, b = _matrix(left, contents[0]), _matrix(right, contents[1])
    rows, columns = (np.array([element[at] for element in elements]) for at in (0, 1))
    sums = np.einsum("ek,ek->e", a[rows], b[columns])
    if negated:
        sums = -sums
    kind, bits = _RESULTS[result]
    if added is not None:
        old = np.array(added, np.uint64).astype(bits)
        sums = sums + (old.view(np.int32) if result == "s32" else old.view(kind)).astype(np.float64)
    with np.errstate(over="ignore"):
        rounded = sums.astype(kind)
    if result == "s32":
        return [int(value) & 0xFFFF_FFFF for value in rounded]
    return [int(value) for value in rounded.view(bits)]
