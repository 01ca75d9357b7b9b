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
from .sparse import expand
from .wgmma import factor_rows, sparse_columns

#: A descriptor of wgmma or tcgen05, rows of mn, columns of K, the type of elements, whether mn leads.
Place = tuple[str, int, int, int, str, bool]
#: Rows of a warp's part of A.
_WARP_ROWS = 16
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
    return _numbers(place[4], np.ascontiguousarray(_codes(place, content)))


def _codes(place: Place, content: tuple[bytes, ...]) -> Array:
    _, _, mn, k, t, mn_major = place
    where = pieces(place)
    memory = np.zeros(sum(where[-1]), np.uint8)
    for (at, size), data in zip(where, content, strict=True):
        memory[at : at + size] = np.frombuffer(data, np.uint8)
    codes: Array = shared.matrix(memory, _descriptor(place), mn, k, BITS[t], mn_major=mn_major)
    return codes


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
            added: Sequence[int] | None, result: str, *, negated: bool = False,
            sparse: tuple[int, bytes] | None = None) -> list[int]:  # fmt: skip
    """Elements, as (row, column), of the product of A and the transposed B, as bits of the result's type. added: bits
    of what each is added to. A may be in the registers of a warp, whose first row its place has. sparse: selector and
    metadata of a warp's lanes; all elements are in its rows then."""
    b = _matrix(right, contents[1])
    rows, columns = (np.array([element[at] for element in elements]) for at in (0, 1))
    first = int(rows.min()) // _WARP_ROWS * _WARP_ROWS
    if left[0] == "registers":
        registers = np.frombuffer(contents[0][0], np.uint32).reshape(-1, 32)
        codes = factor_rows(registers, BITS[left[4]])
    else:
        codes = _codes(left, contents[0])[first : first + _WARP_ROWS]
    if sparse is not None:
        selector, words = sparse
        codes = expand(codes, sparse_columns(left[4], 2 * left[3], selector, np.frombuffer(words, np.uint32)))
    a = _numbers(left[4], np.ascontiguousarray(codes))
    sums = np.einsum("ek,ek->e", a[rows - first], b[columns])
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
